"""Vectors of the spans that probes read: computed once an encoder, kept in half precision on disk.

A span's vector in a layer is the mean over its tokens. Mixing layers and averaging tokens commute,
so that one stored table serves every mix.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from elmo.checkpoint import file_digest
from elmo.encoders import Encoder, load_encoder, untrained_encoder
from elmo.probing.probe_tasks import LabeledText

SENTENCES_PER_CHUNK = 256
UNTRAINED = "untrained"


@dataclass(frozen=True)
class EncoderSource:
    """An encoder that need not be loaded to be named: a model folder, or ``None`` for the biLM
    with random weights."""

    name: str
    folder: Path | None = None

    @cached_property
    def key(self) -> str:
        """A folder name that changes with the weights."""
        if self.folder is None:
            return f"{self.name}-bilm-0"
        return f"{self.name}-{file_digest(self.folder)}"

    def load(self) -> Encoder:
        return untrained_encoder("bilm") if self.folder is None else load_encoder(self.folder)


def default_cache() -> Path:
    """Where encodings are kept between runs: outside of the project's folder."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "both-ways" / "probes"


def encode_spans(
    encoder: Encoder, text: LabeledText, on_progress: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """(spans, L, D) float16, row i for ``text.spans[i]``."""
    table = np.empty((len(text.spans), encoder.n_layers, encoder.d_model), dtype=np.float16)
    of_sentence: list[list[int]] = [[] for _ in text.sentences]
    for row, (sentence, _) in enumerate(text.spans):
        of_sentence[sentence].append(row)
    order = [i for i, rows in enumerate(of_sentence) if rows]
    for start in range(0, len(order), SENTENCES_PER_CHUNK):
        part = order[start : start + SENTENCES_PER_CHUNK]
        for i, encoding in zip(
            part, encoder.encode([text.sentences[i] for i in part]), strict=True
        ):
            for row in of_sentence[i]:
                positions = list(text.spans[row][1])
                table[row] = encoding.hidden[:, positions].mean(axis=1)
        if on_progress is not None:
            on_progress(min(start + SENTENCES_PER_CHUNK, len(order)), len(order))
    return table


def cached_spans(source: EncoderSource, text: LabeledText, name: str, cache: Path) -> np.ndarray:
    """``encode_spans`` from ``cache`` where it is there, memory-mapped; else computed and kept.

    name: tells data sets, splits and selections apart. A table whose shape does not fit ``text``
    is computed anew.
    """
    folder = cache / "encodings" / source.key
    path = folder / f"{name}.npy"
    if path.is_file():
        table = np.load(path, mmap_mode="r")
        if len(table) == len(text.spans):
            return table
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{name}.{os.getpid()}.tmp.npy"
    np.save(temporary, encode_spans(source.load(), text))
    os.replace(temporary, path)  # another worker never sees half a file
    return np.load(path, mmap_mode="r")
