"""Shares among the nearest over all mixes, against sorting rows one mix at a time."""

import numpy as np
import pytest

from elmo.bank import build_bank
from elmo.mixing import simplex_grid
from elmo.results import Encoding
from elmo.tagged import Tag
from elmo.triangle import Question, mean_triangle, questions, triangle

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


def test_the_mean_of_a_word_list(bank):
    rows = [10, 11, 14]
    found = []
    for row in rows:
        question = questions(bank, bank.token(row))[0]
        found.append(triangle(bank, bank.query(bank.vectors[row]), question, MIXES))
    mean = mean_triangle(found)
    np.testing.assert_allclose(mean.shares, np.mean([t.shares for t in found], axis=0))
    other = Question("same sense", np.arange(3), np.array([True, False, False]))
    with pytest.raises(ValueError, match="one question at a time"):
        mean_triangle([found[0], triangle(bank, bank.query(bank.vectors[0]), other, MIXES)])
