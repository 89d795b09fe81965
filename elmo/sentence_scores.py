"""How probable a language model finds each token of a sentence, from the left and from the right.

Needs a softmax over words: our own models have one; for the original format it is a file of its
own with a vocabulary (``load_elmo(softmax=..., vocabulary=...)``). The full softmax is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from elmo.encoders import Encoder
from elmo.text import BOS, EOS, UNK

MAX_LOGITS = 1 << 25  # at a time; the original vocabulary has 793,471 words


@dataclass(frozen=True)
class Perplexity:
    """exp of the mean negative log-probability over n + 1 predictions a sentence: the words and
    the end (backward: the beginning); unknown words are one class. ``mean`` is geometric."""

    forward: float
    backward: float
    mean: float


@dataclass(frozen=True)
class SentenceScore:
    """Natural log-probabilities; a word outside the vocabulary counts as ``<UNK>``.

    tokens: T strings.
    forward: (T + 1,) of each token and the end given what precedes it.
    backward: (T + 1,) of the beginning and each token given what follows it.
    """

    tokens: tuple[str, ...]
    forward: np.ndarray
    backward: np.ndarray


def score_sentences(encoder: Encoder, sentences: Sequence[Sequence[str]]) -> list[SentenceScore]:
    """One score a sentence. Raises ``ValueError`` for an encoder without a softmax, and for one
    that reads both ways at once."""
    if encoder.checkpoint is None or encoder.model.head is None:
        raise ValueError(
            f"the {encoder.name} encoder has no softmax: give softmax= and vocabulary="
        )
    if not encoder.halves:
        raise ValueError(f"the {encoder.name} encoder reads both ways at once: no left-to-right")
    ids = encoder.checkpoint.word_ids
    encodings = encoder.encode(sentences, layers="top", keep_boundaries=True)
    framed = [[BOS, *encoding.tokens[1:-1], EOS] for encoding in encodings]
    words = [np.array([ids.get(token, ids[UNK]) for token in tokens]) for tokens in framed]
    scores = []
    for direction in (0, 1):
        states = [np.split(e.hidden, 2, axis=-1)[direction] for e in encodings]
        if direction == 0:
            pairs = [(s[:-1], w[1:]) for s, w in zip(states, words, strict=True)]
        else:
            pairs = [(s[1:], w[:-1]) for s, w in zip(states, words, strict=True)]
        scores.append(_log_probabilities(encoder, direction, pairs))
    return [
        SentenceScore(encoding.tokens[1:-1], forward, backward)
        for encoding, forward, backward in zip(encodings, *scores, strict=True)
    ]


def _log_probabilities(
    encoder: Encoder, direction: int, pairs: list[tuple[np.ndarray, np.ndarray]]
) -> list[np.ndarray]:
    """Of each target word under its state, sentence by sentence."""
    if not pairs:
        return []
    device = encoder.model.head.weight.device
    states = torch.from_numpy(np.concatenate([s for s, _ in pairs])).to(device)
    targets = torch.from_numpy(np.concatenate([w for _, w in pairs])).to(device)
    n_rows = max(1, MAX_LOGITS // len(encoder.model.head.weight))
    found = []
    with torch.inference_mode():
        for h, target in zip(states.split(n_rows), targets.split(n_rows), strict=True):
            h = encoder.model.read(h, ("forward", "backward")[direction])
            log_p = torch.log_softmax(encoder.model.head(h), dim=-1)
            found.append(log_p.gather(1, target[:, None])[:, 0].cpu())
    ends = np.cumsum([len(w) for _, w in pairs])[:-1]
    return np.split(torch.cat(found).numpy(), ends)


def perplexity(scores: Sequence[SentenceScore]) -> Perplexity:
    """exp of the mean negative log-probability over all tokens and sentence ends; ``mean`` is
    the geometric mean of the two directions."""
    if not scores:
        raise ValueError("no sentences to take a perplexity of")
    forward, backward = (
        -np.concatenate(part).astype(np.float64).mean()
        for part in zip(*((s.forward, s.backward) for s in scores), strict=True)
    )
    return Perplexity(*(float(np.exp(x)) for x in (forward, backward, (forward + backward) / 2)))
