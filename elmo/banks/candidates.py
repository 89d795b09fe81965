"""A small set of rows that holds the nearest ones for every mix of layers at once.

A browser cannot re-rank 300,000 rows while a slider is dragged, but of all rows only few are ever
among the k nearest. They are found by branch and bound over the simplex of all mixes.

Cosine. Up to a factor that all rows share, a row scores ``f(s) = P(s) / n(s)`` under the mix s:
P, from the products, is quadratic in s; n is the length of the row's mix, and ``G = n^2`` is
quadratic too. On a simplex with L corners let N be the linear function that equals n at the
corners. Then n <= N, because a length is convex, and n >= q N with ``q^2 = C + (1 - C) / L``, C
being the smallest cosine between the row's mixes at two corners. A square root lies above its
chord and below its tangents, so that with p = (1 + q) / 2

    (G + q N^2) / (1 + q)  <=  n N  <=  (G / p + p N^2) / 2.

Let c be a quadratic function of s, here the one through the k-th best scores at the corners and
at the middles of the edges. "f <= c + x everywhere on the simplex" follows, for c + x >= 0, from
``(1 + q) P N <= (c + x) (G + q N^2)``, and "f >= c + x" from the other side in the same way. Both
sides are polynomials of degree 4, and a polynomial without a negative Bernstein coefficient on a
simplex is not negative there. So every row gets a certain lower bound (the largest x that passes
the second test), and any level can be tested for being an upper bound.

With t the k-th largest lower bound, k rows are at c + t or above all over the simplex, and a row
that is below c + t everywhere is never among the k nearest there. The rows that remain are looked
at again on the two halves of the simplex, and so on, always in the most crowded part first, until
there are few enough of them in all. Dot products and squared distances are the same without n:
``f = P`` and ``f = 2 P - G``, degree 2.

Rows that tie exactly (copies of a word in layer 0) cannot be told apart where they tie. So rows
are dropped as well if they exceed c + t by no more than a tolerance, which gives the guarantee: for
every mix and every rank up to k, the similarity at that rank among the candidates is within the
tolerance of the one among all rows, and rounding. The k nearest are the same but for such ties.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elmo.banks.bernstein import Bernstein, bernstein, corner_weights, point_weights
from elmo.banks.mixing import METRICS, layer_pairs
from elmo.banks.neighbors import Comparison, in_parts

ROWS_PER_BLOCK = 4_096
MAX_DEPTH = 30  # bisections of one part of the simplex
SHORTLIST = 4  # times k rows get a lower bound
HOPELESS = 0.75  # share of rows kept in the first block
LOOK_OVERHEAD = 10_000  # rows that could be bounded in the time that any simplex takes
TINY = 1e-30


@dataclass(frozen=True)
class Candidates:
    """What ``find_candidates`` found and guarantees.

    rows: (M,) int64 rising rows of the bank; comparison: the query beside these alone.
    n_simplices: how many were looked at; complete: false where the limit could not be met without
    breaking the guarantee, so that there are more rows than asked for.
    """

    comparison: Comparison
    k: int
    metric: str
    tolerance: float
    n_simplices: int
    complete: bool

    @property
    def rows(self) -> np.ndarray:
        return self.comparison.rows

    def __len__(self) -> int:
        return len(self.comparison)


def find_candidates(
    comparison: Comparison,
    k: int = 20,
    metric: str = "cosine",
    limit: int = 2_000,
    tolerance: float = 1e-5,
    max_work: int = 12_000_000,
) -> Candidates:
    """Rows that hold the k nearest for every mix; at most ``limit`` where that can be done.

    tolerance: of a cosine; for dot products and squared distances times the query's largest
        squared layer length (gamma = 1).
    max_work: rows that may be bounded, a row once for every simplex it is looked at on, and some
        more for every simplex; the default takes about a second. Where it is used up, all rows
        still in question are kept.
    Raises ``ValueError`` for an unknown metric and for a limit below k.
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if limit < k:
        raise ValueError(f"limit must be {k} or more, to hold the {k} nearest, got {limit}")
    n, n_layers = len(comparison), comparison.n_layers
    if n <= limit or n_layers == 1:
        kept = np.arange(n) if n <= limit else comparison.nearest([1.0], limit, metric).rows
        if n > limit:
            kept = np.sort(np.searchsorted(comparison.rows, kept))
        return Candidates(comparison.take(kept), k, metric, tolerance, 0, True)
    bounds = _bounds(comparison, k, metric, tolerance)
    counts = np.zeros(n, dtype=np.int32)  # parts that a row is kept for
    parts: list[tuple[int, int, int, np.ndarray, np.ndarray | None]] = []
    ticket = itertools.count()
    work = 0

    def look(corners: np.ndarray, rows: np.ndarray | None, depth: int) -> None:
        nonlocal work
        work += LOOK_OVERHEAD + (n if rows is None else len(rows))
        keep = bounds.keep(corners, rows)
        kept = np.flatnonzero(keep) if rows is None else rows[keep]
        counts[kept] += 1
        everything = None if len(kept) == n else kept
        heapq.heappush(parts, (-len(kept), next(ticket), depth, corners, everything))

    look(np.eye(n_layers), None, 0)
    while np.count_nonzero(counts) > limit and work < max_work:
        _, _, depth, corners, rows = parts[0]
        if depth == MAX_DEPTH:
            break
        heapq.heappop(parts)
        counts[slice(None) if rows is None else rows] -= 1
        for half in bisect(corners):
            look(half, rows, depth + 1)
    kept = np.flatnonzero(counts)
    return Candidates(comparison.take(kept), k, metric, tolerance, next(ticket), len(kept) <= limit)


