"""What a model is made of: frozen, validated, saved as JSON beside the weights."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

KINDS = ("bilm", "attention", "attention_concat")
ACTIVATIONS = ("relu", "tanh")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True)
class CharConfig:
    """The character CNN (Peters et al. 2018, section 3.4; Kim et al. 2016).

    ``filters`` lists (window width, number of filters). ``project`` is False only for the
    original files in which the filters' total width already is the output width.
    """

    d_output: int
    d_char: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 128), (6, 128))
    n_highway: int = 1
    activation: str = "relu"
    max_characters: int = 50
    project: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", tuple((int(w), int(n)) for w, n in self.filters))
        _require(self.d_output > 0, f"d_output must be positive, got {self.d_output}")
        _require(self.d_char > 0, f"d_char must be positive, got {self.d_char}")
        _require(bool(self.filters), "filters must list at least one [width, count]")
        for width, count in self.filters:
            _require(
                1 <= width <= self.max_characters and count > 0,
                f"filter [{width}, {count}] must have a width of 1 to {self.max_characters}"
                " characters and a positive count",
            )
        _require(self.n_highway >= 0, f"n_highway must be 0 or more, got {self.n_highway}")
        _require(
            self.activation in ACTIVATIONS,
            f"activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}",
        )
        _require(
            self.max_characters >= 3,
            f"max_characters must be 3 or more (two mark the word's ends), "
            f"got {self.max_characters}",
        )
        _require(
            self.project or self.n_filters == self.d_output,
            f"without projection the filters' total ({self.n_filters}) must equal"
            f" d_output ({self.d_output})",
        )

    @property
    def n_filters(self) -> int:
        return sum(count for _, count in self.filters)


@dataclass(frozen=True)
class BiLMConfig:
    """Two independent stacks of LSTMs with projection, one reading each way.

    ``cell_clip`` and ``projection_clip`` bound the cell and the projected output to
    +-clip; ``None`` means no clipping. ``project`` is False for original files whose cell is
    as wide as the output.
    """

    d_projection: int = 256
    d_cell: int = 640
    n_layers: int = 2
    skip_connections: bool = True
    cell_clip: float | None = 3.0
    projection_clip: float | None = 3.0
    project: bool = True

    def __post_init__(self) -> None:
        for name in ("d_projection", "d_cell", "n_layers"):
            value = getattr(self, name)
            _require(value > 0, f"{name} must be positive, got {value}")
        _require(
            self.project or self.d_cell == self.d_projection,
            f"without projection d_cell ({self.d_cell}) must equal"
            f" d_projection ({self.d_projection})",
        )

    @property
    def d_input(self) -> int:
        return self.d_projection

    @property
    def d_model(self) -> int:
        return 2 * self.d_projection


@dataclass(frozen=True)
class AttentionConfig:
    """Self-attention blocks: one joint stack, or two causal ones side by side.

    ``d_stack`` is the width of one stack. With ``concatenate`` there are two stacks, one
    causal and one anti-causal, and a returned layer is twice as wide. ``max_tokens`` counts a
    sentence's tokens without its two boundaries: positions are learned, so nothing beyond the
    trained length can be encoded.
    """

    d_stack: int = 512
    n_blocks: int = 3
    n_heads: int = 8
    d_feedforward: int = 896
    max_tokens: int = 64
    concatenate: bool = False

    def __post_init__(self) -> None:
        for name in ("d_stack", "n_blocks", "n_heads", "d_feedforward", "max_tokens"):
            value = getattr(self, name)
            _require(value > 0, f"{name} must be positive, got {value}")
        _require(
            self.d_stack % self.n_heads == 0,
            f"d_stack ({self.d_stack}) must be a multiple of n_heads ({self.n_heads})",
        )

    @property
    def d_input(self) -> int:
        return self.d_stack

    @property
    def d_model(self) -> int:
        return 2 * self.d_stack if self.concatenate else self.d_stack


@dataclass(frozen=True)
class ModelConfig:
    """A whole language model: characters, stack, and the softmax over the vocabulary.

    ``n_vocabulary`` is 0 for an encoder without a language-model head.
    """

    kind: str
    char: CharConfig
    stack: BiLMConfig | AttentionConfig
    n_vocabulary: int = 0
    d_head: int = field(default=256)

    def __post_init__(self) -> None:
        _require(self.kind in KINDS, f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        lstm = isinstance(self.stack, BiLMConfig)
        _require(lstm == (self.kind == "bilm"), f"kind {self.kind!r} does not fit {self.stack}")
        if not lstm:
            _require(
                self.stack.concatenate == (self.kind == "attention_concat"),
                f"kind {self.kind!r} does not fit {self.stack}",
            )
        _require(
            self.char.d_output == self.stack.d_input,
            f"the character CNN's output ({self.char.d_output}) must be as wide as the stack's"
            f" input ({self.stack.d_input})",
        )
        _require(self.n_vocabulary >= 0, f"n_vocabulary must be 0 or more: {self.n_vocabulary}")

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary that ``from_dict`` reads back to an equal config."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """Raises ``ValueError`` naming a missing, unknown or wrong entry."""
        try:
            values = dict(values)
            char = CharConfig(**values.pop("char"))
            stack_type = BiLMConfig if values.get("kind") == "bilm" else AttentionConfig
            return cls(char=char, stack=stack_type(**values.pop("stack")), **values)
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a model config: {error}") from error


def shipped_config(kind: str, n_vocabulary: int = 50_000) -> ModelConfig:
    """The architecture of a shipped model; the three stacks hold 5.9 million parameters each."""
    stacks = {
        "bilm": BiLMConfig(),
        "attention": AttentionConfig(),
        "attention_concat": AttentionConfig(
            d_stack=256, n_heads=4, d_feedforward=1408, concatenate=True
        ),
    }
    if kind not in stacks:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    stack = stacks[kind]
    return ModelConfig(kind, CharConfig(stack.d_input), stack, n_vocabulary)
