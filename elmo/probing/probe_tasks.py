"""Labeled English text to probe with: task files in, spans with labels out.

A task is a list of examples. An example has one span of tokens, or two for a pair, a label, and
the sentence it comes from. Nothing here knows about encoders.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmo.text import normalize

MAX_TOKENS = 64  # the shortest limit of any encoder: longer sentences are left out for all

# Task, its folder, what it asks for, and whether the texts call it syntactic or semantic.
TASKS = {
    "upos": ("pos_dep_ewt", "part of speech, 17 universal tags", "syntactic"),
    "xpos": ("pos_dep_ewt", "part of speech, Penn Treebank tags", "syntactic"),
    "deprel": ("pos_dep_ewt", "dependency relation of a token to its head", "syntactic"),
    "ner_wikigold": ("ner_wikigold", "named entities, Wikipedia", "semantic"),
    "ner_wnut17": ("ner_wnut17", "named entities, social media", "semantic"),
    "supersense_streusle": ("senses_streusle", "supersense of an expression, STREUSLE", "semantic"),
    "supersense_semcor": ("senses_semcor", "supersense of a noun or verb, SemCor", "semantic"),
    "word_sense": ("senses_semcor_lexsample", "sense of a word, SemCor", "semantic"),
    "coreference": ("coref_litbank", "do two mentions corefer?", "semantic"),
}
SPLITS = ("train", "dev", "test")
DATASETS = tuple(dict.fromkeys(folder for folder, _, _ in TASKS.values()))


@dataclass(frozen=True)
class Example:
    """spans: indices into ``LabeledText.spans``; sentence: index into ``LabeledText.sentences``,
    which for a pair is that of its first span; word: the lower-cased expression, for a pair both
    with a tab between; lemma: where the label is only meaningful within a lemma."""

    spans: tuple[int, ...]
    label: str
    sentence: int
    word: str
    lemma: str = ""


@dataclass
class LabeledText:
    """Sentences, the spans that examples point to, and the examples of each task.

    spans: (sentence, token positions); positions need not be contiguous. A span's vector is the
    mean over its tokens.
    n_left_out: sentences longer than ``MAX_TOKENS``.
    """

    sentences: list[tuple[str, ...]] = field(default_factory=list)
    spans: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    examples: dict[str, list[Example]] = field(default_factory=dict)
    n_left_out: int = 0
    _span_index: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict, repr=False)

    def add_sentence(self, tokens: Iterable[str]) -> int | None:
        """The sentence's index, or ``None`` where it is too long or empty."""
        tokens = tuple(plain_token(token) for token in tokens)
        if not 0 < len(tokens) <= MAX_TOKENS:
            self.n_left_out += 1
            return None
        self.sentences.append(tokens)
        return len(self.sentences) - 1

    def add_span(self, sentence: int, positions: Iterable[int]) -> int:
        key = (sentence, tuple(positions))
        if key not in self._span_index:
            self._span_index[key] = len(self.spans)
            self.spans.append(key)
        return self._span_index[key]

    def word(self, span: int) -> str:
        sentence, positions = self.spans[span]
        return " ".join(self.sentences[sentence][i] for i in positions).lower()

    def add(self, task: str, spans: tuple[int, ...], label: str, lemma: str = "") -> None:
        word = "\t".join(self.word(span) for span in spans)
        example = Example(spans, label, self.spans[spans[0]][0], word, lemma)
        self.examples.setdefault(task, []).append(example)


def plain_token(token: str) -> str:
    """A treebank's token as the encoders' training text would spell it."""
    if token in ("``", "''"):
        return '"'
    plain = normalize(token)
    return plain if plain and " " not in plain else token


