"""Shares among the nearest over all mixes, against sorting rows one mix at a time."""

import numpy as np
import pytest

from elmo.banks.bank import build_bank
from elmo.banks.mixing import simplex_grid
from elmo.banks.tagged import Tag
from elmo.banks.triangle import questions, same_sense_shares, triangle
from elmo.results import Encoding

MIXES = simplex_grid(8)


def tagged_bank(n_sentences=700, width=16):
    """Layer 0 knows the word, layer 1 the part of speech, layer 2 the sense."""
    rng = np.random.default_rng(4)
    sentences, encodings, tags = [], [], []
    words = rng.normal(size=(8, width))
    parts = rng.normal(size=(2, width))
    senses = rng.normal(size=(16, width))
    for _ in range(n_sentences):
        word = rng.integers(0, 8, size=5)
        sense = word * 2 + rng.integers(0, 2, size=5)
        hidden = np.stack([words[word], parts[word % 2], senses[sense]])
        hidden = hidden + 0.3 * rng.normal(size=hidden.shape)
        tokens = tuple(f"w{w}" for w in word)
        sentences.append(tokens)
        encodings.append(Encoding(tokens, hidden.astype(np.float32)))
        known = range(0, 5, 2)
        tags.append(
            [Tag(i, tokens[i], ("NOUN", "VERB")[word[i] % 2], f"s{sense[i]}") for i in known]
        )
    return build_bank(sentences, encodings, tags=tags)


@pytest.fixture(scope="module")
def bank():
    return tagged_bank()


def test_each_layer_answers_its_own_question(bank):
    row = 10
    asked = questions(bank, bank.token(row), bank.tag_of(row), [int(bank.sentence[row])])
    assert [q.name for q in asked] == ["same word", "same part of speech", "same sense"]
    query = bank.query(bank.vectors[row])
    for layer, question in enumerate(asked):
        found = triangle(bank, query, question, MIXES)
        assert found.shares.shape == (len(MIXES),) and 0 < found.chance < 1
        corners = [found.shares[(corner == MIXES).all(axis=1)][0] for corner in np.eye(3)]
        assert corners[layer] == max(corners) > 0.95 and min(corners) < 0.75


def test_shares_equal_counting(bank):
    row = 33
    question = questions(bank, bank.token(row), bank.tag_of(row))[0]
    query = bank.query(bank.vectors[row])
    found = triangle(bank, query, question, MIXES, k=10)
    comparison = bank.comparison(query)
    for s, share in list(zip(MIXES, found.shares, strict=True))[::5]:
        top = comparison.nearest(s, 10).rows
        assert share == pytest.approx(question.relevant[top].mean(), abs=1e-6)


def test_pools_hold_only_rows_with_an_answer(bank):
    row = 12
    tag, own = bank.tag_of(row), int(bank.sentence[row])
    by_name = {q.name: q for q in questions(bank, bank.token(row), tag, [own])}
    for question in by_name.values():
        assert own not in bank.sentence[question.rows]
    words = {bank.token(r) for r in by_name["same sense"].rows.tolist()}
    assert words == {bank.token(row)}
    assert bank.token(row) not in {bank.token(r) for r in by_name["same part of speech"].rows}
    for question in (by_name["same sense"], by_name["same part of speech"]):
        assert all(bank.tag_of(r) is not None for r in question.rows.tolist())


def test_without_a_tag_only_the_word_can_be_asked_for(bank):
    assert [q.name for q in questions(bank, "w3")] == ["same word"]
    assert questions(bank, "unheard") == []


def test_senses_of_copies_by_hand():
    vectors = np.zeros((5, 3, 2))
    vectors[:, 0] = 1  # layer 0 says nothing
    vectors[:, 1] = [[1, 0], [0, 1], [1, 0.1], [0, 1], [1, 0]]  # pairs the wrong ones
    vectors[:, 2] = [[1, 0], [1, 0.1], [0, 1], [0.1, 1], [-1, -1]]  # tells them apart
    senses = ["a", "a", "b", "b", "c"]  # "c" has no other copy and is not asked
    shares = same_sense_shares(vectors, senses, np.eye(3))
    assert shares[2] == 1 and shares[1] == 0
    for order in (list("ababab"), list("aaabbb"), list("aabbcc"), list("abcabc")):
        expected = (order.count("a") - 1) / 5  # equal vectors: chance, whatever their order
        equal = same_sense_shares(np.ones((6, 3, 4), np.float32), order, np.eye(3))
        np.testing.assert_allclose(equal, expected, atol=1e-6)
    assert same_sense_shares(vectors[:2], ["a", "b"], np.eye(3)) is None
    assert same_sense_shares(vectors[:2], ["a", "a"], np.eye(3)) is None
