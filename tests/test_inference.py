"""The fast path against the plain modules, with and without torch's prepacked products."""

import numpy as np
import pytest
import torch
from small_models import small_encoder, small_model

from elmo import inference, products
from elmo.config import BiLMConfig, CharConfig, ModelConfig
from elmo.encoders import Encoder
from elmo.inference import FastBiLM, FastCharCNN, FastLSTM, _groups
from elmo.language_model import build
from elmo.products import Product, padded_rows
from elmo.start_states import zero_pair
from elmo.text import char_ids

WORDS = ["", "a", "the", "cats", "<S>", "日本語の単語", "x" * 41, "x" * 44, "x" * 48, "x" * 60]


@pytest.fixture(params=["prepacked", "plain"], autouse=True)
def kind(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(products, "_has_onednn", lambda dtype: False)
    elif not products._has_onednn(torch.float32):
        pytest.skip("torch has no prepacked products on this processor")
    return request.param


def test_few_row_counts_none_smaller_and_never_one():
    sizes = [padded_rows(n) for n in range(1, 513)]
    assert all(n <= size for n, size in enumerate(sizes, 1))
    assert len(set(sizes)) == 18 and min(sizes) == 2 and max(sizes) == 512


def test_time_steps_are_grouped_in_order():
    sizes = [100] * 7 + [5] * 300 + [1]
    groups = _groups(sizes)
    assert [size for group in groups for size in group] == sizes
    assert all(sum(group) <= inference.MAX_ROWS - 64 for group in groups) and len(groups) < 8
    assert _groups([10_000, 3]) == [[10_000], [3]]  # one step is never cut
    assert _groups([]) == []


def test_products(kind):
    torch.manual_seed(0)
    weight, bias, x, added = (torch.randn(*s) for s in ((40, 16), (40,), (4, 16), (4, 40)))
    product = Product(weight, bias, torch.float32)
    assert (product.packed is not None) == (kind == "prepacked")
    with torch.inference_mode():
        torch.testing.assert_close(product(x), x @ weight.t() + bias)
        torch.testing.assert_close(product.plus(x, added), x @ weight.t() + added)
        torch.testing.assert_close(Product(weight, None, torch.float32)(x), x @ weight.t())
        rough = Product(weight, bias, torch.bfloat16)
        for found, exact in ((rough(x), bias), (rough.plus(x, added), added)):
            assert found.dtype == torch.float32
            torch.testing.assert_close(found, x @ weight.t() + exact, atol=0.1, rtol=0.05)


@pytest.mark.parametrize(
    "config",
    [
        CharConfig(8, 4, ((1, 4), (2, 6), (7, 9)), n_highway=2),
        CharConfig(8, 4, ((7, 9), (1, 4), (3, 2)), n_highway=0, activation="tanh"),
        CharConfig(12, 4, ((2, 12),), n_highway=1, project=False),
        CharConfig(8, 3, ((1, 4), (5, 6)), max_characters=7),
        CharConfig(8, 3, ((5, 6), (5, 3)), max_characters=5),
    ],
)
@torch.no_grad()
def test_character_vectors_equal_the_modules(config):
    model = small_model("bilm")
    torch.manual_seed(0)
    cnn = type(model.token_encoder)(config)
    for convolution in cnn.convolutions:
        convolution.weight.normal_()
        convolution.bias.normal_()
    width = config.max_characters
    ids = torch.from_numpy(np.stack([char_ids(word, width) for word in WORDS * 30]))
    found = FastCharCNN(cnn, torch.float32)(ids)
    torch.testing.assert_close(found, cnn(ids), atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(found[:1], FastCharCNN(cnn, torch.float32)(ids[:1]))


@pytest.mark.parametrize(
    "config",
    [
        BiLMConfig(8, 12),
        BiLMConfig(8, 12, n_layers=3, skip_connections=False, cell_clip=None),
        BiLMConfig(8, 12, projection_clip=None, cell_clip=0.3),
        BiLMConfig(8, 8, project=False, n_layers=1),
    ],
)
@torch.no_grad()
def test_layers_and_states_equal_the_modules(config):
    char = CharConfig(8, 4, ((1, 8),))
    stack = build(ModelConfig("bilm", char, config), 0).stack
    for parameter in stack.parameters():
        parameter.normal_(std=0.5)
    lengths = torch.tensor([3, 20, 1, 20, 9, 2, 70])
    x = torch.randn(7, 70, 8)
    fast = FastBiLM(stack, torch.float32)
    _, start = stack.run(torch.randn(7, 4, 8), torch.full((7,), 4))
    for given in ((None, None), start, zero_pair(stack, 7), (start[0], None)):
        expected, expected_end = stack.run(x, lengths, given)
        found, end = fast.run(x, lengths, given)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        for a, b in zip(end, expected_end, strict=True):
            for c, d in zip(a.hidden + a.cell, b.hidden + b.cell, strict=True):
                torch.testing.assert_close(c, d, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_more_sentences_than_rows_of_a_product():
    stack = small_model("bilm").stack
    x, lengths = torch.randn(700, 3, 16), torch.randint(1, 4, (700,))
    found, _ = FastBiLM(stack, torch.float32).run(x, lengths)
    torch.testing.assert_close(found, stack(x, lengths), atol=1e-5, rtol=1e-5)


def test_the_callers_state_is_left_alone():
    layer = small_model("bilm").stack.forward_layers[0].requires_grad_(False)
    hidden, cell = torch.randn(1, 16), torch.randn(1, 24)
    before = hidden.clone(), cell.clone()
    FastLSTM(layer, torch.float32)(torch.randn(3 + inference.SLACK, 16), [1, 1, 1], hidden, cell)
    assert torch.equal(hidden, before[0]) and torch.equal(cell, before[1])


def test_two_threads_equal_one():
    sentences = [[f"w{i}"] * (i % 9 + 1) for i in range(40)]
    one = small_encoder("bilm").encode(sentences)
    torch.set_num_threads(2)
    try:
        two = small_encoder("bilm").encode(sentences)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a.hidden, b.hidden, atol=1e-6)


def test_rows_do_not_depend_on_their_company(kind):
    """To the last bit where products are prepacked; to rounding otherwise."""
    config = ModelConfig("bilm", CharConfig(64, 8, ((2, 64), (3, 64))), BiLMConfig(64, 160))
    encoder = Encoder(build(config, 0))
    sentences = [[f"w{i}", "the", "cat"] * (i % 5 + 1) for i in range(45)]
    together = encoder.encode(sentences)
    for i in (0, 1, 7, 44):
        encoder.forget()
        alone = encoder.encode([sentences[i]])[0]
        if kind == "prepacked":
            assert np.array_equal(alone.hidden, together[i].hidden)
        else:
            np.testing.assert_allclose(alone.hidden, together[i].hidden, atol=1e-6, rtol=0)


def test_each_direction_has_its_share_of_the_threads():
    torch.set_num_threads(2)
    try:
        pool = inference._workers(2)
        assert {pool.submit(torch.get_num_threads).result() for _ in range(8)} == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_bfloat16_is_close_and_says_so():
    exact = small_encoder("bilm").encode([["the", "cat", "sat"]])[0].hidden
    encoder = small_encoder("bilm", precision="bfloat16")
    rough = encoder.encode([["the", "cat", "sat"]])[0].hidden
    assert rough.dtype == np.float32
    difference = np.abs(rough - exact).max() / np.abs(exact).max()
    assert 1e-5 < difference < 0.05
    with pytest.raises(ValueError, match="precision must be one of float32, bfloat16"):
        small_encoder("bilm", precision="float16")
