"""Sentences that come with what is known about some of their words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tag:
    """What a source says about one token; an empty string where it says nothing.

    position: of the token in its sentence, from 0.
    pos: one of the universal tags (NOUN, VERB, ADJ, ADV, PROPN, ...).
    sense: a name that equal senses of a word share, and no others: a WordNet sense key, say.
    """

    position: int
    lemma: str = ""
    pos: str = ""
    sense: str = ""
    gloss: str = ""
    supersense: str = ""


@dataclass(frozen=True)
class TaggedSentence:
    """Tokens, and tags of those that have one."""

    tokens: tuple[str, ...]
    tags: tuple[Tag, ...] = ()
