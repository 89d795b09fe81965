"""The shipped numbers that verdicts on claims rest on, gathered under one name each."""

from __future__ import annotations

from pathlib import Path

from elmo.both_ways.cloze_table import read_table as read_cloze_table
from elmo.probing.geometry import read_geometry
from elmo.probing.probe_report import read_table
from elmo.results import ClozeTable, Difference


def gap_differences(table: ClozeTable) -> list[Difference]:
    """Log-probability of the hidden word in random gaps: joint attention minus the tuned product
    of each model of two directions; empty where the table lacks either."""
    row = next(
        (r for r in table.rows if r.evidence == "anywhere" and r.score == "log-probability"), None
    )
    joint = ("attention", "joint")
    if row is None or joint not in table.predictors:
        return []
    i = table.predictors.index(joint)
    return [
        Difference(
            key=f"gaps.attention-{name}",
            mean=float(row.difference[i, k]),
            low=float(row.difference_low[i, k]),
            high=float(row.difference_high[i, k]),
            unit="nats",
            n=f"{row.n:,} gaps",
        )
        for k, (name, predictor) in enumerate(table.predictors)
        if predictor == "product"
    ]


def shipped_differences(probes: Path, cloze: Path) -> dict[str, Difference]:
    """By key, from every file in these folders that is there."""
    found: list[Difference] = []
    if (path := probes / "table.json").is_file():
        found += read_table(path).differences
    if (path := probes / "geometry.json").is_file():
        found += read_geometry(path)[1]
    if (path := cloze / "table.json").is_file():
        found += gap_differences(read_cloze_table(path))
    return {difference.key: difference for difference in found}
