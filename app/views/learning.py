"""What the tab Attention is told of learning: objectives, gradients, and curves side by side."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmo.results import GradientTest, Objective

AXES = ("tokens", "targets", "minutes")
PERPLEXITY, GAPS = "valid_mean", "valid_log_probability"

Curve = dict[str, list[float]]


def objective_view(task: Objective) -> dict[str, Any]:
    """Predictions as rows: direction, target, and the context as one digit a token."""
    return {
        "read": list(task.read),
        "directions": list(task.directions),
        "targets": task.targets.tolist(),
        "context": ["".join(map(str, row.astype(int))) for row in task.context],
    }


def gradient_view(test: GradientTest) -> dict[str, Any]:
    """Losses by parts of the model, arrays as lists."""
    return {
        "losses": list(test.losses),
        "values": [float(f"{x:.5g}") for x in test.values],
        "groups": list(test.groups),
        "n_weights": test.n_weights.tolist(),
        "norm": [[float(f"{x:.4g}") for x in row] for row in test.norm],
        "zero": test.exactly_zero.tolist(),
    }


def read_curve(path: Path) -> Curve:
    """What was measured while a model learned: by axis, and its score under ``score``."""
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    if not rows:
        raise ValueError(f"no evaluation in {path}")
    metric = PERPLEXITY if PERPLEXITY in rows[0] else GAPS
    curve = {name: [row[name] for row in rows] for name in AXES}
    return curve | {"score": [row[metric] for row in rows], "metric": metric}


def curves_view(
    curves: Mapping[str, Curve], cards: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Curves by encoder, the language models compared at equal cost, and each card's remarks.

    ``equal`` is ``None`` where there are not two language models to compare.
    """
    comparable = [kind for kind, curve in curves.items() if curve["metric"] == PERPLEXITY]
    return {
        "curves": dict(curves),
        "comparable": comparable,
        "equal": equal_costs({k: curves[k] for k in comparable}) if len(comparable) > 1 else None,
        "history": {k: str(card["history"]) for k, card in cards.items() if "history" in card},
        "starts": {kind: n for kind, card in cards.items() if (n := continued_from(card))},
        "gaps": {
            kind: {"tokens": card.get("tokens_seen"), "values": card["gap_logprob"]}
            for kind, card in cards.items()
            if "gap_logprob" in card
        },
    }


def continued_from(card: Mapping[str, Any]) -> int | None:
    """Tokens that the weights had seen from which a run went on, as its command tells."""
    found = re.search(r"--start \S*?_(\d+)_TOKENS", str(card.get("command", "")))
    return int(found[1]) if found else None


def equal_costs(curves: Mapping[str, Curve]) -> dict[str, dict[str, Any]]:
    """Perplexities at the largest cost that every curve has reached, by axis."""
    found = {}
    for axis in AXES:
        at = min(curve[axis][-1] for curve in curves.values())
        scores = {k: score_at(curve[axis], curve["score"], at) for k, curve in curves.items()}
        found[axis] = {"at": at, "scores": scores}
    return found


def score_at(costs: Sequence[float], scores: Sequence[float], at: float) -> float | None:
    """A perplexity between two evaluations, its logarithm on a straight line; ``None`` before the
    first evaluation and after the last."""
    if not costs[0] <= at <= costs[-1]:
        return None
    return float(np.exp(np.interp(at, costs, np.log(scores))))
