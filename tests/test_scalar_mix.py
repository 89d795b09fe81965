import numpy as np
import pytest
import torch

from elmo.scalar_mix import ScalarMix, mix_layers, softmax


def layers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_weights_by_eye():
    assert softmax([0, 0, 0]).tolist() == pytest.approx([1 / 3] * 3)
    assert softmax([np.log(1), np.log(3)]).tolist() == pytest.approx([0.25, 0.75])
    assert softmax([-9e10, 1, -9e10]).tolist() == [0.0, 1.0, 0.0]
    assert softmax([1000, 1000]).tolist() == [0.5, 0.5]
    assert softmax(np.random.default_rng(0).normal(size=9) * 30).sum() == pytest.approx(1)


@pytest.mark.parametrize("w", [[], [[1, 2]], [np.nan, 0], [np.inf, 0]])
def test_weights_that_are_none(w):
    with pytest.raises(ValueError, match="scalar weights must be"):
        softmax(w)


def test_a_mix_by_eye():
    hidden = np.array([[[1.0, 0.0]], [[0.0, 4.0]]], dtype=np.float32)
    assert mix_layers(hidden, [0, 0], gamma=2.0).tolist() == [[1.0, 4.0]]
    assert mix_layers(hidden, [0, 0]).dtype == np.float32
    with pytest.raises(ValueError, match="2 layers need as many weights, got 3"):
        mix_layers(hidden, [0, 0, 0])


def test_both_mixes_equal_the_formula():
    x, w, gamma = layers(3, 2, 5, 4), [0.3, -1.0, 2.0], 1.7
    s = np.exp(w) / np.exp(w).sum()
    expected = gamma * sum(s_k * h for s_k, h in zip(s, x.numpy(), strict=True))
    np.testing.assert_allclose(mix_layers(x.numpy(), w, gamma), expected, atol=1e-6)
    mix = ScalarMix(3, w, gamma)
    np.testing.assert_allclose(mix(x).detach().numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(mix.weights.detach().numpy(), s, atol=1e-7)


def test_the_default_is_the_plain_mean():
    x = layers(3, 1, 4, 2)
    torch.testing.assert_close(ScalarMix(3)(x), x.mean(0))


def test_norm_by_token_makes_each_vector_mean_0_variance_1():
    x = layers(2, 3, 4, 8) * 5 + 2
    mix = ScalarMix(2, [0.0, -9e10], norm="token")
    mixed = mix(x).detach()
    torch.testing.assert_close(mixed.mean(-1), torch.zeros(3, 4), atol=1e-6, rtol=0)
    torch.testing.assert_close(mixed.var(-1, unbiased=False), torch.ones(3, 4))
    torch.testing.assert_close(mix(x[:, :1])[0], mixed[0])  # whatever else is in the batch


def test_norm_by_batch_is_the_originals_one_mean_and_variance_a_layer():
    x = layers(2, 3, 4, 8) * 5 + 2
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]).bool()
    expected = 0
    for layer in x.numpy().astype(np.float64):
        real = layer[mask.numpy()]
        expected = expected + (layer - real.mean()) / np.sqrt(real.var() + 1e-12) / 2
    mix = ScalarMix(2, norm="batch")
    np.testing.assert_allclose(mix(x, mask).detach().numpy(), expected, atol=1e-5)
    alone = mix(x[:, 1:2], mask[1:2])
    assert (alone - mix(x, mask)[1:2]).abs().max() > 0.1  # it depends on the batch, as it did
    with pytest.raises(ValueError, match="needs the mask"):
        mix(x)


def test_training_is_independent_of_the_initial_values():
    for w in (None, [0.0, 1.0, 0.0]):
        assert len([p for p in ScalarMix(3, w).parameters() if p.requires_grad]) == 2
        frozen = ScalarMix(3, w, trainable=False)
        assert not any(p.requires_grad for p in frozen.parameters())
        assert not frozen(layers(3, 1, 2, 2)).requires_grad


def test_trained_weights_still_sum_to_one():
    mix = ScalarMix(3)
    optimizer = torch.optim.SGD(mix.parameters(), lr=1.0)
    x = layers(3, 2, 4, 4)
    for _ in range(3):
        optimizer.zero_grad()
        ((mix(x) - x[2]).square().mean() + mix.penalty(0.001)).backward()
        optimizer.step()
    assert mix.weights.sum().item() == pytest.approx(1)
    assert mix.weights.argmax() == 2 and mix.weights[2] > 1 / 3


def test_the_penalty_is_on_the_raw_weights_alone():
    assert ScalarMix(2, [3.0, -4.0], gamma=9.0).penalty(0.1).item() == pytest.approx(2.5)


def test_wrong_numbers_of_layers_and_unknown_norms():
    with pytest.raises(ValueError, match="3 layers need as many weights, got 2"):
        ScalarMix(3, [0, 0])
    with pytest.raises(ValueError, match="has 3 weights, got 2 layers"):
        ScalarMix(3)(layers(2, 1, 1, 1))
    with pytest.raises(ValueError, match="norm must be one of none, token, batch"):
        ScalarMix(3, norm="layer")
