"""Measures of context: hand-made vectors with answers known by eye."""

import numpy as np
import pytest

from elmo.probing.metrics import (
    cosine_matrix,
    explained_variance,
    intra_sentence_similarity,
    layer_geometry,
    mean_cosine,
    norms,
    one_per_sentence,
    self_similarity,
    static_vectors,
)

RNG = np.random.default_rng(0)


def test_copies_have_self_similarity_of_exactly_one():
    word = RNG.normal(size=(1, 2, 7)).astype(np.float32)
    copies = np.repeat(word, 9, axis=0)
    assert (self_similarity(copies) == 1.0).all()


def test_orthogonal_and_opposite_vectors():
    axes = np.eye(4)[:, None]  # (4, 1, 4)
    assert self_similarity(axes) == pytest.approx([0.0], abs=1e-12)
    two = np.array([[[3.0, 0.0]], [[-0.5, 0.0]]])
    assert self_similarity(two) == pytest.approx([-1.0])


def test_mean_cosine_equals_the_average_over_all_pairs():
    x = RNG.normal(size=(12, 3, 5)) + 0.5
    units = x / np.linalg.norm(x, axis=-1, keepdims=True)
    slow = [
        np.mean([units[i, k] @ units[j, k] for i in range(12) for j in range(12) if i != j])
        for k in range(3)
    ]
    np.testing.assert_allclose(mean_cosine(x), slow, atol=1e-12)


def test_one_occurrence_has_no_self_similarity():
    assert np.isnan(self_similarity(np.ones((1, 2, 3)))).all()


def test_scale_of_a_vector_does_not_matter():
    x = RNG.normal(size=(6, 2, 5))
    scaled = x * RNG.uniform(0.1, 100, size=(6, 2, 1))
    np.testing.assert_allclose(self_similarity(x), self_similarity(scaled), atol=1e-12)


def test_isotropic_vectors_have_a_baseline_near_zero_and_a_shift_raises_it():
    x = RNG.normal(size=(2000, 1, 64))
    assert abs(mean_cosine(x)[0]) < 0.01
    shifted = x + 1.0  # half of each squared length is now common to all
    assert mean_cosine(shifted)[0] == pytest.approx(0.5, abs=0.02)


def test_intra_sentence_similarity_by_hand():
    hidden = np.array([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [5.0, 0.0]]])
    # layer 0: the mean (1/2, 1/2) is at 45 degrees to both; layer 1: all point the same way
    np.testing.assert_allclose(intra_sentence_similarity(hidden), [np.sqrt(0.5), 1.0])
    assert np.isnan(intra_sentence_similarity(np.zeros((2, 0, 3)))).all()


def test_explained_variance_by_hand():
    line = np.array([[[1.0, 5.0]], [[2.0, 5.0]], [[4.0, 5.0]]])  # varies along one axis only
    assert explained_variance(line) == pytest.approx([1.0])
    cross = np.array([[[1.0, 0.0]], [[-1.0, 0.0]], [[0.0, 1.0]], [[0.0, -1.0]]])
    assert explained_variance(cross) == pytest.approx([0.5])


def test_uncentered_variance_of_copies_is_one_and_centered_is_undefined():
    copies = np.repeat(RNG.normal(size=(1, 1, 6)), 5, axis=0)
    assert explained_variance(copies, center=False) == pytest.approx([1.0])
    assert np.isnan(explained_variance(copies)).all()


def test_explained_variance_is_the_same_through_either_gram_matrix():
    tall, x = RNG.normal(size=(40, 1, 6)), RNG.normal(size=(5, 1, 30))
    for sample in (tall, x):
        centered = sample[:, 0] - sample[:, 0].mean(axis=0)
        singular = np.linalg.svd(centered, compute_uv=False) ** 2
        assert explained_variance(sample)[0] == pytest.approx(singular[0] / singular.sum())


def test_cosine_matrix_has_a_diagonal_of_exactly_one():
    hidden = RNG.normal(size=(2, 5, 8)).astype(np.float32)
    hidden[1, 3] = 0
    cosine = cosine_matrix(hidden)
    assert cosine.shape == (2, 5, 5)
    assert (np.diagonal(cosine[0]) == 1.0).all()
    assert cosine[1, 3].tolist() == [0.0] * 5
    np.testing.assert_array_equal(cosine, cosine.swapaxes(1, 2))


def test_norms():
    assert norms(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [5.0, 0.0]


def test_one_random_token_of_every_sentence():
    sentence = np.repeat([0, 1, 2], [1, 4, 7])
    rows = one_per_sentence(sentence, seed=3)
    assert sentence[rows].tolist() == [0, 1, 2]
    assert rows.tolist() == one_per_sentence(sentence, seed=3).tolist()


def test_static_vectors_are_averages_over_contexts():
    vectors = np.array([[[1.0]], [[5.0]], [[3.0]]])
    words, means, counts = static_vectors(vectors, ["to", "be", "to"])
    assert words == ["to", "be"]
    assert means[:, 0, 0].tolist() == [2.0, 5.0]
    assert counts.tolist() == [2, 1]


def corpus(n_sentences=40, width=32):
    """Sentences "a b c": layer 0 one vector a word, layer 1 word plus context, layer 2 context."""
    rng = np.random.default_rng(1)
    word = {w: rng.normal(size=width) for w in "abc"}
    rows, words, sentence = [], [], []
    for s in range(n_sentences):
        context = rng.normal(size=width)
        for w in "abc":
            rows.append([word[w], word[w] + context, context + 1e-3 * word[w]])
            words.append(w)
            sentence.append(s)
    return np.array(rows, dtype=np.float32), words, np.array(sentence)


def test_geometry_of_layers_that_know_less_and_less_of_the_word():
    geometry = layer_geometry(*corpus(), encoder="toy")
    means = geometry.self_similarity[0]
    assert means[0] == 1.0
    assert means[1] == pytest.approx(0.5, abs=0.12)
    assert means[2] == pytest.approx(0.0, abs=0.05)
    assert geometry.intra_sentence[0, 2] == pytest.approx(1.0, abs=1e-4)
    assert geometry.words == ("a", "b", "c")
    assert np.isnan(geometry.explained[0, 0]) and geometry.explained_uncentered[0, 0] > 0.999
    low, high = geometry.self_similarity[1:, 1]
    assert low <= means[1] <= high
    np.testing.assert_allclose(
        geometry.adjusted_self_similarity[0], means - geometry.baseline, atol=1e-12
    )


def test_geometry_counts_a_word_once_a_sentence_and_says_when_nothing_is_left():
    vectors, words, sentence = corpus(4)
    with pytest.raises(ValueError, match="no word occurs in 5 sentences"):
        layer_geometry(vectors, words, sentence, encoder="toy")
    with pytest.raises(ValueError, match="no word occurs in 5 sentences"):
        layer_geometry(vectors[:9], ["a"] * 9, np.zeros(9, dtype=int), encoder="toy")
