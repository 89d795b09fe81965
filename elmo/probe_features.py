"""Vectors of the spans that probes read: computed once an encoder, kept in half precision on disk.

A span's vector in a layer is the mean over its tokens. Mixing layers and averaging tokens commute,
so that one stored table serves every mix.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from elmo.checkpoint import file_digest
from elmo.encoders import Encoder
from elmo.probe_tasks import LabeledText

SENTENCES_PER_CHUNK = 256


def encoder_key(encoder: Encoder) -> str:
    """A file name that changes with the weights."""
    if encoder.checkpoint is None:
        return encoder.name.replace(" ", "-").replace("(", "").replace(")", "")
    return f"{encoder.kind}-{file_digest(encoder.checkpoint.folder)}"


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


def cached_spans(encoder: Encoder, text: LabeledText, name: str, cache: Path) -> np.ndarray:
    """``encode_spans`` from ``cache`` where it is there, memory-mapped; else computed and kept.

    name: tells data sets, splits and selections apart. A table whose size does not fit ``text``
    is computed anew.
    """
    folder = cache / "encodings" / encoder_key(encoder)
    path = folder / f"{name}.npy"
    shape = (len(text.spans), encoder.n_layers, encoder.d_model)
    if path.is_file():
        table = np.load(path, mmap_mode="r")
        if table.shape == shape:
            return table
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{name}.{os.getpid()}.tmp.npy"
    np.save(temporary, encode_spans(encoder, text))
    os.replace(temporary, path)  # another worker never sees half a file
    (folder / "encoder.json").write_text(json.dumps({"name": encoder.name, "kind": encoder.kind}))
    return np.load(path, mmap_mode="r")
