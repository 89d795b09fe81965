"""The candidate set against exhaustive search under many random mixes."""

import numpy as np
import pytest

from elmo.banks.bank import build_bank
from elmo.banks.bernstein import bernstein, corner_weights, point_weights
from elmo.banks.candidates import bisect, find_candidates
from elmo.banks.mixing import pair_weights
from elmo.banks.neighbors import Comparison
from elmo.results import Encoding

K = 20


def words_in_context(rng, n_layers, n_rows, n_words=150, width=48):
    """A bank like a language model's: layer 0 equal for copies of a word, frequent words with very
    many copies, higher layers by sense and context, all with a common direction."""
    word = np.minimum(rng.zipf(1.4, size=n_rows) - 1, n_words - 1)
    sense = word * 3 + rng.integers(0, 3, n_rows)
    layers = [rng.normal(size=(n_words, width))[word]]
    for depth in range(1, n_layers):
        own = rng.normal(size=(n_words, width))[word] / depth
        layers.append(
            own + rng.normal(size=(3 * n_words, width))[sense] + rng.normal(size=(n_rows, width))
        )
    hidden = np.stack(layers) + rng.normal(size=(n_layers, 1, width))
    hidden = (hidden * rng.uniform(0.3, 3, size=(n_layers, 1, 1))).astype(np.float16)
    tokens = tuple(f"w{i}" for i in word)
    return build_bank([tokens], [Encoding(tokens, hidden.astype(np.float32))])


