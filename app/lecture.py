"""The lecture: ten minutes in steps, each a question to predict first, then what to look at."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from app.state import BASES

TABS = (
    *("maps", "neighbors", "word", "influence", "gaps"),
    *("attention", "tasks", "claims"),
)
EQUAL = (1 / 3, 1 / 3, 1 / 3)
WORDS = ("id", "minute", "title", "tab", "predict", "look", "notes")


@dataclass(frozen=True)
class Preset:
    """What a step changes on the page; what is ``None`` stays as it is.

    shares: s of the mix, for three layers (fitted to another depth by the page); gamma: its scale;
    axes: see ``Selection.basis``; sweep: the mix travels from layer 0 to the top.
    """

    shares: tuple[float, ...] | None = None
    gamma: float | None = None
    axes: str | None = None
    sweep: bool = False

    def __post_init__(self) -> None:
        if self.axes is not None and self.axes not in BASES:
            raise ValueError(f"axes must be one of {', '.join(BASES)}, got {self.axes!r}")
        if self.shares is not None and abs(sum(self.shares) - 1) > 1e-3:
            raise ValueError(f"shares must sum to 1, got {self.shares}")


@dataclass(frozen=True)
class Step:
    """predict: the question, shown with ``preset``; look: what to see after ``reveal``;
    notes: for the lecturer alone; example: id of the text, ``None`` for the one that is there."""

    id: str
    minute: str
    title: str
    tab: str
    predict: str
    look: str
    notes: str
    example: str | None = None
    preset: Preset = field(default_factory=Preset)
    reveal: Preset = field(default_factory=Preset)

    def __post_init__(self) -> None:
        if self.tab not in TABS:
            raise ValueError(f"tab must be one of {', '.join(TABS)}, got {self.tab!r}")


@dataclass(frozen=True)
class State:
    """What the page shows at a moment of the lecture; fields as in ``Preset`` and ``Step``."""

    example: str
    shares: tuple[float, ...]
    gamma: float
    axes: str
    sweep: bool


@dataclass(frozen=True)
class Lecture:
    """limits: what does not work, and why, for the page of notes."""

    steps: tuple[Step, ...]
    limits: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.steps or self.steps[0].example is None:
            raise ValueError("a lecture begins with a step that names its example")

    def state(self, index: int, revealed: bool) -> State:
        """Everything that steps up to this one have set, so that a step can be entered from
        anywhere; a sweep is only done where it is asked for."""
        presets, example = [], None
        for step in self.steps[: index + 1]:
            example = step.example or example
            presets += [step.preset, step.reveal]
        if not revealed:
            presets.pop()
        settled = {
            name: next((v for p in reversed(presets) if (v := getattr(p, name)) is not None), None)
            for name in ("shares", "gamma", "axes")
        }
        return State(
            example=str(example),
            shares=settled["shares"] or EQUAL,
            gamma=1.0 if settled["gamma"] is None else settled["gamma"],
            axes=settled["axes"] or BASES[0],
            sweep=presets[-1].sweep,
        )

    def view(self) -> dict[str, Any]:
        """For the page: the words of every step, and its state before and after the reveal."""
        steps = []
        for i, step in enumerate(self.steps):
            words = {name: getattr(step, name) for name in WORDS}
            states = [asdict(self.state(i, revealed)) for revealed in (False, True)]
            steps.append(words | {"states": states})
        return {"steps": steps, "limits": self.limits}


def load_lecture(path: Path) -> Lecture:
    """Reads ``lecture.json``. Raises ``ValueError`` naming a value that is not allowed."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Lecture(tuple(map(_step, found["steps"])), tuple(found["limits"]))


def _step(entry: dict[str, Any]) -> Step:
    values = dict(entry)
    reveal = _preset(values.pop("reveal", {}))
    preset = _preset({k: values.pop(k) for k in ("shares", "gamma", "axes") if k in values})
    return Step(**values, preset=preset, reveal=reveal)


def _preset(values: dict[str, Any]) -> Preset:
    shares = values.get("shares")
    return Preset(**{**values, "shares": None if shares is None else tuple(shares)})
