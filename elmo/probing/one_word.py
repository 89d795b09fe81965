"""One word in many sentences: what each layer makes of its copies, and of an edited sentence.

Self-similarity, intra-sentence similarity and the baseline of random tokens are those of
Ethayarajh 2019 (``metrics``), here for a single word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from elmo.probing.metrics import (
    intra_sentence_similarity,
    norms,
    one_per_sentence,
    self_similarity,
)


@dataclass(frozen=True)
class WordLayers:
    """n occurrences of one spelling, by layer; (L,) each.

    n_points: different vectors among them; 1 where all copies coincide.
    farthest: Euclidean distance of the two farthest, exactly 0 where all coincide.
    similarity: NaN for a single occurrence. within: mean intra-sentence similarity of the
    sentences they stand in.
    """

    n: int
    n_sentences: int
    n_points: np.ndarray
    farthest: np.ndarray
    similarity: np.ndarray
    within: np.ndarray


@dataclass(frozen=True)
class Moves:
    """The tokens that two versions of a sentence share, and how far their vectors moved.

    pairs: positions (before, after). distance: (parts, L, n) Euclidean, over the length of the
    vector before (whole, then its halves where there are two). zero: (parts, L, n), where not one
    number differs.
    """

    pairs: tuple[tuple[int, int], ...]
    distance: np.ndarray
    zero: np.ndarray


def word_layers(occurrences: np.ndarray, sentences: Sequence[np.ndarray]) -> WordLayers:
    """occurrences (n, L, D); sentences: (T, L, D) each, those in which they stand."""
    n, n_layers, _ = occurrences.shape
    distinct = [np.unique(occurrences[:, k], axis=0) for k in range(n_layers)]
    return WordLayers(
        n=n,
        n_sentences=len(sentences),
        n_points=np.array([len(points) for points in distinct]),
        farthest=np.array([_farthest(points) for points in distinct]),
        similarity=self_similarity(occurrences),
        within=np.mean([intra_sentence_similarity(s.swapaxes(0, 1)) for s in sentences], axis=0),
    )


def random_tokens(vectors: np.ndarray, sentence: np.ndarray) -> tuple[np.ndarray, int]:
    """(L,) mean cosine of one random token from every sentence, and how many those are."""
    rows = one_per_sentence(sentence)
    return self_similarity(vectors[rows]), len(rows)


def split_halves(hidden: np.ndarray, halves: bool) -> list[np.ndarray]:
    """(..., D) -> the whole, and its forward and backward half where a vector has two."""
    width = hidden.shape[-1] // 2
    return [hidden, hidden[..., :width], hidden[..., width:]] if halves else [hidden]


def moves(
    before: Sequence[str],
    after: Sequence[str],
    hidden_before: np.ndarray,
    hidden_after: np.ndarray,
    halves: bool,
) -> Moves:
    """Two versions of a sentence with their vectors, (L, T, D) each."""
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    pairs = [(a + i, b + i) for a, b, size in blocks for i in range(size)]
    old, new = hidden_before[:, [a for a, _ in pairs]], hidden_after[:, [b for _, b in pairs]]
    distance, zero = [], []
    for one, other in zip(split_halves(old, halves), split_halves(new, halves), strict=True):
        length = norms(one)
        gap = norms(one.astype(np.float64) - other)
        distance.append(np.divide(gap, length, out=np.zeros_like(gap), where=length > 0))
        zero.append((one == other).all(axis=-1))
    return Moves(tuple(pairs), np.stack(distance), np.stack(zero))


def _farthest(points: np.ndarray) -> float:
    """Of distinct points (n, D)."""
    if len(points) < 2:
        return 0.0
    points = points.astype(np.float64)
    return float(max(norms(points - point).max() for point in points))
