"""Scores that are ratios of sums over sentences, and their intervals.

Accuracy is correct / all; F1 is 2 true positives / (predicted + gold). Kept as two numbers a test
sentence, any of them can be recomputed on resampled sentences: tokens of one sentence are not
independent, so that sentences are what the bootstrap draws (Efron and Tibshirani 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

N_RESAMPLES = 2_000
BOOTSTRAP_SEED = 20_240_101


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval; all in points (percent)."""

    mean: float
    low: float
    high: float


def per_sentence(
    numerator: np.ndarray, denominator: np.ndarray, sentence: np.ndarray, n_sentences: int
) -> np.ndarray:
    """(n_sentences, 2) float32 sums of examples' numerators and denominators."""
    return np.stack(
        [np.bincount(sentence, x, minlength=n_sentences) for x in (numerator, denominator)], axis=1
    ).astype(np.float32)


def ratio(counts: np.ndarray) -> float:
    """100 * sum of numerators / sum of denominators; 0 where there is nothing to count."""
    numerator, denominator = counts.sum(axis=0, dtype=np.float64)
    return float(100 * numerator / denominator) if denominator else 0.0


def entity_spans(labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """(start, end, type) of the entities in one sentence's BIO labels.

    An ``I`` that continues nothing opens an entity, as in the CoNLL evaluation script.
    """
    spans, start, kind = set(), 0, ""
    for i, label in enumerate([*labels, "O"]):
        prefix, _, name = label.partition("-")
        if kind and (prefix != "I" or name != kind):
            spans.add((start, i, kind))
            kind = ""
        if prefix in ("B", "I") and not kind:
            start, kind = i, name
    return spans


def entity_counts(
    gold: Sequence[str], predicted: Sequence[str], sentence: np.ndarray, n_sentences: int
) -> np.ndarray:
    """(n_sentences, 2): 2 true positives, and predicted plus gold entities, for exact-span F1."""
    counts = np.zeros((n_sentences, 2), dtype=np.float32)
    for i in np.unique(sentence):
        rows = np.flatnonzero(sentence == i)
        true = entity_spans([gold[r] for r in rows])
        found = entity_spans([predicted[r] for r in rows])
        counts[i] = 2 * len(true & found), len(true) + len(found)
    return counts


def resample(n_sentences: int, n_seeds: int, n_resamples: int = N_RESAMPLES) -> Resamples:
    """The same draws for everything that is to be compared on the same sentences and seeds."""
    rng = np.random.default_rng([BOOTSTRAP_SEED, n_sentences, n_seeds])
    sentences = rng.multinomial(n_sentences, np.full(n_sentences, 1 / n_sentences), n_resamples)
    seeds = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), n_resamples) / n_seeds
    return Resamples(sentences.astype(np.float32), seeds)


@dataclass(frozen=True)
class Resamples:
    """How often each sentence is drawn (R, n_sentences), and each seed's share (R, n_seeds)."""

    sentences: np.ndarray
    seeds: np.ndarray

    def scores(self, counts: np.ndarray) -> np.ndarray:
        """(R + 1,) scores in points of (n_seeds, n_sentences, 2); the first is the plain mean over
        seeds, the others of resampled sentences and seeds."""
        sums = np.einsum("rn,snk->rsk", self.sentences, counts.astype(np.float32), optimize=True)
        drawn = 100 * np.divide(
            sums[..., 0], sums[..., 1], out=np.zeros(sums.shape[:2]), where=sums[..., 1] > 0
        )
        plain = np.mean([ratio(c) for c in counts])
        return np.concatenate([[plain], (drawn * self.seeds).sum(axis=1)])


def interval(scores: np.ndarray) -> Interval:
    """Mean and percentile interval of what ``Resamples.scores`` returns, or a difference of two.

    A difference of scores drawn with the same ``Resamples`` is a paired bootstrap.
    """
    low, high = np.percentile(scores[1:], [2.5, 97.5])
    # without the last digits, in which sums of equal numbers differ from 0
    return Interval(*(round(float(x), 9) for x in (scores[0], low, high)))
