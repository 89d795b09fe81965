"""The original ``options.json``: what it means, and every mistake in it, named at once.

Keys and defaults follow bilm-tf, which writes these files, and AllenNLP, which reads them. Keys
about training and unknown ones are ignored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from elmo.config import ACTIVATIONS, BiLMConfig, CharConfig, ModelConfig
from elmo.text import GAP

MAX_LAYERS = 100  # stacks and highways beyond this are a damaged file, not a model
MAX_WIDTH = 1 << 20
MAX_BYTES = 1 << 20  # a real file has about 500


def parse_options(text: str) -> dict[str, Any]:
    """The dictionary in an ``options.json``. Raises ``ValueError`` for anything else."""
    try:
        options = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"the options are not JSON: {error}") from error
    if not isinstance(options, dict):
        raise ValueError(f"the options must be a JSON object, got {text!r:.60}")
    if "token_embedder" in options or "encoder" in options:
        raise ValueError(
            "these are the options of an ELMoForManyLangs model, a different format with its own"
            " characters, words and weights; only the original ELMo's can be loaded"
        )
    return options


class _Section:
    """One object of the options; collects what is wrong instead of stopping at the first."""

    def __init__(self, options: dict[str, Any], name: str, problems: list[str]) -> None:
        self.name, self.problems = name, problems
        self.values = options.get(name)
        if not isinstance(self.values, dict):
            problems.append(f"{name} is missing" if self.values is None else f"{name} is no object")
            self.values = {}

    def read(self, key: str, check: Callable[[Any], Any], what: str, **default: Any) -> Any:
        """The checked value of ``key``; ``check`` returns ``None`` for a wrong one."""
        value = self.values.get(key)
        if value is None:  # bilm-tf does not tell null from absent
            if "default" in default:
                return default["default"]
            self.problems.append(f"{self.name}.{key} is missing")
            return None
        checked = check(value)
        if checked is None:
            self.problems.append(f"{self.name}.{key} must be {what}, got {value!r:.60}")
        return checked


def _integer(low: int, high: int) -> Callable[[Any], int | None]:
    def check(value: Any) -> int | None:
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        whole = whole and math.isfinite(value) and value == int(value)
        return int(value) if whole and low <= value <= high else None

    return check


def _clip(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and math.isfinite(value) and value >= 0 else None


def _filters(value: Any) -> list[tuple[int, int]] | None:
    whole = _integer(1, MAX_WIDTH)
    if not isinstance(value, list) or not 0 < len(value) <= MAX_LAYERS:
        return None
    pairs = [
        (whole(f[0]), whole(f[1])) if isinstance(f, list) and len(f) == 2 else (None, None)
        for f in value
    ]
    return None if any(None in pair for pair in pairs) else pairs


def config_from_options(
    options: dict[str, Any], project_characters: bool, project_cells: bool
) -> ModelConfig:
    """The model that the options describe.

    ``project_characters`` and ``project_cells`` say whether the weights hold these projections:
    bilm-tf leaves them out where they would not change a width, and the options do not tell.
    A clip of 0, like a missing or null one, means no clip.

    Raises one ``ValueError`` that lists everything missing or wrong.
    """
    problems: list[str] = []
    lstm = _Section(options, "lstm", problems)
    char = _Section(options, "char_cnn", problems)
    if "char_cnn" not in options and "lstm" in options:
        problems[:] = [p for p in problems if not p.startswith("char_cnn")]
        problems.append(
            "char_cnn is missing: this is a word-level model (a table of words instead of"
            " characters), which is not supported"
        )
        raise ValueError("the options cannot be used: " + "; ".join(problems))
    width = _integer(1, MAX_WIDTH)
    d_cell = lstm.read("dim", width, "a positive integer")
    d_projection = lstm.read("projection_dim", width, "a positive integer")
    n_layers = lstm.read(
        "n_layers", _integer(1, MAX_LAYERS), f"an integer from 1 to {MAX_LAYERS}", default=1
    )
    clips = [
        lstm.read(key, _clip, "a number of 0 or more, or null", default=0.0)
        for key in ("cell_clip", "proj_clip")
    ]
    skip = lstm.read(
        "use_skip_connections", lambda v: v if isinstance(v, bool) else None, "true or false"
    )
    filters = char.read("filters", _filters, "a list of [width, count] pairs")
    n_highway = char.read(
        "n_highway", _integer(0, MAX_LAYERS), f"an integer from 0 to {MAX_LAYERS}", default=0
    )
    activation = char.read(
        "activation", lambda v: v if v in ACTIVATIONS else None, f"one of {', '.join(ACTIVATIONS)}"
    )
    max_characters = char.read(
        "max_characters_per_token", _integer(3, MAX_WIDTH), "an integer of 3 or more"
    )
    char.read(
        "n_characters",
        lambda v: v if v in (261, 262) else None,
        "261 or 262 (both mean the same 261 rows)",
        default=262,
    )
    embedding = _Section(char.values, "embedding", problems)
    embedding.name = "char_cnn.embedding"
    d_char = embedding.read("dim", width, "a positive integer")
    if filters and max_characters and max(w for w, _ in filters) > max_characters:
        problems.append(f"char_cnn.filters has a window wider than {max_characters} characters")
    if filters and d_projection and sum(n for _, n in filters) < d_projection:
        problems.append(
            f"char_cnn.filters has {sum(n for _, n in filters)} filters, fewer than"
            f" lstm.projection_dim ({d_projection})"
        )
    if problems:
        raise ValueError("the options cannot be used: " + "; ".join(problems))
    return ModelConfig(
        kind="bilm",
        char=CharConfig(
            d_output=d_projection,
            d_char=d_char,
            filters=tuple(filters),
            n_highway=n_highway,
            activation=activation,
            max_characters=max_characters,
            project=project_characters,
        ),
        stack=BiLMConfig(
            d_projection=d_projection,
            d_cell=d_cell,
            n_layers=n_layers,
            skip_connections=skip,
            cell_clip=clips[0] or None,
            projection_clip=clips[1] or None,
            project=project_cells,
        ),
    )


def added_tokens(options: dict[str, Any]) -> dict[str, int]:
    """Tokens with a character of their own (AllenNLP's ``tokens_to_add``): token -> raw id.

    Our own exports write the gap token there; other software ignores the key.
    """
    added = options.get("tokens_to_add") or {}
    valid = isinstance(added, dict) and all(_integer(0, 259)(i) is not None for i in added.values())
    if not valid:
        raise ValueError(f"tokens_to_add must map tokens to ids of 0 to 259, got {added!r:.60}")
    return dict(added)


def options_from_config(config: ModelConfig) -> dict[str, Any]:
    """The ``options.json`` of a biLM, complete for bilm-tf and AllenNLP."""
    if config.kind != "bilm":
        raise ValueError(f"only a biLM fits the original format, not kind {config.kind!r}")
    char, stack = config.char, config.stack
    options: dict[str, Any] = {
        "bidirectional": True,
        "char_cnn": {
            "activation": char.activation,
            "embedding": {"dim": char.d_char},
            "filters": [list(pair) for pair in char.filters],
            "max_characters_per_token": char.max_characters,
            "n_characters": 262,
            "n_highway": char.n_highway,
        },
        "lstm": {
            "cell_clip": stack.cell_clip,
            "dim": stack.d_cell,
            "n_layers": stack.n_layers,
            "proj_clip": stack.projection_clip,
            "projection_dim": stack.d_projection,
            "use_skip_connections": stack.skip_connections,
        },
        "tokens_to_add": dict(GAP),
    }
    if config.n_vocabulary:
        options["n_tokens_vocab"] = config.n_vocabulary
    return options
