"""What the tab Word is told: a word's layers, its sentence's cosines, its letters, an edit."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.packing import pack
from elmo.char_filters import Firing
from elmo.probing.metrics import cosine_matrix, norms, unit
from elmo.probing.one_word import Moves, WordLayers, split_halves

Near = list[list[Any]]  # [word, cosine], nearest first


def layers_view(
    word: WordLayers, baseline: np.ndarray, n_random: int, lists: dict[str, Near]
) -> dict[str, Any]:
    """A word's occurrences by layer; what is not defined is null."""
    return {
        "n": word.n,
        "n_sentences": word.n_sentences,
        "n_points": word.n_points.tolist(),
        "farthest": numbers(word.farthest),
        "similarity": numbers(word.similarity),
        "within": numbers(word.within),
        "baseline": numbers(baseline),
        "n_random": n_random,
        "lists": lists,
    }


def sentence_view(
    hidden: np.ndarray, token: int, halves: bool, mean: np.ndarray | None
) -> dict[str, Any]:
    """Cosines of a sentence's tokens (L, T, D) with each other, packed (parts, L, T, T); the chosen
    token's values, packed (L, D); norms, packed (L, T). mean: (L, D), removed for the cosines."""
    shown = hidden if mean is None else hidden - mean[:, None]
    return {
        "parts": ["whole", "forward", "backward"] if halves else ["whole"],
        "cosines": pack(np.stack([cosine_matrix(p) for p in split_halves(shown, halves)])),
        "values": pack(hidden[:, token]),
        "norms": pack(norms(hidden)),
        "n_layers": len(hidden),
        "d_model": hidden.shape[2],
    }


def moves_view(found: Moves, halves: bool) -> dict[str, Any]:
    """distance: packed (parts, L, n); zero: as many bytes."""
    return {
        "parts": ["whole", "forward", "backward"] if halves else ["whole"],
        "n_layers": found.distance.shape[1],
        "pairs": [list(pair) for pair in found.pairs],
        "distance": pack(found.distance),
        "zero": base64.b64encode(found.zero.astype(np.uint8).tobytes()).decode("ascii"),
        "n_zero": found.zero.sum(axis=2).tolist(),
    }


def firing_view(found: Sequence[Firing]) -> list[dict[str, Any]]:
    return [
        {"width": f.width, "index": f.index, "letters": f.letters, "above": round(f.above, 2)}
        for f in found
    ]


def nearest(
    query: np.ndarray, vectors: np.ndarray, names: Sequence[str], own: str, count: int = 8
) -> Near:
    """The rows (N, D) of other words with the highest cosine to (D,), each word once."""
    cosines = unit(vectors) @ unit(query)
    found: dict[str, float] = {}
    for i in np.argsort(-cosines, kind="stable").tolist():
        name = names[i]
        if name.casefold() != own.casefold() and name.casefold() not in found:
            found[name.casefold()] = float(cosines[i])
            if len(found) == count:
                break
    return [[name, round(cosine, 3)] for name, cosine in found.items()]


def numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(x) else float(x) for x in values]
