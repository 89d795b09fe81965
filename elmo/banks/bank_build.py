"""Builds a bank on disk from a stream of sentences, and goes on where it was broken off.

A bank is built in a folder beside its own that ends in ``.partial``, where ``progress.json`` says
after every chunk how far the files are good. The finished folder gets its name in one step, so a
folder with a bank's name is a whole bank.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from elmo.banks.bank import TokenBank
from elmo.banks.bank_files import (
    FILES,
    VECTORS,
    VERSION,
    DamagedBank,
    StoredSentences,
    checksums,
    open_bank,
)
from elmo.banks.bank_tables import index_tags, index_words, mean_vectors, row_products
from elmo.banks.sources import Source
from elmo.banks.tagged import Tag, TaggedSentence
from elmo.encoders import Encoder

SENTENCES_PER_CHUNK = 1_024

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """n_sentences, n_rows: done; total: sentences in all, ``None`` where not known; seconds: of
    this run, for those after ``resumed``, the sentences that an earlier run had done."""

    n_sentences: int
    n_rows: int
    total: int | None
    seconds: float
    resumed: int = 0

    @property
    def seconds_left(self) -> float | None:
        done = self.n_sentences - self.resumed
        if self.total is None or done <= 0:
            return None
        return self.seconds / done * max(self.total - self.n_sentences, 0)


def bank_folder(cache: str | Path, encoder: Encoder, source: Source) -> Path:
    """Where the bank of a text under an encoder is: the name changes with either."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in source.name)[:40]
    return Path(cache) / f"{encoder.kind}-{encoder_digest(encoder)}-{name}-{source.digest[:16]}"


