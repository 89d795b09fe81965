"""Influence and interaction: edited copies of the visitor's sentence under every encoder.

A grid is computed in pieces, one a call, and the page asks for the next one: progress shows, and
a visitor who has clicked something else meanwhile asks no further. Nothing is kept in between.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from app.handlers.events import (
    MAX_TOKENS,
    data_of,
    index_of,
    message,
    request_of,
    sentence_of,
    shows_errors,
    text_of,
)
from app.services import Services
from app.state import Selection
from app.views.influence import grid_view, pieces, readers
from app.views.interaction import averages_view, edit_view, examples_view, interaction_view
from app.views.page import COMMON
from elmo.both_ways.arithmetic import Edit, InfluenceGrid
from elmo.both_ways.influence import (
    N_DIRECTIONS,
    N_RANDOM_WORDS,
    Replacements,
    common_words,
    gap_replacements,
    gradient_grid,
    random_replacements,
    replacement_grid,
    word_replacements,
)
from elmo.both_ways.interaction import interaction, read_examples
from elmo.encoders import Encoder
from elmo.scalar_mix import softmax
from elmo.text import tokenize

MEASURES = ("gap", "random", "word", "gradient")
SEED = 0
Tokens = tuple[str, ...]


class InfluenceHandlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.examples = read_examples(services.settings.edits)
        self.words = _words(services)

    def opening(self) -> dict[str, Any]:
        """What the tab knows before it asks: encoders, limits, our examples, their averages."""
        shipped = json.loads(self.services.settings.interaction.read_text(encoding="utf-8"))
        trained = [kind for kind, model in self.services.models.items() if model.trained]
        return {
            "max_tokens": MAX_TOKENS,
            "n_random": N_RANDOM_WORDS,
            "n_directions": N_DIRECTIONS,
            "n_words": len(self.words),
            "seed": SEED,
            "examples": examples_view(self.examples),
            "averages": averages_view(shipped, trained),
        }

    @shows_errors
    def grid(self, selection: Selection, sent: str) -> str:
        """One piece of the influence grids of a sentence."""
        tokens = sentence_of(self.services, selection, sent)
        measure, samples = self._measure(tokens, sent)
        encoders = self._encoders(selection)
        kinds, unread = readers(encoders, len(tokens))
        n_samples = N_DIRECTIONS if samples is None else len(samples.words)
        work = pieces(kinds, n_samples, len(tokens))
        view = {"request": request_of(sent), "unread": unread}
        view |= {"measure": measure, "n_pieces": len(work), "n_samples": n_samples}
        if work:
            view["piece"] = piece = index_of(sent, "piece", len(work))
            kind, first, last = work[piece]
            grid = grid_of(encoders[kind], tokens, samples, first, last)
            view |= {"kind": kind, **grid_view(grid)}
        return message({"influence": view})

    @shows_errors
    def interaction(self, selection: Selection, sent: str) -> str:
        """Both edits under every encoder; edits that were not given are proposed."""
        tokens, edits = self._edits(selection, sent)
        encoders = self._encoders(selection)
        kinds, unread = readers(encoders, len(tokens))
        view = {"request": request_of(sent), "unread": unread}
        view |= {"tokens": tokens, "left": edit_view(edits[0]), "right": edit_view(edits[1])}
        view["encoders"] = {}
        for kind in kinds:
            result = interaction(encoders[kind], tokens, *edits)
            mix = result.mix(_shares(sent, kind, result.hidden.shape[2]))
            view["encoders"][kind] = interaction_view(result, mix)
        return message({"interaction": view})

    def _encoders(self, selection: Selection) -> dict[str, Encoder]:
        models = self.services.using(selection.elmo).models
        return {kind: model.encoder for kind, model in models.items()}

    def _measure(self, tokens: Tokens, sent: str) -> tuple[str, Replacements | None]:
        """The measure that was sent, and its samples."""
        measure = data_of(sent).get("measure")
        word = text_of(sent, "word", 100) if measure == "word" else ""
        return measure, self.samples(tokens, measure, word)

    def samples(self, tokens: Tokens, measure: Any, word: str) -> Replacements | None:
        """What a measure puts in place of each token; ``None`` for the gradient."""
        if measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {measure!r:.40}")
        if measure == "gradient":
            return None
        if measure == "gap":
            return gap_replacements(tokens)
        if measure == "word":
            return word_replacements(tokens, word)
        return random_replacements(tokens, self.words, N_RANDOM_WORDS, SEED)

    def _edits(self, selection: Selection, sent: str) -> tuple[Tokens, list[Edit]]:
        data = data_of(sent)
        if data.get("example") is not None:
            tokens = self.examples[index_of(sent, "example", len(self.examples))][0]
        else:
            tokens = sentence_of(self.services, selection, sent)
        if data.get("left") is None:
            return tokens, self._proposal(tokens)
        split = str.split if selection.pretokenized and data.get("example") is None else tokenize
        return tokens, [_edit(data, side, split) for side in ("left", "right")]

    def _proposal(self, tokens: Tokens) -> list[Edit]:
        """Our own edits of our own sentence; else a random word for the outermost content words."""
        for own, left, right in self.examples:
            if own == tokens:
                return [left, right]
        if len(tokens) < 3:
            raise ValueError("Two edits with a word between them need three words or more.")
        words = [i for i, t in enumerate(tokens) if t.isalpha() and t.casefold() not in COMMON]
        start, stop = (words[0], words[-1]) if words else (0, len(tokens) - 1)
        if stop - start < 2:
            start, stop = 0, len(tokens) - 1
        (drawn,) = random_replacements(tokens, self.words, 1, SEED).words
        return [Edit(start, (drawn[start],)), Edit(stop, (drawn[stop],))]


def _words(services: Services) -> list[str]:
    """Words of our example sentences, the most frequent first: what random words are drawn from."""
    counts = Counter(token for s in services.bank_sentences for token in s.tokens)
    return common_words([word for word, _ in counts.most_common()])


def grid_of(
    encoder: Encoder, tokens: Tokens, samples: Replacements | None, first: int, last: int
) -> InfluenceGrid:
    """Of some samples: replacements, or directions of the gradient where there are none."""
    if samples is None:
        return gradient_grid(encoder, tokens, last - first, SEED, first)
    return replacement_grid(encoder, tokens, Replacements(samples.label, samples.words[first:last]))


def _edit(data: dict[str, Any], side: str, split: Any) -> Edit:
    """An edit that the page sent. Raises ``ValueError`` unless it keeps the number of tokens."""
    sent = data.get(side)
    sent = sent if isinstance(sent, dict) else {}
    start, stop = sent.get("start"), sent.get("stop")
    if not all(isinstance(x, int) and not isinstance(x, bool) for x in (start, stop)):
        raise ValueError(f"the {side} edit must start and stop at a word, got {sent!r:.60}")
    text = sent.get("text")
    if not isinstance(text, str):
        raise ValueError(f"the {side} edit must be text, got {text!r:.40}")
    words = tuple(split(text[:400]))
    if len(words) != stop - start:
        raise ValueError(
            f"The {side} edit must keep the length: {stop - start} for {stop - start}, but"
            f" {' '.join(words)[:60]!r} is {len(words)} tokens."
        )
    return Edit(start, words)


def _shares(sent: str, kind: str, n_layers: int) -> Any:
    """Normalized weights of an encoder's mix; equal ones where the page has no sliders for it."""
    sent = data_of(sent).get("weights")
    w = sent.get(kind) if isinstance(sent, dict) else None
    numbers = isinstance(w, list) and all(type(x) in (int, float) and abs(x) < 1e6 for x in w)
    return softmax(w if numbers and len(w) == n_layers else [0.0] * n_layers)
