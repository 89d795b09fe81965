"""The original ELMo's weights, ``options.json`` and HDF5, read and written.

What stands where in the file follows bilm-tf's ``dump_weights``; matrices there are applied as
``x @ W`` and ours as ``x @ W.T``. Nothing is loaded before every name and shape is right.
"""

from __future__ import annotations

import dataclasses
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from torch import Tensor

from elmo.checkpoint import Checkpoint
from elmo.config import BiLMConfig, ModelConfig
from elmo.language_model import LanguageModel, empty_model
from elmo.original.model_files import describe
from elmo.original.options import config_from_options, options_from_config
from elmo.text import BOS, EOS, N_CHARACTERS, UNK

MAX_ITEMS = 10_000
MAX_EXPANSION = 100  # no compression of trained float32 weights comes near this factor
_READ_ERRORS = (OSError, RuntimeError, KeyError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Dataset:
    """One dataset of the file and the parameter that it becomes, with the axes reversed."""

    name: str
    shape: tuple[int, ...]
    parameter: str

    def to_parameter(self, values: np.ndarray) -> Tensor:
        if self.name == "char_embed":  # the parameter has a first row of its own: no token here
            values = np.concatenate([np.zeros_like(values[:1]), values])
        elif self.name.startswith("CNN/W_cnn"):  # (1, width, d, count) -> (count, d, width)
            values = values[0].transpose(2, 1, 0)
        elif values.ndim == 2:
            values = values.T
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))

    def to_file(self, value: Tensor) -> np.ndarray:
        values = value.detach().cpu().float().numpy()
        if self.name == "char_embed":
            values = values[1:]
        elif self.name.startswith("CNN/W_cnn"):
            values = values.transpose(2, 1, 0)[None]
        elif values.ndim == 2:
            values = values.T
        return np.ascontiguousarray(values)


def layout(config: ModelConfig, wrapped: bool = True) -> list[Dataset]:
    """Every dataset of a model's file.

    ``wrapped`` is False for a model of one layer that was dumped without the ``MultiRNNCell``
    level.
    """
    char, stack = config.char, config.stack
    assert isinstance(stack, BiLMConfig)
    p, c, f = stack.d_projection, stack.d_cell, char.n_filters
    cnn = "token_encoder"
    datasets = [Dataset("char_embed", (N_CHARACTERS - 1, char.d_char), f"{cnn}.embedding.weight")]
    for i, (width, count) in enumerate(char.filters):
        shape = (1, width, char.d_char, count)
        datasets.append(Dataset(f"CNN/W_cnn_{i}", shape, f"{cnn}.convolutions.{i}.weight"))
        datasets.append(Dataset(f"CNN/b_cnn_{i}", (count,), f"{cnn}.convolutions.{i}.bias"))
    for k in range(char.n_highway):
        for gate in ("carry", "transform"):
            to = f"{cnn}.highways.{k}.{gate}"
            datasets.append(Dataset(f"CNN_high_{k}/W_{gate}", (f, f), f"{to}.weight"))
            datasets.append(Dataset(f"CNN_high_{k}/b_{gate}", (f,), f"{to}.bias"))
    if char.project:
        datasets.append(Dataset("CNN_proj/W_proj", (f, p), f"{cnn}.projection.weight"))
        datasets.append(Dataset("CNN_proj/b_proj", (p,), f"{cnn}.projection.bias"))
    for direction, layers in enumerate(("forward_layers", "backward_layers")):
        for k in range(stack.n_layers):
            level = f"MultiRNNCell/Cell{k}/" if wrapped else ""
            cell, to = f"RNN_{direction}/RNN/{level}LSTMCell", f"stack.{layers}.{k}"
            datasets.append(Dataset(f"{cell}/W_0", (2 * p, 4 * c), f"{to}.weight"))
            datasets.append(Dataset(f"{cell}/B", (4 * c,), f"{to}.bias"))
            if stack.project:
                datasets.append(Dataset(f"{cell}/W_P_0", (c, p), f"{to}.projection"))
    return datasets


