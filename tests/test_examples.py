"""The curated sentences: every claim their JSON files make about tokens, senses and gaps holds.

Tokens are those of `elmo.text.tokenize`, the ones the app shows, so a focus position that passes
here points at the right token on the page.
"""

import json
import string
from collections import Counter
from pathlib import Path

import pytest

from elmo.text import tokenize

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = json.loads((ROOT / "assets/examples.json").read_text(encoding="utf-8"))["examples"]
GAPS = json.loads((ROOT / "assets/gaps.json").read_text(encoding="utf-8"))["gaps"]
WORD_EXAMPLES = [example for example in EXAMPLES if example["word"] is not None]

# What a reader may meet in a sentence: no control characters, no typographic quotes, no markup.
ALLOWED = set(string.ascii_letters + string.digits + " .,?!'\"$-")


def all_sentences(example: dict) -> list[str]:
    """Sentences of the text box, then those of the bank only."""
    return example["sentences"] + [row["text"] for row in example["more"]]


def all_senses(example: dict) -> list[str | None]:
    """Sense labels in the order of `all_sentences`."""
    return example["senses"] + [row["sense"] for row in example["more"]]


def by_id(example: dict) -> str:
    return example["id"]


def by_text(gap: dict) -> str:
    return gap["text"]


def test_there_are_enough_examples_and_words() -> None:
    assert len(EXAMPLES) >= 30
    assert len(WORD_EXAMPLES) >= 18


def test_ids_and_titles_are_unique() -> None:
    for key in ("id", "title"):
        repeated = [name for name, n in Counter(e[key] for e in EXAMPLES).items() if n > 1]
        assert repeated == []


def test_no_sentence_is_used_twice() -> None:
    sentences = Counter(s.lower() for e in EXAMPLES for s in all_sentences(e))
    sentences.update(g["text"].replace("[gap]", g["answer"]).lower() for g in GAPS)
    assert [text for text, n in sentences.items() if n > 1] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=by_id)
def test_example_has_its_fields(example: dict) -> None:
    assert set(example) == {
        "id",
        "title",
        "question",
        "note",
        "word",
        "focus",
        "sentences",
        "senses",
        "more",
    }
    assert 0 < len(example["question"]) < 70
    assert example["question"].endswith("?")
    assert example["note"].endswith((".", "?"))
    assert 6 <= len(example["sentences"]) <= 8
    assert len(example["senses"]) == len(example["sentences"])


@pytest.mark.parametrize("example", EXAMPLES, ids=by_id)
def test_sentences_are_short_and_plain(example: dict) -> None:
    for text in all_sentences(example):
        assert 6 <= len(tokenize(text)) <= 18, text
        assert set(text) <= ALLOWED, text
        assert text == " ".join(text.split()), text
        assert text[0].isupper() and text[-1] in ".?!", text


@pytest.mark.parametrize("example", EXAMPLES, ids=by_id)
def test_focus_is_a_token(example: dict) -> None:
    tokens = tokenize(example["sentences"][example["focus"]["sentence"]])
    token = tokens[example["focus"]["token"]]
    assert token[0].isalnum()
    if example["word"] is not None:
        assert token == example["word"]


@pytest.mark.parametrize("example", WORD_EXAMPLES, ids=by_id)
def test_word_occurs_once_in_every_sentence(example: dict) -> None:
    word = example["word"]
    for text in all_sentences(example):
        tokens = tokenize(text)
        assert tokens.count(word) == 1, text
        # a second form in another case would be taken for another occurrence by the eye
        assert [token.lower() for token in tokens].count(word.lower()) == 1, text


@pytest.mark.parametrize("example", WORD_EXAMPLES, ids=by_id)
def test_every_sense_has_enough_sentences(example: dict) -> None:
    senses = Counter(all_senses(example))
    assert None not in senses
    assert 2 <= len(senses) <= 4
    # three of five right neighbors, the own sentence left out, are only possible from four on;
    # seven leave room for the model to be wrong
    assert min(senses.values()) >= 7, senses
    # no sense outweighs another, so chance is the same for all of them
    assert max(senses.values()) <= 1.5 * min(senses.values()), senses
    assert set(example["senses"]) == set(senses), "a sense is missing from the text box"


@pytest.mark.parametrize("example", WORD_EXAMPLES, ids=by_id)
def test_word_stands_in_varied_places(example: dict) -> None:
    """The word is not always in one position: a layer must not win by its position alone."""
    positions = {tokenize(text).index(example["word"]) for text in all_sentences(example)}
    assert len(positions) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=by_id)
def test_examples_without_a_word_have_no_senses(example: dict) -> None:
    if example["word"] is None:
        assert set(all_senses(example)) <= {None}
        assert example["more"] == []


def test_there_are_enough_gaps_of_both_kinds() -> None:
    labels = Counter(gap["label"] for gap in GAPS)
    assert set(labels) == {"additive", "interacting"}
    assert len(GAPS) >= 90
    assert min(labels.values()) >= 30


@pytest.mark.parametrize("gap", GAPS, ids=by_text)
def test_gap_is_well_formed(gap: dict) -> None:
    assert set(gap) == {"text", "answer", "left_favourite", "right_favourite", "label", "why"}
    left, right = gap["text"].split("[gap]")  # exactly one gap
    assert left.endswith(" ") and left.strip()
    assert len(tokenize(right)) >= 2
    assert tokenize(gap["answer"]) == [gap["answer"]]
    full = gap["text"].replace("[gap]", gap["answer"])
    assert set(full) <= ALLOWED and full[0].isupper() and full[-1] in ".?"
    assert len(tokenize(full)) <= 18
    # the gap is one token of the sentence: filling it changes nothing around it
    assert tokenize(full) == [*tokenize(left), gap["answer"], *tokenize(right)]
    assert gap["why"].endswith(".")


@pytest.mark.parametrize("gap", GAPS, ids=by_text)
def test_no_side_alone_suggests_the_answer(gap: dict) -> None:
    favourites = {gap["left_favourite"], gap["right_favourite"]}
    assert gap["answer"] not in favourites
    assert all(tokenize(word) == [word] for word in favourites)


def test_answers_are_in_every_shipped_vocabulary() -> None:
    """An answer outside the vocabulary has no probability, so its gap would be no gap at all."""
    vocabularies = sorted((ROOT / "assets/models").glob("*/vocabulary.txt"))
    assert vocabularies
    for path in vocabularies:
        known = set(path.read_text(encoding="utf-8").split("\n"))
        assert [g["answer"] for g in GAPS if g["answer"] not in known] == [], path
