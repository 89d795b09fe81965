import math

import numpy as np
import pytest
import torch

from elmo.config import AttentionConfig
from elmo.self_attention import ConcatenatedAttention, SelfAttention, allowed_keys


def stack(mask="full", concatenate=False):
    torch.manual_seed(0)
    config = AttentionConfig(
        d_stack=8, n_blocks=2, n_heads=2, d_feedforward=12, max_tokens=9, concatenate=concatenate
    )
    model = ConcatenatedAttention(config) if concatenate else SelfAttention(config, mask)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" not in name:
                parameter.normal_(std=0.4)
    return model.requires_grad_(False)


def batch(*lengths, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(lengths), max(lengths), 8, generator=generator), torch.tensor(lengths)


def test_masks_by_eye():
    lengths = torch.tensor([3, 2])
    full, causal, anti = (
        allowed_keys(mask, lengths, 3).int().tolist() for mask in ("full", "causal", "anti-causal")
    )
    assert full == [[[1, 1, 1]] * 3, [[1, 1, 0], [1, 1, 0], [1, 1, 1]]]
    assert causal == [
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
    ]
    assert anti == [
        [[1, 1, 1], [0, 1, 1], [0, 0, 1]],
        [[1, 1, 0], [0, 1, 0], [0, 0, 1]],
    ]


def test_an_unknown_mask_is_refused():
    with pytest.raises(ValueError, match="mask must be one of full, causal, anti-causal"):
        stack("half")


@pytest.mark.parametrize("mask", ["full", "causal", "anti-causal"])
def test_attention_rows_sum_to_one_and_masked_keys_get_exactly_zero(mask):
    x, lengths = batch(5, 3)
    _, attention = stack(mask)(x, lengths)
    assert attention.shape == (2, 2, 2, 5, 5)
    allowed = allowed_keys(mask, lengths, 5)[None, :, None].expand_as(attention)
    assert not attention[~allowed].any()
    assert (attention[allowed] > 0).all()
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 2, 2, 5))


@pytest.mark.parametrize("t", range(5))
def test_a_causal_stack_ignores_the_future_bit_for_bit(t):
    x, lengths = batch(5)
    changed = x.clone()
    changed[0, t] *= -2.0  # not a constant added to all of it, which the norm would take away
    for mask, seen in (("causal", range(t, 5)), ("anti-causal", range(t + 1)), ("full", range(5))):
        model = stack(mask)
        differs = (model(x, lengths)[0] != model(changed, lengths)[0])[1:, 0].any(-1)
        expected = torch.tensor([position in seen for position in range(5)])
        assert torch.equal(differs, expected.expand(2, 5)), mask


def test_the_two_stacks_side_by_side_are_the_causal_and_the_anti_causal_one():
    x, lengths = batch(5, 4)
    both = stack(concatenate=True)
    layers, attention = both(x, lengths)
    forward, forward_attention = both.forward_stack(x, lengths)
    backward, backward_attention = both.backward_stack(x, lengths)
    assert torch.equal(layers, torch.cat([forward, backward], dim=-1))
    assert torch.equal(attention[:, :, :2], forward_attention)
    assert torch.equal(attention[:, :, 2:], backward_attention)
    assert torch.equal(layers[0, 0], torch.cat([x, x], dim=-1)[0])


def test_the_backward_stack_is_the_forward_one_on_the_sentence_read_backward():
    """Positions too: counted from the left they would tell how many words are still to come."""
    both = stack(concatenate=True)
    both.backward_stack.load_state_dict(both.forward_stack.state_dict())
    lengths = (7, 4)
    x, tensor = batch(*lengths)
    reversed_x = x.clone()
    for row, n in enumerate(lengths):
        reversed_x[row, :n] = x[row, :n].flip(0)
    forward = both.forward_stack(reversed_x, tensor)[0]
    backward = both.backward_stack(x, tensor)[0]
    for row, n in enumerate(lengths):
        torch.testing.assert_close(
            backward[:, row, :n], forward[:, row, :n].flip(1), atol=2e-6, rtol=0
        )


def test_layer_0_is_the_input_before_positions_are_added():
    x, lengths = batch(5)
    model = stack()
    assert torch.equal(model(x, lengths)[0][0], x)
    model.positions += 1.0
    assert torch.equal(model(x, lengths)[0][0], x)


@pytest.mark.parametrize("concatenate", [False, True])
def test_a_batch_equals_its_sentences_and_padding_is_zero(concatenate):
    lengths = (4, 7, 2)
    x, tensor = batch(*lengths)
    x[0, 4:] = 1e4
    model = stack(concatenate=concatenate)
    layers, attention = model(x, tensor)
    for row, n in enumerate(lengths):
        alone, alone_attention = model(x[row : row + 1, :n], torch.tensor([n]))
        torch.testing.assert_close(layers[:, row, :n], alone[:, 0], atol=2e-6, rtol=0)
        inner = attention[:, row, :, :n, :n]
        torch.testing.assert_close(inner, alone_attention[:, 0], atol=1e-6, rtol=0)
        assert not layers[:, row, n:].any()


def test_the_longest_sentence_is_the_trained_one():
    model = stack()
    model(*batch(11))  # 9 tokens and their two boundaries
    with pytest.raises(ValueError, match="10 tokens are more than the 9"):
        model(*batch(12))


def test_against_a_second_formula():
    """Float64 NumPy, token by token and head by head."""
    model = stack("causal")
    x, lengths = batch(5)
    layers, attention = model(x, lengths)
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def norm(v, name):
        v = (v - v.mean()) / np.sqrt(v.var() + 1e-5)
        return v * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(v, name):
        return weights[f"{name}.weight"] @ v + weights[f"{name}.bias"]

    def gelu(v):
        return np.array([u * 0.5 * (1 + math.erf(u / 2**0.5)) for u in v])

    stream = list(x[0].double().numpy() + weights["positions"][:5])
    for k in range(2):
        block = f"blocks.{k}"
        normed = [norm(v, f"{block}.attention_norm") for v in stream]
        query, key, value = (
            [linear(v, f"{block}.attention.{part}").reshape(2, 4) for v in normed]
            for part in ("query", "key", "value")
        )
        for t in range(5):
            heads = []
            for h in range(2):
                scores = np.array([query[t][h] @ key[j][h] / 2.0 for j in range(t + 1)])
                scores = np.exp(scores - scores.max())
                scores /= scores.sum()
                given = attention[k, 0, h, t, : t + 1].numpy()
                np.testing.assert_allclose(given, scores, atol=1e-6)
                heads.append(sum(s * value[j][h] for j, s in enumerate(scores)))
            stream[t] = stream[t] + linear(np.concatenate(heads), f"{block}.attention.output")
        for t in range(5):
            inner = gelu(linear(norm(stream[t], f"{block}.feedforward_norm"), f"{block}.expand"))
            stream[t] = stream[t] + linear(inner, f"{block}.contract")
        np.testing.assert_allclose(layers[k + 1, 0].numpy(), stream, atol=1e-5)
