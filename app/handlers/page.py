"""The bench and its text: a text is read, a token chosen, a neighbor visited.

Each handler takes the visitor's ``Selection`` and returns a new one with the JSON for the page.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from app.handlers.events import data_of, index_of, message, place_of, shows_errors
from app.services import Services, Tokens
from app.state import Selection
from app.views.map_choice import maps_view
from app.views.page import (
    bank_view,
    first_choice,
    nearest_copy,
    question_view,
    run_view,
    token_views,
)


class Handlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def first_view(self) -> tuple[Selection, str]:
        """The computed example the page opens on."""
        example = self.services.examples[0]
        return self.show(Selection(example.text), example.tokens, example.focus)

    @shows_errors
    def run(
        self, text: str, pretokenized: bool, selection: Selection
    ) -> tuple[Selection, str, Any]:
        """Reads a new text; the chosen word stays chosen where the new text has it."""
        sentences = self.services.parse(text, pretokenized)
        example = self.services.example_of(sentences)
        if example is not None and text != selection.text:
            focus = example.focus
        else:
            focus = self._keep_choice(sentences, selection)
        chosen = replace(selection, text=text, pretokenized=pretokenized)
        return *self.show(chosen, sentences, focus), example.id if example else None

    @shows_errors
    def choose_example(self, example_id: str, selection: Selection) -> tuple:
        """Puts an example in the text box and runs it."""
        found = [e for e in self.services.examples if e.id == example_id]
        if not found:
            raise ValueError(f"There is no example {example_id!r}.")
        example = found[0]
        chosen = replace(selection, text=example.text, pretokenized=False)
        return example.text, False, *self.show(chosen, example.tokens, example.focus)

    @shows_errors
    def select(self, selection: Selection, sent: str) -> tuple[Selection, str]:
        """Chooses a token of the text."""
        sentences = self._sentences(selection)
        place = place_of(sent, sentences)
        chosen = replace(selection, sentence=place[0], token=place[1])
        services = self.services.using(chosen.elmo)
        parts = token_views(services, sentences, chosen)
        if chosen.basis == "word":
            parts["maps"] = maps_view(services, sentences, chosen)
        return chosen, message(parts)

    @shows_errors
    def ask(self, selection: Selection, sent: str) -> tuple[Selection, str]:
        """Another question about all mixes."""
        chosen = replace(selection, question=str(data_of(sent).get("question")))
        sentences = self._sentences(chosen)
        services = self.services.using(chosen.elmo)
        return chosen, message({"query": question_view(services, sentences, chosen)})

    @shows_errors
    def choose_elmo(self, elmo: str, selection: Selection) -> tuple[Selection, str]:
        """Puts another biLM in ELMo's place, with its bank of example sentences."""
        services = self.services.using(elmo)
        sentences = self._sentences(selection)
        focus = (selection.sentence, selection.token)
        parts = {"bank": bank_view(services)}
        return self.show(replace(selection, elmo=elmo), sentences, focus, parts)

    @shows_errors
    def visit(self, selection: Selection, sent: str) -> tuple:
        """A neighbor's sentence joins the text, and the neighbor becomes the chosen token."""
        data = data_of(sent)
        tokens, raw = self.services.using(selection.elmo).sentence_of(
            str(data.get("pool")), data.get("number"), selection.choice.upload
        )
        token = index_of(sent, "token", len(tokens))
        line = " ".join(tokens) if selection.pretokenized else raw
        text = f"{selection.text.rstrip()}\n{line}"
        sentences = self.services.parse(text, selection.pretokenized)
        place = (len(sentences) - 1, nearest_copy(sentences[-1], tokens[token], token))
        return text, None, *self.show(replace(selection, text=text), sentences, place)

    def show(
        self,
        selection: Selection,
        sentences: Tokens,
        focus: tuple[int, int],
        first: dict[str, Any] | None = None,
    ) -> tuple[Selection, str]:
        """Shows a text with a token chosen. first: what the page is told before the text."""
        start = time.perf_counter()
        chosen = replace(selection, sentence=focus[0], token=focus[1])
        services = self.services.using(chosen.elmo)
        for kind in services.models:
            services.encode(kind, sentences)
        milliseconds = 1000 * (time.perf_counter() - start)
        parts = (first or {}) | {
            "run": run_view(services, sentences, milliseconds),
            "maps": maps_view(services, sentences, chosen),
            **token_views(services, sentences, chosen),
        }
        return chosen, message(parts)

    def _sentences(self, selection: Selection) -> Tokens:
        return self.services.parse(selection.text, selection.pretokenized)

    def _keep_choice(self, sentences: Tokens, selection: Selection) -> tuple[int, int]:
        """The same place if it still holds the same word, else the word elsewhere, else a guess."""
        before = self._sentences(selection)
        word = before[selection.sentence][selection.token]
        place = (selection.sentence, selection.token)
        here = sentences[place[0]] if place[0] < len(sentences) else ()
        if place[1] < len(here) and here[place[1]] == word:
            return place
        return first_choice(sentences, wanted=word)
