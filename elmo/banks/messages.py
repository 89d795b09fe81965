"""Messages between two of our processes: a line of JSON, and the numbers of an array after it."""

from __future__ import annotations

import json
import math
from typing import Any, BinaryIO

import numpy as np

NUMBERS = np.dtype("<f4")


def send(stream: BinaryIO, kind: str, value: Any = None, array: np.ndarray | None = None) -> None:
    """value: anything that JSON can hold; array: of float32."""
    header = {"kind": kind, "value": value, "shape": None if array is None else array.shape}
    stream.write(json.dumps(header).encode("utf-8") + b"\n")
    if array is not None:
        stream.write(np.asarray(array, dtype=NUMBERS).tobytes())
    stream.flush()


def receive(stream: BinaryIO) -> tuple[str, Any, np.ndarray | None]:
    """What ``send`` sent: (kind, value, array). Raises ``EOFError`` at the end of the stream, and
    ``ValueError`` for anything else than a message."""
    line = stream.readline()
    if not line:
        raise EOFError("the other process has ended")
    header = json.loads(line)
    array = None
    if header["shape"] is not None:
        n_bytes = math.prod(header["shape"]) * NUMBERS.itemsize
        array = np.frombuffer(stream.read(n_bytes), dtype=NUMBERS).reshape(header["shape"])
    return header["kind"], header["value"], array
