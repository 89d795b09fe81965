"""What the tabs Tasks and Claims are told: the shipped table of probes, verdicts, a live probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.encoders import ABOUT
from elmo.probing.claim_list import CLAIMS, MIX, OTHER, SEMANTIC, SYNTACTIC
from elmo.probing.claims import ClaimResult, Gravity, contrasts, verdict
from elmo.results import Difference, ProbeRun, ProbeStep, ProbeTable

UNTRAINED = "untrained"
PRESETS = {"upos": "POS", "word_sense": "sense"}  # in the mixing panel
KINDS = {"syntactic": SYNTACTIC, "semantic": SEMANTIC, "other": OTHER}  # as claims count them


def tasks_view(table: ProbeTable | None) -> dict[str, Any] | None:
    """The table of probes by task and encoder; ``None`` where there is none.

    Scores are [mean, low, high, n] in points, by representation; mixes hold s_k with the smallest
    and largest seed, the same for layers as they are, and the center of gravity; gravity holds the
    shipped differences of that between kinds of tasks, with the verdicts that the claims have.
    """
    if table is None:
        return None
    return {
        "about": {k: table.about[k] for k in ("command", "date", "settings", "seeds")},
        "tasks": [
            {"key": task, "what": about["what"], "kind": _kind(task), "data": about["data"]}
            for task, about in table.about["tasks"].items()
        ],
        "encoders": [
            {"kind": kind, "name": ABOUT[kind].name if kind in ABOUT else "untrained biLM"}
            for kind in (*ABOUT, UNTRAINED)
            if kind in table.about["encoders"]
        ],
        "scores": _nested(
            ((s.task, s.encoder, s.representation), [s.mean, s.low, s.high, s.n_test])
            for s in table.scores
            if s.metric == "score"
        ),
        "selectivity": _nested(
            ((s.task, s.encoder, s.representation), [s.mean, s.low, s.high, s.n_test])
            for s in table.scores
            if s.metric == "selectivity"
        ),
        "mixes": _nested(
            (
                (m.task, m.encoder, m.representation),
                {
                    "s": m.scalar_weights,
                    "low": m.scalar_weights_low,
                    "high": m.scalar_weights_high,
                    "raw": m.on_raw_layers,
                    "gamma": m.gamma,
                    "gravity": [
                        m.center_of_gravity,
                        m.center_of_gravity_low,
                        m.center_of_gravity_high,
                    ],
                },
            )
            for m in table.mixes
        ),
        "gravity": _gravity_differences(table),
    }


def _kind(task: str) -> str:
    """Of what kind the claims count a task; those that they do not name are neither."""
    return next((kind for kind, tasks in KINDS.items() if task in tasks), "other")


def _gravity_differences(table: ProbeTable) -> list[dict[str, Any]]:
    """Meaning minus syntax, for every encoder and mix for which the table ships it."""
    shipped = {difference.key: difference for difference in table.differences}
    return [
        {
            "encoder": source.encoder,
            "representation": source.representation,
            "verdict": verdict(found),
            **_measured(found),
        }
        for source in contrasts(CLAIMS)
        if isinstance(source, Gravity) and (found := shipped.get(source.key))
    ]


def task_mixes(table: ProbeTable | None, kind: str) -> list[dict[str, Any]]:
    """The weights that tasks learned for one encoder's layers, as they are: marks in the triangle;
    those with a ``preset`` are offered in the mixing panel under that name."""
    if table is None:
        return []
    return [
        {
            "task": task,
            "what": about["what"],
            "kind": _kind(task),
            "s": list(mix.on_raw_layers),
            "preset": PRESETS.get(task),
        }
        for task, about in table.about["tasks"].items()
        if (mix := table.mix(task, kind, MIX))
    ]


def _nested(rows) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for (task, encoder, representation), value in rows:
        found.setdefault(task, {}).setdefault(encoder, {})[representation] = value
    return found


def claims_view(results: Sequence[ClaimResult]) -> list[dict[str, Any]]:
    """Claims with their verdicts, texts as they stand in ``elmo.probing.claim_list``."""
    return [
        {
            "key": claim.key,
            "claim": claim.claim,
            "paper": claim.paper,
            "source": claim.source,
            "note": claim.note,
            "reason": claim.reason,
            "view": claim.view.lower(),
            "verdict": result.verdict,
            "tests": [
                {
                    "what": test.what,
                    "verdict": test.verdict,
                    "measured": test.difference and _measured(test.difference),
                    "paper": comparison.paper,
                }
                for test, comparison in zip(result.tests, claim.tests, strict=True)
            ],
        }
        for result in results
        for claim in (result.claim,)
    ]


def _measured(found: Difference) -> dict[str, Any]:
    return {name: getattr(found, name) for name in ("mean", "low", "high", "unit", "n")}


def step_view(step: ProbeStep) -> dict[str, Any]:
    """One report of a probe in training."""
    return {
        "step": step.step,
        "s": step.scalar_weights,
        "gamma": step.gamma,
        "loss": step.loss,
        "train": step.train_accuracy,
        "held_out": step.held_out_accuracy,
    }


def run_end_view(run: ProbeRun, layers: Mapping[str, float]) -> dict[str, Any]:
    """The end of a live probe, and what its layers can do alone on the same tokens."""
    return {
        "n_train": run.n_train,
        "n_held_out": run.n_held_out,
        "n_labels": len(run.labels),
        "majority": run.majority_accuracy,
        "gravity": run.center_of_gravity,
        "layers": dict(layers),
    }