def default_cache() -> Path:
    """Where banks are kept between runs, outside of the project; a temporary folder if need be."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root) / "both-ways" / "banks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    folder = Path(tempfile.gettempdir()) / "both-ways-banks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def encoder_digest(encoder: Encoder) -> str:
    """A short name for the weights, and how they are run, that vectors depend on."""
    run = (encoder.config.to_dict(), encoder.state, encoder.precision)
    digest = hashlib.blake2b(repr(run).encode(), digest_size=6)
    for name, value in sorted(encoder.model.state_dict().items()):
        if not name.startswith(("head", "readout")):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(value.detach().cpu().float().numpy()))
    return digest.hexdigest()


def open_or_build(
    cache: str | Path,
    source: Source,
    encoder: Encoder,
    on_progress: Callable[[Progress], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> TokenBank | None:
    """The bank of a text, built if it is not there or damaged; ``None`` where cancelled."""
    folder = bank_folder(cache, encoder, source)
    try:
        return open_bank(folder)
    except FileNotFoundError:
        pass
    except DamagedBank as error:
        log.warning("%s: it is built again", error)
        shutil.rmtree(folder)
    if not build_files(folder, source, encoder, on_progress, is_cancelled):
        return None
    return open_bank(folder)


def build_files(
    folder: str | Path,
    source: Source,
    encoder: Encoder,
    on_progress: Callable[[Progress], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> bool:
    """Encodes a text into a bank folder, going on where an earlier run was broken off.

    Sentences longer than the encoder's limit have no rows. Returns false where ``is_cancelled``
    said so; what was done stays for the next time. Raises ``ValueError`` where the text has no
    sentence, where another process is building the same bank, and whatever reading the text raises.
    """
    folder = Path(folder)
    if (folder / "bank.json").is_file():
        return True
    partial = folder.with_name(folder.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    with _only_builder(partial):
        start = time.perf_counter()
        with _Writer(partial, encoder, source) as writer:
            resumed = writer.n_sentences
            sentences = islice(iter(source), resumed, None)
            while chunk := list(islice(sentences, SENTENCES_PER_CHUNK)):
                if is_cancelled is not None and is_cancelled():
                    return False
                writer.add(chunk)
                if on_progress is not None:
                    seconds = time.perf_counter() - start
                    on_progress(
                        Progress(writer.n_sentences, writer.n_rows, source.total, seconds, resumed)
                    )
        if not writer.n_rows:
            raise ValueError(f"{source.name} has no sentence that {encoder.name} can read")
        writer.finish(source)
        if folder.exists():  # half removed, say
            shutil.rmtree(folder)
        os.replace(partial, folder)
    return True


@contextmanager
def _only_builder(partial: Path) -> Iterator[None]:
    """Keeps a second process from building in the same folder, where the system has file locks."""
    try:
        import fcntl
    except ImportError:  # Windows: a second builder there fails on the open files instead
        yield
        return
    with (partial.parent / f"{partial.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(f"{partial.name} is being built by another process") from error
        yield
        Path(file.name).unlink(missing_ok=True)


class _Writer:
    """Appends encoded sentences to the files of a ``.partial`` folder.

    Beside the vectors and the text these are ``lengths.i32``, each sentence's number of rows, and
    ``tags.jsonl``, the tags of sentences that have any.
    """

    NAMES = (VECTORS, "text.txt", "lengths.i32", "tags.jsonl")

    def __init__(self, partial: Path, encoder: Encoder, source: Source) -> None:
        """Goes on from ``progress.json`` if it belongs to this text, encoder and format."""
        self.partial = partial
        self.encoder = encoder
        self.key = f"{VERSION} {encoder_digest(encoder)} {source.digest}"
        self.n_sentences = self.n_rows = 0
        self._sizes = dict.fromkeys(self.NAMES, 0)
        try:
            done = json.loads((partial / "progress.json").read_text("utf-8"))
            whole = all((partial / n).stat().st_size >= done["sizes"][n] for n in self.NAMES)
            if done["key"] == self.key and whole:
                self.n_sentences, self.n_rows = done["n_sentences"], done["n_rows"]
                self._sizes = done["sizes"]
        except (OSError, ValueError, KeyError):
            pass  # nothing, or nothing usable, from before
        self._files = {name: (partial / name).open("ab") for name in self.NAMES}
        for name, file in self._files.items():
            file.truncate(self._sizes[name])  # drops what came after the last whole chunk

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_) -> None:
        for file in self._files.values():
            file.close()

    def add(self, chunk: Sequence[TaggedSentence]) -> None:
        limit = self.encoder.max_tokens
        chosen = [s.tokens for s in chunk if limit is None or len(s.tokens) <= limit]
        encoded = iter(self.encoder.encode(chosen) if chosen else [])
        lengths = []
        for i, sentence in enumerate(chunk):
            fits = limit is None or len(sentence.tokens) <= limit
            lengths.append(len(sentence.tokens) if fits else 0)
            if fits:
                rows = next(encoded).hidden.transpose(1, 0, 2).astype("<f2")
                if not np.isfinite(rows).all():
                    raise ValueError("some vectors are too large for half precision")
                self._files[VECTORS].write(rows.tobytes())
            line = "\t".join(" ".join(token.split()) for token in sentence.tokens)
            self._files["text.txt"].write(f"{line}\n".encode("utf-8", "replace"))
            if fits and sentence.tags:
                tags = [dataclasses.astuple(tag) for tag in sentence.tags]
                entry = json.dumps([self.n_sentences + i, tags])
                self._files["tags.jsonl"].write(entry.encode() + b"\n")
        self._files["lengths.i32"].write(np.array(lengths, dtype="<i4").tobytes())
        self.n_sentences += len(chunk)
        self.n_rows += sum(lengths)
        self._save_progress()

    def _save_progress(self) -> None:
        for file in self._files.values():
            file.flush()
        done = {
            "key": self.key,
            "n_sentences": self.n_sentences,
            "n_rows": self.n_rows,
            "sizes": {name: file.tell() for name, file in self._files.items()},
        }
        new = self.partial / "progress.json.new"
        new.write_text(json.dumps(done), encoding="utf-8")
        os.replace(new, self.partial / "progress.json")

    def finish(self, source: Source) -> None:
        """Writes what takes all rows to make, then ``bank.json``, and removes the rest."""
        shape = (self.n_rows, self.encoder.n_layers, self.encoder.d_model)
        vectors = np.memmap(self.partial / VECTORS, dtype="<f2", mode="r", shape=shape)
        means = mean_vectors(vectors)
        row_products(vectors, means).astype("<f4").tofile(self.partial / "products.f32")
        np.stack([means.raw, means.unit]).astype("<f4").tofile(self.partial / "means.f32")
        del vectors  # Windows renames no folder with a mapped file
        sentences = StoredSentences(self.partial / "text.txt")
        lengths = np.fromfile(self.partial / "lengths.i32", dtype="<i4")
        with_rows = np.flatnonzero(lengths)
        position = np.concatenate([np.arange(n) for n in lengths[with_rows]])
        word, words = index_words(sentences[i] for i in with_rows)
        tag, tags = index_tags(lengths, self._tags())
        rows = np.stack([np.repeat(np.arange(len(lengths)), lengths), position, word, tag])
        rows.astype("<i4").tofile(self.partial / "rows.i32")
        (self.partial / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        table = json.dumps([dataclasses.astuple(t)[1:] for t in tags], ensure_ascii=False)
        (self.partial / "tags.json").write_text(table, encoding="utf-8")
        about = {
            "version": VERSION,
            "key": self.key,
            "name": source.name,
            "encoder": self.encoder.name,
            "shape": shape,
            "n_sentences": len(lengths),
            "n_skipped": int((lengths == 0).sum()),
            "checksums": {name: list(checksums(self.partial / name)) for name in FILES},
        }
        (self.partial / "bank.json").write_text(json.dumps(about), encoding="utf-8")
        for name in ("lengths.i32", "tags.jsonl", "progress.json"):
            (self.partial / name).unlink()

    def _tags(self) -> dict[int, list[Tag]]:
        with (self.partial / "tags.jsonl").open(encoding="utf-8") as file:
            found = (json.loads(line) for line in file)
            return {sentence: [Tag(*values) for values in tags] for sentence, tags in found}