def read_model(options: dict[str, Any], weights: str | Path | io.BytesIO) -> LanguageModel:
    """A frozen float32 biLM in evaluation mode.

    Raises one ``ValueError`` that lists everything missing, extra, misshapen or of a wrong type.
    A softmax in the same file is left alone; ``read_softmax`` reads it.
    """
    source = "the weights" if isinstance(weights, io.BytesIO) else str(weights)
    with _open(weights, source) as file:
        found = _datasets(file, source)
        names = {n for n in found if not n.startswith("softmax/")}
        if "embedding" in names and "char_embed" not in names:
            raise ValueError(
                f"{source} holds a word-level model (a table of words instead of characters),"
                " which is not supported"
            )
        config = config_from_options(
            options,
            project_characters=_has_projection(options, names, "CNN_proj/W_proj"),
            project_cells=_has_projection(options, names, "/W_P_0"),
        )
        stack = config.stack
        wrapped = stack.n_layers > 1 or any("MultiRNNCell" in name for name in names)
        datasets = layout(config, wrapped)
        _compare(source, {d.name: d.shape for d in datasets}, {n: found[n] for n in names})
        values = {d.parameter: d.to_parameter(_read(found[d.name], source)) for d in datasets}
    wrong = [d.name for d in datasets if not torch.isfinite(values[d.parameter]).all()]
    if wrong:
        raise ValueError(f"{source} holds values that are not finite in {', '.join(wrong)}")
    model = empty_model(config)
    model.load_state_dict(values, assign=True)
    return model.requires_grad_(False).eval()


def _has_projection(options: dict[str, Any], names: set[str], suffix: str) -> bool:
    """Whether the file must have this projection: it has one, or a width demands it."""
    if any(name.endswith(suffix) for name in names):
        return True
    try:
        d_projection = options["lstm"]["projection_dim"]
        if suffix == "/W_P_0":
            return options["lstm"]["dim"] != d_projection
        return sum(n for _, n in options["char_cnn"]["filters"]) != d_projection
    except (KeyError, TypeError, ValueError):
        return True  # the options are wrong, which their own check will tell


def _open(weights: str | Path | io.BytesIO, source: str) -> h5py.File:
    try:
        return h5py.File(weights, "r")
    except _READ_ERRORS as error:
        if isinstance(weights, io.BytesIO):
            start = weights.getvalue()[:64]
        else:
            with Path(weights).open("rb") as file:
                start = file.read(64)
        what = describe(start)
        what = "damaged or incomplete" if what == "an HDF5 file" else what
        raise ValueError(f"{source} cannot be read as HDF5, it is {what} ({error})") from error


def _datasets(file: h5py.File, source: str) -> dict[str, h5py.Dataset]:
    """All datasets by their full names. Links that lead out of the tree are refused."""
    found: dict[str, h5py.Dataset] = {}
    groups: list[tuple[str, h5py.Group]] = [("", file)]
    n_items = 0  # counted over all groups: a group can be made to contain itself
    try:
        while groups:
            prefix, group = groups.pop()
            for key in group:
                n_items += 1
                if n_items > MAX_ITEMS:
                    raise ValueError(f"{source} holds too much to be an ELMo file")
                if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                    raise ValueError(f"{source} has a link instead of data at {prefix}{key}")
                item = group[key]
                if isinstance(item, h5py.Group):
                    groups.append((f"{prefix}{key}/", item))
                elif isinstance(item, h5py.Dataset):
                    if item.external or item.is_virtual:
                        raise ValueError(f"{source} keeps {prefix}{key} in other files")
                    found[f"{prefix}{key}"] = item
    except _READ_ERRORS as error:
        if str(error).startswith(source):
            raise
        raise ValueError(f"{source} is damaged or incomplete: {error}") from error
    return found


def _compare(
    source: str, expected: dict[str, tuple[int, ...]], found: dict[str, h5py.Dataset]
) -> None:
    """Raises one ``ValueError`` with every difference in names, shapes and types."""
    problems = [f"missing {name} {expected[name]}" for name in expected.keys() - found.keys()]
    problems += [f"unexpected {name} {found[name].shape}" for name in found.keys() - expected]
    for name in expected.keys() & found.keys():
        dataset = found[name]
        if dataset.shape != expected[name]:
            problems.append(f"{name} has shape {dataset.shape} instead of {expected[name]}")
        if dataset.dtype.kind != "f":
            problems.append(f"{name} holds {dataset.dtype} instead of float32")
    if problems:
        raise ValueError(f"{source} does not hold this model: " + "; ".join(sorted(problems)))


