"""Streaming text to batches: one tokenized sentence a line, read once, kept on disk as type ids.

A *type* is a distinct token string; the cache holds every sentence as type ids, so characters
and vocabulary ids are looked up per type. Memory is constant but for the type table.
"""

from __future__ import annotations

import json
import lzma
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

BEGIN, END, UNKNOWN, GAP = "<S>", "</S>", "<UNK>", "<MASK>"
SPECIAL_TYPES = (BEGIN, END, GAP)  # their type ids are 0, 1, 2 in every corpus
SPECIAL_WORDS = (BEGIN, END, UNKNOWN)  # their vocabulary ids are 0, 1, 2
UNKNOWN_ID = 2
FORMAT = 1


class _TypeTable(dict[str, int]):
    """Maps a token to its type id, giving a new token the next free one."""

    def __missing__(self, token: str) -> int:
        self[token] = index = len(self)
        return index


@dataclass(frozen=True)
class Corpus:
    """Sentences as type ids.

    Attributes:
        ids: int32, all tokens in a row (a memory map for a cached corpus).
        offsets: (n_sentences + 1,) int64; sentence i is ids[offsets[i]:offsets[i + 1]].
        types: token strings by type id; the first three are `SPECIAL_TYPES`.
        counts: (n_types,) int64, occurrences of each type.
    """

    ids: np.ndarray
    offsets: np.ndarray
    types: list[str]
    counts: np.ndarray

    @property
    def n_sentences(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """(n_sentences,) int64 tokens of each sentence, boundaries not counted."""
        return np.diff(self.offsets)

    def sentence(self, index: int) -> list[str]:
        return [self.types[i] for i in self.ids[self.offsets[index] : self.offsets[index + 1]]]

    def word_ids(self, vocabulary: Iterable[str]) -> np.ndarray:
        """(n_types,) int64: each type's vocabulary id, `UNKNOWN_ID` where it has none."""
        table = {word: index for index, word in enumerate(vocabulary)}
        return np.array([table.get(token, UNKNOWN_ID) for token in self.types], np.int64)

    def framed(self, sentences: np.ndarray) -> np.ndarray:
        """(B, T + 2) int32 type ids of equally long sentences, between `<S>` and `</S>`."""
        length = int(self.lengths[sentences[0]])
        out = np.empty((len(sentences), length + 2), np.int32)
        out[:, 0], out[:, -1] = 0, 1
        out[:, 1:-1] = self.ids[self.offsets[sentences][:, None] + np.arange(length)]
        return out


def read_sentences(files: Iterable[Path | str]) -> Iterator[list[str]]:
    """Yield the tokens of every non-empty line of .txt or .txt.xz files, one line at a time."""
    for file in files:
        opener = lzma.open if str(file).endswith(".xz") else open
        with opener(file, "rt", encoding="utf-8", newline="\n") as lines:
            for line in lines:
                if tokens := line.split():
                    yield tokens


def prepare(files: Iterable[Path | str], folder: Path, max_tokens: int = 126) -> Corpus:
    """Read `files` once into a cache in `folder`; reuse the cache if it is of the same files.

    Sentences of more than `max_tokens` tokens are cut into pieces of at most that many.
    An interrupted preparation leaves no meta.json and is done again.
    """
    files = [Path(file) for file in files]
    if not files:
        raise ValueError("no corpus files given")
    sources = [[file.name, file.stat().st_size] for file in files]
    meta = {"format": FORMAT, "files": sources, "max_tokens": max_tokens}
    meta_file = folder / "meta.json"
    if not meta_file.exists() or json.loads(meta_file.read_text()) != meta:
        folder.mkdir(parents=True, exist_ok=True)
        meta_file.unlink(missing_ok=True)
        table = _TypeTable({token: index for index, token in enumerate(SPECIAL_TYPES)})
        offsets, chunk, total = array("q", [0]), array("i"), 0
        counts = np.zeros(0, np.int64)
        with open(folder / "ids.bin", "wb") as out:

            def flush() -> None:
                nonlocal counts
                here = np.bincount(np.frombuffer(chunk, np.int32), minlength=len(table))
                here[: len(counts)] += counts
                counts = here
                chunk.tofile(out)
                del chunk[:]

            for tokens in _pieces(read_sentences(files), max_tokens):
                chunk.extend([table[token] for token in tokens])
                total += len(tokens)
                offsets.append(total)
                if len(chunk) > 2_000_000:
                    flush()
            if chunk:
                flush()
        if total == 0:
            raise ValueError(f"no sentences in {[str(file) for file in files]}")
        np.save(folder / "offsets.npy", np.frombuffer(offsets, np.int64))
        np.save(folder / "counts.npy", counts)
        with open(folder / "types.txt", "w", encoding="utf-8", newline="\n") as out:
            out.writelines(f"{token}\n" for token in table)
        meta_file.write_text(json.dumps(meta))
    return Corpus(
        np.memmap(folder / "ids.bin", np.int32, "r"),
        np.load(folder / "offsets.npy"),
        (folder / "types.txt").read_bytes().decode("utf-8").split("\n")[:-1],
        np.load(folder / "counts.npy"),
    )


def _pieces(sentences: Iterable[list[str]], max_tokens: int) -> Iterator[list[str]]:
    for tokens in sentences:
        for start in range(0, len(tokens), max_tokens):
            yield tokens[start : start + max_tokens]


def load(sentences: Iterable[list[str]]) -> Corpus:
    """A corpus in memory, for held-out files. Empty sentences are left out."""
    table = _TypeTable({token: index for index, token in enumerate(SPECIAL_TYPES)})
    rows = [[table[token] for token in tokens] for tokens in sentences if tokens]
    if not rows:
        raise ValueError("no sentences given")
    ids = np.array([index for row in rows for index in row], np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Corpus(ids, offsets, list(table), np.bincount(ids, minlength=len(table)))


def build_vocabulary(corpus: Corpus, size: int) -> list[str]:
    """The `size` - 3 most frequent types after `<S>`, `</S>`, `<UNK>`.

    Ties go to the type met first. The order matters: the sampled softmax draws a candidate
    with a probability that falls with its rank.
    """
    order = np.argsort(-corpus.counts, kind="stable")
    reserved = {*SPECIAL_TYPES, *SPECIAL_WORDS}
    words = (corpus.types[i] for i in order if corpus.counts[i] > 0)
    kept = [word for word in words if word not in reserved]
    return [*SPECIAL_WORDS, *kept[: size - len(SPECIAL_WORDS)]]


@dataclass(frozen=True)
class BatchPlan:
    """All batches of one epoch: sentences of equal length together, every sentence once.

    The plan depends on (corpus, seed, epoch, tokens_per_batch) alone, so that training
    resumes on the very next batch from its number.
    """

    order: np.ndarray  # (n_sentences,) int64, shuffled within a length
    starts: np.ndarray  # (n_batches + 1 in cut order,) int64 into order
    sequence: np.ndarray  # (n_batches,) int64, the order in which the cuts are visited

    def __len__(self) -> int:
        return len(self.sequence)

    def sentences(self, index: int) -> np.ndarray:
        """Sentence numbers of the batch at place `index`, in no particular order."""
        cut = self.sequence[index]
        return self.order[self.starts[cut] : self.starts[cut + 1]]


def plan_batches(corpus: Corpus, tokens_per_batch: int, seed: int, epoch: int) -> BatchPlan:
    """Cut the corpus into batches of about `tokens_per_batch` tokens, rows a multiple of 8.

    Of each length, one last batch may be smaller and of any number of rows.
    """
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(corpus.n_sentences)
    lengths = corpus.lengths[order]
    order = order[np.argsort(lengths, kind="stable")]
    starts = [np.zeros(1, np.int64)]
    first = 0
    for length, n_rows in zip(*np.unique(lengths, return_counts=True), strict=True):
        rows = max(8, round(tokens_per_batch / int(length) / 8) * 8)
        cuts = np.append(np.arange(rows, n_rows, rows), n_rows)
        starts.append(first + cuts)
        first += n_rows
    starts = np.concatenate(starts)
    return BatchPlan(order, starts, rng.permutation(len(starts) - 1))
