"""What happens when a visitor does something: validate, ask ``views``, answer.

Each handler takes the visitor's ``Selection`` and returns a new one with the JSON for the page.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from html import escape
from typing import Any

import gradio as gr

from app.packing import to_json
from app.services import Services, Tokens
from app.state import Selection
from app.views import first_choice, maps_view, query_view, run_view


def shows_errors(handler: Callable) -> Callable:
    """A ``ValueError`` becomes a message on the page instead of a stack trace in the log."""

    @wraps(handler)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return handler(*args, **kwargs)
        except ValueError as error:
            raise gr.Error(_plain(str(error)), duration=8, print_exception=False) from error

    return wrapped


def _plain(message: str) -> str:
    """Messages are drawn as HTML, and they may quote what a visitor typed."""
    return escape(message.encode("utf-8", "replace").decode("utf-8"))


class Handlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._serial = itertools.count(1)

    def first_view(self) -> tuple[Selection, str]:
        """The computed example the page opens on."""
        example = self.services.examples[0]
        return self._show(Selection(example.text), example.tokens, example.focus)

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
        return *self._show(chosen, sentences, focus), example.id if example else None

    @shows_errors
    def choose_example(self, example_id: str, selection: Selection) -> tuple:
        """Puts an example in the text box and runs it."""
        found = [e for e in self.services.examples if e.id == example_id]
        if not found:
            raise ValueError(f"There is no example {example_id!r}.")
        example = found[0]
        chosen = replace(selection, text=example.text, pretokenized=False)
        return example.text, False, *self._show(chosen, example.tokens, example.focus)

    @shows_errors
    def select(self, selection: Selection, event: gr.EventData) -> tuple[Selection, str]:
        """Chooses a token of the text."""
        sentences = self._sentences(selection)
        place = _place(event, sentences)
        chosen = replace(selection, sentence=place[0], token=place[1])
        parts = {"query": query_view(self.services, sentences, chosen)}
        if chosen.basis == "word":
            parts["maps"] = maps_view(self.services, sentences, chosen)
        return chosen, self._feed(parts)

    @shows_errors
    def set_basis(self, selection: Selection, event: gr.EventData) -> tuple[Selection, str]:
        """Draws the maps in other axes."""
        chosen = replace(selection, basis=str(_data(event).get("basis")))
        sentences = self._sentences(chosen)
        return chosen, self._feed({"maps": maps_view(self.services, sentences, chosen)})

    @shows_errors
    def visit(self, selection: Selection, event: gr.EventData) -> tuple:
        """A neighbor's sentence joins the text, and the neighbor becomes the chosen token."""
        added = self.services.bank_sentences[
            _index(event, "sentence", len(self.services.bank_sentences))
        ]
        token = _index(event, "token", len(added.tokens))
        line = " ".join(added.tokens) if selection.pretokenized else added.text
        text = f"{selection.text.rstrip()}\n{line}"
        sentences = self.services.parse(text, selection.pretokenized)
        chosen = replace(selection, text=text)
        return text, None, *self._show(chosen, sentences, (len(sentences) - 1, token))

    def _show(
        self, selection: Selection, sentences: Tokens, focus: tuple[int, int]
    ) -> tuple[Selection, str]:
        start = time.perf_counter()
        chosen = replace(selection, sentence=focus[0], token=focus[1])
        for kind in self.services.models:
            self.services.encode(kind, sentences)
        milliseconds = 1000 * (time.perf_counter() - start)
        parts = {
            "run": run_view(self.services, sentences, milliseconds),
            "maps": maps_view(self.services, sentences, chosen),
            "query": query_view(self.services, sentences, chosen),
        }
        return chosen, self._feed(parts)

    def _feed(self, parts: dict[str, Any]) -> str:
        """One message to the page; the number makes two equal messages differ."""
        return to_json({"serial": next(self._serial), **parts})

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


def _data(event: gr.EventData) -> dict[str, Any]:
    """What the page sent along; anything may arrive here."""
    return event._data if isinstance(event._data, dict) else {}


def _index(event: gr.EventData, name: str, bound: int) -> int:
    value = _data(event).get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < bound:
        raise ValueError(f"{name} must be a number from 0 to {bound - 1}, got {value!r:.40}")
    return value


def _place(event: gr.EventData, sentences: Tokens) -> tuple[int, int]:
    sentence = _index(event, "sentence", len(sentences))
    return sentence, _index(event, "token", len(sentences[sentence]))
