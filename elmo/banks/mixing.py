"""Similarity of tokens under any mix of layers, in closed form.

With s the normalized weights, h_k the layers of a query and g_k those of a bank row, the mixes
are ``sum_k s_k h_k`` and ``sum_k s_k g_k`` (Peters et al. 2018, equation 1), and so

    <mix h, mix g>  =  sum over pairs k <= l of  s_k s_l * p_kl
    p_kk = <h_k, g_k>,   p_kl = <h_k, g_l> + <h_l, g_k>  for k < l.

A row needs L (L + 1) / 2 such products with the query and as many with itself. Once they are
known, every mix is a small weighted sum, on the server and in the browser alike. Pairs are always
in the order of ``layer_pairs``. The scale gamma leaves cosines alone.
"""

from __future__ import annotations

import numpy as np

METRICS = ("cosine", "dot", "euclidean")


def layer_pairs(n_layers: int) -> list[tuple[int, int]]:
    """(0, 0), (0, 1), ..., (L-1, L-1): every pair k <= l once."""
    return [(k, m) for k in range(n_layers) for m in range(k, n_layers)]


def pair_weights(s: np.ndarray) -> np.ndarray:
    """s_k s_l of every pair: (..., L) -> (..., L (L + 1) / 2) float64."""
    s = np.asarray(s, dtype=np.float64)
    return np.stack([s[..., k] * s[..., m] for k, m in layer_pairs(s.shape[-1])], axis=-1)


def pair_products(rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """p_kl of every row with one query: (N, L, D) and (L, D) -> (N, pairs) float32."""
    n, n_layers, width = rows.shape
    if query.shape != (n_layers, width):
        raise ValueError(f"query has shape {query.shape}, the rows are {(n_layers, width)} each")
    table = (rows.reshape(n * n_layers, width) @ query.T).reshape(n, n_layers, n_layers)
    return _symmetric_pairs(table)


def pair_norms(rows: np.ndarray) -> np.ndarray:
    """p_kl of every row with itself, for the squared length of its mix: (N, pairs) float32."""
    return _symmetric_pairs(np.matmul(rows, rows.transpose(0, 2, 1)))


def _symmetric_pairs(table: np.ndarray) -> np.ndarray:
    """(N, L, L) inner products of layers -> (N, pairs), both orders of a pair added up."""
    columns = [
        table[:, k, k] if k == m else table[:, k, m] + table[:, m, k]
        for k, m in layer_pairs(table.shape[-1])
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def similarity(
    products: np.ndarray,
    norms: np.ndarray,
    query_norm: np.ndarray,
    s: np.ndarray,
    metric: str = "cosine",
    gamma: float = 1.0,
) -> np.ndarray:
    """(N,) float64 similarity of every row's mix to the query's mix.

    products, norms: (N, pairs); query_norm: (pairs,); s: (L,) normalized weights.
    metric: ``cosine`` (0 where a vector is zero), ``dot``, or ``euclidean``, which is a distance:
    the smaller the nearer. Raises ``ValueError`` on any other.
    """
    weights = pair_weights(s)
    dot = products @ weights
    squared = np.maximum(norms @ weights, 0)
    query_squared = max(float(query_norm @ weights), 0.0)
    if metric == "cosine":
        length = np.sqrt(squared * query_squared)
        return np.divide(dot, length, out=np.zeros_like(dot), where=length > 0)
    if metric == "dot":
        return gamma**2 * dot
    if metric == "euclidean":
        return abs(gamma) * np.sqrt(np.maximum(squared + query_squared - 2 * dot, 0))
    raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")


def nearest(scores: np.ndarray, k: int, metric: str = "cosine") -> np.ndarray:
    """Indices of the k nearest rows, nearest first; of equal rows the earlier one first.

    Rows whose score is NaN are left out.
    """
    order = scores if metric == "euclidean" else -scores
    ranked = np.argsort(order, kind="stable")
    return ranked[~np.isnan(scores[ranked])][:k]


def simplex_grid(steps: int, n_layers: int = 3) -> np.ndarray:
    """(G, L) weights that sum to 1, evenly spaced over all mixes of L layers.

    Ordered by the weight of the last layer, then of the one before, rising. For three layers
    G = (steps + 1) (steps + 2) / 2.
    """
    points = [()]
    for _ in range(n_layers - 1):  # from the last layer down; the first takes what is left
        points = [(i, *p) for p in points for i in range(steps + 1 - sum(p))]
    points = sorted(points, key=lambda p: p[::-1])
    return np.array([(steps - sum(p), *p) for p in points], dtype=np.float64) / steps
