"""What the maps show: coordinates of every layer in one frame, and what the map loses.

The browser draws them (``static/maps.js``), because there the mix moves with the sliders and the
colors follow the theme. A row of maps shares one frame, so that compared panels share scales.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.packing import pack
from elmo.banks.bank import TokenBank
from elmo.banks.mixing import pair_weights, simplex_grid
from elmo.banks.projection import (
    Basis,
    fit_basis,
    mean_share,
    neighbor_shares,
    variance_kept,
    word_rows,
)

MARGIN = 0.07  # of the frame, around the points
MIX_STEPS = 6  # of the grid of mixes that the frame is made wide enough for
MAX_STEPPED = 5  # layers; of more, the grid has single layers and halves only: others would be many
MIN_OCCURRENCES = 3  # to fit axes on one word's occurrences
MAX_BEHIND = 5_000  # points of the bank on a map


def word_basis(word: str, text: TokenBank, bank: TokenBank, scale: np.ndarray) -> Basis | None:
    """Axes along which the occurrences of a word differ most, in the text and in the bank.

    scale: the layers' units. ``None`` for fewer than three occurrences.
    """
    found = np.concatenate([text.vectors[text.rows_of(word)], bank.vectors[bank.rows_of(word)]])
    found = np.unique(found, axis=0)  # the text often repeats sentences of the bank
    return fit_basis(found, scale, n_axes=3) if len(found) >= MIN_OCCURRENCES else None


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
    """(4,) left, right, bottom, top around (R, L, 2) under all mixes (G, L), with a margin; (6,)
    with back and front around (R, L, 3)."""
    n_axes = coordinates.shape[-1]
    if not len(coordinates):
        return np.array([-1.0, 1.0] * n_axes)
    mixed = np.einsum("gl,rlx->grx", factors, coordinates)
    low, high = mixed.min(axis=(0, 1)), mixed.max(axis=(0, 1))
    size = float((high - low).max()) or 1.0
    low, high = low - MARGIN * size, high + MARGIN * size
    return np.stack([low, high], axis=1).ravel().astype(np.float64)


def map_row(
    text: TokenBank,
    basis: Basis,
    spread: np.ndarray,
    word: str,
    limit: int,
    kind: str,
    dims: int = 2,
) -> dict[str, Any]:
    """The maps of one encoder on linear axes that all layers share; see ``_row``.

    scale and spread: what ``mix_factors`` needs. The frame is wide enough for every mix with
    gamma 1.
    """
    rows = drawn_rows(text, word, limit)
    mixes = simplex_grid(MIX_STEPS if text.n_layers <= MAX_STEPPED else 2, text.n_layers)
    factors = mix_factors(basis.scale, spread, mixes)
    vectors = basis.standardize(text.vectors[rows])
    coordinates = basis.project(text.vectors[rows])[..., :dims]
    row = _row(text, rows, vectors, coordinates, factors, word, kind)
    return row | {"mixes": True, "scale": basis.scale.tolist(), "spread": spread.tolist()}


def free_row(
    text: TokenBank,
    rows: np.ndarray,
    vectors: np.ndarray,
    coordinates: np.ndarray,
    word: str,
    kind: str,
) -> dict[str, Any]:
    """The maps of one encoder whose layers share no axes: there is none of the mix; see ``_row``.

    vectors: (R, L, D), standardized, of the rows; coordinates: (R, L, 2 or 3).
    """
    factors = np.eye(text.n_layers)
    row = _row(text, rows, vectors, coordinates, factors, word, kind)
    return row | {"mixes": False}


def _row(
    text: TokenBank,
    rows: np.ndarray,
    vectors: np.ndarray,
    coordinates: np.ndarray,
    factors: np.ndarray,
    word: str,
    kind: str,
) -> dict[str, Any]:
    """rows: the R rows of ``text`` that are drawn; coordinates: packed (R, L, 2); depth: packed
    (R, L), the third axis, if there is one; frame: what all panels of the row show, [left, right,
    bottom, top(, back, front)]; variance, neighbors: shares kept, over all layers, and kept: those
    of each layer, with ``None`` for the variance of maps that are not linear; outside: tokens
    beyond the frame in some layer."""
    # The frame holds all words, or on a word's own axes its copies; the rest may fall out of it.
    wanted = text.rows_of(word) if kind == "word" else word_rows(text)
    shown = coordinates[np.isin(rows, wanted)]
    frame = frame_around(shown if len(shown) else coordinates, factors)
    inside = (coordinates >= frame[::2]) & (coordinates <= frame[1::2])
    shares = neighbor_shares(vectors, coordinates)
    layers = range(text.n_layers if len(rows) else 0)
    is_linear = kind not in ("umap", "aligned")
    variance = [
        round(variance_kept(vectors[:, [k]], coordinates[:, [k]]), 4) if is_linear else None
        for k in layers
    ]
    overall = variance_kept(vectors, coordinates) if len(rows) else 1.0
    return {
        "rows": rows.tolist(),
        "coordinates": pack(coordinates[..., :2]),
        "depth": pack(coordinates[..., 2]) if coordinates.shape[-1] > 2 else None,
        "frame": frame.tolist(),
        "basis": kind,
        "variance": round(overall, 4) if is_linear else None,
        "neighbors": round(mean_share(np.concatenate(shares)), 4),
        "kept": [[variance[k], round(mean_share(shares[k]), 4)] for k in layers],
        "outside": int((~inside.all(axis=(1, 2))).sum()),
        "n_tokens": len(text),
    }


def behind_view(bank: TokenBank, basis: Basis, dims: int) -> dict[str, Any]:
    """Words of the bank on the same axes: at most ``MAX_BEHIND`` of ``n_all``, evenly spaced."""
    words = word_rows(bank)
    if len(words) > MAX_BEHIND:
        words = words[np.linspace(0, len(words) - 1, MAX_BEHIND).round().astype(int)]
    coordinates = basis.project(bank.vectors[words])
    return {
        "n": len(words),
        "n_all": len(bank),
        "coordinates": pack(coordinates[..., :2]),
        "depth": pack(coordinates[..., 2]) if dims > 2 else None,
    }
