"""Banks of tokens: which row is which, and sentences that could not be encoded."""

import numpy as np
import pytest

from elmo.banks.bank import build_bank
from elmo.results import Encoding

SENTENCES = [("The", "bank"), ("too", "long"), ("a", "Bank", "bank")]


@pytest.fixture
def encodings():
    def encode(tokens, start):
        shape = (3, len(tokens), 4)
        return Encoding(tokens, start + np.arange(np.prod(shape), dtype=np.float32).reshape(shape))

    return [encode(SENTENCES[0], 0), None, encode(SENTENCES[2], 100)]


def test_rows_follow_sentences_and_skip_those_without_encoding(encodings):
    bank = build_bank(SENTENCES, encodings)
    assert len(bank) == 5 and bank.n_layers == 3
    assert [bank.token(i) for i in range(5)] == ["The", "bank", "a", "Bank", "bank"]
    assert bank.row(2, 1) == 3
    assert bank.row(1, 0) is None
    assert bank.rows_of("BANK").tolist() == [1, 3, 4]
    np.testing.assert_array_equal(bank.vectors[3], encodings[2].hidden[:, 1])
    np.testing.assert_allclose(bank.mean, bank.vectors.mean(axis=0))


def test_a_second_bank_takes_the_mean_of_the_first(encodings):
    first = build_bank(SENTENCES, encodings)
    second = build_bank(SENTENCES[:1], encodings[:1], mean=first.mean)
    assert second.mean is first.mean


def test_nothing_encoded_is_an_empty_bank(encodings):
    mean = build_bank(SENTENCES, encodings).mean
    empty = build_bank([("x",)], [None], mean=mean)
    assert len(empty) == 0
    assert empty.query(np.ones((3, 4), np.float32)).products.shape == (0, 6)
    with pytest.raises(ValueError, match="shape"):
        build_bank([("x",)], [None])
    with pytest.raises(ValueError, match="1 sentences but 2 encodings"):
        build_bank([("x",)], [None, None])
