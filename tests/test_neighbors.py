"""Neighbors under any mix against mixing, normalizing and searching all rows anew."""

import numpy as np
import pytest

from elmo.banks.bank import build_bank
from elmo.banks.neighbors import jaccard, layer_products
from elmo.results import Encoding
from elmo.scalar_mix import softmax


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def bank_of(rng, n_layers=3, n_rows=400, width=24, dtype=np.float32):
    """Rows with a strong common direction and layers of very different length."""
    hidden = rng.normal(size=(n_layers, n_rows, width)) + 2 * rng.normal(size=(n_layers, 1, width))
    hidden *= 4.0 ** np.arange(n_layers)[:, None, None]
    hidden = hidden.astype(dtype).astype(np.float32)
    tokens = tuple(f"t{i % 50}" for i in range(n_rows))
    return build_bank([tokens], [Encoding(tokens, hidden)])


def mixed(vectors, s, unit=False, mean=None):
    """(N, L, D) float64 mixes the slow way."""
    vectors = vectors.astype(np.float64)
    if unit:
        vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    if mean is not None:
        vectors = vectors - mean
    return np.tensordot(vectors, s, axes=(1, 0))


def brute_force(bank, query, s, metric, gamma, unit, centered):
    mean = (bank.means.unit if unit else bank.means.raw) if centered else None
    rows, own = mixed(bank.vectors, s, unit, mean), mixed(query[None], s, unit, mean)[0]
    if metric == "euclidean":
        return abs(gamma) * np.linalg.norm(rows - own, axis=1)
    if metric == "dot":
        return gamma**2 * rows @ own
    return rows @ own / np.linalg.norm(rows, axis=1) / np.linalg.norm(own)


@pytest.mark.parametrize("n_layers", [2, 3, 4])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_every_view_equals_brute_force(rng, n_layers, unit, centered, metric):
    bank = bank_of(rng, n_layers)
    query = bank.vectors[17] * 0.7 + bank.vectors[30]  # a vector that is no row
    comparison = bank.compare(query, unit=unit, centered=centered)
    for _ in range(8):
        s, gamma = softmax(rng.normal(scale=3, size=n_layers)), rng.uniform(0.1, 3)
        expected = brute_force(bank, query, s, metric, gamma, unit, centered)
        found = comparison.nearest(s, 20, metric, gamma)
        order = np.argsort(expected if metric == "euclidean" else -expected, kind="stable")[:20]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(comparison.scores(s, metric, gamma), expected, atol=1e-5 * scale)
        np.testing.assert_allclose(found.scores, expected[order], atol=1e-5 * scale)
        assert len(set(found.rows) ^ set(order)) <= 2  # near-ties at the edge may differ


def test_views_of_one_query_need_the_vectors_once(rng):
    bank = bank_of(rng)
    query = bank.query(bank.vectors[5])
    for unit in (False, True):
        one, two = bank.comparison(query, unit=unit), bank.compare(bank.vectors[5], unit=unit)
        np.testing.assert_array_equal(one.products, two.products)
        assert one.nearest([0.2, 0.3, 0.5], 1).rows.tolist() == [5]


