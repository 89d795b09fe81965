"""Sentences from files people have: .txt, .csv, .tsv, .jsonl and .conllu.

Every reader streams. What a file says about its words becomes tags: parts of speech and lemmas of
.conllu; columns or fields ``word`` and ``sense`` (or ``label``) beside the text elsewhere.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import lzma
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elmo.banks.tagged import Tag, TaggedSentence
from elmo.text import tokenize

MAX_BYTES = 5_000_000  # of one file that a visitor uploads
MAX_TOKENS = 256  # longer sentences are cut; nobody reads them, and one could fill the memory
LONG_LINE = 60  # words; such a line is taken for a paragraph and split at the ends of sentences

TEXT_NAMES = ("text", "sentence", "sentences", "example", "content")
WORD_NAMES = ("word", "target")
SENSE_NAMES = ("sense", "label")

_SENTENCE_END = re.compile(r"(?<=[.!?])([\"')\]]*)\s+(?=[\"'(\[]*[A-Z])")
_MARKS = (  # byte-order marks; the longer ones first, since one is the start of another
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_UNDEFINED_IN_1252 = frozenset(b"\x81\x8d\x8f\x90\x9d")


@dataclass(frozen=True)
class Upload:
    """What was read from one file. encoding: of its characters; notices: what a person should
    know about how it was read."""

    name: str
    sentences: tuple[TaggedSentence, ...]
    encoding: str
    notices: tuple[str, ...] = ()


def read_upload(
    path: str | Path,
    max_bytes: int = MAX_BYTES,
    pretokenized: bool = False,
    max_tokens: int | None = None,
) -> Upload:
    """A file of at most ``max_bytes``, read up to ``max_tokens``; a notice says where it goes on.

    Raises ``ValueError``, in words for the person who chose the file, for one that is too large,
    not text, of an unknown kind, malformed (naming the line), or without a sentence.
    """
    path = Path(path)
    size = path.stat().st_size
    if size > max_bytes:
        raise ValueError(
            f"{path.name} has {size / 1e6:.1f} MB; at most {max_bytes / 1e6:.0f} MB can be"
            " uploaded. Larger texts: python -m elmo bank build."
        )
    read = _reader(path)
    content = path.read_bytes()
    encoding = detect_encoding(content, path.name)
    notices = []
    if encoding in ("cp1252", "latin-1"):
        notices.append(
            f"{path.name} is not UTF-8; it was read as {encoding}. If letters look wrong, save it"
            " as UTF-8."
        )
    n_cut = 0

    def pieces() -> Iterator[TaggedSentence]:
        nonlocal n_cut
        for sentence in read(io.StringIO(content.decode(encoding), newline=None), pretokenized):
            n_cut += len(sentence.tokens) > MAX_TOKENS
            yield from _cut(sentence)

    with _naming(path.name, encoding):
        sentences, is_whole = _first(pieces(), max_tokens)
    if not sentences:
        raise ValueError(f"There is no sentence in {path.name}.")
    if n_cut:
        notices.append(f"{n_cut} sentences of more than {MAX_TOKENS} tokens were cut.")
    if not is_whole:
        notices.append(
            f"The first {len(sentences):,} sentences of {path.name} are used ({max_tokens:,}"
            " tokens at most). Larger: python -m elmo bank build."
        )
    return Upload(path.name, tuple(sentences), encoding, tuple(notices))


def stream_file(path: str | Path, pretokenized: bool = False) -> Iterator[TaggedSentence]:
    """Sentences of a file of any size, also packed (.gz, .xz), sentence by sentence.

    The encoding is taken from the file's beginning. Raises as ``read_upload`` does.
    """
    path = Path(path)
    read = _reader(path)
    with _open(path) as file:
        encoding = detect_encoding(file.read(1 << 20), path.name, whole=False)
    with (
        _naming(path.name, encoding),
        _open(path) as file,
        io.TextIOWrapper(file, encoding=encoding) as lines,
    ):
        for sentence in read(lines, pretokenized):
            yield from _cut(sentence)


def detect_encoding(content: bytes, name: str = "the file", whole: bool = True) -> str:
    """``utf-8``, or the encoding of a byte-order mark, or ``utf-16`` without one, or ``cp1252``.

    whole: whether this is all of the file; a part may end in the middle of a character. Raises
    ``ValueError`` for what is no text.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return encoding
    if b"\x00" in content[:4096]:
        sample = content[:4096]
        for encoding, zeros, others in (
            ("utf-16-le", sample[1::2], sample[::2]),
            ("utf-16-be", sample[::2], sample[1::2]),
        ):
            if zeros.count(0) > 0.3 * len(zeros) and others.count(0) < 0.05 * len(others):
                return encoding
        raise ValueError(f"{name} is not a text file: it holds zero bytes.")
    try:
        content.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError as error:
        if not whole and error.start >= len(content) - 3:
            return "utf-8"
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in content[:65536])
    if controls > 0.01 * min(len(content), 65536):
        raise ValueError(f"{name} is not a text file: it is full of control characters.")
    return "latin-1" if _UNDEFINED_IN_1252 & set(content) else "cp1252"


