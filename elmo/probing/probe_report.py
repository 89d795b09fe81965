"""From counts a test sentence to the table that ships: means, intervals, differences; and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmo.probing.claim_list import MIX
from elmo.probing.claims import Contrast, Gravity
from elmo.probing.probe_cells import ENTITY_TASKS, Cell
from elmo.probing.probe_scores import N_RESAMPLES, Resamples, interval, resample
from elmo.results import Difference, ProbeMix, ProbeScore, ProbeTable

CARD_TASKS = ("upos", "word_sense", "supersense_semcor")

Key = tuple[str, str, str, str]  # task, encoder, representation, metric


def save_cell(path: Path, cell: Cell) -> None:
    """One ``.npz`` file, complete or not there at all."""
    meta = {"n_train": cell.n_train, "n_test": cell.n_test, "n_labels": cell.n_labels}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp.npz")
    text = np.array(json.dumps({**meta, "facts": cell.facts}))
    np.savez_compressed(temporary, **cell.counts, meta=text)
    temporary.replace(path)


def load_cell(path: Path) -> Cell:
    with np.load(path) as file:
        meta = json.loads(str(file["meta"]))
        return Cell(counts={name: file[name] for name in file.files if name != "meta"}, **meta)


class Drawn:
    """Bootstrap draws of every score of one set of cells, on shared resamples."""

    def __init__(self, cells: Mapping[tuple[str, str], Sequence[Cell]]) -> None:
        self.draws: dict[Key, np.ndarray] = {}
        self.n_test: dict[Key, int] = {}
        resamples: dict[tuple[int, int], Resamples] = {}
        for (task, encoder), seeds in cells.items():
            for name, first in seeds[0].counts.items():
                size = len(first), len(seeds)
                if size not in resamples:
                    resamples[size] = resample(*size)
                key = (task, encoder, *name.split("/"))
                counts = np.stack([cell.counts[name] for cell in seeds])
                self.draws[key] = resamples[size].scores(counts)
                n = float(counts[..., 1].sum(axis=1).mean())
                if task in ENTITY_TASKS and key[3] == "score":
                    n = seeds[0].n_test  # F1's own denominator counts guesses too
                self.n_test[key] = round(n)
            self._add_selectivity(task, encoder)

    def _add_selectivity(self, task: str, encoder: str) -> None:
        """Accuracy minus accuracy on the control task."""
        for key in [k for k in self.draws if k[:2] == (task, encoder) and k[3] == "control"]:
            accuracy = (*key[:3], "accuracy")
            if accuracy not in self.draws:
                accuracy = (*key[:3], "score")
            name = (*key[:3], "selectivity")
            self.draws[name] = self.draws[accuracy] - self.draws[key]
            self.n_test[name] = self.n_test[key]


def build_table(
    cells: Mapping[tuple[str, str], Sequence[Cell]],
    sources: Iterable[Contrast | Gravity],
    about: dict[str, Any],
) -> ProbeTable:
    """cells: of each (task, encoder), one a seed in the order of seeds."""
    drawn = Drawn(cells)
    scores = []
    for key, draws in drawn.draws.items():
        found = interval(draws)
        seeds = cells[key[:2]]
        n_train = round(np.mean([cell.n_train for cell in seeds]))
        values = (found.mean, found.low, found.high)
        scores.append(ProbeScore(*key, *values, drawn.n_test[key], n_train, len(seeds)))
    mixes = [
        _mix(task, encoder, name, [cell.facts[name] for cell in seeds])
        for (task, encoder), seeds in cells.items()
        for name, facts in seeds[0].facts.items()
        if "scalar_weights" in facts
    ]
    differences = []
    for source in sources:
        difference = (
            _contrast(source, drawn, cells)
            if isinstance(source, Contrast)
            else _gravity(source, cells)
        )
        if difference is not None:
            differences.append(difference)
    return ProbeTable(about, tuple(scores), tuple(mixes), tuple(differences))


def _mix(task: str, encoder: str, name: str, facts: list[dict]) -> ProbeMix:
    weights = np.array([f["scalar_weights"] for f in facts])
    gravity = np.array([f["center_of_gravity"] for f in facts])
    raw = weights
    if name.startswith("mix_equal"):
        raw = weights / np.array([f["layer_size"] for f in facts])
        raw = raw / raw.sum(axis=1, keepdims=True)
    return ProbeMix(
        task,
        encoder,
        name,
        *(tuple(v.tolist()) for v in (weights.mean(0), weights.min(0), weights.max(0))),
        tuple(raw.mean(0).tolist()),
        float(np.mean([f["gamma"] for f in facts])),
        float(gravity.mean()),
        float(gravity.min()),
        float(gravity.max()),
        len(facts),
    )


def _contrast(source: Contrast, drawn: Drawn, cells: Mapping) -> Difference | None:
    keys = [
        [(sign, (task, encoder, what, source.metric)) for sign, encoder, what in source.terms]
        for task in source.tasks
    ]
    if any(key not in drawn.draws for terms in keys for _, key in terms):
        return None
    per_task = [sum(sign * drawn.draws[key] for sign, key in terms) for terms in keys]
    found = interval(np.mean(per_task, axis=0))
    n_test = sum(drawn.n_test[terms[0][1]] for terms in keys)
    n_seeds = len(cells[keys[0][0][1][:2]])
    what = f"{len(source.tasks)} tasks, " if len(source.tasks) > 1 else ""
    n = f"{what}{n_test:,} test examples, {n_seeds} seeds"
    return Difference(source.key, found.mean, found.low, found.high, "points", n)


def _gravity(source: Gravity, cells: Mapping) -> Difference | None:
    """Tasks and seeds are both drawn: the claim is about kinds of tasks, not about these few."""
    groups = []
    for tasks in (source.lower, source.higher):
        if any((task, source.encoder) not in cells for task in tasks):
            return None
        groups.append(
            np.array(
                [
                    [c.facts[source.representation]["center_of_gravity"] for c in seeds]
                    for seeds in (cells[task, source.encoder] for task in tasks)
                ]
            )
        )
    rng = np.random.default_rng(0)
    n_seeds = groups[0].shape[1]
    draws = [groups[1].mean() - groups[0].mean()]
    for _ in range(N_RESAMPLES):
        seeds = rng.integers(n_seeds, size=n_seeds)
        low, high = (g[rng.integers(len(g), size=len(g))][:, seeds].mean() for g in groups)
        draws.append(high - low)
    found = interval(np.array(draws))
    n = f"{len(source.lower)} and {len(source.higher)} tasks, {n_seeds} seeds"
    return Difference(source.key, found.mean, found.low, found.high, "layers", n)


def card_scores(table: ProbeTable, encoder: str) -> dict[str, Any]:
    """What a model card says: by task the scores of layers 0, 1, ... and of the learned mix."""
    scores: dict[str, Any] = {}
    for task in CARD_TASKS:
        layers = []
        while found := table.score(task, encoder, f"layer_{len(layers)}"):
            layers.append(round(found.mean, 2))
        mix = table.score(task, encoder, MIX)
        if layers and mix is not None:
            scores[task] = {"layers": layers, "mix": round(mix.mean, 2), "n_test": mix.n_test}
    return scores


def write_table(path: Path, table: ProbeTable) -> None:
    """JSON with one line a row, so that a change is readable."""
    parts = [f'"about": {json.dumps(table.about, indent=1)}']
    for name, kind in (("scores", ProbeScore), ("mixes", ProbeMix), ("differences", Difference)):
        columns = [f.name for f in dataclasses.fields(kind)]
        rows = [
            json.dumps([_rounded(getattr(row, c)) for c in columns]) for row in getattr(table, name)
        ]
        parts.append(f'"{name}": {{"columns": {json.dumps(columns)}, "rows": [')
        parts[-1] += "\n " + ",\n ".join(rows) + "\n]}" if rows else "]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def read_table(path: str | Path) -> ProbeTable:
    """What ``write_table`` wrote. Raises ``ValueError`` naming the file if it is anything else."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))

        def rows(name: str, kind: type) -> tuple:
            columns = data[name]["columns"]
            return tuple(
                kind(**dict(zip(columns, map(_tupled, row), strict=True)))
                for row in data[name]["rows"]
            )

        return ProbeTable(
            data["about"],
            rows("scores", ProbeScore),
            rows("mixes", ProbeMix),
            rows("differences", Difference),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a table of probes: {error}") from error


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return [_rounded(v) for v in value] if isinstance(value, tuple) else value


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
