"""Gaps with a known answer, from probe files, from running text, and of our own."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmo.text import tokenize

MAX_TOKENS = 64  # what the attention encoders read
_GAP, _PLACEHOLDER = "[gap]", "gapword"


@dataclass(frozen=True)
class Item:
    """One gap: the word that stood there, and the words it is measured against.

    evidence: where the deciding words lie, ``"left"``, ``"right"``, ``"both"`` or
    ``"anywhere"``; kind: the phenomenon.
    """

    tokens: tuple[str, ...]
    position: int
    gold: str
    alternatives: tuple[str, ...]
    evidence: str
    kind: str


def read_agreement(folder: Path) -> list[Item]:
    """The folder ``cloze_agreement``: a word and its one alternative, evidence marked."""
    return [
        Item(
            tuple(line["tokens"]),
            line["i"],
            line["gold"],
            (line["alt"],),
            line["evidence"],
            line["type"],
        )
        for line in _lines(folder)
        if len(line["tokens"]) <= MAX_TOKENS
    ]


def read_minimal_pairs(folder: Path) -> list[Item]:
    """Of ``minpairs_blimp`` the pairs of whole sentences in which one word differs and the words
    before it decide. Pairs that do not stay so after tokenizing are left out."""
    items = []
    for line in _lines(folder):
        if not line["one_prefix"]:
            continue
        good, bad = tokenize(line["good"]), tokenize(line["bad"])
        differ = [i for i, pair in enumerate(zip(good, bad, strict=False)) if pair[0] != pair[1]]
        if len(good) == len(bad) and len(differ) == 1:
            (i,) = differ
            items.append(Item(tuple(good), i, good[i], (bad[i],), "left", line["uid"]))
    return items


def random_items(path: Path, vocabulary: Sequence[str], n_items: int, seed: int) -> list[Item]:
    """Random gaps of running text, one a sentence, at known words.

    Each word's rival is another word of like frequency: within a fifth of its rank.
    """
    rank = {word: i for i, word in enumerate(vocabulary)}
    rng = np.random.default_rng(seed)
    sentences = [tokens for tokens in _sentences(path) if len(tokens) <= MAX_TOKENS]
    items = []
    for i in rng.permutation(len(sentences)):
        tokens = sentences[i]
        known = [k for k, token in enumerate(tokens) if token in rank]
        if not known:
            continue
        position = int(rng.choice(known))
        own = rank[tokens[position]]
        low, high = max(3, int(0.8 * own) - 3), min(len(vocabulary), int(1.25 * own) + 5)
        rival = int(rng.choice([r for r in range(low, high) if r != own]))
        items.append(
            Item(
                tuple(tokens),
                position,
                tokens[position],
                (vocabulary[rival],),
                "anywhere",
                "running text",
            )
        )
        if len(items) == n_items:
            break
    return items


def read_own_gaps(path: Path) -> list[Item]:
    """Our examples: ``[gap]`` in a text, its answer, and each side's expected favourite.

    Raises ``ValueError`` where a text has no single gap or an answer is not one token.
    """
    items = []
    for entry in json.loads(path.read_text("utf-8"))["gaps"]:
        if entry["text"].count(_GAP) != 1 or tokenize(entry["answer"]) != [entry["answer"]]:
            raise ValueError(f"one gap and one word to fill it, got {entry}")
        tokens = tokenize(entry["text"].replace(_GAP, _PLACEHOLDER))
        position = tokens.index(_PLACEHOLDER)
        tokens[position] = entry["answer"]
        rivals = dict.fromkeys([entry["left_favourite"], entry["right_favourite"]])
        rivals.pop(entry["answer"], None)
        items.append(
            Item(tuple(tokens), position, entry["answer"], tuple(rivals), "both", entry["label"])
        )
    return items


def own_sentences(paths: Sequence[Path]) -> list[list[str]]:
    """Every sentence of our example files, tokenized, once; gaps filled with their answers."""
    texts: dict[str, None] = {}
    for path in paths:
        content = json.loads(path.read_text("utf-8"))
        for entry in (*content.get("examples", ()), *content.get("gaps", ())):
            found = [*entry.get("sentences", ()), *(more["text"] for more in entry.get("more", ()))]
            if "text" in entry:
                found.append(entry["text"].replace(_GAP, entry.get("answer", "")))
            texts.update(dict.fromkeys(found))
    return [tokenize(text) for text in texts]


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    files = sorted(folder.glob("*.jsonl.xz"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no .jsonl.xz file")
    for file in files:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _sentences(path: Path) -> Iterator[list[str]]:
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if tokens := line.split():
                yield tokens