@contextmanager
def _naming(name: str, encoding: str) -> Iterator[None]:
    """What is wrong inside a file is told with its name."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} begins as {encoding} but holds other bytes further on ({error.reason} at"
            f" {error.start}). Save it as UTF-8."
        ) from error
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _first(
    pieces: Iterable[TaggedSentence], max_tokens: int | None
) -> tuple[list[TaggedSentence], bool]:
    """As many as have ``max_tokens`` together, but one at least; and whether these are all."""
    kept, n = [], 0
    for piece in pieces:
        n += len(piece.tokens)
        if max_tokens is not None and n > max_tokens and kept:
            return kept, False
        kept.append(piece)
    return kept, True


def _open(path: Path):
    packed = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    return packed(path, "rb")


def _reader(path: Path):
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in (".gz", ".xz")]
    found = _READERS.get(suffixes[-1] if suffixes else "")
    if found is None:
        raise ValueError(f"{path.name}: the name must end in {', '.join(_READERS)}.")
    return found


def _cut(sentence: TaggedSentence) -> Iterator[TaggedSentence]:
    tokens = sentence.tokens
    if len(tokens) <= MAX_TOKENS:
        yield sentence
        return
    for start in range(0, len(tokens), MAX_TOKENS):
        inside = range(start, start + MAX_TOKENS)
        tags = (
            Tag(t.position - start, t.lemma, t.pos, t.sense, t.gloss, t.supersense)
            for t in sentence.tags
            if t.position in inside
        )
        yield TaggedSentence(tokens[start : start + MAX_TOKENS], tuple(tags))


def _split(line: str, pretokenized: bool) -> Iterator[tuple[str, ...]]:
    """The token lists of a line: one, or several where the line is a paragraph."""
    if pretokenized:
        parts = [line.split()]
    elif line.count(" ") < LONG_LINE:
        parts = [tokenize(line)]
    else:
        parts = (tokenize(part) for part in _SENTENCE_END.sub("\\1\n", line).split("\n"))
    yield from (tuple(tokens) for tokens in parts if tokens)


def _read_text(lines: Iterable[str], pretokenized: bool) -> Iterator[TaggedSentence]:
    for line in lines:
        for tokens in _split(line, pretokenized):
            yield TaggedSentence(tokens)


def _sentences(
    text: str, word: str | None, sense: str | None, pretokenized: bool
) -> Iterator[TaggedSentence]:
    """The sentences of a text, the first occurrence of the word tagged with the sense."""
    wanted = (word or "").strip().casefold()
    for tokens in _split(text, pretokenized):
        tags = ()
        places = [i for i, token in enumerate(tokens) if token.casefold() == wanted]
        if places and sense and sense.strip():
            tags = (Tag(places[0], lemma=wanted, sense=sense.strip()),)
            wanted = ""
        yield TaggedSentence(tokens, tags)


def _table_reader(delimiters: str):
    def read(lines: Iterable[str], pretokenized: bool) -> Iterator[TaggedSentence]:
        lines = iter(lines)
        head = list(itertools.islice(lines, 50))
        # the one that is in every line, and of those the most frequent
        counts = {d: [line.count(d) for line in head if line.strip()] for d in delimiters}
        delimiter = max(delimiters, key=lambda d: (min(counts[d], default=0), sum(counts[d])))
        rows = csv.reader(itertools.chain(head, lines), delimiter=delimiter)
        try:
            first = next(rows, [])
            names = [cell.strip().casefold().lstrip("\ufeff") for cell in first]
            text = _column(names, TEXT_NAMES)
            if text is None:  # no header: the column with the longest cells
                rows = itertools.chain([first], rows)
                text = _longest_column(head, delimiter)
                names = []
            word, sense = _column(names, WORD_NAMES), _column(names, SENSE_NAMES)
            for row in rows:
                if text < len(row):
                    word_cell, sense_cell = (
                        row[i] if i is not None and i < len(row) else None for i in (word, sense)
                    )
                    yield from _sentences(row[text], word_cell, sense_cell, pretokenized)
        except csv.Error as error:
            raise ValueError(
                f"The table cannot be read: {error}. Is a quotation mark left open?"
            ) from error

    return read


def _column(names: list[str], wanted: tuple[str, ...]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _longest_column(head: list[str], delimiter: str) -> int:
    total: dict[int, int] = {}
    for row in csv.reader(head, delimiter=delimiter):
        for i, cell in enumerate(row):
            total[i] = total.get(i, 0) + len(cell)
    return max(total, key=total.__getitem__, default=0)


def _read_json_lines(lines: Iterable[str], pretokenized: bool) -> Iterator[TaggedSentence]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise ValueError(f"Line {number} is not JSON: {error}") from error
        except RecursionError as error:
            raise ValueError(
                f"Line {number} has too many brackets within brackets; it may be an object with a"
                " text or tokens, a text, or a list of tokens."
            ) from error
        if isinstance(value, str):
            value = {"text": value}
        elif isinstance(value, list):
            value = {"tokens": value}
        if not isinstance(value, dict):
            raise ValueError(f"Line {number} is neither an object, a text nor a list of tokens.")
        tokens = value.get("tokens")
        if tokens is not None:
            if not isinstance(tokens, list) or not all(isinstance(t, str) for t in tokens):
                raise ValueError(f"Line {number}: tokens must be a list of texts.")
            if tokens := tuple(token for token in tokens if token.strip()):
                yield TaggedSentence(tokens)
            continue
        fields = [
            next((value[name] for name in names if isinstance(value.get(name), str)), None)
            for names in (TEXT_NAMES, WORD_NAMES, SENSE_NAMES)
        ]
        if fields[0] is None:
            raise ValueError(f"Line {number} has neither text nor tokens.")
        yield from _sentences(*fields, pretokenized)


def _read_conllu(lines: Iterable[str], pretokenized: bool) -> Iterator[TaggedSentence]:
    """Universal Dependencies: words of their own, with part of speech and lemma."""
    tokens: list[str] = []
    tags: list[Tag] = []
    for number, line in enumerate(itertools.chain(lines, [""]), start=1):
        line = line.rstrip("\r\n")
        if not line.strip():
            if tokens:
                yield TaggedSentence(tuple(tokens), tuple(tags))
            tokens, tags = [], []
        elif not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) < 4:
                raise ValueError(
                    f"Line {number} has {len(fields)} columns; .conllu has 10, separated by tabs."
                )
            if fields[0].isdigit():  # neither a range (1-2) nor an empty node (1.1)
                lemma, pos = ("" if f == "_" else f for f in fields[2:4])
                if pos:
                    tags.append(Tag(len(tokens), lemma, pos))
                tokens.append(fields[1])


_READERS = {
    ".txt": _read_text,
    ".csv": _table_reader(",;\t"),
    ".tsv": _table_reader("\t"),
    ".jsonl": _read_json_lines,
    ".conllu": _read_conllu,
}
