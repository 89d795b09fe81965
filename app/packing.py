"""Arrays on their way to the browser: little-endian float32 as base64, inside ASCII JSON."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np


def pack(array: np.ndarray) -> str:
    """A float32 array of any shape, rows first, as base64 text; the shape travels apart."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode("ascii")


def unpack(text: str, *shape: int) -> np.ndarray:
    """The array that ``pack`` packed, in the shape given."""
    return np.frombuffer(base64.b64decode(text), dtype="<f4").reshape(shape)


def to_json(value: Any) -> str:
    """ASCII JSON without ``<``: half a surrogate pair passes as an escape, and so does a tag."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")
