import dataclasses

import numpy as np
import pytest
import torch
from small_models import KINDS, small_encoder

from elmo.both_ways import influence
from elmo.both_ways.influence import (
    gap_replacements,
    gradient_grid,
    influence_grids,
    random_replacements,
    replacement_grid,
    word_replacements,
)
from elmo.both_ways.variants import Variants, compare
from elmo.encoders import untrained_encoder
from elmo.scalar_mix import mix_layers, softmax
from elmo.text import BOS, EOS, MASK

SENTENCE = ["the", "cat", "that", "saw", "the", "dog", "ran", "home"]
RANDOM = random_replacements(SENTENCE, ["tree", "go", "seldom", "dog"], n_samples=3)


@pytest.fixture(params=KINDS)
def encoder(request):
    return small_encoder(request.param)


def parts_of(encoder, hidden):
    """Whole vector, and halves where there are any, by name."""
    if not encoder.halves:
        return {"whole": hidden}
    forward, backward = np.split(hidden, 2, axis=-1)
    return {"whole": hidden, "forward": forward, "backward": backward}


def by_hand(encoder, replacements, w=None):
    """The grid with one call to ``encode`` a cell's sentence: part -> (L or 1, T, T)."""

    def hidden(tokens):
        layers = encoder.encode([tokens])[0].hidden.astype(np.float64)
        return layers if w is None else mix_layers(layers, w)[None]

    base = parts_of(encoder, hidden(SENTENCE))
    n = len(SENTENCE)
    grids = {name: np.zeros((len(x), n, n)) for name, x in base.items()}
    for words in replacements.words:
        for j in range(n):
            edited = parts_of(encoder, hidden([*SENTENCE[:j], words[j], *SENTENCE[j + 1 :]]))
            for name, x in base.items():
                change = np.linalg.norm(edited[name] - x, axis=-1) / np.linalg.norm(x, axis=-1)
                grids[name][:, j] += change**2
    return {name: np.sqrt(grid / len(replacements.words)) for name, grid in grids.items()}


@pytest.mark.parametrize("replacements", [gap_replacements(SENTENCE), RANDOM])
def test_the_grid_equals_one_encode_call_a_cell(encoder, replacements):
    grid = replacement_grid(encoder, SENTENCE, replacements)
    for part, expected in by_hand(encoder, replacements).items():
        found = np.stack([grid.layer(k, part) for k in range(encoder.n_layers)])
        np.testing.assert_allclose(found, expected, atol=2e-5)


def test_the_influence_on_a_mix_needs_no_further_run(encoder):
    w = np.linspace(-0.5, 1.0, encoder.n_layers)
    grid = replacement_grid(encoder, SENTENCE)
    for part, expected in by_hand(encoder, gap_replacements(SENTENCE), w).items():
        np.testing.assert_allclose(grid.mix(softmax(w), part), expected[0], atol=2e-5)


def test_a_half_never_sees_the_other_side_and_joint_attention_sees_all(encoder):
    grid = replacement_grid(encoder, SENTENCE, RANDOM)
    n = len(SENTENCE)
    assert grid.n_broken == 0
    later = np.tril(np.ones((n, n), dtype=bool), -1)  # edited j after read t
    everywhere = np.ones((n, n), dtype=bool)
    for k in range(1, encoder.n_layers):
        assert (grid.layer(k) > 0).all()
        if encoder.halves:
            assert (grid.layer(k, "forward")[later] == 0).all()
            assert (grid.layer(k, "forward")[~later] > 0).all()
            assert (grid.layer(k, "backward")[later.T] == 0).all()
            assert (grid.layer(k, "backward")[~later.T] > 0).all()
    assert (grid.layer(0)[~np.eye(n, dtype=bool)] == 0).all()
    zeros_above = n * (n - 1) if encoder.halves else 0  # two triangles without diagonal
    per_layer_0 = len(grid.parts) * n * (n - 1)
    assert grid.n_zero == per_layer_0 + (encoder.n_layers - 1) * zeros_above
    assert grid.changed[grid.reachable & everywhere].all()


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("kind", ["bilm", "attention_concat"])
@pytest.mark.parametrize("n_tokens", [2, 5, 11])
def test_zeros_are_exact_at_shipped_size_with_any_number_of_threads(kind, n_tokens, n_threads):
    encoder = untrained_encoder(kind)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n_threads)
        grid = replacement_grid(encoder, [f"word{i}" for i in range(n_tokens)])
    finally:
        torch.set_num_threads(before)
    assert grid.n_broken == 0
    assert grid.n_zero > 0


