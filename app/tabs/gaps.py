"""Gaps: hide a word and see who can guess it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.apart import apart
from app.events import on
from app.handlers.gaps import GapsHandlers
from app.packing import to_json
from app.parts import feed, part

HEAVY: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "gaps"}


@dataclass(frozen=True)
class GapsTab:
    part: gr.HTML
    feed: gr.HTML


def build(opening: dict[str, Any]) -> GapsTab:
    """``opening``: what ``GapsHandlers.opening`` tells."""
    with gr.Tab("Gaps", id="gaps", render_children=True):
        view = part("gaps", value=to_json(opening), events=("ask",), elem_id="gaps")
        return GapsTab(view, feed("{}"))


def connect(tab: GapsTab, handlers: GapsHandlers, selection: gr.State) -> None:
    failed = "() => { bothways.emit('busy', false); bothways.emit('gaps', null); }"
    on(tab.part, "ask", apart(handlers.guess), [selection], [tab.feed], failed, **HEAVY)
