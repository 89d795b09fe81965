"""A visitor's choices for as long as the visit lasts, whatever order answers come in.

Gradio gives a handler the choices when it starts and takes what it returns when it ends. Several of
one visitor run at a time, and the slow one would undo what the others changed. So a handler changes
only what it changed itself, and an answer about a text that was left in the meantime is not sent.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any

import gradio as gr

from app.state import Selection

PLACE = ("sentence", "token")

_lock = threading.Lock()


@dataclass
class Visit:
    """Held by a ``gr.State``, one for each visitor."""

    selection: Selection

    def take_over(self, before: Selection, after: Selection) -> bool:
        """Takes over what a handler changed; false where its answer is about a text that was left,
        of which no token can be chosen any more."""
        changed = {
            field.name: getattr(after, field.name)
            for field in fields(Selection)
            if getattr(after, field.name) != getattr(before, field.name)
        }
        is_new = "text" in changed or "pretokenized" in changed
        place = {name: getattr(after, name) for name in PLACE}
        with _lock:
            is_left = _text_of(before) != _text_of(self.selection) and not is_new
            if is_new:
                changed |= place
            elif is_left:
                changed = {name: x for name, x in changed.items() if name not in PLACE}
            self.selection = replace(self.selection, **changed)
        return not is_left


def _text_of(selection: Selection) -> tuple[str, bool]:
    return selection.text, selection.pretokenized


def keeps(handler: Callable) -> Callable:
    """A handler of ``Selection`` as Gradio calls it, with the ``Visit``; among what it returns the
    changed ``Selection`` becomes the ``Visit`` again. Handlers that yield may only read."""

    @wraps(handler)
    def wrapped(*args: Any) -> Any:
        visit = _visit_of(args)
        before = visit.selection
        found = handler(*(before if arg is visit else arg for arg in args))
        values = found if isinstance(found, tuple) else (found,)
        after = next((value for value in values if isinstance(value, Selection)), before)
        if not visit.take_over(before, after):
            return (gr.skip(),) * len(values) if isinstance(found, tuple) else gr.skip()
        kept = tuple(visit if isinstance(value, Selection) else value for value in values)
        return kept if isinstance(found, tuple) else kept[0]

    @wraps(handler)
    def wrapped_steps(*args: Any) -> Iterator[Any]:
        visit = _visit_of(args)
        selection = visit.selection
        yield from handler(*(selection if arg is visit else arg for arg in args))

    return wrapped_steps if inspect.isgeneratorfunction(handler) else wrapped


def _visit_of(args: tuple) -> Visit:
    return next(arg for arg in args if isinstance(arg, Visit))
