"""Banks on disk, opened memory-mapped. ``bank_build`` writes them.

A bank is a folder:

    bank.json       what it is, and a checksum of every block of every file below; written last
    vectors.f16     (N, L, D) float16, little-endian, as all numbers here
    products.f32    (3, pairs, N) norms, products with the mean, and of unit vectors with theirs
    rows.i32        (4, N) sentence, position, word, tag
    means.f32       (2, L, D) raw, unit
    text.txt        a sentence a line, tokens with a tab between
    words.txt       the distinct tokens, case folded, one a line
    tags.json       the distinct tags
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from elmo.banks.bank import TokenBank
from elmo.banks.bank_tables import Means
from elmo.banks.tagged import Tag

VERSION = 1
BLOCK_BYTES = 1 << 24  # of a checksum
SAMPLED_BLOCKS = 4  # of the vectors, when a bank is opened
VECTORS = "vectors.f16"
FILES = (VECTORS, "products.f32", "rows.i32", "means.f32", "text.txt", "words.txt", "tags.json")


class DamagedBank(ValueError):
    """A folder that is not, or no longer, what was written."""


class StoredSentences(Sequence):
    """The sentences of ``text.txt``, each split into tokens only when it is asked for."""

    def __init__(self, path: Path) -> None:
        self._text = path.read_bytes()
        ends = np.flatnonzero(np.frombuffer(self._text, dtype=np.uint8) == ord("\n"))
        self._bounds = np.concatenate([[0], ends + 1])

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index = index % len(self)
        line = self._text[self._bounds[index] : self._bounds[index + 1] - 1]
        return tuple(line.decode("utf-8").split("\t"))


def checksums(path: Path, blocks: Sequence[int] | None = None) -> Iterator[int]:
    """CRC-32 of every block of a file, or of some."""
    with path.open("rb") as file:
        if blocks is None:
            while block := file.read(BLOCK_BYTES):
                yield zlib.crc32(block)
            return
        for number in blocks:
            file.seek(number * BLOCK_BYTES)
            yield zlib.crc32(file.read(BLOCK_BYTES))


def open_bank(folder: str | Path) -> TokenBank:
    """A bank from disk, its vectors memory-mapped: well under a second at 300,000 rows.

    Checked on the way: the size of every file, the checksums of all but the vectors, and those of
    some blocks of the vectors; ``check_vectors`` goes through all of them. Raises
    ``FileNotFoundError`` where there is no bank, and ``DamagedBank`` naming the file.
    """
    folder = Path(folder)
    if not (folder / "bank.json").is_file():
        raise FileNotFoundError(f"there is no bank in {folder}")
    about = _read_about(folder)
    n, n_layers, width = about["shape"]
    n_blocks = len(about["checksums"][VECTORS])
    some = np.linspace(0, n_blocks - 1, min(SAMPLED_BLOCKS, n_blocks)).astype(int)
    _compare(folder, about, VECTORS, sorted(set(some.tolist())))
    for name in FILES:
        if name != VECTORS:
            _compare(folder, about, name)
    shape = (n, n_layers, width)
    vectors = np.memmap(folder / VECTORS, dtype="<f2", mode="c", shape=shape)  # never written to
    products = np.fromfile(folder / "products.f32", dtype="<f4").reshape(3, -1, n)
    rows = np.fromfile(folder / "rows.i32", dtype="<i4").reshape(4, n)
    means = np.fromfile(folder / "means.f32", dtype="<f4").reshape(2, n_layers, width)
    words = (folder / "words.txt").read_text("utf-8").removesuffix("\n").split("\n")
    tags = json.loads((folder / "tags.json").read_text("utf-8"))
    return TokenBank(
        sentences=StoredSentences(folder / "text.txt"),
        sentence=rows[0],
        position=rows[1],
        vectors=vectors,
        means=Means(*means),
        norms=products[0].T,
        mean_products=products[1].T,
        unit_mean_products=products[2].T,
        word=rows[2],
        words=tuple(words),
        tag=rows[3],
        tags=tuple(Tag(0, *values) for values in tags),
        name=about["name"],
    )


def check_vectors(folder: str | Path) -> None:
    """Goes through the whole of the vectors, at about a gigabyte a second.

    Raises ``DamagedBank``.
    """
    folder = Path(folder)
    _compare(folder, _read_about(folder), VECTORS)


def _read_about(folder: Path) -> dict:
    try:
        about = json.loads((folder / "bank.json").read_text("utf-8"))
        if about["version"] != VERSION:
            raise DamagedBank(f"{folder} is of version {about['version']}, not {VERSION}")
        _, n_layers, width = about["shape"]
        if not set(FILES) <= set(about["checksums"]):
            raise KeyError("checksums")
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, DamagedBank):
            raise
        raise DamagedBank(f"{folder / 'bank.json'} cannot be read: {error}") from error
    return about


def _compare(folder: Path, about: dict, name: str, blocks: Sequence[int] | None = None) -> None:
    expected = about["checksums"][name]
    path = folder / name
    size = path.stat().st_size if path.is_file() else -1
    if -(-size // BLOCK_BYTES) != len(expected) or (name == VECTORS and size != _size(about)):
        raise DamagedBank(f"{path} is missing or has the wrong size")
    found = list(checksums(path, blocks))
    if found != (expected if blocks is None else [expected[i] for i in blocks]):
        raise DamagedBank(f"{path} is not what was written")


def _size(about: dict) -> int:
    return 2 * int(np.prod(about["shape"]))
