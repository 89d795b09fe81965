"""Polynomials on a simplex in Bernstein form, for the bounds of ``candidates``."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
import torch
from torch import Tensor

from elmo.banks.mixing import layer_pairs, pair_weights


@dataclass(frozen=True)
class Bernstein:
    """Tables that multiply polynomials in Bernstein form on a simplex with L corners.

    Coefficients of degree 2 are in the order of ``layer_pairs``, n2 of them; n4 of degree 4.
    cubic: (n4, n2 L) takes the products of a quadratic's with a linear function's coefficients to
    degree 4; quartic: (n4, n2, n2) those of two quadratics; middle: (n2, n2) takes the values at
    the corners and at the middles of edges to the quadratic through them. first, second: the
    corners of each pair; diagonal: the pairs of a corner with itself.
    """

    cubic: Tensor
    quartic: np.ndarray
    middle: np.ndarray
    first: Tensor
    second: Tensor
    diagonal: list[int]

    def times(self, quadratic: np.ndarray) -> Tensor:
        """(n4, n2): multiplies by a quadratic, given by its (n2,) coefficients."""
        return torch.from_numpy((self.quartic @ quadratic).astype(np.float32))

    def signed(self, quadratic: np.ndarray) -> tuple[Tensor, Tensor | None]:
        """``times`` for the coefficients above 0, and for the negative of those below, if any.

        Where a factor is only known to lie between two bounds, a product is bounded by taking the
        one bound with the first and the other with the second.
        """
        negative = None if quadratic.min() >= 0 else self.times(np.maximum(-quadratic, 0))
        return self.times(np.maximum(quadratic, 0)), negative


@lru_cache(maxsize=8)
def bernstein(n_corners: int) -> Bernstein:
    pairs = layer_pairs(n_corners)
    quads = list(itertools.combinations_with_replacement(range(n_corners), 4))
    index = {corners: i for i, corners in enumerate(quads)}
    cubic = torch.zeros(len(quads), len(pairs), n_corners)
    quartic = np.zeros((len(quads), len(pairs), len(pairs)))
    for i, pair in enumerate(pairs):
        for c, d in itertools.product(range(n_corners), repeat=2):
            corners = tuple(sorted((*pair, c, d)))
            cubic[index[corners], i, c] += _orders(pair) / _orders(corners)
        for j, other in enumerate(pairs):
            corners = tuple(sorted((*pair, *other)))
            quartic[index[corners], i, j] += _orders(pair) * _orders(other) / _orders(corners)
    at = {pair: i for i, pair in enumerate(pairs)}
    middle = np.eye(len(pairs))
    for (a, b), i in at.items():  # at the middle of a and b: (c_aa + 2 c_ab + c_bb) / 4
        if a != b:
            middle[i, [i, at[a, a], at[b, b]]] = 2, -0.5, -0.5
    first, second = (torch.tensor(side) for side in zip(*pairs, strict=True))
    diagonal = [at[a, a] for a in range(n_corners)]
    return Bernstein(cubic.flatten(1), quartic, middle, first, second, diagonal)


def _orders(corners: tuple[int, ...]) -> int:
    """In how many orders the corners can be written: the multinomial coefficient."""
    ways = factorial(len(corners))
    for corner in set(corners):
        ways //= factorial(corners.count(corner))
    return ways


def corner_weights(corners: np.ndarray) -> np.ndarray:
    """(n2, pairs) that takes a quadratic form's pairs to its Bernstein coefficients.

    corners: (L, L), a corner's mix a row.
    """
    pairs = layer_pairs(len(corners))
    first, second = np.array(pairs).T
    u, v = corners[first], corners[second]  # (n2, L)
    both = (u[:, first] * v[:, second] + u[:, second] * v[:, first]) / 2
    return np.where(first == second, u[:, first] * v[:, second], both)


def point_weights(corners: np.ndarray) -> np.ndarray:
    """(n2, pairs) that takes a quadratic form's pairs to its values at corners and middles."""
    first, second = np.array(layer_pairs(len(corners))).T
    return pair_weights((corners[first] + corners[second]) / 2)
