"""Maps of tokens: two coordinates in one linear basis for all layers of an encoder.

Because the basis is linear and shared, the map of a mix is exactly the mix of the layers' maps
(their scales put back), which is what lets a browser move the points while a weight is dragged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elmo.bank import TokenBank

N_NEIGHBORS = 5


@dataclass(frozen=True)
class Basis:
    """Two directions (D, 2), orthonormal, for all layers.

    mean: (L, D), subtracted from each layer; scale: (L,), what each layer is divided by. Layers of
    one model differ in length by a factor of ten or more; in units of their own spread they fit
    one frame.
    """

    mean: np.ndarray
    scale: np.ndarray
    axes: np.ndarray

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """(N, L, D) -> (N, L, 2) float32 coordinates in units of each layer's spread."""
        return (self.standardize(vectors) @ self.axes).astype(np.float32)

    def standardize(self, vectors: np.ndarray) -> np.ndarray:
        """(N, L, D), each layer about its mean and in units of its spread."""
        return (vectors - self.mean) / self.scale[:, None]


def spread(vectors: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """(L,) root mean square distance of (N, L, D) from each layer's mean; 1 where it is 0."""
    squared = np.square(vectors - mean).sum(axis=2).mean(axis=0)
    return np.where(squared > 0, np.sqrt(squared), 1.0).astype(np.float32)


def mix_spread(bank: TokenBank) -> np.ndarray:
    """(pairs,) from which the spread of any mix follows: with its pair weights (``elmo.mixing``),
    the mean squared distance of the rows' mixes from their mean."""
    return (bank.norms - 2 * bank.mean_products + bank.mean_norm).mean(axis=0)


def word_rows(bank: TokenBank) -> np.ndarray:
    """Rows whose token has a letter or a digit: everything but punctuation."""
    found = [i for i in range(len(bank)) if any(c.isalnum() for c in bank.token(i))]
    return np.array(found, dtype=np.int64)


def fit_basis(vectors: np.ndarray, scale: np.ndarray | None = None) -> Basis:
    """Principal components of all layers' vectors (N, L, D), each layer about its own mean.

    scale: what layers are divided by first; their own spread if absent, so that all count alike.
    Deterministic: the sign of an axis makes its largest loading positive. Needs two rows; where
    the vectors span less than two directions, the missing axis is zero.
    """
    if len(vectors) < 2:
        raise ValueError(f"a basis needs 2 tokens or more, got {len(vectors)}")
    mean = vectors.mean(axis=0)
    scale = spread(vectors, mean) if scale is None else scale
    flat = ((vectors - mean) / scale[:, None]).reshape(-1, vectors.shape[-1]).astype(np.float32)
    if len(flat) <= flat.shape[1]:  # few rows: the same components from the small side
        _, values, components = np.linalg.svd(flat, full_matrices=False)
        axes, reach = components[:2].T, values[:2]
    else:
        values, components = np.linalg.eigh((flat.T @ flat).astype(np.float64))
        axes, reach = components[:, ::-1][:, :2], np.sqrt(np.maximum(values[::-1][:2], 0))
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    axes[:, reach <= 1e-6 * max(float(reach[0]), 1e-12)] = 0
    return Basis(mean.astype(np.float32), scale, axes.astype(np.float32))


def variance_kept(vectors: np.ndarray, coordinates: np.ndarray) -> float:
    """Share of the variance of (N, L, D), within layers, that (N, L, 2) coordinates keep."""
    total = float(np.square(vectors - vectors.mean(axis=0)).sum())
    kept = float(np.square(coordinates - coordinates.mean(axis=0)).sum())
    return kept / total if total > 0 else 1.0


def neighbors_kept(vectors: np.ndarray, coordinates: np.ndarray, k: int = N_NEIGHBORS) -> float:
    """Share of each token's k nearest distinct tokens (Euclidean) that are so on the map as well.

    vectors (N, L, D), coordinates (N, L, 2); the mean over tokens and layers. Identical vectors
    count once, so that copies of a word in layer 0 do not decide the figure.
    """
    shares = []
    for layer in range(vectors.shape[1]):
        _, first = np.unique(vectors[:, layer], axis=0, return_index=True)
        first.sort()
        n_neighbors = min(k, len(first) - 1)
        if n_neighbors < 1:
            continue
        true = _nearest(vectors[first, layer], n_neighbors)
        drawn = _nearest(coordinates[first, layer], n_neighbors)
        shares += [np.isin(t, d).mean() for t, d in zip(true, drawn, strict=True)]
    return float(np.mean(shares)) if shares else 1.0


def _nearest(points: np.ndarray, k: int) -> np.ndarray:
    """(N, D) -> (N, k) indices of the nearest others, in no particular order."""
    squared = np.square(points).sum(axis=1)
    distance = squared[:, None] + squared[None, :] - 2 * points @ points.T
    np.fill_diagonal(distance, np.inf)
    return np.argpartition(distance, k - 1, axis=1)[:, :k]
