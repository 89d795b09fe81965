"""What the tab Gaps is told: guesses for one gap, the table by evidence, gaps worth a look."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmo.results import ClozeTable, GapGuess


def guess_view(guess: GapGuess) -> dict[str, Any]:
    """One predictor's column: its words with probabilities, the hidden word's rank, entropy."""
    return {
        "predictor": guess.predictor,
        "words": list(guess.words),
        "probabilities": [float(p) for p in guess.probabilities],
        "rank": guess.rank,
        "probability": guess.probability,
        "unknown": guess.unknown,
        "entropy": float(guess.entropy),
    }


def table_view(table: ClozeTable) -> dict[str, Any]:
    """The shipped table, arrays as lists."""
    arrays = ("values", "low", "high", "difference", "difference_low", "difference_high")
    return {
        "predictors": [list(p) for p in table.predictors],
        "rows": [
            {name: getattr(row, name) for name in ("data", "evidence", "kind", "score", "n")}
            | {name: np.asarray(getattr(row, name)).tolist() for name in arrays}
            for row in table.rows
        ],
    }


def read_holding_gaps(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Shipped gaps that neither side's favourite fills and both together do, each once.

    tokens: with the answer in place; position: of the gap; label: additive or interacting.
    """
    gaps: dict[str, dict[str, Any]] = {}
    for path in paths:
        for gap in json.loads(path.read_text(encoding="utf-8"))["gaps"]:
            if not gap["holds"]:
                continue
            tokens = gap["text"].split()
            position = tokens.index("[gap]")
            tokens[position] = gap["answer"]
            found = {"tokens": tokens, "position": position, "label": gap["measured"]}
            gaps.setdefault(gap["text"], found)
    return sorted(gaps.values(), key=lambda gap: gap["label"] != "interacting")
