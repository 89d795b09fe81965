"""What a training run leaves on disk: checkpoints that are whole or absent, and a log of JSON
lines that an interruption does not spoil."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from elmo.training.objectives import StepResult


@dataclass
class Progress:
    """Where a run stands; all of it is in a checkpoint.

    tokens counts a token of text once, whatever the number of directions, masks or passes
    within a step; targets counts every prediction. minutes is processor time, summed over
    threads, so that a paused or crowded machine does not add to it.
    """

    step: int = 0
    epoch: int = 0
    next_batch: int = 0
    tokens: int = 0
    targets: int = 0
    minutes: float = 0.0

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "minutes": round(self.minutes, 3)}


class CheckpointFolder:
    """The newest two checkpoints of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self) -> list[Path]:
        """Oldest first."""
        return sorted(self.folder.glob("checkpoint-*.pt"))

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Writes beside, then renames: a kill at any moment leaves the older ones as they were."""
        final = self.folder / f"checkpoint-{step:08d}.pt"
        partial = final.with_suffix(".partial")
        with open(partial, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, final)
        for old in self.paths()[:-2]:
            old.unlink()


class Journal:
    """log.jsonl, one record a line."""

    def __init__(self, path: Path, step: int, trunk: Path | None = None) -> None:
        """Drops what an interrupted run wrote after the checkpoint of ``step``; a branch begins
        with the records of its trunk."""
        kept, past = [], trunk or path
        if past.exists():
            for line in past.read_text("utf-8").splitlines():
                try:
                    if json.loads(line)["step"] <= step:
                        kept.append(line)
                except json.JSONDecodeError:  # cut off by a kill
                    continue
        path.write_text("".join(f"{line}\n" for line in kept), "utf-8")
        self.path = path
        self.file = path.open("a", encoding="utf-8")

    def write(self, **record: Any) -> None:
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def held_out(self) -> list[dict[str, Any]]:
        """The records of held-out scores, oldest first: the run's learning curve."""
        records = [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]
        return [r for r in records if any(key.startswith("valid_") for key in r)]


class Window:
    """Sums over the steps since the last progress line."""

    def __init__(self) -> None:
        self.tokens, self.targets, self.n_steps = 0, 0, 0
        self.seconds, self.norm = 0.0, 0.0
        self.loss: torch.Tensor | float = 0.0
        self.started = time.monotonic()

    def add(self, n_tokens: int, result: StepResult, norm: float, seconds: float) -> None:
        self.tokens += n_tokens
        self.targets += result.n_targets
        self.n_steps += 1
        self.seconds += seconds
        self.norm += norm
        self.loss = self.loss + result.loss

    def wall_speed(self) -> float:
        return self.tokens / max(1e-9, time.monotonic() - self.started)

    def summary(self) -> dict[str, Any]:
        """loss: mean over targets of each direction; speeds in tokens a second of processor
        time (summed over threads) and of the clock on the wall."""
        loss = self.loss / (self.targets / len(self.loss))
        return {
            "loss": [round(float(x), 4) for x in loss],
            "norm": round(self.norm / self.n_steps, 3),
            "tokens_per_core_s": round(self.tokens / max(1e-9, self.seconds)),
            "wall_tokens_per_s": round(self.wall_speed()),
        }
