"""What the maps show: coordinates of every layer in one frame, and what the map loses.

The browser draws them (``static/maps.js``), because there the mix moves with the sliders and the
colors follow the theme. A row of maps shares one frame, so that compared panels share scales.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.packing import pack
from elmo.bank import TokenBank
from elmo.projection import Basis, fit_basis, neighbors_kept, variance_kept

MARGIN = 0.07  # of the frame, around the points
MIN_OCCURRENCES = 3  # to fit axes on one word's occurrences


def word_basis(word: str, text: TokenBank, bank: TokenBank) -> Basis | None:
    """Axes along which the occurrences of a word differ most, in the text and in the bank.

    ``None`` for fewer than three occurrences.
    """
    found = np.concatenate([text.vectors[text.rows_of(word)], bank.vectors[bank.rows_of(word)]])
    found = np.unique(found, axis=0)  # the text often repeats sentences of the bank
    return fit_basis(found) if len(found) >= MIN_OCCURRENCES else None


def drawn_rows(text: TokenBank, word: str, limit: int) -> np.ndarray:
    """Rows a map draws: all where they fit, else the word's own and others evenly spaced."""
    if len(text) <= limit:
        return np.arange(len(text))
    own = text.rows_of(word)[:limit]
    others = np.setdiff1d(np.arange(len(text)), own)
    step = np.linspace(0, len(others) - 1, limit - len(own)).round().astype(int)
    return np.sort(np.concatenate([own, others[np.unique(step)]]))


def frame_around(coordinates: np.ndarray) -> np.ndarray:
    """(4,) left, right, bottom, top around all layers of (R, L, 2), with a margin."""
    if not len(coordinates):
        return np.array([-1.0, 1.0, -1.0, 1.0])
    low, high = coordinates.min(axis=(0, 1)), coordinates.max(axis=(0, 1))
    size = float((high - low).max()) or 1.0
    low, high = low - MARGIN * size, high + MARGIN * size
    return np.array([low[0], high[0], low[1], high[1]], dtype=np.float64)


def map_row(text: TokenBank, basis: Basis, word: str, limit: int, kind: str) -> dict[str, Any]:
    """The maps of one encoder.

    rows: the R rows of ``text`` that are drawn; coordinates: packed (R, L, 2); frame: what all
    panels of the row show, [left, right, bottom, top]; variance, neighbors: shares kept, over all
    layers; outside: tokens beyond the frame in some layer. A mix with gamma 1 never leaves the
    frame of all layers: it lies between them.
    """
    rows = drawn_rows(text, word, limit)
    vectors = text.vectors[rows]
    coordinates = basis.project(vectors)
    own = np.isin(rows, text.rows_of(word))
    # On a word's own axes its copies fill the frame, and other words may fall out of it.
    frame = frame_around(coordinates[own] if kind == "word" else coordinates)
    inside = (coordinates >= frame[[0, 2]]) & (coordinates <= frame[[1, 3]])
    return {
        "rows": rows.tolist(),
        "coordinates": pack(coordinates),
        "frame": frame.tolist(),
        "basis": kind,
        "variance": round(variance_kept(vectors, coordinates), 4) if len(rows) else 1.0,
        "neighbors": round(neighbors_kept(vectors, coordinates), 4),
        "outside": int((~inside.all(axis=(1, 2))).sum()),
        "n_tokens": len(text),
    }
