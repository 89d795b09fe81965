import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import KINDS, small_encoder

from elmo.__main__ import main
from elmo.both_ways.arithmetic import Edit, Interaction
from elmo.both_ways.interaction import apply_edit, interaction, read_examples, summarize
from elmo.encoders import untrained_encoder
from elmo.scalar_mix import softmax

SENTENCE = ["the", "cat", "that", "saw", "the", "dog", "ran", "home", "early", "today"]
LEFT, RIGHT = Edit(1, ("mouse",)), Edit(7, ("away",))


@pytest.fixture(params=KINDS)
def encoder(request):
    return small_encoder(request.param)


def between(result):
    return slice(result.between.start, result.between.stop)


def test_the_interaction_is_that_of_four_encode_calls(encoder):
    result = interaction(encoder, SENTENCE, LEFT, RIGHT)

    def hidden(*edits):
        tokens = list(SENTENCE)
        for i, word in edits:
            tokens[i] = word
        return encoder.encode([tokens])[0].hidden.astype(np.float64)

    left, right = (1, "mouse"), (7, "away")
    expected = (hidden(left, right) - hidden(left)) - (hidden(right) - hidden())
    np.testing.assert_allclose(result.vectors, expected, atol=1e-5)
    assert result.vectors.dtype == np.float32
    size = np.linalg.norm(expected, axis=-1) / np.linalg.norm(hidden(), axis=-1)
    np.testing.assert_allclose(result.size, size, atol=1e-5)


@pytest.mark.parametrize("w", [None, [0.1, -0.7, 2.0, 0.3]])
def test_exactly_zero_between_the_edits_unless_joint(encoder, w):
    result = interaction(encoder, SENTENCE, LEFT, RIGHT)
    if w is not None:
        result = result.mix(softmax(w[: encoder.n_layers]), gamma=1.3)
    inside = result.vectors[:, between(result)]
    assert inside.shape[1] == 5
    top = inside[-1]
    if encoder.halves:
        assert (inside == 0).all()  # every number of every layer, without tolerance
        assert result.exactly_zero[:, between(result)].all()
    else:
        assert (np.abs(top).max(axis=-1) > 1e-3).all()
        assert not result.exactly_zero[-1, between(result)].any()


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("kind", ["bilm", "attention_concat"])
def test_exactly_zero_at_shipped_size_with_any_number_of_threads(kind, n_threads):
    encoder = untrained_encoder(kind)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n_threads)
        result = interaction(encoder, SENTENCE, LEFT, RIGHT)
    finally:
        torch.set_num_threads(before)
    assert (result.vectors[:, between(result)] == 0).all()
    assert (result.mix(softmax([0.3, -0.2, 0.5, 0.1][: encoder.n_layers])).vectors == 0)[
        :, between(result)
    ].all()


def test_outside_the_span_one_half_has_seen_both_edits(encoder):
    result = interaction(encoder, SENTENCE, LEFT, RIGHT)
    outside = [0, 1, 7, 8, 9]  # the edited words themselves are outside too
    assert (result.size[1:, outside] > 0).all()
    if encoder.halves:
        half = encoder.d_model // 2
        vectors = result.vectors[1:]
        assert (vectors[:, :2, :half] == 0).all()  # left of the span the backward half alone
        assert (vectors[:, 7:, half:] == 0).all()


def test_layer_0_is_unchanged_between_and_has_no_share(encoder):
    result = interaction(encoder, SENTENCE, LEFT, RIGHT)
    expected = np.ones(len(SENTENCE), dtype=bool)
    expected[[1, 7]] = False
    assert result.unchanged[0].tolist() == expected.tolist()
    assert not result.unchanged[1:].any()
    assert np.isnan(result.share[0][expected]).all()
    assert (result.share[0][[1, 7]] == 0).all()  # one edit each: nothing to interact
    assert np.isfinite(result.share[1:]).all()
    assert (result.share[1:] <= 1 + 1e-6).all() or not encoder.halves


def test_edits_of_several_words_keep_the_length(encoder):
    result = interaction(encoder, SENTENCE, Edit(0, ("a", "dog")), Edit(6, ("sat", "down")))
    assert list(result.between) == [2, 3, 4, 5]
    assert result.exactly_zero[:, 2:6].all() == encoder.halves


def test_the_differences_are_taken_in_the_stated_order():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2, 2, 1, 1, 64)).astype(np.float32) * 1e3
    hidden[1, 0] = hidden[0, 0]  # the left edit alone does nothing: I = h(L',R') - h(L,R') - 0
    hidden[1, 1] = hidden[0, 1]
    tokens = ("a", "b", "c")
    result = Interaction("made up", tokens, Edit(0, ("x",)), Edit(2, ("y",)), hidden)
    assert (result.vectors == 0).all()
    hidden[1, 0] = rng.normal(size=64)
    assert np.array_equal(
        result.vectors, (hidden[1, 1] - hidden[1, 0]) - (hidden[0, 1] - hidden[0, 0])
    )


