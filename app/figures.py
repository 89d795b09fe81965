"""What the maps show: coordinates of every layer in one frame, and what the map loses.

The browser draws them (``static/maps.js``), because there the mix moves with the sliders and the
colors follow the theme. A row of maps shares one frame, so that compared panels share scales.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.packing import pack
from elmo.bank import TokenBank
from elmo.mixing import pair_weights, simplex_grid
from elmo.projection import Basis, fit_basis, neighbors_kept, variance_kept, word_rows

MARGIN = 0.07  # of the frame, around the points
MIX_STEPS = 6  # of the grid of mixes that the frame is made wide enough for
MIN_OCCURRENCES = 3  # to fit axes on one word's occurrences


def word_basis(word: str, text: TokenBank, bank: TokenBank, scale: np.ndarray) -> Basis | None:
    """Axes along which the occurrences of a word differ most, in the text and in the bank.

    scale: the layers' units. ``None`` for fewer than three occurrences.
    """
    found = np.concatenate([text.vectors[text.rows_of(word)], bank.vectors[bank.rows_of(word)]])
    found = np.unique(found, axis=0)  # the text often repeats sentences of the bank
    return fit_basis(found, scale) if len(found) >= MIN_OCCURRENCES else None


def drawn_rows(text: TokenBank, word: str, limit: int) -> np.ndarray:
    """Rows a map draws: all where they fit, else the word's own and others evenly spaced."""
    if len(text) <= limit:
        return np.arange(len(text))
    own = text.rows_of(word)[:limit]
    others = np.setdiff1d(np.arange(len(text)), own)
    step = np.linspace(0, len(others) - 1, limit - len(own)).round().astype(int)
    return np.sort(np.concatenate([own, others[np.unique(step)]]))


def mix_factors(scale: np.ndarray, spread: np.ndarray, s: np.ndarray) -> np.ndarray:
    """What a mix's map multiplies the layers' coordinates by: (..., L) for shares s (..., L).

    Coordinates are in units of their layer's spread; so is the mix, in units of its own.
    """
    own = np.sqrt(np.maximum(pair_weights(s) @ spread, 1e-12))
    return s * scale / own[..., None]


def frame_around(coordinates: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """(4,) left, right, bottom, top around (R, L, 2) under all mixes (G, L), with a margin."""
    if not len(coordinates):
        return np.array([-1.0, 1.0, -1.0, 1.0])
    mixed = np.einsum("gl,rlx->grx", factors, coordinates)
    low, high = mixed.min(axis=(0, 1)), mixed.max(axis=(0, 1))
    size = float((high - low).max()) or 1.0
    low, high = low - MARGIN * size, high + MARGIN * size
    return np.array([low[0], high[0], low[1], high[1]], dtype=np.float64)


def map_row(
    text: TokenBank, basis: Basis, spread: np.ndarray, word: str, limit: int, kind: str
) -> dict[str, Any]:
    """The maps of one encoder.

    rows: the R rows of ``text`` that are drawn; coordinates: packed (R, L, 2), each layer in units
    of its spread; scale and spread: what ``mix_factors`` needs; frame: what all panels of the row
    show, [left, right, bottom, top], wide enough for every mix with gamma 1; variance, neighbors:
    shares kept, over all layers; outside: tokens beyond the frame in some layer.
    """
    rows = drawn_rows(text, word, limit)
    vectors = basis.standardize(text.vectors[rows])
    coordinates = basis.project(text.vectors[rows])
    # The frame holds all words, or on a word's own axes its copies; the rest may fall out of it.
    wanted = text.rows_of(word) if kind == "word" else word_rows(text)
    shown = coordinates[np.isin(rows, wanted)]
    shown = shown if len(shown) else coordinates
    mixes = simplex_grid(MIX_STEPS, text.n_layers)
    frame = frame_around(shown, mix_factors(basis.scale, spread, mixes))
    inside = (coordinates >= frame[[0, 2]]) & (coordinates <= frame[[1, 3]])
    return {
        "rows": rows.tolist(),
        "coordinates": pack(coordinates),
        "scale": basis.scale.tolist(),
        "spread": spread.tolist(),
        "frame": frame.tolist(),
        "basis": kind,
        "variance": round(variance_kept(vectors, coordinates), 4) if len(rows) else 1.0,
        "neighbors": round(neighbors_kept(vectors, coordinates), 4),
        "outside": int((~inside.all(axis=(1, 2))).sum()),
        "n_tokens": len(text),
    }
