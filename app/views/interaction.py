"""The interaction of two edits, and its average over our own examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from elmo.both_ways.arithmetic import Edit, Interaction

Example = tuple[tuple[str, ...], Edit, Edit]


def examples_view(examples: list[Example]) -> list[dict[str, Any]]:
    """Sentences with both edits, as the page offers them."""
    return [
        {"tokens": tokens, "left": edit_view(left), "right": edit_view(right)}
        for tokens, left, right in examples
    ]


def edit_view(edit: Edit) -> dict[str, Any]:
    return {"start": edit.start, "stop": edit.stop, "text": " ".join(edit.words)}


def interaction_view(result: Interaction, mix: Interaction) -> dict[str, Any]:
    """By layer and, last, for the mix.

    size: (L + 1, T) length of I_t over the length of the unedited vector; zero: (L + 1, T) whether
    every number of I_t is exactly 0.0; unchanged: (L + 1, T) whether no edit moved the vector.
    Between the edits: n_between vectors; by layer n_zero and n_unchanged of them, mean size, and
    mean share of the summed single changes (null where nothing changed).
    """
    both = (result, mix)
    size, share, zero, unchanged = (
        np.concatenate([getattr(each, name) for each in both])
        for name in ("size", "share", "exactly_zero", "unchanged")
    )
    inside = slice(result.between.start, result.between.stop)
    shares = share[:, inside].mean(axis=1)
    return {
        "size": [[_short(x) for x in row] for row in size],
        "zero": zero.astype(int).tolist(),
        "unchanged": unchanged.astype(int).tolist(),
        "n_between": len(result.between),
        "width": result.hidden.shape[-1],
        "n_zero": zero[:, inside].sum(axis=1).tolist(),
        "n_unchanged": unchanged[:, inside].sum(axis=1).tolist(),
        "mean": [_short(x) for x in size[:, inside].mean(axis=1)],
        "share": [None if np.isnan(x) else _short(x) for x in shares],
    }


def averages_view(shipped: dict[str, Any], trained: list[str]) -> dict[str, Any]:
    """The shipped averages of the encoders whose trained weights are here, by kind."""
    return {
        entry["encoder"]: {key: value for key, value in entry.items() if key != "encoder"}
        for entry in shipped["encoders"]
        if entry["encoder"] in trained
    }


def _short(x: float) -> float:
    return float(f"{x:.4g}")
