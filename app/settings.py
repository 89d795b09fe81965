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
    bank_cache: folder for large banks, ``None`` for this computer's usual one. max_upload_bytes and
    max_upload_tokens bound a file that a visitor uploads, upload_bytes what is kept in memory of
    all such files (four of the largest), query_bytes the products kept of tokens chosen lately.
    elmos: further biLMs in the original format, each (options, weights); weights ``None`` where
    options is a folder or archive with both.
    """

    models: Path = ROOT / "assets" / "models"
    examples: Path = ROOT / "assets" / "examples.json"
    lecture: Path = ROOT / "assets" / "lecture.json"
    edits: Path = ROOT / "assets" / "edits.json"
    interaction: Path = ROOT / "assets" / "interaction.json"
    reach: Path = ROOT / "assets" / "reach.json"
    cloze: Path = ROOT / "assets" / "cloze"
    probes: Path = ROOT / "assets" / "probes"
    max_characters: int = 24_000
    max_sentences: int = 60
    max_tokens: int = 3_600
    max_map_tokens: int = 800
    elmos: tuple[tuple[Path, Path | None], ...] = ()
    cache_bytes: int = 60_000_000
    bank_cache: Path | None = None
    max_upload_bytes: int = 5_000_000
    max_upload_tokens: int = 8_000
    upload_bytes: int = 400_000_000
    query_bytes: int = 200_000_000

    def __post_init__(self) -> None:
        for name in ("max_characters", "max_sentences", "max_tokens", "max_map_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
