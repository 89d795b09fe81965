"""``python -m elmo curves``: held-out scores while models learned, at equal cost.

Cost is counted three ways: tokens read, predictions made (a masked language model makes 0.35 a
mask from a token, a pair of language models 2), and minutes of processor time. Language models
meet on perplexity; all kinds meet on hidden words: the joint model's score beside the product of
both directions with fixed exponents (``gaps.SOFT_PRODUCT``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

AXES = ("tokens", "targets", "minutes")
PERPLEXITY, GAPS = "valid_mean", "valid_log_probability"
METRICS = {PERPLEXITY: "perplexity", GAPS: "log-probability of hidden words"}
STEPS = (1, 2, 5)  # costs of a table: these times powers of ten


@dataclass(frozen=True)
class Curve:
    """One metric of one model: a score and its costs by axis, in the order of learning."""

    costs: Mapping[str, tuple[float, ...]]
    scores: tuple[float, ...]
    metric: str

    def at(self, axis: str, cost: float) -> float | None:
        """The score on a straight line between two evaluations, for perplexity of its logarithm;
        ``None`` before the first and after the last."""
        costs = self.costs[axis]
        if not costs[0] <= cost <= costs[-1]:
            return None
        if self.metric == PERPLEXITY:
            return float(np.exp(np.interp(cost, costs, np.log(self.scores))))
        return float(np.interp(cost, costs, self.scores))


def read_curves(path: Path) -> dict[str, Curve]:
    """A model's ``curve.jsonl`` by metric, each with the evaluations that measured it.

    Raises ``ValueError`` for a file without any.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if line.strip()]
    curves = {}
    for metric in METRICS:
        rows = [row for row in records if metric in row]
        if rows:
            costs = {axis: tuple(row[axis] for row in rows) for axis in AXES}
            curves[metric] = Curve(costs, tuple(row[metric] for row in rows), metric)
    if not curves:
        raise ValueError(f"no evaluation in {path}")
    return curves


def equal_costs(curves: Mapping[str, Curve]) -> dict[str, tuple[float, dict[str, float | None]]]:
    """By axis, the largest cost that every curve has reached, and each curve's score there."""
    found = {}
    for axis in AXES:
        cost = min(curve.costs[axis][-1] for curve in curves.values())
        found[axis] = cost, {name: curve.at(axis, cost) for name, curve in curves.items()}
    return found


def round_costs(curves: Mapping[str, Curve], axis: str) -> list[float]:
    """Those of 1, 2, 5, 10, 20, ... at which two curves or more have a score."""
    costs = (step * 10.0**k for k in range(12) for step in STEPS)
    return [
        cost for cost in costs if sum(c.at(axis, cost) is not None for c in curves.values()) > 1
    ]


# ------------------------------------------------------------------------------ command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--models", type=Path, nargs="*", metavar="FOLDER", help="default: all of assets/models")


def run(options: argparse.Namespace) -> int:
    """Prints a table in Markdown, by metric and cost the models' scores, and the cards' remarks."""
    folders = options.models
    if folders is None:
        folders = sorted(p.parent for p in Path("assets/models").glob("*/curve.jsonl"))
    by_model = {}
    for folder, name in zip(folders, _names(folders), strict=True):
        by_model[name] = read_curves(folder / "curve.jsonl")
    print("| at equal | | " + " | ".join(by_model) + " |")
    print("|---" * (2 + len(by_model)) + "|")
    for metric, what in METRICS.items():
        curves = {name: found[metric] for name, found in by_model.items() if metric in found}
        for axis in AXES if len(curves) > 1 else ():
            for cost in round_costs(curves, axis):
                scores = [curves[n].at(axis, cost) if n in curves else None for n in by_model]
                cells = [_cell(score, metric) for score in scores]
                print(f"| {axis}: {_amount(cost, axis)} | {what} | " + " | ".join(cells) + " |")
    for folder, name in zip(folders, by_model, strict=True):
        if remark := _remark(folder / "card.json"):
            print(f"\n{name}: {remark}")
    return 0


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' own names, or their paths where two of them share one."""
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        names = list(dict.fromkeys(map(str, folders)))
    if len(names) < len(folders):
        raise ValueError(f"a folder is named twice: {', '.join(map(str, folders))}")
    return names


def _remark(card: Path) -> str | None:
    """What a model card says of how training went, where it was not as planned."""
    return json.loads(card.read_text(encoding="utf-8")).get("history") if card.is_file() else None


def _cell(score: float | None, metric: str) -> str:
    if score is None:
        return ""
    return f"{score:.1f}" if metric == PERPLEXITY else f"{score:.2f}"


def _amount(cost: float, axis: str) -> str:
    return f"{cost:g}" if axis == "minutes" else f"{cost / 1e6:g} M"
