"""The compiled kernels and the plain ways beside them, against float64 autograd."""

import pytest
import torch

from elmo.bilm import BiLM
from elmo.char_cnn import CharCNN
from elmo.config import BiLMConfig, CharConfig
from elmo.training import kernels
from elmo.training.batches import char_table
from elmo.training.objectives import run_bilm, token_vectors

needs_compiler = pytest.mark.skipif(kernels.compiled() is None, reason="no C++ compiler")
WAYS = ["plain", pytest.param("compiled", marks=needs_compiler)]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def relative_error(found, expected):
    found, expected = found.detach().double(), expected.detach().double()
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("clip", [(3.0, 3.0), (0.4, 0.2), (None, None)])
def test_lstm_layer_agrees_with_float64_autograd(way, skip, clip):
    torch.manual_seed(1)
    D, T, B, P, C = 2, 9, 16, 32, 48
    shapes = [(D, T, B, P), (D, 4 * C, 2 * P), (D, 4 * C), (D, P, C)]
    scales = [1.0, 0.2, 0.3, 0.4]
    inputs = [torch.randn(s) * k for s, k in zip(shapes, scales, strict=True)]
    for i in (0, 1, 3):  # what bfloat16 rounds away must not count as an error of the kernel
        inputs[i] = inputs[i].bfloat16().float()
    upstream = torch.randn(shapes[0]).bfloat16()
    bounds = [kernels.NO_CLIP if c is None else c for c in clip]

    exact = [x.double().requires_grad_() for x in inputs]
    expected = kernels.lstm_layer_plain(*exact, *bounds, skip)
    expected.backward(upstream.double())

    tried = [x.clone().requires_grad_() for x in inputs]
    x = tried[0].bfloat16()
    run = kernels.lstm_layer if way == "compiled" else kernels.lstm_layer_plain
    found = run(x, *tried[1:], *(clip if way == "compiled" else bounds), skip)
    found.backward(upstream)
    assert found.dtype == torch.bfloat16
    assert relative_error(found, expected) < 0.01
    for ours, reference in zip(tried, exact, strict=True):
        # a value that rounding carries over a clip loses its gradient: more with tight clips
        limit = 0.01 if clip[0] != 0.4 else 0.15
        assert relative_error(ours.grad, reference.grad) < limit


@pytest.mark.parametrize("way", WAYS)
def test_sampled_softmax_agrees_with_float64_autograd(way):
    torch.manual_seed(2)
    D, N, P, U, K = 2, 300, 32, 40, 256
    hidden = torch.randn(D, N, P).bfloat16()
    target = torch.randint(0, U, (D, N))
    target_rows, candidate_rows = torch.randn(U, P).bfloat16(), torch.randn(K, P).bfloat16()
    target_bias, candidate_bias = torch.randn(U), torch.randn(K)
    candidate_bias[-10:] = -kernels.NO_CLIP  # padding
    hit = torch.full((U,), -1)
    hit[:20] = torch.randperm(K - 10)[:20]
    args = (target_rows, target_bias, hit, candidate_rows, candidate_bias)

    double = [a if a.dtype == torch.long else a.double() for a in (hidden, target, *args)]
    expected = kernels.sampled_softmax_plain(*double, 1e-3)
    run = kernels.sampled_softmax if way == "compiled" else kernels.sampled_softmax_plain
    found = run(hidden, target, *args, 1e-3)
    for ours, reference in zip(found, expected, strict=True):
        assert relative_error(ours, reference) < 0.01


@pytest.mark.parametrize("way", WAYS)
def test_a_process_without_rows_has_gradients_of_zero(way):
    """The last batch of a length may have fewer sentences than there are processes."""
    rows, candidates = torch.randn(5, 8).bfloat16(), torch.randn(256, 8).bfloat16()
    run = kernels.sampled_softmax if way == "compiled" else kernels.sampled_softmax_plain
    loss, *gradients = run(
        *(torch.zeros(2, 0, 8).bfloat16(), torch.zeros(2, 0).long(), rows, torch.zeros(5)),
        *(torch.full((5,), -1), candidates, torch.zeros(256), 1.0),
    )
    assert not loss.any()
    shapes = [(2, 0, 8), (5, 8), (5,), (256, 8), (256,)]
    assert [tuple(g.shape) for g in gradients] == shapes
    assert not any(g.any() for g in gradients)


def test_sampled_softmax_never_counts_the_target_against_itself():
    hidden = torch.zeros(1, 1, 4).bfloat16()
    rows = torch.zeros(1, 4).bfloat16()
    loss, *_ = kernels.sampled_softmax(
        *(hidden, torch.zeros(1, 1, dtype=torch.long), rows, torch.zeros(1), torch.zeros(1).long()),
        *(torch.zeros(256, 4).bfloat16(), torch.zeros(256)),
        1.0,
    )
    assert float(loss) == pytest.approx(torch.tensor(256.0).log().item(), rel=1e-5)


WORDS = ["a", "the", "</S>", "<MASK>", "", "naïve", "日本語", "x" * 47, "x" * 48, "x" * 60]


@pytest.mark.parametrize("way", WAYS)
def test_character_maxima_agree_with_the_module(way):
    torch.manual_seed(3)
    encoder = CharCNN(CharConfig(32))
    for convolution in encoder.convolutions:
        torch.nn.init.normal_(convolution.bias)
    ids = torch.from_numpy(char_table(WORDS, 50))
    run = kernels.char_maxima if way == "compiled" else kernels.char_maxima_plain
    found = run(encoder.embedding.weight, list(encoder.convolutions), ids)
    upstream = torch.randn_like(found)
    gradients = torch.autograd.grad((torch.relu(found) * upstream).sum(), encoder.embedding.weight)
    expected = encoder.filter_maxima(ids.long())
    torch.testing.assert_close(torch.relu(found), expected, atol=1e-5, rtol=1e-5)
    reference = torch.autograd.grad((expected * upstream).sum(), encoder.embedding.weight)
    torch.testing.assert_close(gradients[0], reference[0], atol=1e-4, rtol=1e-4)


def test_token_vectors_agree_with_the_module():
    torch.manual_seed(4)
    encoder = CharCNN(CharConfig(32))
    ids = torch.from_numpy(char_table(WORDS, 50))
    found = token_vectors(encoder, ids, torch.float32)
    torch.testing.assert_close(found, encoder(ids.long()), atol=1e-5, rtol=1e-5)


def test_training_stack_agrees_with_the_module():
    torch.manual_seed(5)
    stack = BiLM(BiLMConfig(32, 48))
    x = torch.randn(8, 7, 32)  # boundaries included
    inputs = torch.stack([x.transpose(0, 1), x.flip(1).transpose(0, 1)])
    forward, backward = run_bilm(stack, inputs)
    found = torch.cat([forward.transpose(0, 1), backward.transpose(0, 1).flip(1)], dim=-1)
    expected = stack(x, torch.full((8,), 7))[-1]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    if kernels.compiled():
        found = run_bilm(stack, inputs.bfloat16())
        assert relative_error(found[0].transpose(0, 1), expected[..., :32]) < 0.02