def mixes(rng, n_layers, n):
    """Even over the simplex, near its edges and corners, and the corners themselves."""
    even = rng.dirichlet(np.ones(n_layers), n // 2)
    edges = rng.dirichlet(np.full(n_layers, 0.15), n - n // 2 - n_layers)
    return np.concatenate([even, edges, np.eye(n_layers)])


def worst_difference(comparison, candidates, metric, drawn, k=K):
    """The largest difference between equal ranks of the two lists."""
    worst = 0.0
    for s in drawn:
        everything = comparison.nearest(s, k, metric).scores
        few = candidates.comparison.nearest(s, k, metric).scores
        worst = max(worst, float(np.abs(everything - few).max()))
    return worst


@pytest.mark.parametrize("n_layers", [3, 4])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("centered", [False, True])
def test_the_nearest_are_there_for_a_thousand_mixes(n_layers, unit, centered):
    rng = np.random.default_rng([n_layers, unit, centered])
    bank = words_in_context(rng, n_layers, 6000)
    row = int(rng.integers(len(bank)))
    comparison = bank.compare(bank.vectors[row], unit=unit, centered=centered)
    limit = {3: 800, 4: 2000}[n_layers]
    found = find_candidates(comparison, K, limit=limit)
    assert found.complete and len(found) <= limit
    drawn = mixes(rng, n_layers, 1000)
    assert worst_difference(comparison, found, "cosine", drawn) <= found.tolerance + 3e-6


@pytest.mark.parametrize("metric", ["dot", "euclidean"])
@pytest.mark.parametrize("n_layers", [3, 4])
def test_dot_products_and_distances(metric, n_layers):
    rng = np.random.default_rng(n_layers)
    bank = words_in_context(rng, n_layers, 4000)
    comparison = bank.compare(bank.vectors[11])
    found = find_candidates(comparison, K, metric, limit=1500)
    assert found.complete
    for s in mixes(rng, n_layers, 400):
        everything, few = (c.nearest(s, K, metric).scores for c in (comparison, found.comparison))
        if metric == "euclidean":  # the tolerance is one of squared distances
            everything, few = everything**2, few**2
        allowed = 2 * found.tolerance * float(comparison.norm.max())
        np.testing.assert_allclose(few, everything, atol=allowed)


def test_a_word_with_a_thousand_copies_does_not_fill_the_set():
    """In layer 0 the copies tie; the guarantee is then one of similarity, not of identity."""
    rng = np.random.default_rng(5)
    bank = words_in_context(rng, 3, 6000)
    row = int(bank.rows_of("w0")[0])
    assert len(bank.rows_of("w0")) > 1000
    comparison = bank.compare(bank.vectors[row])
    found = find_candidates(comparison, K, limit=400)
    assert found.complete
    assert worst_difference(comparison, found, "cosine", mixes(rng, 3, 1000)) <= 1.3e-5


def test_a_tight_limit_looks_closer():
    rng = np.random.default_rng(6)
    comparison = (bank := words_in_context(rng, 3, 4000)).compare(bank.vectors[7])
    wide, tight = (find_candidates(comparison, 10, limit=limit) for limit in (1000, 150))
    assert len(tight) < len(wide) and tight.n_simplices > wide.n_simplices
    assert worst_difference(comparison, tight, "cosine", mixes(rng, 3, 500), 10) <= 1.3e-5


def test_negative_similarities():
    """The k-th nearest of few rows may point away from the query."""
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=(3, 120, 5)).astype(np.float32)
    tokens = tuple(f"t{i}" for i in range(120))
    bank = build_bank([tokens], [Encoding(tokens, vectors)])
    for row in range(4):
        comparison = bank.compare(bank.vectors[row], centered=False)
        found = find_candidates(comparison, 90, limit=115, max_work=1_500_000)
        assert worst_difference(comparison, found, "cosine", mixes(rng, 3, 100), 90) <= 1.3e-5


def test_few_rows_and_one_layer_need_no_search():
    rng = np.random.default_rng(9)
    bank = words_in_context(rng, 3, 300)
    comparison = bank.compare(bank.vectors[0])
    assert find_candidates(comparison, K, limit=300).rows.tolist() == list(range(300))
    flat = Comparison(
        comparison.products[:1], comparison.norms[:1], comparison.norm[:1], comparison.rows
    )
    found = find_candidates(flat, 5, limit=10)
    assert set(flat.nearest([1.0], 5).rows) <= set(found.rows)
    with pytest.raises(ValueError, match="limit must be 20 or more"):
        find_candidates(comparison, 20, limit=10)
    with pytest.raises(ValueError, match="metric must be one of"):
        find_candidates(comparison, 20, "manhattan")


def test_filtered_rows_keep_their_numbers():
    rng = np.random.default_rng(10)
    bank = words_in_context(rng, 3, 5000)
    rows = bank.select(word="w0", same_word="exclude")
    comparison = bank.comparison(bank.query(bank.vectors[3]), rows=rows)
    found = find_candidates(comparison, K, limit=700)
    assert set(found.rows) <= set(rows.tolist())
    assert worst_difference(comparison, found, "cosine", mixes(rng, 3, 300)) <= 1.3e-5


@pytest.mark.parametrize("n_corners", [2, 3, 4])
def test_bernstein_tables_multiply_polynomials(n_corners):
    rng = np.random.default_rng(n_corners)
    tables = bernstein(n_corners)
    n2 = n_corners * (n_corners + 1) // 2
    a, b, line = rng.normal(size=n2), rng.normal(size=n2), rng.normal(size=n_corners)
    quartic = tables.times(a).numpy() @ b
    cubic = tables.cubic.numpy() @ np.outer(a, line).ravel()

    def value(coefficients, degree, at):  # by definition, over all orders of the corners
        from itertools import combinations_with_replacement
        from math import factorial, prod

        total = 0.0
        for c, corners in zip(
            coefficients, combinations_with_replacement(range(n_corners), degree), strict=True
        ):
            ways = factorial(degree) // prod(factorial(corners.count(i)) for i in set(corners))
            total += ways * c * prod(at[i] for i in corners)
        return total

    for at in rng.dirichlet(np.ones(n_corners), 5):
        assert value(quartic, 4, at) == pytest.approx(value(a, 2, at) * value(b, 2, at), abs=1e-5)
        assert value(cubic, 4, at) == pytest.approx(value(a, 2, at) * (line @ at), abs=1e-5)


def test_coefficients_of_a_form_on_a_part_of_the_simplex():
    rng = np.random.default_rng(12)
    form = rng.normal(size=6)  # pairs of three layers
    corners = rng.dirichlet(np.ones(3), 3)
    coefficients = corner_weights(corners) @ form
    pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    for at in rng.dirichlet(np.ones(3), 5):
        inside = sum(
            c * at[a] * at[b] * (1 if a == b else 2)
            for c, (a, b) in zip(coefficients, pairs, strict=True)
        )
        assert inside == pytest.approx(pair_weights(at @ corners) @ form)
    values = point_weights(corners) @ form
    np.testing.assert_allclose(bernstein(3).middle @ values, coefficients, atol=1e-9)


def test_halves_fill_the_simplex():
    left, right = bisect(np.eye(3))
    volumes = [abs(np.linalg.det(part)) for part in (left, right)]
    np.testing.assert_allclose(volumes, [0.5, 0.5])