def _read(dataset: h5py.Dataset, source: str) -> np.ndarray:
    stored = dataset.id.get_storage_size()
    if dataset.nbytes > MAX_EXPANSION * stored:
        raise ValueError(
            f"{source} is incomplete: {dataset.name} stores {stored} of {dataset.nbytes} bytes"
        )
    try:
        return dataset[...].astype(np.float32, copy=False)
    except _READ_ERRORS as error:
        raise ValueError(f"{source} is damaged or incomplete: {dataset.name}: {error}") from error


def read_softmax(path: str | Path, d_projection: int) -> tuple[Tensor, Tensor]:
    """The language-model head, ``softmax/W`` (V, P) and ``softmax/b`` (V,), from its own file or
    from the weights file. Raises ``ValueError`` like ``read_model``."""
    source = str(path)
    if not Path(path).is_file():
        raise FileNotFoundError(f"{source} does not exist")
    with _open(path, source) as file:
        found = {n: d for n, d in _datasets(file, source).items() if n.startswith("softmax/")}
        bias = found.get("softmax/b")
        n_vocabulary = bias.shape[0] if bias is not None and len(bias.shape) == 1 else 0
        shapes = {"softmax/W": (n_vocabulary, d_projection), "softmax/b": (n_vocabulary,)}
        _compare(source, shapes, found)
        weight, bias = (torch.from_numpy(_read(found[name], source)) for name in shapes)
    if not (torch.isfinite(weight).all() and torch.isfinite(bias).all()):
        raise ValueError(f"{source} holds values that are not finite")
    return weight, bias


def with_head(model: LanguageModel, softmax: str | Path, vocabulary: str | Path) -> Checkpoint:
    """The same biLM with the language-model head of a file, and the head's words.

    Raises ``ValueError`` where they do not fit each other, or lack a word that every head needs.
    """
    vocabulary = Path(vocabulary)
    weight, bias = read_softmax(softmax, model.config.stack.d_projection)
    config = dataclasses.replace(model.config, n_vocabulary=len(bias))
    whole = empty_model(config)
    parameters = model.state_dict()
    parameters |= {"head.weight": weight, "head.bias": bias}
    whole.load_state_dict(parameters, assign=True)
    whole.requires_grad_(False).eval()
    checkpoint = Checkpoint(vocabulary.parent, config, whole, {}, None, vocabulary.name)
    n_words = len(checkpoint.vocabulary)
    problems = [] if n_words == len(bias) else [f"{n_words} words for {len(bias)} rows"]
    problems += [f"no {word}" for word in (BOS, EOS, UNK) if word not in checkpoint.word_ids]
    if problems:
        raise ValueError(f"{vocabulary} does not fit {softmax}: {', '.join(problems)}")
    return checkpoint


def write_model(
    folder: str | Path, model: LanguageModel, vocabulary: list[str] | None = None
) -> None:
    """Writes a biLM as ``options.json`` and ``weights.hdf5`` in the original layout.

    With a head and its vocabulary also ``softmax_weights.hdf5`` and ``vocabulary.txt``.
    """
    options = options_from_config(model.config)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parameters = model.state_dict()
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for dataset in layout(model.config):
            file[dataset.name] = dataset.to_file(parameters[dataset.parameter])
    (folder / "options.json").write_text(json.dumps(options, indent=1) + "\n", encoding="utf-8")
    if model.head is not None and vocabulary is not None:
        with h5py.File(folder / "softmax_weights.hdf5", "w") as file:
            file["softmax/W"] = model.head.weight.detach().cpu().float().numpy()
            file["softmax/b"] = model.head.bias.detach().cpu().float().numpy()
        text = "\n".join(vocabulary) + "\n"
        (folder / "vocabulary.txt").write_text(text, encoding="utf-8")
