import numpy as np
import pytest
import torch

from elmo.char_cnn import CharCNN, Highway
from elmo.config import CharConfig
from elmo.text import char_ids

WORDS = ["", "a", "the", "cats", "antidisestablishmentarianism", "日本語の単語", "x" * 48, "<S>"]


def ids(words, width=50):
    return torch.from_numpy(np.stack([char_ids(word, width) for word in words]))


@pytest.fixture
def cnn():
    torch.manual_seed(0)
    return CharCNN(CharConfig(d_output=8, d_char=4, filters=((1, 4), (2, 6), (7, 9)), n_highway=2))


@torch.no_grad()
def test_a_convolution_by_eye():
    """One filter that counts the letter b: embedding 1 for b, 0 for all else, window of 2."""
    cnn = CharCNN(CharConfig(d_output=1, d_char=1, filters=((2, 1),), n_highway=0, project=False))
    cnn.embedding.weight.zero_()
    cnn.embedding.weight[ord("b") + 1] = 1.0
    cnn.convolutions[0].weight.fill_(1.0)
    cnn.convolutions[0].bias.fill_(0.25)
    assert cnn(ids(["aba", "abba", "a"])).flatten().tolist() == [1.25, 2.25, 0.25]


@torch.no_grad()
def test_the_maximum_covers_windows_in_word_padding():
    cnn = CharCNN(CharConfig(d_output=1, d_char=1, filters=((3, 1),), n_highway=0, project=False))
    cnn.embedding.weight.zero_()
    cnn.embedding.weight[261] = 1.0  # only word padding is seen
    cnn.convolutions[0].weight.fill_(1.0)
    cnn.convolutions[0].bias.zero_()
    assert cnn(ids(["a", "x" * 48, "x" * 46])).flatten().tolist() == [3.0, 0.0, 2.0]


@torch.no_grad()
def test_a_highway_by_eye():
    """Gate open: the transformed part; gate shut: the input itself."""
    highway = Highway(2)
    highway.transform.weight.copy_(torch.eye(2) * 3)
    highway.transform.bias.zero_()
    highway.carry.weight.zero_()
    x = torch.tensor([[1.0, -2.0]])
    for bias, expected in ((50.0, [3.0, 0.0]), (-50.0, [1.0, -2.0]), (0.0, [2.0, -1.0])):
        highway.carry.bias.fill_(bias)
        assert highway(x).flatten().tolist() == pytest.approx(expected)


@torch.no_grad()
def test_reading_fewer_positions_is_exact(cnn):
    """Each word by itself, with all 50 positions, against all words together."""
    together = cnn(ids(WORDS))
    cnn.n_positions = lambda _: 50
    for word, row in zip(WORDS, together, strict=True):
        torch.testing.assert_close(cnn(ids([word]))[0], row, atol=1e-6, rtol=0)


@torch.no_grad()
def test_a_vector_depends_on_its_token_only(cnn):
    alone = torch.cat([cnn(ids([word])) for word in WORDS])
    for order in (list(range(len(WORDS))), list(reversed(range(len(WORDS))))):
        batch = cnn(ids([WORDS[i] for i in order]))
        torch.testing.assert_close(batch, alone[order], atol=1e-6, rtol=0)


def test_ids_of_another_width_are_refused(cnn):
    with pytest.raises(ValueError, match=r"char_ids must be \(tokens, 50\)"):
        cnn(ids(["a"], width=20))


def test_gradients_reach_every_parameter(cnn):
    cnn(ids(WORDS)).square().sum().backward()
    for name, parameter in cnn.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_no_token_has_a_zero_row(cnn):
    assert not cnn.embedding.weight[0].any() and cnn.embedding.weight[261].any()
    assert cnn.filter_names()[:5] == ["1:0", "1:1", "1:2", "1:3", "2:0"]