def test_summary_over_examples(encoder):
    edits = [(Edit(i, ("mouse",)), Edit(i + 4, ("away",))) for i in range(5)]
    results = [interaction(encoder, SENTENCE, *pair) for pair in edits]
    summary = summarize(results)
    assert summary.n_vectors == 5 * 3
    sizes = [[r.size[k, between(r)].mean() for k in range(encoder.n_layers)] for r in results]
    np.testing.assert_allclose(summary.size, sizes)
    np.testing.assert_allclose(summary.mean, np.mean(sizes, axis=0))
    assert (summary.low <= summary.mean).all()
    assert (summary.mean <= summary.high).all()
    shares = [[r.share[k, between(r)].mean() for k in range(encoder.n_layers)] for r in results]
    np.testing.assert_allclose(summary.share, np.mean(shares, axis=0))
    assert np.isnan(summary.share[0])
    assert summary.n_unchanged.tolist() == [15] + [0] * (encoder.n_layers - 1)
    if encoder.halves:
        assert summary.n_zero.tolist() == [15] * encoder.n_layers
        assert (summary.high == 0).all()
    else:
        assert summary.n_zero.tolist() == [15, 0, 0, 0]


@pytest.mark.parametrize(
    "left, right, message",
    [
        (Edit(7, ("away",)), Edit(1, ("mouse",)), "words 7 to 7 and 1 to 1 do not"),
        (Edit(1, ("mouse",)), Edit(2, ("who",)), "at least one word between"),
        (Edit(1, ("cat",)), RIGHT, "leaves 'cat' as it is"),
        (Edit(1, ("big mouse",)), RIGHT, "replaces words by as many words, got 'big mouse'"),
        (Edit(1, ("",)), RIGHT, "replaces words by as many words"),
        (LEFT, Edit(9, ("now", "then")), "must replace words 0 to 9"),
        (Edit(-1, ("a",)), RIGHT, "must replace words 0 to 9"),
        (Edit(1, ()), RIGHT, "must replace words 0 to 9"),
    ],
)
def test_wrong_edits_are_refused(left, right, message):
    with pytest.raises(ValueError, match=message):
        interaction(small_encoder("bilm"), SENTENCE, left, right)


def test_an_edit_leaves_the_rest_alone():
    assert apply_edit(("a", "b", "c"), Edit(1, ("x",))) == ("a", "x", "c")


def test_a_mix_needs_a_weight_for_every_layer():
    with pytest.raises(ValueError, match="3 layers need as many weights"):
        interaction(small_encoder("bilm"), SENTENCE, LEFT, RIGHT).mix([0.5, 0.5])


def test_examples_are_read_by_word(tmp_path):
    path = tmp_path / "edits.json"
    entry = {"text": "The cat saw a dog.", "left": ["cat", "mouse"], "right": ["dog", "hen"]}
    path.write_text(json.dumps({"version": 1, "examples": [entry]}))
    ((tokens, left, right),) = read_examples(path)
    assert tokens == ("The", "cat", "saw", "a", "dog", ".")
    assert (left, right) == (Edit(1, ("mouse",)), Edit(4, ("hen",)))
    path.write_text(json.dumps({"examples": [{**entry, "left": ["horse", "x"]}]}))
    with pytest.raises(ValueError, match="'horse' must stand once"):
        read_examples(path)


def test_summary_refuses_no_result():
    with pytest.raises(ValueError, match="interactions of one encoder"):
        summarize([])


def test_the_command_writes_averages(tmp_path):
    from small_models import small_model

    from elmo.checkpoint import save_model

    vocabulary = ["<S>", "</S>", "<UNK>", "the"]
    for kind in ("bilm", "attention"):
        save_model(tmp_path / kind, small_model(kind, 4), vocabulary, {"name": kind})
    entry = {"text": "The cat saw a dog.", "left": ["cat", "mouse"], "right": ["dog", "hen"]}
    (tmp_path / "edits.json").write_text(json.dumps({"examples": [entry] * 3}))
    arguments = ["interaction", "--models", str(tmp_path / "bilm"), str(tmp_path / "attention")]
    arguments += ["--examples", str(tmp_path / "edits.json"), "--out", str(tmp_path / "o.json")]
    assert main(arguments) == 0
    bilm, attention = json.loads((tmp_path / "o.json").read_text())["encoders"]
    assert bilm["mean"] == [0, 0, 0]
    assert bilm["share"] == [None, 0, 0]
    assert bilm["n_zero"] == [6, 6, 6]
    assert attention["n_zero"] == [6, 0, 0, 0]
    assert attention["mean"][-1] > 0


def test_our_examples_leave_room_between_the_edits():
    examples = read_examples(Path(__file__).parents[1] / "assets" / "edits.json")
    assert len(examples) == 40
    assert len({tokens for tokens, _, _ in examples}) == 40
    for tokens, left, right in examples:
        assert right.start - left.stop >= 3
        apply_edit(apply_edit(tokens, left), right)
