"""Vectors on disk: HDF5 as the original ``elmo`` command wrote it, NumPy's npz, TSV pairs.

Work in progress lies in shards, small HDF5 files in a folder beside the output, each complete
from the moment it has its name. The output is put together from them at the end.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from elmo.results import Encoding

FORMATS = (".h5", ".hdf5", ".npz", ".tsv")


class Shards:
    """Finished parts of an unfinished output.

    ``job`` says what is being made from what. Shards of another job are never continued.
    """

    def __init__(self, output: Path, job: dict[str, Any]) -> None:
        self.folder = output.with_name(output.name + ".partial")
        self.folder.mkdir(parents=True, exist_ok=True)
        manifest = self.folder / "job.json"
        text = json.dumps(job, indent=1, sort_keys=True) + "\n"
        if manifest.is_file():
            if manifest.read_text(encoding="utf-8") != text:
                raise ValueError(
                    f"{self.folder} holds parts of another job (other input, model or options):"
                    " finish that one, or delete the folder"
                )
        else:
            _write_whole(manifest, text)
        for path in self.folder.glob("*.unfinished"):
            path.unlink()

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("*.h5"))

    def n_lines(self) -> int:
        """Lines that are done."""
        paths = self.paths()
        if not paths:
            return 0
        with h5py.File(paths[-1], "r") as file:
            return int(paths[-1].stem) + len(file)

    def add(self, first_line: int, encodings: list[Encoding]) -> None:
        """One dataset a line, named by its number."""
        path = self.folder / f"{first_line:012d}.h5"
        unfinished = path.with_suffix(".unfinished")
        with h5py.File(unfinished, "w") as file:
            for i, encoding in enumerate(encodings):
                file.create_dataset(str(first_line + i), data=encoding.hidden)
        os.replace(unfinished, path)

    def vectors(self) -> Iterator[tuple[int, np.ndarray]]:
        """(line number, vectors) in the order of the lines."""
        for path in self.paths():
            first = int(path.stem)
            with h5py.File(path, "r") as file:
                for line in range(first, first + len(file)):
                    yield line, file[str(line)][...]

    def remove(self) -> None:
        shutil.rmtree(self.folder)


def _write_whole(path: Path, text: str) -> None:
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def write_output(shards: Shards, output: Path, lines: Iterator[str]) -> None:
    """Puts the shards together in the format of the output's name; complete or not there."""
    writer = {".npz": _write_npz, ".tsv": _write_tsv}.get(output.suffix, _write_hdf5)
    writer(shards, output, lines)


def _write_hdf5(shards: Shards, output: Path, lines: Iterator[str]) -> None:
    """The original's layout: a dataset a line, and an index from sentence to line number in
    which, of equal sentences, the last one counts."""
    unfinished = output.with_name(output.name + ".unfinished")
    with h5py.File(unfinished, "w") as file:
        for path in shards.paths():
            with h5py.File(path, "r") as shard:
                for name in shard:
                    shard.copy(name, file)
        index = json.dumps({line: str(i) for i, line in enumerate(lines)})
        file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())[0] = index
    os.replace(unfinished, output)


def _write_npz(shards: Shards, output: Path, lines: Iterator[str]) -> None:
    """What ``numpy.load`` opens: an array a line, named by its number."""
    unfinished = output.with_name(output.name + ".unfinished")
    with zipfile.ZipFile(unfinished, "w", allowZip64=True) as archive:
        for line, vectors in shards.vectors():
            with archive.open(f"{line}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, vectors)
    os.replace(unfinished, output)


def metadata_path(output: Path) -> Path:
    """Where the labels of ``NAME.tsv`` stand: ``NAME_metadata.tsv``."""
    return output.with_name(f"{output.stem}_metadata.tsv")


def _write_tsv(shards: Shards, output: Path, lines: Iterator[str]) -> None:
    """The Embedding Projector's pair: a vector a token without a header, and labels with one."""
    unfinished = [p.with_name(p.name + ".unfinished") for p in (output, metadata_path(output))]
    with (
        unfinished[0].open("w", encoding="utf-8", newline="\n") as vectors_file,
        unfinished[1].open("w", encoding="utf-8", newline="\n") as labels_file,
    ):
        labels_file.write("token\tline\tposition\tsentence\n")
        for (line, vectors), text in zip(shards.vectors(), lines, strict=True):
            tokens = text.split()  # leaves neither tabs nor line ends in a token
            np.savetxt(vectors_file, vectors, fmt="%.8g", delimiter="\t")
            for position, token in enumerate(tokens):
                labels_file.write(f"{token}\t{line}\t{position}\t{' '.join(tokens)}\n")
    for path, final in zip(unfinished, (output, metadata_path(output)), strict=True):
        os.replace(path, final)
