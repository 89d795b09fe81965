"""What the running app may do. Frozen; made once by the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """Folders and limits.

    max_characters, max_sentences, max_tokens bound one visitor's text; max_map_tokens the points
    of one map (the caption says when some are left out); cache_bytes the vectors kept per model.
    """

    models: Path = ROOT / "assets" / "models"
    examples: Path = ROOT / "assets" / "examples.json"
    max_characters: int = 20_000
    max_sentences: int = 60
    max_tokens: int = 2_000
    max_map_tokens: int = 800
    cache_bytes: int = 200_000_000

    def __post_init__(self) -> None:
        for name in ("max_characters", "max_sentences", "max_tokens", "max_map_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
