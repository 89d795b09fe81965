"""What the influence grids are made of: enough for the browser to draw any layer and any mix.

A mix of layers is linear, so the inner products of the layers' changes give the influence on every
mix (``elmo.both_ways.arithmetic``). The browser gets those and answers a slider by itself
(``static/influence_grid.js``).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.packing import pack
from elmo.banks.mixing import layer_pairs
from elmo.both_ways.arithmetic import InfluenceGrid
from elmo.encoders import Encoder

PIECE_WORK = 2_000  # token vectors that one piece of the work may compute
REACHABLE, CHANGED = 1, 2  # bits of a cell's state

Piece = tuple[str, int, int]  # encoder, first and last sample


def readers(encoders: Mapping[str, Encoder], n_tokens: int) -> tuple[list[str], dict[str, str]]:
    """Kinds of the encoders that can read so many tokens, and why the others cannot."""
    unread = {
        kind: (
            f"This sentence has {n_tokens} tokens. This encoder was trained on at most"
            f" {encoder.max_tokens} and has no positions beyond."
        )
        for kind, encoder in encoders.items()
        if encoder.max_tokens is not None and n_tokens > encoder.max_tokens
    }
    return [kind for kind in encoders if kind not in unread], unread


def pieces(kinds: Sequence[str], n_samples: int, n_tokens: int) -> list[Piece]:
    """The work in pieces that each take a moment: an encoder and some of its samples."""
    step = max(1, PIECE_WORK // (n_tokens * (n_tokens + 2)))
    return [
        (kind, first, min(first + step, n_samples))
        for kind in kinds
        for first in range(0, n_samples, step)
    ]


def grid_view(grid: InfluenceGrid) -> dict[str, Any]:
    """One encoder's grid, or some of its samples.

    parts: the halves, or the whole of a vector that has none (a whole is the sum of its halves).
    cross: packed (R, S, pairs, T, T), in the order of ``layer_pairs``, both orders of a pair added
    up; own: packed (S, pairs, T); state: (whole and halves, L, T, T) bytes, ``REACHABLE`` where
    the architecture lets j reach t, ``CHANGED`` where any number differs.
    """
    first = 1 if len(grid.parts) > 1 else 0
    n_layers = grid.cross.shape[2]
    state = grid.reachable * REACHABLE + grid.changed * CHANGED
    return {
        "parts": grid.parts[first:],
        "n_samples": len(grid.cross),
        "n_layers": n_layers,
        "cross": pack(_pairs(grid.cross[:, first:], axis=2)),
        "own": pack(_pairs(grid.own[first:], axis=1)),
        "state": base64.b64encode(state.astype(np.uint8).tobytes()).decode("ascii"),
        "n_zero": grid.n_zero,
        "n_broken": grid.n_broken,
    }


def _pairs(table: np.ndarray, axis: int) -> np.ndarray:
    """Layers by layers at ``axis`` and the next -> pairs at ``axis``."""
    table = np.moveaxis(table, (axis, axis + 1), (0, 1))
    columns = [
        table[k, m] if k == m else table[k, m] + table[m, k] for k, m in layer_pairs(len(table))
    ]
    return np.stack(columns, axis=axis)
