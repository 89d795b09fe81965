"""Maps with axes of each layer: turned onto each other, and nothing else."""

import numpy as np
import pytest

from elmo.banks.layer_maps import fit_layer_basis, procrustes, turn_layers
from elmo.banks.projection import fit_basis, spread


def distances(points):
    return np.linalg.norm(points[:, None] - points[None], axis=2)


@pytest.fixture
def vectors():
    """Layer 1 is layer 0 mirrored and turned within its widest plane, and longer."""
    rng = np.random.default_rng(5)
    first = rng.normal(size=(50, 12)) * ([9, 5, 3] + [1] * 9)
    second = first.copy()
    second[:, :2] = first[:, :2] @ np.array([[0.6, 0.8], [0.8, -0.6]])
    return np.stack([first, 7 * second], axis=1).astype(np.float32)


def test_the_turn_is_orthogonal_keeps_distances_and_undoes_a_turn():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 2))
    mirror = np.array([[0.6, 0.8], [0.8, -0.6]])
    turn = procrustes(points @ mirror + 3, points)
    np.testing.assert_allclose(turn @ turn.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(turn, mirror.T, atol=1e-12)
    noisy, points = (x - x.mean(axis=0) for x in (rng.normal(size=(30, 2)), points))
    best = np.square(noisy @ procrustes(noisy, points) - points).sum()
    for angle in np.linspace(0, 2 * np.pi, 90):
        c, s = np.cos(angle), np.sin(angle)
        for sign in (1, -1):
            other = np.array([[c, -s * sign], [s, c * sign]])
            assert np.square(noisy @ other - points).sum() >= best - 1e-9


def test_layers_are_turned_onto_each_other_and_stay_as_they_are():
    rng = np.random.default_rng(2)
    maps = rng.normal(size=(20, 3, 3))
    turned = turn_layers(maps)
    for layer in range(3):
        np.testing.assert_allclose(distances(turned[:, layer]), distances(maps[:, layer]))
    np.testing.assert_allclose(turned.mean(axis=0), 0, atol=1e-12)


def test_axes_of_each_layer_keep_what_its_own_components_keep(vectors):
    scale = spread(vectors, vectors.mean(axis=0))
    basis = fit_layer_basis(vectors, scale)
    xyz = basis.project(vectors)
    assert basis.axes.shape == (2, 12, 3) and xyz.shape == (50, 2, 3)
    for layer in range(2):
        axes = basis.axes[layer]
        np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-5)
        alone = fit_basis(vectors[:, [layer]], scale[[layer]], 3)
        own = alone.project(vectors[:, [layer]])[:, 0]
        np.testing.assert_allclose(
            distances(xyz[:, layer, :2]), distances(own[:, :2]), rtol=1e-3, atol=1e-4
        )
    # The mirrored layer lies on the first one again.
    np.testing.assert_allclose(xyz[:, 1], xyz[:, 0], atol=0.02)


def test_identical_vectors_are_one_dot(vectors):
    vectors[7, 0] = vectors[3, 0]
    xyz = fit_layer_basis(vectors, np.ones(2, np.float32)).project(vectors)
    np.testing.assert_allclose(xyz[7, 0], xyz[3, 0], atol=1e-6)


def test_three_axes_begin_with_the_two_of_the_flat_map(vectors):
    flat, deep = fit_basis(vectors), fit_basis(vectors, n_axes=3)
    np.testing.assert_allclose(deep.axes[:, :2], flat.axes, atol=1e-6)
    two = fit_basis(vectors[:2, :1], n_axes=3)  # one direction: the other axes are zero
    assert two.axes.shape == (12, 3) and not two.axes[:, 1:].any()
