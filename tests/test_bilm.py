import numpy as np
import pytest
import torch

from elmo.bilm import BiLM, Packing, ProjectedLSTM
from elmo.config import BiLMConfig


@pytest.fixture
def bilm():
    torch.manual_seed(0)
    bilm = BiLM(BiLMConfig(d_projection=8, d_cell=12))
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(std=0.5)
    return bilm.requires_grad_(False)


def batch(*lengths, width=8, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(len(lengths), max(lengths), width, generator=generator)
    return x, torch.tensor(lengths)


def test_packing_reads_each_sentence_from_its_own_end():
    x = torch.arange(12).reshape(3, 4, 1)
    lengths = torch.tensor([2, 4, 1])
    forward, backward = Packing(lengths), Packing(lengths, backward=True)
    assert forward.sizes == [3, 2, 1, 1]
    assert forward.pack(x).flatten().tolist() == [4, 0, 8, 5, 1, 6, 7]
    assert backward.pack(x).flatten().tolist() == [7, 1, 8, 6, 0, 5, 4]
    for packing in (forward, backward):
        back = packing.unpack(packing.pack(x), 4)[..., 0]
        assert back.tolist() == [[0, 1, 0, 0], [4, 5, 6, 7], [8, 0, 0, 0]]


def test_sentences_without_tokens_cannot_be_packed():
    with pytest.raises(ValueError, match="lengths must be positive"):
        Packing(torch.tensor([2, 0]))


@torch.no_grad()
def test_a_cell_by_eye():
    """One unit, all gates open, candidate 1: the cell counts steps until it is clipped at 3."""
    config = BiLMConfig(d_projection=1, d_cell=1, n_layers=1, projection_clip=0.5, project=True)
    layer = ProjectedLSTM(config)
    layer.weight.zero_()
    layer.bias.copy_(torch.tensor([50.0, 50.0, 50.0, 50.0]))
    layer.projection.fill_(1.0)
    x = torch.zeros(5, 1)
    output, hidden, cell = layer(x, [1] * 5, *layer.start(1))
    assert cell.item() == pytest.approx(3.0)
    assert output.flatten().tolist() == [0.5] * 5  # tanh(1) = 0.76 is already above the clip
    assert hidden.item() == 0.5


@torch.no_grad()
def test_the_forget_gate_has_one_added_to_it():
    layer = ProjectedLSTM(BiLMConfig(d_projection=1, d_cell=1, n_layers=1))
    layer.weight.zero_()
    layer.bias.copy_(torch.tensor([-50.0, 0.0, 0.0, 0.0]))
    _, _, cell = layer(torch.zeros(1, 1), [1], torch.zeros(1, 1), torch.ones(1, 1))
    assert cell.item() == pytest.approx(1 / (1 + np.exp(-1.0)))


def test_padding_is_exactly_zero_in_every_layer(bilm):
    x, lengths = batch(3, 6, 1)
    layers = bilm(x, lengths)
    assert layers.shape == (3, 3, 6, 16)
    for row, n in enumerate(lengths):
        assert not layers[:, row, n:].any()
        assert layers[:, row, :n].any(dim=-1).all()


def test_padding_values_change_nothing(bilm):
    x, lengths = batch(3, 6, 1)
    noisy = x.clone()
    noisy[0, 3:], noisy[2, 1:] = 1e6, float("nan")
    assert torch.equal(bilm(x, lengths)[1:], bilm(noisy, lengths)[1:])


def test_layer_0_is_the_input_twice(bilm):
    x, lengths = batch(4, 4)
    assert torch.equal(bilm(x, lengths)[0], torch.cat([x, x], dim=-1))


@pytest.mark.parametrize("t", range(6))
def test_forward_ignores_the_future_and_backward_the_past_bit_for_bit(bilm, t):
    x, lengths = batch(6)
    changed = x.clone()
    changed[0, t] += 1.0
    before, after = bilm(x, lengths)[:, 0], bilm(changed, lengths)[:, 0]
    forward, backward = (before != after)[..., :8], (before != after)[..., 8:]
    assert not forward[1:, :t].any() and forward[1:, t:].any(dim=-1).all()
    assert not backward[1:, t + 1 :].any() and backward[1:, : t + 1].any(dim=-1).all()


def test_a_batch_equals_its_sentences_one_by_one(bilm):
    lengths = (5, 2, 9, 1, 9, 3)
    x, tensor = batch(*lengths)
    together = bilm(x, tensor)
    for row, n in enumerate(lengths):
        alone = bilm(x[row : row + 1, :n], torch.tensor([n]))
        torch.testing.assert_close(together[:, row, :n], alone[:, 0], atol=1e-6, rtol=0)


def test_nothing_is_remembered(bilm):
    x, lengths = batch(4, 2)
    first = bilm(x, lengths)
    bilm(*batch(5, 5, seed=2))
    assert torch.equal(bilm(x, lengths), first)


def test_a_sentence_in_two_parts_equals_the_whole(bilm):
    """The end state of one call, given to the next, continues the forward stack."""
    x, lengths = batch(7, 7)
    whole, (end, _) = bilm.run(x, lengths)
    first, (middle, _) = bilm.run(x[:, :3], torch.tensor([3, 3]))
    second, (last, _) = bilm.run(x[:, 3:], torch.tensor([4, 4]), (middle, None))
    torch.testing.assert_close(whole[1:, :, :3, :8], first[1:, ..., :8], atol=1e-6, rtol=0)
    torch.testing.assert_close(whole[1:, :, 3:, :8], second[1:, ..., :8], atol=1e-6, rtol=0)
    for a, b in zip(end.cell + end.hidden, last.cell + last.hidden, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=0)


def test_the_skip_connection_adds_the_input_from_the_second_layer_on(bilm):
    x, lengths = batch(5)
    plain = BiLM(BiLMConfig(d_projection=8, d_cell=12, skip_connections=False))
    plain.load_state_dict(bilm.state_dict())
    with_skip, without = bilm(x, lengths), plain.requires_grad_(False)(x, lengths)
    assert torch.equal(with_skip[1], without[1])
    torch.testing.assert_close(with_skip[2], without[2] + without[1])


def test_the_path_with_gradients_gives_the_same_numbers(bilm):
    x, lengths = batch(5, 3, 8)
    frozen, (end, _) = bilm.run(x, lengths)
    bilm.requires_grad_(True)
    trained, (end_trained, _) = bilm.run(x, lengths)
    torch.testing.assert_close(trained.detach(), frozen, atol=1e-6, rtol=0)
    torch.testing.assert_close(end_trained.cell[1].detach(), end.cell[1], atol=1e-6, rtol=0)
    trained.square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in bilm.parameters())
