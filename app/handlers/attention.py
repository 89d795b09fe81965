"""Where heads look, and how encoders learn: one sentence under each encoder."""

from __future__ import annotations

import json
from typing import Any

from app.handlers.events import (
    MAX_TOKENS,
    data_of,
    index_of,
    message,
    request_of,
    sentence_of,
    shows_errors,
)
from app.services import Model, Services
from app.state import Selection
from app.views.attention import cell_view, heads_view, reach_view
from app.views.learning import curves_view, gradient_view, objective_view
from elmo.both_ways.attention_maps import DIRECTIONS, attention_cell
from elmo.both_ways.learning_signal import MASK_SHARE, gradient_test, objective
from elmo.training.curves import read_curves

N_DRAWS = 1_000  # different drawings of the joint encoder's gaps


class AttentionHandlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def opening(self) -> dict[str, Any]:
        """What the tab knows before it asks: limits, half-lives, training curves."""
        settings = self.services.settings
        shipped = json.loads(settings.reach.read_text(encoding="utf-8"))
        trained = {kind: model for kind, model in self.services.models.items() if model.trained}
        curves = {kind: settings.models / kind / "curve.jsonl" for kind in trained}
        return {
            "max_tokens": MAX_TOKENS,
            "n_draws": N_DRAWS,
            "mask_share": MASK_SHARE,
            "with_heads": [kind for kind in self.services.models if kind in DIRECTIONS],
            "reach": reach_view(shipped, list(trained)),
            "learning": curves_view(
                {kind: read_curves(path) for kind, path in curves.items() if path.is_file()},
                {kind: model.encoder.checkpoint.card for kind, model in trained.items()},
            ),
        }

    @shows_errors
    def heads(self, selection: Selection, sent: str) -> str:
        """Every head of one encoder on one sentence."""
        tokens = sentence_of(self.services, selection, sent)
        encoder = self._model(selection, sent, DIRECTIONS).encoder
        (encoding,) = encoder.encode([tokens], attention=True)
        view = heads_view(encoding, encoder.kind) | {"tokens": tokens}
        return message({"heads": view | {"request": request_of(sent)}})

    @shows_errors
    def cell(self, selection: Selection, sent: str) -> str:
        """The numbers behind one weight."""
        tokens = sentence_of(self.services, selection, sent)
        encoder = self._model(selection, sent, DIRECTIONS).encoder
        n_heads = encoder.config.stack.n_heads * len(DIRECTIONS[encoder.kind])
        layer = index_of(sent, "layer", encoder.n_layers)
        head = index_of(sent, "head", n_heads)
        query, key = (index_of(sent, name, len(tokens) + 2) for name in ("query", "key"))
        cell = attention_cell(encoder, tokens, layer, head, query, key)
        return message({"cell": cell_view(cell) | {"request": request_of(sent)}})

    @shows_errors
    def objectives(self, selection: Selection, sent: str) -> str:
        """What every encoder must predict on the sentence."""
        tokens = sentence_of(self.services, selection, sent)
        draw = index_of(sent, "draw", N_DRAWS)
        tasks = {
            kind: objective_view(objective(kind, tokens, seed=draw))
            for kind in self.services.models
        }
        view = {"request": request_of(sent), "tokens": tokens, "encoders": tasks}
        return message({"objectives": view})

    @shows_errors
    def gradient(self, selection: Selection, sent: str) -> str:
        """Which loss teaches which part of one encoder."""
        tokens = sentence_of(self.services, selection, sent)
        draw = index_of(sent, "draw", N_DRAWS)
        encoder = self._model(selection, sent, self.services.models).encoder
        view: dict[str, Any] = {"request": request_of(sent), "kind": encoder.kind}
        if encoder.checkpoint is None or encoder.model.head is None:
            view["gap"] = "has no softmax over words, so it has no loss to learn from here"
        elif encoder.max_tokens is not None and len(tokens) > encoder.max_tokens:
            view["gap"] = f"was trained on {encoder.max_tokens} tokens at most"
        else:
            words = encoder.checkpoint.word_ids
            view |= gradient_view(gradient_test(encoder.model, words, tokens, seed=draw))
        return message({"gradient": view})

    def _model(self, selection: Selection, sent: str, allowed: Any) -> Model:
        models = self.services.using(selection.elmo).models
        kinds = [kind for kind in models if kind in allowed]
        kind = data_of(sent).get("kind")
        if kind not in kinds:
            raise ValueError(f"kind must be one of {', '.join(kinds)}, got {kind!r:.40}")
        return models[kind]
