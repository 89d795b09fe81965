"""One vector a sentence, or a batch, from the vectors of its tokens: real tokens only."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from elmo.results import Encoding
from elmo.text import BOS, EOS

HOWS = ("mean", "max")


def pool(encoding: Encoding, how: str = "mean") -> np.ndarray:
    """(L, D) of an encoding with all layers, (D,) of one with a single layer.

    Boundary tokens are left out, kept ones too. A sentence without tokens gives zeros. Raises
    ``ValueError`` for anything but ``mean`` and ``max``.
    """
    _check(how)
    real = [i for i, token in enumerate(encoding.tokens) if token not in (BOS, EOS)]
    hidden = encoding.hidden[..., real, :]
    if not real:
        return np.zeros(hidden.shape[:-2] + hidden.shape[-1:], dtype=hidden.dtype)
    return hidden.mean(axis=-2) if how == "mean" else hidden.max(axis=-2)


def pool_batch(x: Tensor, mask: Tensor, how: str = "mean") -> Tensor:
    """(..., B, T, D) -> (..., B, D) over positions where ``mask`` (B, T) is true, with gradients.

    Padding counts for nothing whatever it holds; a row without tokens gives zeros.
    """
    _check(how)
    real = mask.bool()[..., None]
    if how == "mean":
        total = torch.where(real, x, 0).sum(dim=-2)
        return total / real.sum(dim=-2).clamp(min=1)
    highest = torch.where(real, x, -torch.inf).amax(dim=-2)
    return torch.where(real.any(dim=-2), highest, 0)


def _check(how: str) -> None:
    if how not in HOWS:
        raise ValueError(f"how must be one of {', '.join(HOWS)}, got {how!r}")
