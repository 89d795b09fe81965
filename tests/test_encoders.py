"""One contract for every encoder, tested on small ones of each kind."""

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import KINDS, small_encoder

from elmo.encoders import Encoder, load_encoder
from elmo.results import Encoding

SENTENCES = [
    ["The", "cat", "sat", "on", "the", "mat", "."],
    ["Hi"],
    [],
    ["The", "the", "THE", "naïve", "", "日本", "x" * 60],
    ["a"] * 17,
    ["The", "cat", "sat", "on", "a", "mat", "."],
]
SHIPPED = sorted(
    path.parent for path in (Path(__file__).parents[1] / "assets" / "models").glob("*/card.json")
)


@pytest.fixture(scope="module", params=KINDS)
def encoder(request):
    return small_encoder(request.param)


def equal(a: Encoding, b: Encoding) -> bool:
    return a.tokens == b.tokens and np.array_equal(a.hidden, b.hidden)


def test_shapes_types_and_labels(encoder):
    encodings = encoder.encode(SENTENCES, attention=True)
    assert len(encodings) == len(SENTENCES)
    for encoding, tokens in zip(encodings, SENTENCES, strict=True):
        n = len(tokens)
        assert encoding.tokens == tuple(tokens)
        assert encoding.hidden.shape == (encoder.n_layers, n, encoder.d_model)
        assert encoding.hidden.dtype == np.float32
        assert np.isfinite(encoding.hidden).all()
        if encoder.kind == "bilm":
            assert encoding.attention is None
        else:
            n_heads = 2 * 2 if encoder.kind == "attention_concat" else 4
            assert encoding.attention.shape == (encoder.n_layers - 1, n_heads, n + 2, n + 2)
            np.testing.assert_allclose(encoding.attention.sum(-1), 1, atol=1e-5)
    assert encodings[3].truncated == (6,) and encodings[0].truncated == ()
    assert encoder.encode([["a"]])[0].attention is None


def test_no_sentences_at_all(encoder):
    assert encoder.encode([]) == []


@pytest.mark.parametrize("sentences", [[[]], [[], []], [["a"], []], [[], ["a"], []]])
def test_empty_sentences_in_any_company(encoder, sentences):
    for encoding, tokens in zip(encoder.encode(sentences), sentences, strict=True):
        assert encoding.hidden.shape == (encoder.n_layers, len(tokens), encoder.d_model)
        assert encoding.hidden.dtype == np.float32


def test_the_same_call_twice_is_bit_equal(encoder):
    first = encoder.encode(SENTENCES)
    encoder.encode([["something", "else"]])
    assert all(map(equal, first, encoder.encode(SENTENCES)))


def test_alone_or_in_any_batch(encoder):
    together = encoder.encode(SENTENCES)
    backwards = encoder.encode(SENTENCES[::-1])[::-1]
    for i, tokens in enumerate(SENTENCES):
        alone = encoder.encode([tokens])[0]
        for other in (together[i], backwards[i]):
            atol = 1e-6 if encoder.kind == "bilm" else 1e-5
            np.testing.assert_allclose(other.hidden, alone.hidden, atol=atol, rtol=0)


def test_layer_0_is_free_of_context(encoder):
    layers = encoder.encode([["the", "cat"], ["a", "dog", "and", "the", "cat"]], layers=0)
    np.testing.assert_allclose(layers[0].hidden, layers[1].hidden[3:], atol=1e-6)
    if encoder.halves:
        assert np.array_equal(*np.split(layers[0].hidden, 2, axis=-1))


def test_higher_layers_are_not(encoder):
    a, b = encoder.encode([["the", "bank", "of"], ["one", "bank", "is"]])
    assert (np.abs(a.hidden[1:, 1] - b.hidden[1:, 1]).max(axis=-1) > 1e-3).all()


