"""What handlers share: errors as messages on the page, and numbers the page sent along."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from html import escape
from typing import Any

import gradio as gr

from app.packing import to_json
from app.services import Services, Tokens
from app.state import Selection

MAX_TOKENS = 60  # of a sentence, in the views of one
MAX_REQUESTS = 2**31  # the page counts its questions

_serial = itertools.count(1)


def shows_errors(handler: Callable) -> Callable:
    """A ``ValueError`` becomes a message on the page instead of a stack trace in the log. For
    handlers that return, and for those that yield."""

    @wraps(handler)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with _errors_shown():
            return handler(*args, **kwargs)

    @wraps(handler)
    def wrapped_steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with _errors_shown():
            yield from handler(*args, **kwargs)

    return wrapped_steps if inspect.isgeneratorfunction(handler) else wrapped


@contextmanager
def _errors_shown() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise gr.Error(_plain(str(error)), duration=8, print_exception=False) from error


def _plain(message: str) -> str:
    """Messages are drawn as HTML, and they may quote what a visitor typed."""
    return escape(message.encode("utf-8", "replace").decode("utf-8"))


def message(parts: dict[str, Any]) -> str:
    """One message to the page; the number makes two equal messages differ."""
    return to_json({"serial": next(_serial), **parts})


def data_of(sent: str) -> dict[str, Any]:
    """What a part of the page sent along; anything may arrive here."""
    try:
        data = json.loads(sent)
    except (TypeError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def index_of(sent: str, name: str, bound: int) -> int:
    """A whole number from 0 to bound - 1 that the page sent. Raises ``ValueError``."""
    value = data_of(sent).get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < bound:
        raise ValueError(f"{name} must be a number from 0 to {bound - 1}, got {value!r:.40}")
    return value


def text_of(sent: str, name: str, limit: int) -> str:
    """Text that the page sent, at most ``limit`` characters of it. Raises ``ValueError``."""
    value = data_of(sent).get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, got {value!r:.40}")
    return value[:limit]


def request_of(sent: str) -> int:
    """The number of the page's question, which goes back with its answer."""
    return index_of(sent, "request", MAX_REQUESTS)


def sentence_of(services: Services, selection: Selection, sent: str) -> tuple[str, ...]:
    """The sentence of the visitor's text that the page sent. Raises ``ValueError`` where it is
    longer than a view of one sentence shows."""
    sentences = services.parse(selection.text, selection.pretokenized)
    tokens = sentences[index_of(sent, "sentence", len(sentences))]
    if len(tokens) > MAX_TOKENS:
        raise ValueError(
            f"The sentence has {len(tokens)} tokens; this view takes {MAX_TOKENS} at most."
        )
    return tokens


def place_of(sent: str, sentences: Tokens) -> tuple[int, int]:
    """A token of the text that the page sent: (sentence, token)."""
    sentence = index_of(sent, "sentence", len(sentences))
    return sentence, index_of(sent, "token", len(sentences[sentence]))
