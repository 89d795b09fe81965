"""The curated sentences: read once, tokenized once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from elmo.text import tokenize


@dataclass(frozen=True)
class Example:
    """Sentences picked to answer one question.

    focus: (sentence, token) of the token chosen at first; word: the word it is about, if one.
    tokens, senses: of every sentence; a sense is ``None`` where none was given.
    more: further (text, sense) about the same word, for the bank only.
    """

    id: str
    title: str
    question: str
    note: str
    word: str | None
    focus: tuple[int, int]
    sentences: tuple[str, ...]
    tokens: tuple[tuple[str, ...], ...]
    senses: tuple[str | None, ...]
    more: tuple[tuple[str, str | None], ...]

    @property
    def text(self) -> str:
        return "\n".join(self.sentences)

    @property
    def label(self) -> str:
        return f"{self.title} \u2014 {self.question}"


@dataclass(frozen=True)
class BankSentence:
    """A sentence to find neighbors in, and the sense of its word where one is known."""

    text: str
    tokens: tuple[str, ...]
    word: str | None
    sense: str | None


def load_examples(path: Path) -> tuple[Example, ...]:
    """Reads ``examples.json``. Raises ``ValueError`` naming an example that does not hold."""
    entries = json.loads(path.read_text(encoding="utf-8"))["examples"]
    return tuple(_example(entry) for entry in entries)


def _example(entry: dict) -> Example:
    tokens = tuple(tuple(tokenize(s)) for s in entry["sentences"])
    focus = (entry["focus"]["sentence"], entry["focus"]["token"])
    if focus[0] >= len(tokens) or focus[1] >= len(tokens[focus[0]]):
        raise ValueError(f"example {entry['id']!r} has no token at {focus}")
    senses = tuple(entry.get("senses") or [None] * len(tokens))
    if len(senses) != len(tokens):
        raise ValueError(f"example {entry['id']!r}: {len(senses)} senses, {len(tokens)} sentences")
    return Example(
        id=entry["id"],
        title=entry["title"],
        question=entry["question"],
        note=entry.get("note", ""),
        word=entry.get("word"),
        focus=focus,
        sentences=tuple(entry["sentences"]),
        tokens=tokens,
        senses=senses,
        more=tuple((m["text"], m.get("sense")) for m in entry.get("more", [])),
    )


def bank_sentences(examples: tuple[Example, ...]) -> tuple[BankSentence, ...]:
    """Every distinct sentence of the examples, in their order."""
    found: dict[tuple[str, ...], BankSentence] = {}
    for example in examples:
        rows = zip(example.sentences, example.tokens, example.senses, strict=True)
        rows = [*rows, *((text, tuple(tokenize(text)), sense) for text, sense in example.more)]
        for text, tokens, sense in rows:
            found.setdefault(tokens, BankSentence(text, tokens, example.word, sense))
    return tuple(found.values())
