"""Finding a model's two files, and saying what a wrong file is instead of failing on it.

A model in the original format is an ``options.json`` and a ``weights.hdf5``: two paths, a folder
that holds both, or a zip archive of it. Nothing is ever downloaded here.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

from elmo.original.options import MAX_BYTES

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
FOREIGN_FILES = ("char.dic", "word.dic", "encoder.pkl", "token_embedder.pkl")
MAX_ARCHIVED_BYTES = 4 << 30

_SIGNATURES = (
    (HDF5_SIGNATURE, "an HDF5 file"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive (unpack it first)"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file that it stands for"),
    (b"\x80", "a Python pickle, perhaps a PyTorch or ELMoForManyLangs file"),
    (b"<", "a web page or an XML answer, perhaps of a failed download"),
    (b"{", "a JSON file"),
)


@dataclass(frozen=True)
class ModelFiles:
    """The text of the options, and an HDF5 source that ``h5py.File`` opens."""

    options: str
    weights: Path | io.BytesIO
    name: str


def describe(start: bytes) -> str:
    """What a file is, as far as its first bytes tell."""
    if not start:
        return "an empty file"
    if start[8:10] == b'{"':
        return "a safetensors file"
    trimmed = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    for signature, what in _SIGNATURES:
        if start.startswith(signature) or trimmed.startswith(signature):
            return what
    return "no file of a known kind"


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(64)


def find_model(options: str | Path, weights: str | Path | None = None) -> ModelFiles:
    """The files of a model from two paths, or from one path of a folder or a zip archive.

    Raises ``ValueError`` that names the mistake: swapped paths, a foreign format, a failed
    download, a folder without the files; ``FileNotFoundError`` for a path that is not there.
    """
    options = Path(options)
    for path in [options] if weights is None else [options, Path(weights)]:
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist (models are never downloaded unasked)")
    _refuse_foreign(options)
    if weights is None:
        if options.is_dir():
            options, weights = _inside(options)
        elif zipfile.is_zipfile(options):
            return _from_archive(options)
        else:
            raise ValueError(
                f"{options} is {describe(_start(options))}: give options= and weights=, or one"
                " folder or zip archive that holds both"
            )
    weights = Path(weights)
    _refuse_foreign(weights)
    for path in (options, weights):
        if not path.is_file():
            raise ValueError(f"{path} is not a file")
    _check(str(options), _start(options), str(weights), _start(weights))
    if options.stat().st_size > MAX_BYTES:
        raise ValueError(f"{options} has more than {MAX_BYTES} bytes: not an options file")
    return ModelFiles(_decode(options.read_bytes(), str(options)), weights, weights.stem)


def _refuse_foreign(path: Path) -> None:
    folder = path if path.is_dir() else path.parent
    foreign = [name for name in FOREIGN_FILES if (folder / name).exists()]
    if foreign and (path.is_dir() or path.name in FOREIGN_FILES):
        raise ValueError(
            f"{folder} holds an ELMoForManyLangs model ({', '.join(foreign)}), a different format;"
            " only the original ELMo's options.json and weights.hdf5 can be loaded"
        )


def _check(options: str, options_start: bytes, weights: str, weights_start: bytes) -> None:
    options_kind, weights_kind = describe(options_start), describe(weights_start)
    if options_kind == "an HDF5 file" and weights_kind == "a JSON file":
        raise ValueError(
            f"options and weights are swapped: {options} is an HDF5 file, {weights} a JSON file"
        )
    problems = []
    if options_kind not in ("a JSON file", "no file of a known kind"):
        problems.append(f"the options must be a JSON file, but {options} is {options_kind}")
    if weights_kind != "an HDF5 file":
        problems.append(f"the weights must be an HDF5 file, but {weights} is {weights_kind}")
    if problems:
        raise ValueError("; ".join(problems))


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"the options must be a JSON file, but {name} is not text") from error


def _choose(names: list[str], where: str) -> tuple[str, str]:
    """The one options file and the one weights file among these names."""
    options = [n for n in names if n.endswith("options.json")]
    weights = [n for n in names if n.endswith((".hdf5", ".h5")) and "softmax" not in n]
    if len(options) != 1 or len(weights) != 1:
        found = ", ".join(sorted(names)[:10]) or "nothing"
        raise ValueError(
            f"{where} must hold one *options.json and one *.hdf5 file; it holds {found}"
        )
    return options[0], weights[0]


def _inside(folder: Path) -> tuple[Path, Path]:
    names = [p.name for p in folder.iterdir() if p.is_file()]
    options, weights = _choose(names, str(folder))
    return folder / options, folder / weights


def _from_archive(path: Path) -> ModelFiles:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
            foreign = [n for n in names if Path(n).name in FOREIGN_FILES]
            if foreign:
                raise ValueError(
                    f"{path} holds an ELMoForManyLangs model ({', '.join(foreign)}), a different"
                    " format; only the original ELMo's can be loaded"
                )
            options, weights = _choose(names, str(path))
            if archive.getinfo(options).file_size > MAX_BYTES:
                raise ValueError(f"{options} in {path} is too large for an options file")
            if archive.getinfo(weights).file_size > MAX_ARCHIVED_BYTES:
                raise ValueError(f"{weights} in {path} is too large: unpack the archive")
            options_data, weights_data = archive.read(options), archive.read(weights)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a zip archive: {error}") from error
    _check(options, options_data[:64], weights, weights_data[:64])
    return ModelFiles(_decode(options_data, options), io.BytesIO(weights_data), path.stem)
