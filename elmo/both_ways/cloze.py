"""Fill the gap: from the left, from the right, from their product, or from both at once.

A language model gives p(w | left) and p(w | right). If the two sides were independent given the
word, Bayes' rule would join them as

    p(w | left, right) ~ p(w | left) p(w | right) / p(w)

and that is the best that concatenated directions can do with a product. Real sides are not
independent, so the three factors get exponents, tuned on held-out text. A masked language model
reads both sides together and needs no such rule.

A gap holds a word: ``<S>`` and ``</S>`` are left out of every distribution and the rest is
renormalized. ``<UNK>`` stays, as the class of all words outside the vocabulary.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import torch
from torch import Tensor

from elmo.checkpoint import Checkpoint
from elmo.encoders import Encoder
from elmo.results import GapGuess
from elmo.text import BOS, EOS, MASK, UNK

PREDICTORS = {
    "bilm": ("forward", "backward", "product"),
    "attention_concat": ("forward", "backward", "product"),
    "attention": ("joint",),
}


@dataclass(frozen=True)
class Exponents:
    """Of p_forward, p_backward and 1 / p_unigram in the product."""

    forward: float = 0.8
    backward: float = 0.8
    unigram: float = 0.6

    def __post_init__(self) -> None:
        for name in ("forward", "backward", "unigram"):
            value = getattr(self, name)
            if not -5 <= value <= 5:  # nor where it is not a number
                raise ValueError(f"the {name} exponent must be between -5 and 5, got {value}")


def gap_log_probabilities(
    encoder: Encoder, sentences: Sequence[Sequence[str]], positions: Sequence[int]
) -> dict[str, Tensor]:
    """Natural log-probabilities (N, V) of what fills each sentence's gap, by predictor.

    ``forward`` and ``backward`` for encoders with halves, ``joint`` for the masked language
    model. The word at the gap is not read by any of them: the gap token stands in its place.
    Boundaries have -inf.

    Raises ``ValueError`` for an encoder without a softmax and for a position outside a sentence.
    """
    _checkpoint(encoder)
    gapped = []
    for sentence, position in zip(sentences, positions, strict=True):
        if not 0 <= position < len(sentence):
            raise ValueError(
                f"the gap must be word 0 to {len(sentence) - 1} of the sentence, got {position}"
            )
        gapped.append([*sentence[:position], MASK, *sentence[position + 1 :]])
    encodings = encoder.encode(gapped, layers="top", keep_boundaries=True)
    places = [position + 1 for position in positions]  # the boundary stands at 0
    if encoder.halves:
        half = encoder.d_model // 2
        states = {
            "forward": [e.hidden[i - 1, :half] for e, i in zip(encodings, places, strict=True)],
            "backward": [e.hidden[i + 1, half:] for e, i in zip(encodings, places, strict=True)],
        }
    else:
        states = {"joint": [e.hidden[i] for e, i in zip(encodings, places, strict=True)]}
    return {name: _log_softmax(encoder, name, np.stack(rows)) for name, rows in states.items()}


def product(forward: Tensor, backward: Tensor, unigram: Tensor, exponents: Exponents) -> Tensor:
    """log of p_f^a p_b^b / p_u^c, renormalized over the vocabulary: (..., V) each."""
    a, b, c = astuple(exponents)
    scores = a * forward + b * backward - c * unigram
    scores = scores.masked_fill(torch.isneginf(forward), float("-inf"))
    return torch.log_softmax(scores, dim=-1)


def log_unigram(encoder: Encoder) -> Tensor:
    """(V,) natural log-probabilities of the words alone. Raises ``ValueError`` without them."""
    unigram = _checkpoint(encoder).unigram
    if unigram is None:
        raise ValueError(f"the {encoder.name} model's folder holds no unigram probabilities")
    return torch.from_numpy(unigram)


def predictor_log_probabilities(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    positions: Sequence[int],
    exponents: Exponents | None = None,
) -> dict[str, Tensor]:
    """``gap_log_probabilities`` and, for encoders with halves, ``product``."""
    logs = gap_log_probabilities(encoder, sentences, positions)
    if encoder.halves:
        parts = logs["forward"], logs["backward"], log_unigram(encoder)
        logs["product"] = product(*parts, exponents or Exponents())
    return logs


def fill_gap(
    encoders: Sequence[Encoder],
    tokens: Sequence[str],
    position: int,
    exponents: Mapping[str, Exponents] | None = None,
    k: int = 10,
) -> list[GapGuess]:
    """Every predictor's guesses for one gap, encoder by encoder.

    The token at ``position`` is the hidden word, whose rank is asked for; the gap token there
    means that nothing is hidden. exponents: by encoder name, the defaults where it has none.
    """
    guesses = []
    for encoder in encoders:
        chosen = (exponents or {}).get(encoder.name)
        logs = predictor_log_probabilities(encoder, [tokens], [position], chosen)
        checkpoint, hidden_word = _checkpoint(encoder), tokens[position]
        for predictor, rows in logs.items():
            guesses.append(_guess(encoder.name, predictor, rows[0], checkpoint, k, hidden_word))
    return guesses


def rank_of(log_probabilities: Tensor, words: Tensor, unknown: int) -> Tensor:
    """(N,) rank of each row's word among the words of the vocabulary, 1 the likeliest."""
    own = log_probabilities.gather(1, words[:, None])
    ahead = log_probabilities > own
    ahead[:, unknown] = False
    return 1 + ahead.sum(dim=1)


