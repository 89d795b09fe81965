"""Attention: where heads look, and how encoders learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.apart import apart
from app.events import on
from app.handlers.attention import AttentionHandlers
from app.packing import to_json
from app.parts import feed, part

# Slow work waits for itself only, never for the rest of the page.
HEAVY: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "attention"}


@dataclass(frozen=True)
class AttentionTab:
    """Each part with the feeds of its answers."""

    heads: gr.HTML
    learning: gr.HTML
    heads_news: gr.HTML
    cell_news: gr.HTML
    objectives_news: gr.HTML
    gradient_news: gr.HTML


def build(opening: dict[str, Any]) -> AttentionTab:
    """``opening``: what ``AttentionHandlers.opening`` tells."""
    with gr.Tab("Attention", id="attention", render_children=True):
        value = to_json(opening)
        return AttentionTab(
            heads=part("heads", value=value, events=("ask", "cell"), elem_id="heads"),
            learning=part("learning", value=value, events=("ask", "gradient"), elem_id="learning"),
            heads_news=feed("{}"),
            cell_news=feed("{}"),
            objectives_news=feed("{}"),
            gradient_news=feed("{}"),
        )


def connect(tab: AttentionTab, handlers: AttentionHandlers, selection: gr.State) -> None:
    """Each part asks for what it shows; after a failure it is told that nothing will come."""
    for element, event, handler, news, topic in (
        (tab.heads, "ask", handlers.heads, tab.heads_news, "heads"),
        (tab.heads, "cell", handlers.cell, tab.cell_news, "cell"),
        (tab.learning, "ask", handlers.objectives, tab.objectives_news, "objectives"),
        (tab.learning, "gradient", handlers.gradient, tab.gradient_news, "gradient"),
    ):
        failed = f"() => {{ bothways.emit('busy', false); bothways.emit('{topic}', null); }}"
        on(element, event, apart(handler), [selection], [news], failed, **HEAVY)
