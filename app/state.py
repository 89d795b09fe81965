"""What one visitor has chosen. Choices only, never vectors: those are looked up by the text."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.choice import PARTS_OF_SPEECH, Choice

BASES = ("all", "word", "layers", "umap", "aligned")
MAX_SEED = 9999
QUESTIONS = ("", "sense", "word", *PARTS_OF_SPEECH, "examples")  # see views/triangle.py


@dataclass(frozen=True)
class Selection:
    """One visitor's choices; replaced, never edited.

    sentence, token: the chosen token, counted from 0.
    basis: the maps' axes. Principal components of ``all`` shipped examples, or of the occurrences
        of the chosen ``word``; of each of the ``layers`` by itself; or UMAP, each layer by itself
        (``umap``) or all laid out together (``aligned``).
    dims: 2 or 3 axes; seed: of UMAP; behind: whether examples are drawn behind the text.
    choice: which tokens may be neighbors, and what near means.
    question: what the triangle of all mixes shows; empty for the first that can be asked.
    elmo: which biLM is the page's ELMo, by its name in the model menu; empty for the shipped one.
    """

    text: str
    pretokenized: bool = False
    sentence: int = 0
    token: int = 0
    basis: str = "all"
    dims: int = 2
    seed: int = 0
    behind: bool = False
    choice: Choice = field(default_factory=Choice)
    question: str = ""
    elmo: str = ""

    def __post_init__(self) -> None:
        if self.basis not in BASES:
            raise ValueError(f"basis must be one of {', '.join(BASES)}, got {self.basis!r}")
        if self.question not in QUESTIONS:
            allowed = ", ".join(map(repr, QUESTIONS))
            raise ValueError(f"question must be one of {allowed}, got {self.question!r:.40}")
        if type(self.dims) is not int or self.dims not in (2, 3):
            raise ValueError(f"dims must be 2 or 3, got {self.dims!r:.40}")
        if type(self.seed) is not int or not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed must be a number from 0 to {MAX_SEED}, got {self.seed!r:.40}")
        if type(self.behind) is not bool:
            raise ValueError(f"behind must be true or false, got {self.behind!r:.40}")
        if self.sentence < 0 or self.token < 0:
            raise ValueError(f"no token at sentence {self.sentence}, position {self.token}")
