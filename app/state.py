"""What one visitor has chosen. Choices only, never vectors: those are looked up by the text."""

from __future__ import annotations

from dataclasses import dataclass

BASES = ("all", "word")


@dataclass(frozen=True)
class Selection:
    """One visitor's choices; replaced, never edited.

    sentence, token: the chosen token, counted from 0.
    basis: what the maps' axes are fitted on: ``all`` shipped examples, or the occurrences of the
        chosen ``word``.
    """

    text: str
    pretokenized: bool = False
    sentence: int = 0
    token: int = 0
    basis: str = "all"

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise ValueError(f"basis must be one of {', '.join(BASES)}, got {self.basis!r}")
        if self.sentence < 0 or self.token < 0:
            raise ValueError(f"no token at sentence {self.sentence}, position {self.token}")