def tune_exponents(
    batches: Iterable[tuple[Tensor, Tensor, Tensor]], unigram: Tensor, n_steps: int = 8
) -> Exponents:
    """The exponents that maximize the mean log-probability of held-out words under ``product``.

    batches: (forward (N, V), backward (N, V), words (N,)), read again in every step, so a list.

    The product is a log-linear model in its exponents, so the objective is concave, and Newton's
    method finds the only optimum: the gradient is the held-out word's features minus their mean
    under the product, the Hessian minus their covariance.
    """
    theta = torch.tensor(astuple(Exponents()), dtype=torch.float64)
    for _ in range(n_steps):
        gradient, curvature = torch.zeros(3).double(), torch.zeros(3, 3).double()
        for forward, backward, words in batches:
            p = product(forward, backward, unigram, Exponents(*theta.tolist())).exp().double()
            features = torch.stack([forward, backward, -unigram.expand_as(forward)], dim=-1)
            features = features.double().masked_fill(torch.isneginf(forward)[..., None], 0.0)
            mean = torch.einsum("nv,nvf->nf", p, features)
            chosen = features[torch.arange(len(words)), words]
            gradient += (chosen - mean).sum(dim=0)
            second = torch.einsum("nv,nvf,nvg->fg", p, features, features)
            curvature += second - mean.T @ mean
        step = torch.linalg.solve(curvature + 1e-6 * torch.eye(3), gradient)
        theta = (theta + step.clamp(-1, 1)).clamp(-5, 5)
    return Exponents(*theta.tolist())


def _guess(
    encoder: str, predictor: str, log_p: Tensor, checkpoint: Checkpoint, k: int, hidden_word: str
) -> GapGuess:
    unknown = checkpoint.word_ids[UNK]
    p = log_p.exp()
    named = p.clone()
    named[unknown] = -1.0
    values, rows = named.topk(min(k, len(p) - 3))
    special = hidden_word in (BOS, EOS, UNK, MASK)
    word = None if special else checkpoint.word_ids.get(hidden_word)
    return GapGuess(
        encoder=encoder,
        predictor=predictor,
        words=tuple(checkpoint.vocabulary[i] for i in rows.tolist()),
        probabilities=values.numpy(),
        hidden_word=None if hidden_word == MASK else hidden_word,
        rank=None if word is None else int(rank_of(log_p[None], torch.tensor([word]), unknown)),
        probability=None if word is None else float(p[word]),
        unknown=float(p[unknown]),
        entropy=float(torch.special.entr(p).sum() / np.log(2)),
    )


def _checkpoint(encoder: Encoder) -> Checkpoint:
    if encoder.checkpoint is None or encoder.model.head is None:
        raise ValueError(f"the {encoder.name} encoder has no softmax over words to guess with")
    return encoder.checkpoint


def _log_softmax(encoder: Encoder, direction: str, states: np.ndarray) -> Tensor:
    """(N, P) top-layer vectors -> (N, V), boundaries at -inf."""
    checkpoint = _checkpoint(encoder)
    with torch.inference_mode():
        logits = encoder.model.head(encoder.model.read(torch.from_numpy(states), direction))
        logits[:, [checkpoint.word_ids[BOS], checkpoint.word_ids[EOS]]] = float("-inf")
        return torch.log_softmax(logits, dim=-1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from elmo.both_ways import cloze_table

    cloze_table.add_arguments(parser)


def run(options: argparse.Namespace) -> None:
    """The table and the check of the gap examples: see ``cloze_table``."""
    from elmo.both_ways import cloze_table

    cloze_table.run(options)
