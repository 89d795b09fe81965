"""What encoders and analyses return: frozen values of NumPy arrays and labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Encoding:
    """One sentence under one encoder.

    tokens: T strings, boundaries only where they were asked for.
    hidden: (L, T, D) float32, layer 0 first; (T, D) where one layer or a mean was asked for.
    attention: (L - 1, H, T + 2, T + 2) float32 with the boundary tokens, rows sum to 1; ``None``
        for an encoder without attention.
    truncated: positions of tokens with more bytes than the character CNN reads.
    """

    tokens: tuple[str, ...]
    hidden: np.ndarray
    attention: np.ndarray | None = None
    truncated: tuple[int, ...] = ()
