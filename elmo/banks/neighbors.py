"""The nearest rows of a bank under any mix: one pass over the vectors, then only small sums.

``layer_products`` is the pass: the inner products of a query's layers with every row's layers.
A ``Comparison`` is what remains of it, and answers for every mix without a vector.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch

from elmo.banks.mixing import METRICS, pair_weights

ROWS_PER_PASS = 2048  # vectors of one layer turned to float32 at once: they stay in the cache
MIXES_PER_PASS = 64
ROWS_FOR_THREADS = 60_000


def layer_products(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Inner products <layer k of a query, layer l of a row>: (Q, L, D), (N, L, D) -> (Q, L, N, L).

    rows: float32 or float16, in memory or memory-mapped; summed up in float32 in either case.
    Several queries cost little more than one, since reading the rows is most of the work. Raises
    ``ValueError`` where the shapes do not fit.
    """
    n, n_layers, width = rows.shape
    if queries.shape[1:] != (n_layers, width):
        raise ValueError(
            f"query has shape {queries.shape[1:]}, the rows are {(n_layers, width)} each"
        )
    flat = torch.from_numpy(np.asarray(rows).reshape(n * n_layers, width))
    left = torch.from_numpy(np.ascontiguousarray(queries, dtype=np.float32)).reshape(-1, width)
    found = torch.empty(len(left), n * n_layers)

    def multiply(first: int, last: int) -> None:
        buffer = torch.empty(ROWS_PER_PASS, width)
        for start in range(first, last, ROWS_PER_PASS):
            end = min(start + ROWS_PER_PASS, last)
            part = flat[start:end]
            if part.dtype != torch.float32:
                part = buffer[: len(part)].copy_(part)
            torch.mm(left, part.T, out=found[:, start:end])

    in_parts(len(flat), multiply)
    return found.numpy().reshape(len(queries), n_layers, n, n_layers)


def in_parts(n: int, work: Callable[[int, int], None]) -> None:
    """Calls ``work(first, last)`` on parts of n rows, side by side where that pays.

    Torch's own threads wait for each other after every small operation. Where torch is told to use
    one (``torch.set_num_threads(1)``), threads of ours each take a part of many rows instead.
    """
    n_threads = min(4, os.cpu_count() or 1)
    if torch.get_num_threads() > 1 or n < ROWS_FOR_THREADS or n_threads == 1:
        work(0, n)
        return
    ends = np.linspace(0, n, n_threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, ends, ends[1:]))


@dataclass(frozen=True)
class Found:
    """K neighbors, nearest first: rows (K,) int64 and their similarity (K,) float32."""

    rows: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Comparison:
    """One query beside N rows, for every mix of layers.

    products: (pairs, N) float32 of each row with the query; norms: (pairs, N) of each row with
    itself; norm: (pairs,) of the query with itself, pairs in the order of ``layer_pairs``.
    rows: (N,) int64, which rows of the bank these are, rising.
    """

    products: np.ndarray
    norms: np.ndarray
    norm: np.ndarray
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_layers(self) -> int:
        return int((2 * len(self.norm)) ** 0.5)

    def take(self, chosen: np.ndarray) -> Comparison:
        """Only some of the rows: a mask (N,) or rising indices into these N."""
        return Comparison(
            np.ascontiguousarray(self.products[:, chosen]),
            np.ascontiguousarray(self.norms[:, chosen]),
            self.norm,
            self.rows[chosen],
        )

    def scores(
        self, s: Sequence[float] | np.ndarray, metric: str = "cosine", gamma: float = 1.0
    ) -> np.ndarray:
        """(N,) float32 similarity under the normalized weights s; see ``mixing.similarity``."""
        return self._scores(np.asarray(s, dtype=np.float64)[None], metric, gamma)[0].numpy()

    def nearest(
        self,
        s: Sequence[float] | np.ndarray,
        k: int = 20,
        metric: str = "cosine",
        gamma: float = 1.0,
    ) -> Found:
        """The k nearest rows of the mix; of equally near ones the earlier first."""
        scores = self._scores(np.asarray(s, dtype=np.float64)[None], metric, gamma)[0]
        if not len(scores) or k < 1:
            return Found(np.zeros(0, np.int64), np.zeros(0, np.float32))
        order = -scores if metric == "euclidean" else scores
        best = torch.topk(order, min(k, len(order)), sorted=False).values.min()
        tied = torch.nonzero(order >= best)[:, 0]  # rising rows, more than k where some are equal
        first = tied[torch.argsort(order[tied], descending=True, stable=True)[:k]]
        return Found(self.rows[first.numpy()], scores[first].numpy())

    def shares(
        self,
        relevant: np.ndarray,
        k: int,
        mixes: np.ndarray,
        metric: str = "cosine",
    ) -> np.ndarray:
        """Shares of relevant rows among the k nearest, for each mix.

        relevant: (N,) bool, or (R, N) for several questions at once; mixes: (G, L). Gives (G,) or
        (R, G). Where rows are equally near at the edge of the k, their mean share counts.
        """
        asked = np.atleast_2d(np.asarray(relevant, dtype=np.float32))
        k = min(k, len(self))
        if k < 1:
            return np.zeros((*np.shape(relevant)[:-1], len(mixes)))
        found = [
            _shares(self._scores(part, metric, 1.0), torch.from_numpy(asked), k, metric)
            for part in np.array_split(mixes, max(1, -(-len(mixes) // MIXES_PER_PASS)))
        ]
        shares = np.concatenate(found, axis=1)
        return shares if np.ndim(relevant) == 2 else shares[0]

    def _scores(self, mixes: np.ndarray, metric: str, gamma: float) -> torch.Tensor:
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
        if mixes.shape[-1] != self.n_layers:
            raise ValueError(f"{self.n_layers} layers need as many weights, got {mixes.shape[-1]}")
        weights = pair_weights(mixes)  # (G, pairs)
        own = torch.from_numpy(np.maximum(weights @ self.norm, 0).astype(np.float32))[:, None]
        weights = torch.from_numpy(weights.astype(np.float32))
        dot = weights @ torch.from_numpy(self.products)  # (G, N)
        if metric == "dot":
            return dot.mul_(gamma**2)
        squared = (weights @ torch.from_numpy(self.norms)).clamp_min_(0)
        if metric == "euclidean":
            return squared.add_(own).sub_(dot, alpha=2).clamp_min_(0).sqrt_().mul_(abs(gamma))
        length = squared.mul_(own).sqrt_()
        return torch.where(length > 0, dot.div_(length), 0)


def _shares(scores: torch.Tensor, asked: torch.Tensor, k: int, metric: str) -> np.ndarray:
    """(G, N) scores, (R, N) questions -> (R, G)."""
    order = -scores if metric == "euclidean" else scores
    edge = torch.topk(order, k, dim=1, sorted=False).values.amin(dim=1, keepdim=True)
    slack = 1e-6 * (1 + edge.abs())
    surely, perhaps = (order > edge + slack).float(), ((order - edge).abs() <= slack).float()
    n_surely, n_perhaps = surely.sum(dim=1), perhaps.sum(dim=1)
    hits = asked @ surely.T + (asked @ perhaps.T) * ((k - n_surely) / n_perhaps)
    return (hits / k).numpy().astype(np.float64)


def jaccard(lists: Sequence[Sequence[int] | np.ndarray]) -> np.ndarray:
    """(M, M) overlap of M neighbor lists: rows in both by rows in either; 1 for two empty ones."""
    sets = [set(np.asarray(rows).tolist()) for rows in lists]
    return np.array([[len(a & b) / len(a | b) if a | b else 1.0 for b in sets] for a in sets])
