"""Maps of tokens: few coordinates in one linear basis for all layers of an encoder.

Because the basis is linear and shared, the map of a mix is exactly the mix of the layers' maps
(their scales put back), which is what lets a browser move the points while a weight is dragged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elmo.banks.bank import TokenBank

N_NEIGHBORS = 5


@dataclass(frozen=True)
class Basis:
    """Directions for a map's axes, orthonormal: (D, A) for all layers, or (L, D, A) where each has
    its own (``layer_maps``); the first two make the flat map.

    mean: (L, D), subtracted from each layer; scale: (L,), what each layer is divided by. Layers of
    one model differ in length by a factor of ten or more; in units of their own spread they fit
    one frame.
    """

    mean: np.ndarray
    scale: np.ndarray
    axes: np.ndarray

    def project(self, vectors: np.ndarray) -> np.ndarray:
        """(N, L, D) -> (N, L, A) float32 coordinates in units of each layer's spread."""
        vectors = self.standardize(vectors)
        if self.axes.ndim == 2:
            return (vectors @ self.axes).astype(np.float32)
        by_layer = vectors.transpose(1, 0, 2) @ self.axes
        return by_layer.transpose(1, 0, 2).astype(np.float32)

    def standardize(self, vectors: np.ndarray) -> np.ndarray:
        """(N, L, D), each layer about its mean and in units of its spread."""
        return (vectors - self.mean) / self.scale[:, None]


def spread(vectors: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """(L,) root mean square distance of (N, L, D) from each layer's mean; 1 where it is 0."""
    squared = np.square(vectors - mean).sum(axis=2).mean(axis=0)
    return np.where(squared > 0, np.sqrt(squared), 1.0).astype(np.float32)


def mix_spread(bank: TokenBank) -> np.ndarray:
    """(pairs,) from which the spread of any mix follows: with its pair weights (``mixing``),
    the mean squared distance of the rows' mixes from their mean."""
    return (bank.norms - 2 * bank.mean_products + bank.mean_norm).mean(axis=0)


def word_rows(bank: TokenBank) -> np.ndarray:
    """Rows whose token has a letter or a digit: everything but punctuation."""
    found = [i for i in range(len(bank)) if any(c.isalnum() for c in bank.token(i))]
    return np.array(found, dtype=np.int64)


def fit_basis(vectors: np.ndarray, scale: np.ndarray | None = None, n_axes: int = 2) -> Basis:
    """Principal components of all layers' vectors (N, L, D), each layer about its own mean.

    scale: what layers are divided by first; their own spread if absent, so that all count alike.
    Deterministic: the sign of an axis makes its largest loading positive. Needs two rows; where
    the vectors span fewer directions than ``n_axes``, the missing axes are zero.
    """
    if len(vectors) < 2:
        raise ValueError(f"a basis needs 2 tokens or more, got {len(vectors)}")
    mean = vectors.mean(axis=0)
    scale = spread(vectors, mean) if scale is None else scale
    flat = ((vectors - mean) / scale[:, None]).reshape(-1, vectors.shape[-1]).astype(np.float32)
    if len(flat) <= flat.shape[1]:  # few rows: the same components from the small side
        _, values, components = np.linalg.svd(flat, full_matrices=False)
        axes, reach = components[:n_axes].T, values[:n_axes]
    else:
        values, components = np.linalg.eigh((flat.T @ flat).astype(np.float64))
        axes = components[:, ::-1][:, :n_axes]
        reach = np.sqrt(np.maximum(values[::-1][:n_axes], 0))
    missing = n_axes - axes.shape[1]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    axes[:, reach <= 1e-6 * max(float(reach[0]), 1e-12)] = 0
    axes = np.pad(axes, ((0, 0), (0, missing)))
    return Basis(mean.astype(np.float32), scale, axes.astype(np.float32))


def variance_kept(vectors: np.ndarray, coordinates: np.ndarray) -> float:
    """Share of the variance of (N, L, D), within layers, that (N, L, A) coordinates keep."""
    total = float(np.square(vectors - vectors.mean(axis=0)).sum())
    kept = float(np.square(coordinates - coordinates.mean(axis=0)).sum())
    return kept / total if total > 0 else 1.0


def neighbors_kept(vectors: np.ndarray, coordinates: np.ndarray, k: int = N_NEIGHBORS) -> float:
    """The mean of ``neighbor_shares`` over tokens and layers; 1 where there are none."""
    return mean_share(np.concatenate(neighbor_shares(vectors, coordinates, k)))


def mean_share(shares: np.ndarray) -> float:
    return float(shares.mean()) if len(shares) else 1.0


def neighbor_shares(
    vectors: np.ndarray, coordinates: np.ndarray, k: int = N_NEIGHBORS
) -> list[np.ndarray]:
    """Share of each token's k nearest distinct tokens (Euclidean) that are so on the map as well.

    vectors (N, L, D), coordinates (N, L, A). One array a layer. Identical vectors count once, so
    that copies of a word in layer 0 do not decide the figure; a layer of one vector has none.
    """
    shares = []
    for layer in range(vectors.shape[1]):
        first = _distinct(vectors[:, layer])
        n_neighbors = min(k, len(first) - 1)
        if n_neighbors < 1:
            shares.append(np.zeros(0))
            continue
        true = _nearest(vectors[first, layer], n_neighbors)
        drawn = _nearest(coordinates[first, layer], n_neighbors)
        shares.append((true[:, :, None] == drawn[:, None, :]).any(axis=2).mean(axis=1))
    return shares


def _distinct(vectors: np.ndarray) -> np.ndarray:
    """The first row of each group of identical ones, rising."""
    first: dict[bytes, int] = {}
    for i, row in enumerate(vectors + 0.0):  # -0 becomes 0
        first.setdefault(row.tobytes(), i)
    return np.array(list(first.values()), dtype=np.int64)


def _nearest(points: np.ndarray, k: int) -> np.ndarray:
    """(N, D) -> (N, k) indices of the nearest others, in no particular order."""
    squared = np.square(points).sum(axis=1)
    distance = squared[:, None] + squared[None, :] - 2 * points @ points.T
    np.fill_diagonal(distance, np.inf)
    return np.argpartition(distance, k - 1, axis=1)[:, :k]
