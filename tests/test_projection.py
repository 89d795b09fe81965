"""Maps: linear, deterministic, and honest about what they lose."""

import numpy as np
import pytest

from elmo.banks.bank import build_bank
from elmo.banks.mixing import pair_weights
from elmo.banks.projection import fit_basis, mix_spread, neighbors_kept, variance_kept, word_rows
from elmo.results import Encoding
from elmo.scalar_mix import softmax


@pytest.fixture
def vectors():
    """60 tokens, 3 layers, 32 wide, most of the spread in two directions."""
    rng = np.random.default_rng(3)
    spread = np.ones(32)
    spread[:2] = 12, 8
    return (rng.normal(size=(60, 3, 32)) * spread + rng.normal(size=(3, 32)) * 20).astype("f4")


def test_axes_are_orthonormal_sign_fixed_and_the_widest(vectors):
    basis = fit_basis(vectors)
    np.testing.assert_allclose(basis.axes.T @ basis.axes, np.eye(2), atol=1e-5)
    largest = basis.axes[np.abs(basis.axes).argmax(axis=0), [0, 1]]
    assert (largest > 0).all()
    assert np.abs(basis.axes[0, 0]) > 0.99 and np.abs(basis.axes[1, 1]) > 0.99
    np.testing.assert_array_equal(basis.axes, fit_basis(vectors).axes)


def test_few_rows_give_the_same_axes_as_the_covariance(vectors):
    few = vectors[:8]  # 24 rows for 32 directions: the small side
    tall = np.concatenate([few] * 2)  # 48 rows with the same components: the covariance
    np.testing.assert_allclose(fit_basis(few).axes, fit_basis(tall).axes, atol=1e-4)


def test_the_map_of_a_mix_is_the_mix_of_the_maps(vectors):
    basis = fit_basis(vectors)
    s = softmax([0.2, -1, 2])
    mixed_map = np.tensordot(s * basis.scale, basis.project(vectors), axes=([0], [1]))
    mixed_vectors = np.tensordot(s, vectors - basis.mean, axes=([0], [1]))
    np.testing.assert_allclose(mixed_map, mixed_vectors @ basis.axes, atol=1e-4)


def test_long_layers_count_no_more_than_short_ones(vectors):
    longer = vectors * np.array([1, 1, 50], np.float32)[:, None]
    np.testing.assert_allclose(fit_basis(longer).axes, fit_basis(vectors).axes, atol=1e-4)
    assert fit_basis(longer).scale == pytest.approx(fit_basis(vectors).scale * [1, 1, 50])


def test_identical_vectors_get_identical_coordinates(vectors):
    vectors[7] = vectors[3]
    coordinates = fit_basis(vectors).project(vectors)
    np.testing.assert_array_equal(coordinates[7], coordinates[3])


def test_degenerate_input(vectors):
    with pytest.raises(ValueError, match="2 tokens or more, got 1"):
        fit_basis(vectors[:1])
    same = np.repeat(vectors[:1], 4, axis=0)
    assert not fit_basis(same).axes.any()  # no direction: every point in the middle
    two = fit_basis(vectors[:2])
    assert np.isfinite(two.project(vectors)).all()


def test_variance_kept(vectors):
    flat = vectors.copy()
    flat[:, :, 2:] = flat[:1, :, 2:]
    two_wide = fit_basis(flat)
    kept = variance_kept(two_wide.standardize(flat), two_wide.project(flat))
    assert kept == pytest.approx(1, abs=1e-4)
    basis = fit_basis(vectors)
    kept = variance_kept(basis.standardize(vectors), basis.project(vectors))
    centered = basis.standardize(vectors).reshape(-1, 32)
    values = np.linalg.svd(centered, compute_uv=False) ** 2
    assert kept == pytest.approx(values[:2].sum() / values.sum(), rel=1e-3)


def test_neighbors_kept(vectors):
    flat = vectors.copy()
    flat[:, :, 2:] = 0
    assert neighbors_kept(flat, flat[:, :, :2]) == 1
    shuffled = np.random.default_rng(0).normal(size=(60, 3, 2))
    assert neighbors_kept(vectors, shuffled) < 0.3  # by chance 5 of 59
    assert neighbors_kept(vectors[:1], shuffled[:1]) == 1
    copies = np.concatenate([flat, flat])  # copies count once
    assert neighbors_kept(copies, copies[:, :, :2]) == 1


def test_words_are_what_has_a_letter_or_a_digit():
    tokens = ("The", ".", "4", "--", "n't", "\u65e5")
    bank = build_bank([tokens], [Encoding(tokens, np.ones((3, 6, 2), np.float32))])
    assert word_rows(bank).tolist() == [0, 2, 4, 5]


def test_the_spread_of_a_mix_is_its_mean_square_distance(vectors):
    tokens = tuple(f"t{i}" for i in range(60))
    bank = build_bank([tokens], [Encoding(tokens, vectors.transpose(1, 0, 2))])
    s = np.array([0.2, 0.3, 0.5])
    mixed = np.tensordot(bank.vectors - bank.mean, s, axes=([1], [0]))
    expected = np.square(mixed).sum(axis=1).mean()
    assert pair_weights(s) @ mix_spread(bank) == pytest.approx(expected, rel=1e-3)