def test_a_broken_zero_is_counted(monkeypatch):
    encoder = small_encoder("bilm")
    encode = encoder.encode

    def halves_swapped(sentences):
        return [
            dataclasses.replace(e, hidden=np.roll(e.hidden, encoder.d_model // 2, axis=-1))
            for e in encode(sentences)
        ]

    monkeypatch.setattr(encoder, "encode", halves_swapped)
    grid = replacement_grid(encoder, SENTENCE)
    n = len(SENTENCE)
    assert grid.n_broken == (encoder.n_layers - 1) * n * (n - 1)


def test_zeros_stay_exact_where_rows_of_a_batch_differ_in_the_last_bits(monkeypatch):
    encoder = small_encoder("bilm")
    encode = encoder.encode
    n_calls = []

    def rows_differ(sentences):
        n_calls.append(len(sentences))
        return [
            dataclasses.replace(e, hidden=e.hidden * np.float32(1 + 1e-6 * row))
            for row, e in enumerate(encode(sentences))
        ]

    monkeypatch.setattr(encoder, "encode", rows_differ)
    grid = replacement_grid(encoder, SENTENCE)
    assert grid.n_broken == 0
    assert n_calls == [len(SENTENCE) + 1] + [len(SENTENCE)] * 2


@pytest.mark.parametrize("same_row", [True, False])
def test_batches_of_edits_equal_single_runs(encoder, monkeypatch, same_row):
    edited = [(*SENTENCE[:j], MASK, *SENTENCE[j + 1 :]) for j in range(len(SENTENCE))]
    monkeypatch.setattr("elmo.both_ways.variants.TOKENS_PER_BATCH", 4 * (len(SENTENCE) + 2))
    variants = Variants(encoder, [SENTENCE, *edited])
    alone = variants.run_alone(edited)  # (N, L, T, D)
    seen = []
    for first, base, changed in compare(encoder, SENTENCE, edited, same_row):
        assert base.shape[1] == (changed.shape[1] if same_row else 1)
        assert changed.shape[1] <= 3
        seen += range(first, first + changed.shape[1])
        np.testing.assert_allclose(
            changed.swapaxes(0, 1), alone[first : first + changed.shape[1]], atol=1e-4
        )
    assert seen == list(range(len(SENTENCE)))


def test_the_word_itself_as_replacement_changes_nothing(encoder):
    grid = replacement_grid(encoder, SENTENCE, word_replacements(SENTENCE, "the"))
    for j, token in enumerate(SENTENCE):
        assert grid.changed[:, :, j].any() == (token != "the")
        assert grid.layer(1)[j].any() == (token != "the")


def test_repeated_words_are_edited_one_at_a_time(encoder):
    grid = replacement_grid(encoder, SENTENCE)
    assert SENTENCE[0] == SENTENCE[4]
    assert grid.layer(0)[0, 4] == 0
    assert grid.layer(0)[0, 0] > 0


def test_random_words_are_the_same_for_a_seed_and_never_the_token_itself():
    words = ["the", "cat", "tree"]
    first = random_replacements(SENTENCE, words, 5, seed=3)
    assert first == random_replacements(SENTENCE, words, 5, seed=3)
    assert first != random_replacements(SENTENCE, words, 5, seed=4)
    assert all(
        word != token
        for sample in first.words
        for word, token in zip(sample, SENTENCE, strict=True)
    )


def test_common_words_are_plain_and_in_order():
    vocabulary = [BOS, EOS, "<UNK>", "the", ",", "The", "of", "3", "cat"]
    assert influence.common_words(vocabulary, 2) == ["the", "of"]
    assert influence.common_words(vocabulary) == ["the", "of", "cat"]


def jacobian_norms(encoder):
    """(L, T, T): Frobenius norms of the whole derivative, by reverse mode."""
    x, lengths = encoder.embed([[BOS, *SENTENCE, EOS]])

    def layers(x):
        return encoder.model.layers(x, lengths)[0][:, 0, 1:-1]

    jacobian = torch.autograd.functional.jacobian(layers, x)[:, :, :, 0, 1:-1]  # L T D T P
    return jacobian.double().square().sum(dim=(2, 4)).sqrt().transpose(1, 2).numpy()


def test_the_gradient_estimate_agrees_with_the_whole_jacobian(encoder):
    grid = gradient_grid(encoder, SENTENCE, n_directions=128)  # few leave the error itself unsure
    expected = jacobian_norms(encoder)
    for k in range(encoder.n_layers):
        weights = np.eye(encoder.n_layers)[k]
        off = np.abs(grid.layer(k) - expected[k])
        error = grid.standard_error(weights)
        assert (off[expected[k] == 0] == 0).all()
        assert (off <= 5 * error + 1e-6).all()
        assert np.median(off / np.maximum(error, 1e-9)) < 1.5


def test_gradients_are_exactly_zero_where_nothing_can_reach(encoder):
    grid = gradient_grid(encoder, SENTENCE, n_directions=2)
    assert grid.n_broken == 0
    assert (grid.layer(1)[grid.reachable[0, 1]] > 0).all()


def test_the_gradient_estimate_is_the_same_for_a_seed():
    encoder = small_encoder("bilm")
    first, again = (gradient_grid(encoder, SENTENCE, 2, seed=5) for _ in range(2))
    assert np.array_equal(first.cross, again.cross)
    assert not np.array_equal(first.cross, gradient_grid(encoder, SENTENCE, 2, seed=6).cross)


def test_the_gradient_is_taken_from_where_the_encoder_starts():
    zero, warm = (
        gradient_grid(small_encoder("bilm", state=state), SENTENCE, 2) for state in ("zero", "warm")
    )
    assert not np.allclose(zero.layer(1), warm.layer(1), rtol=1e-3)
    np.testing.assert_allclose(zero.layer(0), warm.layer(0), rtol=1e-5)


def test_directions_in_parts_are_those_of_the_whole():
    """As the page asks for them, and a program for all at once."""
    encoder = small_encoder("bilm")
    whole = gradient_grid(encoder, SENTENCE, 5, seed=3)
    parts = [gradient_grid(encoder, SENTENCE, n, 3, first) for first, n in ((0, 2), (2, 3))]
    squares = sum(np.square(p.layer(1)) * n for p, n in zip(parts, (2, 3), strict=True)) / 5
    np.testing.assert_allclose(np.sqrt(squares), whole.layer(1), rtol=1e-4)


def test_a_single_sample_has_no_standard_error():
    grid = replacement_grid(small_encoder("bilm"), SENTENCE)
    assert np.isnan(grid.standard_error(np.eye(3)[1])).all()


def test_progress_rises_to_one():
    seen = []
    encoders = [small_encoder(kind) for kind in KINDS]
    grids = influence_grids(encoders, SENTENCE, RANDOM, seen.append)
    assert [grid.encoder for grid in grids] == [encoder.name for encoder in encoders]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert len(seen) >= 3 * len(RANDOM.words)


def test_one_word_has_influence_on_itself_alone(encoder):
    grid = replacement_grid(encoder, ["cat"])
    assert grid.layer(1).shape == (1, 1)
    assert grid.layer(1)[0, 0] > 0
    assert grid.n_zero == 0


@pytest.mark.parametrize(
    "tokens, message",
    [
        ([], "1 to 128 tokens, got 0"),
        (["a"] * 129, "1 to 128 tokens, got 129"),
        ("a cat", "must be a list of tokens, got 'a cat'"),
        ([1, 2], "must be a list of tokens"),
    ],
)
def test_what_is_no_sentence_is_refused(tokens, message):
    with pytest.raises(ValueError, match=message):
        replacement_grid(small_encoder("bilm"), tokens)


def test_a_sentence_longer_than_the_encoder_reads_is_refused():
    with pytest.raises(ValueError, match="21 tokens; the attention encoder reads 20 at most"):
        replacement_grid(small_encoder("attention"), ["a"] * 21)
    with pytest.raises(ValueError, match="21 tokens; the attention encoder reads 20 at most"):
        gradient_grid(small_encoder("attention"), ["a"] * 21)


@pytest.mark.parametrize("word", ["", "two words", " "])
def test_a_replacement_must_be_one_word(word):
    with pytest.raises(ValueError, match="must be one word"):
        word_replacements(SENTENCE, word)


def test_a_carried_state_is_refused():
    with pytest.raises(ValueError, match="carries its state"):
        replacement_grid(small_encoder("bilm", state="carry"), SENTENCE)


def test_other_wrong_arguments_are_refused():
    grid = replacement_grid(small_encoder("attention"), SENTENCE)
    with pytest.raises(ValueError, match="part must be one of whole, got 'forward'"):
        grid.layer(1, "forward")
    with pytest.raises(ValueError, match="layer must be 0 to 3, got 4"):
        grid.layer(4)
    with pytest.raises(ValueError, match="4 layers need as many weights"):
        grid.mix(np.ones(3))
    with pytest.raises(ValueError, match="n_directions must be 1 or more"):
        gradient_grid(small_encoder("bilm"), SENTENCE, n_directions=0)
    with pytest.raises(ValueError, match="at least two words"):
        random_replacements(SENTENCE, ["one"])