def test_halves_see_one_side_only(encoder):
    a, b = encoder.encode([["x", "y", "z"], ["x", "y", "w"]])
    forward = np.abs(a.hidden - b.hidden)[1:, :2, : encoder.d_model // 2].max()
    assert (forward == 0) == encoder.halves
    a, b = encoder.encode([["x", "y", "z"], ["w", "y", "z"]])
    backward = np.abs(a.hidden - b.hidden)[1:, 1:, encoder.d_model // 2 :].max()
    assert (backward == 0) == encoder.halves


def test_selected_layers(encoder):
    full = encoder.encode(SENTENCES)[0].hidden
    for layers, expected in (
        ("all", full),
        ("top", full[-1]),
        ("mean", full.mean(axis=0)),
        *((k, full[k]) for k in range(encoder.n_layers)),
    ):
        selected = encoder.encode(SENTENCES, layers=layers)[0].hidden
        np.testing.assert_allclose(selected, expected, atol=1e-6)
        assert selected.dtype == np.float32 and selected.flags.c_contiguous
    for wrong in ("first", -1, encoder.n_layers, 1.0, None, True):
        with pytest.raises(ValueError, match="layers must be 'all', 'top', 'mean' or 0 to"):
            encoder.encode(SENTENCES, layers=wrong)


def test_boundaries_are_kept_on_request(encoder):
    inner = encoder.encode(SENTENCES)
    for kept, without in zip(encoder.encode(SENTENCES, keep_boundaries=True), inner, strict=True):
        assert kept.tokens == ("<S>", *without.tokens, "</S>")
        assert np.array_equal(kept.hidden[:, 1:-1], without.hidden)
    assert encoder.encode([["x" * 60]], keep_boundaries=True)[0].truncated == (1,)


@pytest.mark.parametrize(
    "wrong", ["abc", ["abc"], [["a"], "bc"], [[1, 2]], [["a", None]], [["a"], [b"b"]]]
)
def test_anything_but_lists_of_tokens_is_refused(encoder, wrong):
    with pytest.raises(ValueError, match="list of"):
        encoder.encode(wrong)


def test_the_longest_sentence(encoder):
    long = [["a"] * 21]
    if encoder.max_tokens is None:
        assert encoder.encode(long)[0].hidden.shape[1] == 21
    else:
        assert encoder.encode([["a"] * 20])[0].hidden.shape[1] == 20
        with pytest.raises(ValueError, match="has 21 tokens; the .* encoder reads 20 at most"):
            encoder.encode(long)


def test_results_are_plain_arrays_without_a_graph(encoder):
    hidden = encoder.encode([["a"]])[0].hidden
    assert type(hidden) is np.ndarray
    assert not any(p.requires_grad for p in encoder.model.parameters())
    hidden[:] = 0  # the caller's own copy
    assert encoder.encode([["a"]])[0].hidden.any()


def test_suspicious_tokens_warn_and_are_read(encoder):
    with pytest.warns(UserWarning, match="boundary tokens are added by the encoder"):
        assert len(encoder.encode([["<S>", "Hi", "</S>"]])[0].tokens) == 3
    with pytest.warns(UserWarning, match="white space"):
        encoder.encode([["New York"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(SENTENCES)


def test_cached_and_uncached_vectors_are_equal(encoder):
    tokens = ["the", "<S>", "", "cats", "x" * 60]
    cached = encoder.token_vectors(tokens)
    encoder._cache.clear()
    assert torch.equal(encoder.token_vectors(tokens), cached)
    assert torch.equal(encoder.token_vectors(tokens[::-1]), cached.flip(0))


def test_changed_weights_never_give_stale_vectors():
    encoder = small_encoder("bilm")
    before = encoder.encode([["a", "b"]])[0].hidden
    with torch.no_grad():
        encoder.model.token_encoder.projection.weight.mul_(2)
        encoder.model.stack.forward_layers[1].weight.mul_(2)
    after = encoder.encode([["a", "b"]])[0].hidden
    assert (np.abs(after - before).max(axis=(1, 2)) > 1e-3).all()
    fresh = Encoder(encoder.model).encode([["a", "b"]])[0].hidden
    assert np.array_equal(after, fresh)


def test_many_threads_share_one(encoder):
    """Each thread finds what a single one finds, while the cache is being filled."""
    expected = encoder.encode(SENTENCES)
    encoder._cache.clear()
    found = {}

    def work(i):
        found[i] = all(map(equal, encoder.encode(SENTENCES), expected))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(8), True)


# ---------------------------------------------------------------- start states of the biLM


@pytest.mark.parametrize("state", ["zero", "warm"])
def test_fixed_states_are_independent_of_everything_before(state):
    encoder = small_encoder("bilm", state=state)
    first = encoder.encode(SENTENCES)
    for i, tokens in enumerate(SENTENCES):
        alone = encoder.encode([tokens])[0]
        np.testing.assert_allclose(alone.hidden, first[i].hidden, atol=1e-6, rtol=0)
    again = small_encoder("bilm", state=state).encode(SENTENCES)
    assert all(map(equal, first, again))


def test_warm_is_the_state_that_the_warm_up_text_leaves():
    from elmo.start_states import WARM_UP

    carry = small_encoder("bilm", state="carry")
    for line in WARM_UP.splitlines():
        carry.encode([line.split()])
    warm = small_encoder("bilm", state="warm").encode([["Hi", "there"]])[0]
    np.testing.assert_allclose(
        carry.encode([["Hi", "there"]])[0].hidden, warm.hidden, atol=1e-6, rtol=0
    )
    zero = small_encoder("bilm").encode([["Hi", "there"]])[0]
    assert np.abs(zero.hidden - warm.hidden)[1:].max() > 1e-3
    assert np.array_equal(zero.hidden[0], warm.hidden[0])


def test_carry_remembers_rows_until_reset():
    encoder = small_encoder("bilm", state="carry")
    first, second = (encoder.encode([["a"], ["b", "c"]]) for _ in range(2))
    assert not np.array_equal(first[0].hidden, second[0].hidden)
    encoder.reset()
    assert all(map(equal, first, encoder.encode([["a"], ["b", "c"]])))


def test_states_that_are_none():
    with pytest.raises(ValueError, match="state must be one of zero, warm, carry, got 'cold'"):
        small_encoder("bilm", state="cold")
    with pytest.raises(ValueError, match="only a biLM has a state"):
        small_encoder("attention", state="warm")


# ---------------------------------------------------------------- the models that ship


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda path: path.name)
def test_shipped_models_keep_the_contract(folder):
    encoder = load_encoder(folder)
    together = encoder.encode(SENTENCES)
    for encoding, tokens in zip(together, SENTENCES, strict=True):
        assert encoding.hidden.shape == (encoder.n_layers, len(tokens), encoder.d_model)
        alone = encoder.encode([tokens])[0]
        scale = 1 if encoder.kind == "bilm" else np.abs(alone.hidden).max(initial=1)
        np.testing.assert_allclose(encoding.hidden, alone.hidden, atol=1e-6 * scale, rtol=0)
