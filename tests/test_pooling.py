import numpy as np
import pytest
import torch
from small_models import small_encoder

from elmo.pooling import pool, pool_batch
from elmo.results import Encoding


def test_pools_by_eye():
    hidden = np.array([[[1.0, 5.0], [3.0, -1.0]]], dtype=np.float32)
    encoding = Encoding(("a", "b"), hidden)
    assert pool(encoding).tolist() == [[2.0, 2.0]]
    assert pool(encoding, "max").tolist() == [[3.0, 5.0]]
    assert pool(Encoding(("a", "b"), hidden[0]), "max").tolist() == [3.0, 5.0]


@pytest.mark.parametrize("how", ["mean", "max"])
def test_boundaries_and_padding_count_for_nothing(how):
    encoder = small_encoder("bilm")
    sentences = [["a"], ["a", "b", "c", "d"], []]
    inner = encoder.encode(sentences)
    kept = encoder.encode(sentences, keep_boundaries=True)
    for a, b in zip(inner, kept, strict=True):
        assert np.array_equal(pool(a, how), pool(b, how))
    assert np.array_equal(pool(inner[0], how), inner[0].hidden[:, 0])
    assert not pool(inner[2], how).any() and pool(inner[2], how).shape == (3, 32)

    lengths = [1, 4, 0]
    x = torch.full((3, 3, 4, 32), torch.nan)
    for row, n in enumerate(lengths):
        x[:, row, :n] = torch.from_numpy(inner[row].hidden)
    mask = torch.arange(4) < torch.tensor(lengths)[:, None]
    for row, pooled in enumerate(pool_batch(x, mask, how).unbind(1)):
        np.testing.assert_allclose(pooled.numpy(), pool(inner[row], how), atol=1e-6)


def test_gradients_pass_through_real_tokens_only():
    x = torch.tensor([[[1.0], [2.0], [9.0]]], requires_grad=True)
    mask = torch.tensor([[True, True, False]])
    (pool_batch(x, mask).sum() + pool_batch(x, mask, "max").sum()).backward()
    assert x.grad.flatten().tolist() == [0.5, 1.5, 0.0]


def test_other_ways_are_refused():
    with pytest.raises(ValueError, match="how must be one of mean, max"):
        pool(Encoding((), np.zeros((3, 0, 2), np.float32)), "sum")
