"""Maps whose layers each have axes of their own, turned onto each other so that they compare.

A principal axis of one layer has nothing to do with that of another: side by side, such maps are
mirrored and turned at will. The orthogonal Procrustes problem (Schoenemann 1966) finds the turn,
perhaps with a mirror, that brings one set of points nearest to another; distances within a layer
stay as they are. No map of a mix follows from these maps: there is no axis that all layers share.
"""

from __future__ import annotations

import numpy as np

from elmo.banks.projection import Basis, fit_basis

N_FLAT = 2


def procrustes(moving: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """The orthogonal (A, A) matrix R for which ``moving @ R`` is nearest to ``fixed``, both (N, A)
    about their means."""
    moving, fixed = (np.asarray(x, np.float64) - x.mean(axis=0) for x in (moving, fixed))
    u, _, vt = np.linalg.svd(moving.T @ fixed)
    return u @ vt


def turn_layers(coordinates: np.ndarray) -> np.ndarray:
    """(N, L, A) about each layer's mean, each layer turned onto the one before it."""
    turned = coordinates - coordinates.mean(axis=0)
    for layer in range(1, turned.shape[1]):
        turned[:, layer] @= procrustes(turned[:, layer], turned[:, layer - 1])
    return turned


def fit_layer_basis(vectors: np.ndarray, scale: np.ndarray, n_axes: int = 3) -> Basis:
    """Principal components of every layer (N, L, D) by itself: ``axes`` is (L, D, n_axes).

    The first two axes of a layer are turned within their own plane, so that the flat map keeps all
    the variance that two axes can; the third is mirrored at most.
    """
    axes, before = [], None
    for layer in range(vectors.shape[1]):
        one = fit_basis(vectors[:, [layer]], scale[[layer]], n_axes)
        drawn = one.project(vectors[:, [layer]])[:, 0]
        turn = np.eye(n_axes) if before is None else _plane_turn(drawn, before)
        axes.append(one.axes @ turn)
        before = drawn @ turn
    mean = vectors.mean(axis=0)
    return Basis(mean.astype(np.float32), scale, np.stack(axes).astype(np.float32))


def _plane_turn(moving: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    turn = np.eye(moving.shape[1])
    turn[:N_FLAT, :N_FLAT] = procrustes(moving[:, :N_FLAT], fixed[:, :N_FLAT])
    for axis in range(N_FLAT, len(turn)):
        turn[axis, axis] = 1.0 if moving[:, axis] @ fixed[:, axis] >= 0 else -1.0
    return turn
