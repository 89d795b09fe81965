"""How well a model fills held-out gaps: the one score on which one-sided and joint models meet.

A forward model sees what is left of the gap, a backward model what is right of it. Their product
divided by the word's frequency, p_f p_b / p_unigram, is what the word would have if left and
right were independent given the word; exponents soften that assumption.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elmo.language_model import LanguageModel
from elmo.training.batches import GAP_TYPE
from elmo.training.corpus import Corpus
from elmo.training.evaluate import products_in, read_both_ways, type_vectors

ROWS = 256  # gaps at a time, each with its whole vocabulary
N_TUNING = 2_000
BOUNDARIES = 2  # the first vocabulary ids: never in a gap


@dataclass(frozen=True)
class GapScore:
    """Mean natural log-probability of held-out gaps, and the share where the word comes first."""

    log_probability: float
    accuracy: float


@dataclass(frozen=True)
class Exponents:
    """p ~ (p_f p_b)^sides / p_unigram^unigram, normalized over the vocabulary."""

    sides: float
    unigram: float


PLAIN_PRODUCT = Exponents(1.0, 1.0)
SOFT_PRODUCT = Exponents(0.85, 0.6)  # the shipped biLM's best; fixed while models learn


def random_gaps(corpus: Corpus, n_gaps: int, seed: int = 0) -> np.ndarray:
    """(n, 2) sentence numbers and positions of distinct random tokens, in order; all tokens if
    there are fewer."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(corpus.n_tokens)[:n_gaps])
    sentence = np.searchsorted(corpus.offsets, chosen, side="right") - 1
    return np.stack([sentence, chosen - corpus.offsets[sentence]], axis=1)


class _Tally:
    """Sums of log-probabilities and hits, over rows of logits; boundaries are no candidates."""

    def __init__(self) -> None:
        self.total, self.correct, self.n = 0.0, 0, 0

    def add(self, logits: Tensor, target: Tensor) -> None:
        logits[:, :BOUNDARIES] = float("-inf")
        truth = logits.gather(1, target[:, None])[:, 0]
        self.total += float((truth - torch.logsumexp(logits, 1)).double().sum())
        self.correct += int((logits.argmax(1) == target).sum())
        self.n += len(target)

    def score(self) -> GapScore:
        return GapScore(self.total / self.n, self.correct / self.n)


def _sides(
    model: LanguageModel, vocabulary: list[str], corpus: Corpus, gaps: np.ndarray
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Blocks of gaps: log p_f (N, V), log p_b (N, V) and the word (N,)."""
    words = torch.from_numpy(corpus.word_ids(vocabulary)[corpus.ids])
    target = words[torch.from_numpy(corpus.offsets[gaps[:, 0]] + gaps[:, 1])]
    states = torch.empty(2, len(gaps), model.config.stack.d_input)
    first = np.searchsorted(gaps[:, 0], np.arange(corpus.n_sentences + 1))
    for sentences, _, forward, backward in read_both_ways(model, corpus):
        gap = np.concatenate([np.arange(first[s], first[s + 1]) for s in sentences])
        row = np.repeat(np.arange(len(sentences)), first[sentences + 1] - first[sentences])
        position = gaps[gap, 1]  # of the token; one less than its place in the framed sentence
        states[0, gap] = forward[row, position].float().cpu()
        states[1, gap] = backward[row, position + 2].float().cpu()
    device = model.head.weight.device
    for rows in torch.arange(len(gaps)).split(ROWS):
        log_p = torch.log_softmax(model.head(states[:, rows].to(device)).float(), dim=-1)
        yield log_p[0], log_p[1], target[rows].to(device)


def _product(forward: Tensor, backward: Tensor, unigram: Tensor, exponents: Exponents) -> Tensor:
    return exponents.sides * (forward + backward) - exponents.unigram * unigram


@torch.inference_mode()
def one_sided_scores(
    model: LanguageModel,
    vocabulary: list[str],
    unigram: np.ndarray,
    corpus: Corpus,
    gaps: np.ndarray,
    exponents: Exponents,
    dtype: torch.dtype = torch.float32,
) -> dict[str, GapScore]:
    """Scores of a forward and a backward language model: ``forward`` (left only), ``backward``
    (right only), ``product`` (exponents 1) and ``tuned_product``."""
    device = model.head.weight.device
    log_u = torch.from_numpy(unigram).to(device)
    tallies = {name: _Tally() for name in ("forward", "backward", "product", "tuned_product")}
    with products_in(dtype, device):
        for forward, backward, target in _sides(model, vocabulary, corpus, gaps):
            tallies["forward"].add(forward, target)
            tallies["backward"].add(backward, target)
            tallies["product"].add(_product(forward, backward, log_u, PLAIN_PRODUCT), target)
            tallies["tuned_product"].add(_product(forward, backward, log_u, exponents), target)
    return {name: tally.score() for name, tally in tallies.items()}


@torch.inference_mode()
def tune_exponents(
    model: LanguageModel,
    vocabulary: list[str],
    unigram: np.ndarray,
    corpus: Corpus,
    gaps: np.ndarray,
) -> Exponents:
    """The best exponents of a grid, by log-probability."""
    log_u = torch.from_numpy(unigram).to(model.head.weight.device)
    grid = [
        Exponents(sides, share)
        for sides in (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
        for share in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    ]
    tallies = [_Tally() for _ in grid]
    for forward, backward, target in _sides(model, vocabulary, corpus, gaps):
        for exponents, tally in zip(grid, tallies, strict=True):
            tally.add(_product(forward, backward, log_u, exponents), target)
    return grid[int(np.argmax([tally.total for tally in tallies]))]


@torch.inference_mode()
def joint_score(
    model: LanguageModel,
    vocabulary: list[str],
    corpus: Corpus,
    gaps: np.ndarray,
    dtype: torch.dtype = torch.float32,
) -> GapScore:
    """A masked language model's score, each gap alone in its sentence."""
    device = model.head.weight.device
    words = torch.from_numpy(corpus.word_ids(vocabulary)).to(device)
    tally = _Tally()
    with products_in(dtype, device):
        vectors = type_vectors(model, corpus)
        order = np.argsort(corpus.lengths[gaps[:, 0]], kind="stable")
        lengths = corpus.lengths[gaps[order, 0]]
        for group in np.split(order, np.flatnonzero(np.diff(lengths)) + 1):
            for start in range(0, len(group), ROWS):
                part = gaps[group[start : start + ROWS]]
                framed = torch.from_numpy(corpus.framed(part[:, 0])).long().to(device)
                row = torch.arange(len(part), device=device)
                position = torch.from_numpy(part[:, 1] + 1).to(device)
                target = words[framed[row, position]]
                framed[row, position] = GAP_TYPE
                full = torch.full((len(part),), framed.shape[1], device=device)
                layers, _ = model.layers(vectors[framed], full)
                top = model.read(layers[-1][row, position], "joint")
                tally.add(model.head(top).float(), target)
    return tally.score()