def read_lines(path: Path, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Objects of a ``.jsonl.xz`` file; with ``limit`` so many of them, evenly spaced over the
    file, since files are in the order of their documents and genres."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        lines = file.readlines()
    n = len(lines) if limit is None else min(limit, len(lines))
    for i in range(n):
        yield json.loads(lines[i * len(lines) // n])


def read_dataset(
    folder: str | Path, dataset: str, split: str, limit: int | None = None
) -> LabeledText:
    """One split of one data set, with the examples of every task that it serves.

    folder: holds one folder a data set, with ``train``, ``dev`` and ``test.jsonl.xz``.
    limit: read so many lines, evenly spaced. Raises ``ValueError`` naming an unknown data set and
    ``FileNotFoundError`` naming the missing file.
    """
    if dataset not in _READERS:
        raise ValueError(f"data set must be one of {', '.join(_READERS)}, got {dataset!r}")
    path = split_file(folder, dataset, split)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: point --tasks at the folder of probe data")
    text = LabeledText()
    for line in read_lines(path, limit):
        _READERS[dataset](text, line)
    return text


def split_file(folder: str | Path, dataset: str, split: str) -> Path:
    return Path(folder) / dataset / f"{split}.jsonl.xz"


def has_split(folder: str | Path, dataset: str, split: str) -> bool:
    return split_file(folder, dataset, split).is_file()


def _read_treebank(text: LabeledText, line: dict[str, Any]) -> None:
    sentence = text.add_sentence(line["tokens"])
    if sentence is None:
        return
    for i in range(len(line["tokens"])):
        text.add_span(sentence, (i,))
    for i, (upos, xpos, head, relation) in enumerate(
        zip(line["upos"], line["xpos"], line["head"], line["deprel"], strict=True)
    ):
        span = text.add_span(sentence, (i,))
        text.add("upos", (span,), upos)
        text.add("xpos", (span,), xpos)
        if head:  # the root has no head to pair with
            text.add("deprel", (span, text.add_span(sentence, (head - 1,))), relation)


def _entity_reader(task: str):
    def read(text: LabeledText, line: dict[str, Any]) -> None:
        sentence = text.add_sentence(line["tokens"])
        if sentence is not None:
            for i, label in enumerate(line["ner"]):
                text.add(task, (text.add_span(sentence, (i,)),), label)

    return read


def _read_streusle(text: LabeledText, line: dict[str, Any]) -> None:
    sentence = text.add_sentence(line["tokens"])
    if sentence is not None:
        for expression in line["exprs"]:
            span = text.add_span(sentence, expression["toks"])
            text.add("supersense_streusle", (span,), expression["ss"])


def _read_semcor(text: LabeledText, line: dict[str, Any]) -> None:
    """Nouns and verbs: all adjectives share one supersense, all adverbs another."""
    sentence = text.add_sentence(line["tokens"])
    if sentence is not None:
        for sense in line["senses"]:
            if sense["wnpos"] in ("n", "v") and not sense.get("named"):
                span = text.add_span(sentence, range(*sense["span"]))
                text.add("supersense_semcor", (span,), sense["supersense"], sense["lemma"])


def _read_lexical_sample(text: LabeledText, line: dict[str, Any]) -> None:
    sentence = text.add_sentence(line["tokens"])
    if sentence is not None:
        span = text.add_span(sentence, range(*line["span"]))
        text.add("word_sense", (span,), line["sense"], f"{line['lemma']}%{line['pos']}")


def _read_coreference(text: LabeledText, line: dict[str, Any]) -> None:
    """Each sentence of a window by itself, as the encoders were trained."""
    starts = [*line["sent_starts"], len(line["tokens"])]
    sentences = []
    for start, end in zip(starts, starts[1:], strict=False):
        sentences.append((start, end, text.add_sentence(line["tokens"][start:end])))

    def span(first: int, last: int) -> int | None:
        for start, end, sentence in sentences:
            if start <= first and last <= end:
                if sentence is None:
                    return None
                return text.add_span(sentence, range(first - start, last - start))
        return None  # a mention across a sentence boundary

    for first, second, same in line["pairs"]:
        a, b = span(*first), span(*second)
        if a is not None and b is not None:
            text.add("coreference", (a, b), "same" if same else "different")


_READERS = {
    "pos_dep_ewt": _read_treebank,
    "ner_wikigold": _entity_reader("ner_wikigold"),
    "ner_wnut17": _entity_reader("ner_wnut17"),
    "senses_streusle": _read_streusle,
    "senses_semcor": _read_semcor,
    "senses_semcor_lexsample": _read_lexical_sample,
    "coref_litbank": _read_coreference,
}
