"""What the tab Attention is told of learning: objectives, gradients, and curves side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from elmo.results import GradientTest, Objective
from elmo.training.curves import METRICS, Curve, equal_costs


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


def curves_view(
    curves: Mapping[str, Mapping[str, Curve]], cards: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """A chart a metric, with its curves by encoder, compared at equal cost where there are two or
    more; what finished weights score on the same hidden words; and each card's remarks."""
    charts = []
    for metric in METRICS:
        shown = {kind: found[metric] for kind, found in curves.items() if metric in found}
        if not shown:
            continue
        equal = equal_costs(shown) if len(shown) > 1 else {}
        charts.append(
            {
                "metric": metric,
                "curves": {k: {**curve.costs, "score": curve.scores} for k, curve in shown.items()},
                "equal": {axis: {"at": at, "scores": s} for axis, (at, s) in equal.items()} or None,
            }
        )
    return {
        "charts": charts,
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
