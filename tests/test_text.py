import numpy as np
import pytest

from elmo.text import char_ids, is_truncated, normalize, sentences, tokenize


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("I don't know, it's 'fine'.", "I do n't know , it 's ' fine ' ."),
        ("\u201cHello\u201d \u2014 she said\u2026", '" Hello " -- she said ...'),
        ("dogs' tails", "dogs ' tails"),
        ("He said 'Go away' and left.", "He said ' Go away ' and left ."),
        (
            "They've got 1990\u20132000 (cheap) for $3.50.",
            "They 've got 1990-2000 ( cheap ) for $ 3.50 .",
        ),
        ("a\u200bb e\u0301 \x00c\x01d", "ab \u00e9 cd"),
        ("x\ud800y", "xy"),
        ("", ""),
        (" \u00a0\t ", ""),
    ],
)
def test_raw_text_is_tokenized_as_the_corpus_was(line, tokens):
    assert tokenize(line) == tokens.split()


def test_normalizing_twice_changes_nothing():
    line = "\u201cA\u2026 b\u201d\u2014\u2018c\u2019 e\u0301 \u0645\u06cc\u200c\u062e\u0648"
    assert normalize(normalize(line)) == normalize(line)
    assert "\u200c" in normalize(line)  # a joiner inside a Persian word stays


def test_sentences_are_lines_and_empty_ones_are_skipped():
    assert sentences("One here.\n\n  \nTwo.") == [["One", "here", "."], ["Two", "."]]
    assert sentences("a  b.c\n", pretokenized=True) == [["a", "b.c"]]


def padded(*ids, width=50):
    return [*ids, *[261] * (width - len(ids))]


def test_character_ids_by_eye():
    assert char_ids("a").tolist() == padded(259, 98, 260)
    assert char_ids("").tolist() == padded(259, 260)
    assert char_ids("é").tolist() == padded(259, 0xC3 + 1, 0xA9 + 1, 260)
    assert char_ids("<S>").tolist() == padded(259, 257, 260)
    assert char_ids("</S>").tolist() == padded(259, 258, 260)
    assert char_ids("\0").tolist() == padded(259, 1, 260)
    assert char_ids("\ud800").tolist() == char_ids("").tolist()
    assert char_ids("<s>").tolist() == padded(259, *(b + 1 for b in b"<s>"), 260)
    assert char_ids("abcdef", 5).tolist() == [259, 98, 99, 100, 260]


def test_added_tokens_have_one_character_and_the_original_adds_none():
    assert char_ids("<MASK>").tolist() == padded(259, 2, 260)
    assert char_ids("<MASK>", added={}).tolist() == padded(259, *(b + 1 for b in b"<MASK>"), 260)
    assert char_ids("<S>", added={"<S>": 7}).tolist() == padded(259, 8, 260)


def test_bytes_are_cut_not_characters():
    assert np.array_equal(char_ids("a" * 48), char_ids("a" * 49))
    assert not np.array_equal(char_ids("a" * 47), char_ids("a" * 48))
    assert np.array_equal(char_ids("日" * 16), char_ids("日" * 17))
    assert 261 not in char_ids("a" * 48)
    assert [is_truncated("a" * n) for n in (48, 49)] == [False, True]
    assert [is_truncated("日" * n) for n in (16, 17)] == [False, True]
    assert not is_truncated("<MASK>", 4) and is_truncated("<MASK>", 4, added={})


def test_composed_and_decomposed_letters_differ():
    assert not np.array_equal(char_ids("\u00e9"), char_ids("e\u0301"))


def test_every_id_of_a_token_is_above_zero():
    for token in ("", "\0", "a", "x" * 100, "<S>"):
        assert char_ids(token).min() > 0 and char_ids(token).max() < 262
