"""A hidden word and who can guess it: every predictor's distribution over the vocabulary."""

from __future__ import annotations

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
from app.services import Services
from app.state import Selection
from app.views.gaps import guess_view, read_holding_gaps, table_view
from elmo.both_ways.cloze import Exponents, fill_gap
from elmo.both_ways.cloze_table import read_table
from elmo.encoders import Encoder

N_WORDS = 10
Tokens = tuple[str, ...]


class GapsHandlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services
        cloze = services.settings.cloze
        self.table = read_table(cloze / "table.json")
        self.gaps = read_holding_gaps([cloze / "gaps.json", cloze / "found.json"])

    def opening(self) -> dict[str, Any]:
        """What the tab knows before it asks."""
        return {
            "table": table_view(self.table),
            "gaps": self.gaps,
            "max_tokens": MAX_TOKENS,
            "exponents": {
                kind: self.tuned(kind)
                for kind, model in self.services.models.items()
                if model.encoder.halves
            },
        }

    @shows_errors
    def guess(self, selection: Selection, sent: str) -> str:
        """Every predictor's guesses for one hidden word."""
        tokens = self._tokens(selection, sent)
        position = index_of(sent, "position", len(tokens))
        view = {"request": request_of(sent), "tokens": tokens}
        view |= {"position": position, "guesses": [], "unread": []}
        for kind, model in self.services.using(selection.elmo).models.items():
            if why := unread(model.encoder, len(tokens)):
                view["unread"].append({"kind": kind, "why": why})
                continue
            exponents = {model.encoder.name: self._exponents(kind, sent)}
            found = fill_gap([model.encoder], tokens, position, exponents, N_WORDS)
            view["guesses"] += [{"kind": kind} | guess_view(guess) for guess in found]
        return message({"gaps": view})

    def _tokens(self, selection: Selection, sent: str) -> Tokens:
        if data_of(sent).get("gap") is not None:
            return tuple(self.gaps[index_of(sent, "gap", len(self.gaps))]["tokens"])
        return sentence_of(self.services, selection, sent)

    def tuned(self, kind: str) -> list[float]:
        """Exponents of an encoder's product, tuned on held-out text where that was done."""
        default = Exponents()
        return list(
            self.table.exponents.get(kind, (default.forward, default.backward, default.unigram))
        )

    def _exponents(self, kind: str, sent: str) -> Exponents:
        """The page's exponents of one encoder, the tuned ones where it sent none."""
        given = data_of(sent).get("exponents")
        values = given.get(kind) if isinstance(given, dict) else None
        if values is None:
            values = self.tuned(kind)
        is_numbers = isinstance(values, list) and len(values) == 3
        if not is_numbers or not all(type(x) in (int, float) for x in values):
            raise ValueError(f"exponents must be three numbers from -5 to 5, got {values!r:.60}")
        return Exponents(*values)


def unread(encoder: Encoder, n_tokens: int) -> str | None:
    """Why an encoder cannot guess in a sentence of this length; ``None`` if it can."""
    if encoder.checkpoint is None or encoder.model.head is None:
        return "has no softmax over words: original ELMo files and untrained weights come without"
    if encoder.max_tokens is not None and n_tokens > encoder.max_tokens:
        return f"was trained on {encoder.max_tokens} tokens at most; the sentence has {n_tokens}"
    return None
