"""The closed form against brute force: mix the vectors, then compare them."""

import numpy as np
import pytest

from elmo.banks.bank import build_bank
from elmo.banks.mixing import (
    layer_pairs,
    nearest,
    pair_norms,
    pair_products,
    pair_weights,
    similarity,
    simplex_grid,
)
from elmo.results import Encoding
from elmo.scalar_mix import mix_layers, softmax


def brute_force(rows, query, w, metric, gamma):
    """The same numbers the slow way: every vector is mixed, then compared."""
    mixed = np.stack([mix_layers(row.astype(np.float64), w, gamma) for row in rows])
    target = mix_layers(query.astype(np.float64), w, gamma)
    if metric == "euclidean":
        return np.linalg.norm(mixed - target, axis=1)
    dot = mixed @ target
    if metric == "dot":
        return dot
    return dot / np.linalg.norm(mixed, axis=1) / np.linalg.norm(target)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("n_layers", [3, 4])
def test_closed_form_equals_mixing_first(rng, metric, n_layers):
    rows = rng.normal(size=(50, n_layers, 32)).astype(np.float32)
    query = rng.normal(size=(n_layers, 32)).astype(np.float32)
    products, norms = pair_products(rows, query), pair_norms(rows)
    for _ in range(20):
        w, gamma = rng.normal(scale=3, size=n_layers), rng.uniform(0.1, 3)
        found = similarity(
            products, norms, pair_norms(query[None])[0], softmax(w), metric, gamma=gamma
        )
        expected = brute_force(rows, query, w, metric, gamma)
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


def test_removing_the_mean_afterwards_equals_removing_it_first(rng):
    vectors = (rng.normal(size=(3, 40, 16)) + 5).astype(np.float32)  # a strong common direction
    tokens = tuple(f"t{i}" for i in range(40))
    bank = build_bank([tokens], [Encoding(tokens, vectors)])
    query = vectors[:, 3] + 1
    products, norms, own = bank.centered(bank.query(query))
    rows = bank.vectors - bank.mean
    w = np.array([0.3, -1.0, 0.7])
    found = similarity(products, norms, own, softmax(w))
    expected = brute_force(rows, query - bank.mean, w, "cosine", 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_one_layer_alone_is_that_layers_cosine(rng):
    rows = rng.normal(size=(5, 3, 8)).astype(np.float32)
    one_layer = similarity(
        pair_products(rows, rows[2]), pair_norms(rows), pair_norms(rows[2:3])[0], np.eye(3)[1]
    )
    assert one_layer[2] == pytest.approx(1, abs=1e-6)
    cosine = rows[0, 1] @ rows[2, 1] / np.linalg.norm(rows[0, 1]) / np.linalg.norm(rows[2, 1])
    assert one_layer[0] == pytest.approx(cosine, abs=1e-6)


def test_gamma_scales_dot_and_distance_but_not_cosine(rng):
    rows = rng.normal(size=(5, 3, 8)).astype(np.float32)
    known = pair_products(rows, rows[0]), pair_norms(rows), pair_norms(rows[:1])[0]
    s = softmax([0, 1, 2])
    for metric, factor in [("cosine", 1), ("dot", 9), ("euclidean", 3)]:
        once, thrice = (similarity(*known, s, metric, gamma=g) for g in (1, 3))
        np.testing.assert_allclose(thrice, factor * once, atol=1e-9)


def test_zero_vectors_have_cosine_zero_and_unknown_metrics_are_refused():
    rows = np.zeros((2, 3, 4), np.float32)
    known = pair_products(rows, rows[0]), pair_norms(rows), pair_norms(rows[:1])[0]
    assert similarity(*known, softmax([0, 0, 0])).tolist() == [0, 0]
    with pytest.raises(ValueError, match="metric must be one of cosine, dot, euclidean"):
        similarity(*known, softmax([0, 0, 0]), "manhattan")
    with pytest.raises(ValueError, match="query has shape"):
        pair_products(rows, np.zeros((2, 4), np.float32))


def test_nearest_is_stable_skips_nan_and_knows_distances():
    assert nearest(np.array([0.5, 0.9, 0.9, np.nan]), 3).tolist() == [1, 2, 0]
    assert nearest(np.array([0.5, 0.1, 0.9]), 2, "euclidean").tolist() == [1, 0]


def test_pairs_and_their_weights():
    assert layer_pairs(3) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert pair_weights(np.array([0.5, 0.5, 0])).tolist() == [0.25, 0.25, 0, 0.25, 0, 0]


def test_simplex_grid_has_the_three_corners_and_sums_to_one():
    grid = simplex_grid(4)
    assert len(grid) == 15
    np.testing.assert_allclose(grid.sum(axis=1), 1)
    for corner in np.eye(3):
        assert any(np.array_equal(point, corner) for point in grid)
    assert grid[:3].tolist() == [[1, 0, 0], [0.75, 0.25, 0], [0.5, 0.5, 0]]
    four = simplex_grid(3, 4)
    assert len(four) == 20 and len(np.unique(four, axis=0)) == 20
