import numpy as np
import pytest
from small_models import small_encoder

from elmo.both_ways.attention_maps import attention_cell, head_statistics, rollout
from elmo.results import Encoding

SENTENCE = ["the", "cat", "saw", "a", "dog"]
KINDS = ("attention", "attention_concat")


def encode(kind):
    encoder = small_encoder(kind)
    return encoder, encoder.encode([SENTENCE], attention=True)[0]


def made_up(*heads):
    """One layer whose heads have the given weights, each (T + 2, T + 2)."""
    attention = np.array([heads], dtype=np.float32)
    n = attention.shape[-1] - 2
    return Encoding(("w",) * n, np.zeros((2, n, 4), np.float32), attention)


def test_entropy_and_distance_by_eye():
    n = 6  # four words and two boundaries
    even = np.full((n, n), 1 / n)
    previous = np.eye(n, k=-1)
    previous[0, 0] = 1
    two = (np.eye(n) + np.eye(n, k=1)) / 2
    result = head_statistics(made_up(even, previous, two), "attention")
    np.testing.assert_allclose(result.entropy, [[np.log2(6), 0, 1]], atol=1e-6)
    mean_even = np.mean([np.abs(np.arange(n) - q).mean() for q in (1, 2, 3, 4)])
    np.testing.assert_allclose(result.distance, [[mean_even, 1, 0.5]], atol=1e-6)
    np.testing.assert_allclose(result.to_left, [[np.mean([1, 2, 3, 4]) / 6, 1, 0]], atol=1e-6)
    np.testing.assert_allclose(result.to_itself, [[1 / 6, 0, 0.5]], atol=1e-6)
    np.testing.assert_allclose(result.to_boundaries, [[2 / 6, 1 / 4, 1 / 8]], atol=1e-6)
    assert result.directions == ("joint",) * 3


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_an_encoder(kind):
    encoder, encoding = encode(kind)
    result = head_statistics(encoding, kind)
    assert result.entropy.shape == encoding.attention.shape[:2]
    assert (result.entropy >= 0).all()
    assert (result.entropy <= np.log2(len(SENTENCE) + 2)).all()
    if kind == "attention_concat":
        assert result.directions == ("forward", "forward", "backward", "backward")
        assert (result.to_left[:, 2:] == 0).all()
        right = 1 - result.to_left - result.to_itself
        np.testing.assert_allclose(right[:, :2], 0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_rollout_rows_sum_to_one_and_keep_their_triangle(kind):
    _, encoding = encode(kind)
    stacks = rollout(encoding, kind)
    n = len(SENTENCE) + 2
    for direction, layers in stacks.items():
        assert layers.shape == (3, n, n)
        np.testing.assert_allclose(layers.sum(axis=-1), 1)
        if direction == "forward":
            assert (layers[:, np.triu(np.ones((n, n), bool), 1)] == 0).all()
        if direction == "backward":
            assert (layers[:, np.tril(np.ones((n, n), bool), -1)] == 0).all()
    assert tuple(stacks) == (("joint",) if kind == "attention" else ("forward", "backward"))


def test_rollout_by_hand():
    n = 3
    to_first = np.zeros((n, n))
    to_first[:, 0] = 1
    encoding = Encoding(
        ("w",),
        np.zeros((3, 1, 4), np.float32),
        np.array([[to_first, np.eye(n)], [to_first, to_first]], np.float32),
    )
    first, second = rollout(encoding, "attention")["joint"]
    np.testing.assert_allclose(first[1], [0.25, 0.75, 0])  # half of a half to the first
    np.testing.assert_allclose(second[1], [0.5 + 0.125, 0.375, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", [1, 3])
def test_a_cell_recomputed_by_hand_is_the_encoders_weight(kind, layer):
    encoder, encoding = encode(kind)
    for head in range(encoding.attention.shape[1]):
        for query, key in [(2, 1), (2, 2), (2, 5), (0, 6)]:
            cell = attention_cell(encoder, SENTENCE, layer, head, query, key)
            expected = encoding.attention[layer - 1, head, query]
            np.testing.assert_allclose(cell.weights, expected, atol=2e-6)
            assert cell.weights.sum() == pytest.approx(1)
            assert cell.dot == pytest.approx(float(cell.query @ cell.key), abs=1e-5)
            if np.isfinite(cell.score):
                assert cell.score == pytest.approx(cell.dot / cell.scale, abs=1e-5)
                finite = np.exp(cell.scores[np.isfinite(cell.scores)])
                assert cell.weight == pytest.approx(np.exp(cell.score) / finite.sum(), abs=1e-6)
            else:
                assert cell.weight == 0
            assert cell.scale == np.sqrt(len(cell.query))


def test_a_causal_head_may_not_look_ahead():
    encoder, _ = encode("attention_concat")
    forward = attention_cell(encoder, SENTENCE, 1, 0, query=2, key=3)
    backward = attention_cell(encoder, SENTENCE, 1, 2, query=2, key=1)
    assert (forward.direction, backward.direction) == ("forward", "backward")
    assert forward.weight == backward.weight == 0
    assert forward.score == backward.score == -np.inf
    assert forward.tokens[2:4] == ("cat", "saw")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, 0, 1, 1), "layer must be 1 to 3, got 0"),
        ((4, 0, 1, 1), "layer must be 1 to 3, got 4"),
        ((1, 4, 1, 1), "head must be 0 to 3, got 4"),
        ((1, 0, 7, 1), "query must be 0 to 6, got 7"),
        ((1, 0, 1, -1), "key must be 0 to 6, got -1"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        attention_cell(small_encoder("attention"), SENTENCE, *arguments)


def test_an_lstm_has_no_heads():
    encoder = small_encoder("bilm")
    with pytest.raises(ValueError, match="has no attention"):
        attention_cell(encoder, SENTENCE, 1, 0, 1, 1)
    encoding = encoder.encode([SENTENCE], attention=True)[0]
    with pytest.raises(ValueError, match="no attention weights"):
        head_statistics(encoding, "bilm")
    with pytest.raises(ValueError, match="no attention weights"):
        rollout(encoding, "attention")


def test_an_empty_sentence_has_no_statistics():
    encoding = small_encoder("attention").encode([[]], attention=True)[0]
    with pytest.raises(ValueError, match="empty sentence"):
        head_statistics(encoding, "attention")