def test_means_of_unit_vectors_are_not_unit_vectors_of_means(rng):
    bank = bank_of(rng)
    lengths = np.linalg.norm(bank.vectors.astype(np.float64), axis=-1, keepdims=True)
    np.testing.assert_allclose(bank.means.unit, (bank.vectors / lengths).mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(bank.means.raw, bank.vectors.mean(axis=0), rtol=1e-4)


def test_half_precision_rows_are_summed_in_float32(rng):
    rows = rng.normal(size=(3000, 3, 64)).astype(np.float16)
    queries = rng.normal(size=(2, 3, 64)).astype(np.float32)
    found = layer_products(rows, queries)
    expected = np.einsum("qkd,nld->qknl", queries.astype(np.float64), rows.astype(np.float64))
    assert found.shape == (2, 3, 3000, 3)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(ValueError, match="query has shape"):
        layer_products(rows, queries[:, :2])


def test_filters_come_first(rng):
    bank = bank_of(rng)
    own = bank.select(word="T7", same_word="only")
    others = bank.select(word="t7", same_word="exclude")
    assert own.tolist() == list(range(7, 400, 50)) and len(others) == 400 - len(own)
    assert bank.select(without_sentences=[0]).tolist() == []
    with pytest.raises(ValueError, match="same_word must be one of any, only, exclude"):
        bank.select(same_word="yes")
    query = bank.query(bank.vectors[7])
    s = softmax([0.1, 0.4, -0.2])
    found = bank.comparison(query, rows=others).nearest(s, 30)
    everything = bank.comparison(query).nearest(s, 400)
    expected = [row for row in everything.rows if row in set(others.tolist())][:30]
    assert found.rows.tolist() == expected
    few = bank.comparison(query, rows=own).nearest(s, 30)
    assert len(few) == len(own)


def test_equal_rows_come_in_their_order_and_zero_rows_have_cosine_zero():
    hidden = np.zeros((3, 6, 4), np.float32)
    hidden[:, [1, 3, 4]] = [1, 2, 0, 0]
    tokens = tuple("abcdef")
    bank = build_bank([tokens], [Encoding(tokens, hidden)])
    found = bank.compare(bank.vectors[1], centered=False).nearest([0.5, 0.25, 0.25], 4)
    assert found.rows.tolist() == [1, 3, 4, 0]
    np.testing.assert_allclose(found.scores, [1, 1, 1, 0], atol=1e-6)
    with pytest.raises(ValueError, match="3 layers need as many weights, got 2"):
        bank.compare(bank.vectors[1]).nearest([0.5, 0.5])
    with pytest.raises(ValueError, match="metric must be one of"):
        bank.compare(bank.vectors[1]).nearest([1, 0, 0], metric="manhattan")


def test_shares_count_what_sorting_counts(rng):
    bank = bank_of(rng)
    comparison = bank.compare(bank.vectors[3])
    relevant = rng.random((2, len(bank))) < 0.3
    mixes = rng.dirichlet(np.ones(3), 100)
    found = comparison.shares(relevant, 10, mixes)
    assert found.shape == (2, 100)
    for g in (0, 63, 64, 99):
        top = comparison.nearest(mixes[g], 10).rows
        np.testing.assert_allclose(found[:, g], relevant[:, top].mean(axis=1), atol=1e-6)
    one = comparison.shares(relevant[0], 10, mixes)
    np.testing.assert_allclose(one, found[0])


def test_ties_at_the_edge_share_the_places_left():
    """Four equal rows for three places, one of them relevant: 3 x 1/4 of the places."""
    hidden = np.ones((2, 4, 3), np.float32)
    bank = build_bank([tuple("aaaa")], [Encoding(tuple("aaaa"), hidden)])
    comparison = bank.compare(bank.vectors[0], centered=False)
    share = comparison.shares(np.array([True, False, False, False]), 3, np.array([[0.5, 0.5]]))
    np.testing.assert_allclose(share, [0.25])


def test_jaccard():
    matrix = jaccard([[1, 2, 3], [2, 3, 4], [], []])
    np.testing.assert_allclose(matrix[0], [1, 0.5, 0, 0])
    assert matrix[2, 3] == 1
    np.testing.assert_array_equal(matrix, matrix.T)


def test_parts_side_by_side_give_the_same(rng, monkeypatch):
    rows = rng.normal(size=(5000, 3, 16)).astype(np.float16)
    queries = rng.normal(size=(1, 3, 16)).astype(np.float32)
    alone = layer_products(rows, queries)
    monkeypatch.setattr("elmo.banks.neighbors.ROWS_FOR_THREADS", 100)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    np.testing.assert_allclose(layer_products(rows, queries), alone, rtol=1e-5, atol=1e-5)