def bisect(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two halves of a simplex, cut through the middle of its longest edge."""
    edges = list(itertools.combinations(range(len(corners)), 2))
    a, b = max(edges, key=lambda edge: np.square(corners[edge[0]] - corners[edge[1]]).sum())
    left, right = corners.copy(), corners.copy()
    left[b] = right[a] = (corners[a] + corners[b]) / 2
    return left, right


def _bounds(comparison: Comparison, k: int, metric: str, tolerance: float):
    pairs = layer_pairs(comparison.n_layers)
    own = comparison.norm[[i for i, (a, b) in enumerate(pairs) if a == b]]
    if metric == "cosine":
        # Cosines do not change if the layers are scaled and the mixes with them, and the bounds
        # are tightest if no layer outweighs the others.
        scale = 1 / np.sqrt(np.maximum(own, TINY))
        of_pair = np.array([scale[a] * scale[b] for a, b in pairs])
        factor = torch.from_numpy(of_pair.astype(np.float32))[:, None]
        return CosineBounds(
            torch.from_numpy(comparison.products) * factor,
            torch.from_numpy(comparison.norms) * factor,
            comparison.norm * of_pair,
            k,
            tolerance,
        )
    scores = torch.from_numpy(comparison.products)
    if metric == "euclidean":
        scores = 2 * scores - torch.from_numpy(comparison.norms)
    return QuadraticBounds(scores, k, tolerance * float(own.max()))


@dataclass(frozen=True)
class QuadraticBounds:
    """Which rows may be among the k largest of quadratic scores: (pairs, N)."""

    scores: Tensor
    k: int
    tolerance: float

    def keep(self, corners: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """(n,) bool for the rows given, or for all."""
        tables = bernstein(len(corners))
        weights = _float(corner_weights(corners))
        scores = weights @ _columns(self.scores, rows)
        reference = _reference(_float(point_weights(corners)) @ _columns(self.scores, rows), self.k)
        excess = scores - _float(tables.middle @ reference)[:, None]
        k = min(self.k, excess.shape[1])
        lower, best = torch.topk(excess.amin(dim=0), k, sorted=False)
        keep = excess.amax(dim=0) > lower.min() + self.tolerance
        keep[best] = True
        return keep.numpy()


@dataclass(frozen=True)
class CosineBounds:
    """Which rows may be among the k nearest by cosine; see the top of this module.

    products, norms: (pairs, N); norm: (pairs,) of the query, each layer of length 1.
    """

    products: Tensor
    norms: Tensor
    norm: np.ndarray
    k: int
    tolerance: float

    def keep(self, corners: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """(n,) bool for the rows given, or for all."""
        tables = bernstein(len(corners))
        products, norms = _columns(self.products, rows), _columns(self.norms, rows)
        points = _float(point_weights(corners))
        scores = (points @ products).div_((points @ norms).clamp_min_(TINY).sqrt_())
        reference = _reference(scores, self.k)
        c = tables.middle @ reference
        k = min(self.k, scores.shape[1])
        slack = (scores - _float(reference)[:, None]).amin(dim=0)
        shortlist = torch.topk(slack, min(SHORTLIST * k, len(slack)), sorted=False).indices
        weights = _float(corner_weights(corners))
        short = _Polynomials.of(weights @ products[:, shortlist], weights @ norms[:, shortlist])
        lower = short.lower_bounds(c)
        best = torch.topk(lower, k, sorted=False)
        level = c + float(best.values.min())
        best = best.indices
        if level.min() < 0:  # the closed form holds for levels above 0 only
            found = short.search_level(c, k)
            if found is None:
                return np.ones(scores.shape[1], dtype=bool)
            best, level = found
        level = tables.signed(level + self.tolerance * self._least_length(corners))
        keep = torch.ones(scores.shape[1], dtype=torch.bool)

        def bound(first: int, last: int) -> None:
            for start in range(first, last, ROWS_PER_BLOCK):
                block = slice(start, min(start + ROWS_PER_BLOCK, last))
                rest = _Polynomials.of(weights @ products[:, block], weights @ norms[:, block])
                keep[block] = rest.may_exceed(*level)
                if start == first and keep[block].float().mean() > HOPELESS:
                    break  # the others would mostly stay as well: it takes smaller simplices

        in_parts(len(keep), bound)
        keep[shortlist[best]] = True
        return keep.numpy()

    def _least_length(self, corners: np.ndarray) -> float:
        """A lower bound of the length of the query's mix, by which scores exceed cosines."""
        table = corner_weights(corners) @ self.norm
        at = {pair: i for i, pair in enumerate(layer_pairs(len(corners)))}
        length = np.sqrt(np.maximum([table[at[a, a]] for a in range(len(corners))], TINY))
        cosine = min(table[i] / (length[a] * length[b]) for (a, b), i in at.items())
        return float(np.sqrt(max(cosine + (1 - cosine) / len(corners), 0)) * length.min())


@dataclass(frozen=True)
class _Polynomials:
    """Rows' polynomials on one simplex as Bernstein coefficients, n rows.

    left: (n4, n) of P N; norms, square: (n2, n) of G and N^2; q: (n,), the root of the smallest
    that G / N^2 can be.
    """

    left: Tensor
    norms: Tensor
    square: Tensor
    q: Tensor
    tables: Bernstein

    @classmethod
    def of(cls, products: Tensor, norms: Tensor) -> _Polynomials:
        """products, norms: (n2, n) Bernstein coefficients of P and of G."""
        n_corners = int((2 * len(products)) ** 0.5)
        tables = bernstein(n_corners)
        length = norms[tables.diagonal].clamp_min_(TINY).sqrt_()  # (L, n) at the corners
        left = tables.cubic @ (products[:, None] * length).flatten(0, 1)
        square = length.index_select(0, tables.first).mul_(length.index_select(0, tables.second))
        cosine = (norms / square).amin(dim=0)
        q = (cosine + (1 - cosine) / n_corners).clamp_(0, 1).sqrt_()
        return cls(left, norms, square, q, tables)

    @property
    def low(self) -> Tensor:
        """(n2, n) of (G + q N^2) / (1 + q), which is at most n N."""
        return (self.square * self.q).add_(self.norms).div_(1 + self.q)

    @property
    def high(self) -> Tensor:
        """(n2, n) of (G / p + p N^2) / 2, which is at least n N."""
        p = (1 + self.q) / 2
        return (self.square * p).add_(self.norms / p).div_(2)

    def lower_bounds(self, c: np.ndarray) -> Tensor:
        """(n,) the largest x with f >= c + x, as far as c + x is not negative."""
        high = self.high
        right = self.tables.times(c) @ high
        per_x = self.tables.times(np.ones_like(c)) @ high
        bound = torch.where(per_x > 0, (self.left - right) / per_x, -torch.inf)
        return bound.amin(dim=0)

    def search_level(self, c: np.ndarray, k: int) -> tuple[Tensor, np.ndarray] | None:
        """k rows that are nowhere below c + x, and c + x: the largest x that bisection finds."""
        low, high = -2.0 - float(c.max()), 0.0  # no cosine is below -1, and no mix longer than 1
        upper, lower = self.high, self.low
        found = None
        for _ in range(14):
            x = (low + high) / 2
            positive, negative = self.tables.signed(c + x)
            right = positive @ upper
            if negative is not None:
                right -= negative @ lower
            above = torch.nonzero((self.left >= right).all(dim=0))[:, 0]
            if len(above) >= k:
                low, found = x, (above[:k], c + x)
            else:
                high = x
        return found

    def may_exceed(self, positive: Tensor, negative: Tensor | None) -> Tensor:
        """(n,) false where f <= level is certain all over the simplex; see ``Bernstein.signed``."""
        right = positive @ self.low
        if negative is not None:
            right -= negative @ self.high
        return (self.left - right).amax(dim=0) > 0


def _reference(scores: Tensor, k: int) -> np.ndarray:
    """(points,) the k-th largest of (points, n) scores."""
    best = torch.topk(scores, min(k, scores.shape[1]), dim=1, sorted=False).values
    return best.amin(dim=1).double().numpy()


def _columns(table: Tensor, rows: np.ndarray | None) -> Tensor:
    return table if rows is None else table[:, torch.from_numpy(rows)]


def _float(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
