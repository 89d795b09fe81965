"""What a bank knows about its rows without their vectors: means, products, words, tags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from elmo.banks.mixing import layer_pairs, pair_norms, pair_products
from elmo.banks.tagged import Tag

ROWS_PER_BLOCK = 16_384


@dataclass(frozen=True)
class Means:
    """A bank's mean vector of each layer, (L, D) float32: as they are, and scaled to length 1."""

    raw: np.ndarray
    unit: np.ndarray


def mean_vectors(vectors: np.ndarray) -> Means:
    """Means over the rows of (N, L, D), summed up in float64, in blocks."""
    n, *shape = vectors.shape
    raw, unit = np.zeros(shape), np.zeros(shape)
    for block in _blocks(vectors):
        raw += block.sum(axis=0, dtype=np.float64)
        length = np.linalg.norm(block, axis=-1, keepdims=True)
        unit += np.divide(block, length, out=np.zeros_like(block), where=length > 0).sum(
            axis=0, dtype=np.float64
        )
    return Means((raw / max(n, 1)).astype(np.float32), (unit / max(n, 1)).astype(np.float32))


def row_products(vectors: np.ndarray, means: Means) -> np.ndarray:
    """(3, pairs, N) float32: norms, products with the mean, and of unit vectors with theirs."""
    n, n_layers, _ = vectors.shape
    found = np.empty((3, len(layer_pairs(n_layers)), n), dtype=np.float32)
    start = 0
    for block in _blocks(vectors):
        end = start + len(block)
        norms = pair_norms(block)
        unit = block * unit_scale(norms, n_layers)[:, :, None]
        found[0, :, start:end] = norms.T
        found[1, :, start:end] = pair_products(block, means.raw).T
        found[2, :, start:end] = pair_products(unit, means.unit).T
        start = end
    return found


def _blocks(vectors: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        yield np.asarray(vectors[start : start + ROWS_PER_BLOCK], dtype=np.float32)


def unit_scale(norms: np.ndarray, n_layers: int) -> np.ndarray:
    """1 / length of each layer, from (N, pairs): (N, L) float32; 0 for a vector of zeros."""
    own = [i for i, (k, m) in enumerate(layer_pairs(n_layers)) if k == m]
    length = np.sqrt(np.maximum(norms[:, own], 0))
    return np.divide(1, length, out=np.zeros_like(length), where=length > 0)


def index_words(sentences: Iterable[Sequence[str]]) -> tuple[np.ndarray, tuple[str, ...]]:
    """(N,) int32 index of each token, and the distinct tokens, case folded."""
    ids: dict[str, int] = {}
    rows = [ids.setdefault(token.casefold(), len(ids)) for tokens in sentences for token in tokens]
    return np.array(rows, dtype=np.int32), tuple(ids)


def index_tags(
    lengths: Sequence[int] | np.ndarray, tags: Mapping[int, Sequence[Tag]]
) -> tuple[np.ndarray, tuple[Tag, ...]]:
    """(N,) index of each row's tag, -1 for none, and the distinct tags without their position.

    lengths: of every sentence, its number of rows; tags: of the sentences that have any.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.full(starts[-1], -1, dtype=np.int32)
    ids: dict[Tag, int] = {}
    for sentence, found in tags.items():
        for tag in found:
            if tag.position < lengths[sentence]:
                row = starts[sentence] + tag.position
                rows[row] = ids.setdefault(replace(tag, position=0), len(ids))
    return rows, tuple(ids)
