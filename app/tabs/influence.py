"""Influence: whose vector moves when a word is replaced, and whether two edits meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.apart import apart
from app.events import on
from app.handlers.influence import InfluenceHandlers
from app.packing import to_json
from app.parts import feed, per_encoder_part

# Slow work waits for itself only, never for the rest of the page.
HEAVY: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "influence"}


@dataclass(frozen=True)
class InfluenceTab:
    grid: gr.HTML
    interaction: gr.HTML
    grid_news: gr.HTML
    interaction_news: gr.HTML


def build(opening: dict[str, Any]) -> InfluenceTab:
    """``opening``: what ``InfluenceHandlers.opening`` tells."""
    with gr.Tab("Influence", id="influence", render_children=True):
        value = to_json(opening)
        return InfluenceTab(
            grid=per_encoder_part("influence", value, "ask"),
            interaction=per_encoder_part("interaction", value, "ask"),
            grid_news=feed("{}"),
            interaction_news=feed("{}"),
        )


def connect(tab: InfluenceTab, handlers: InfluenceHandlers, selection: gr.State) -> None:
    """Each part asks for what it shows; after a failure it is told that nothing will come."""
    for element, handler, news, topic in (
        (tab.grid, handlers.grid, tab.grid_news, "influence"),
        (tab.interaction, handlers.interaction, tab.interaction_news, "interaction"),
    ):
        failed = f"() => {{ bothways.emit('busy', false); bothways.emit('{topic}', null); }}"
        on(element, "ask", apart(handler), [selection], [news], failed, **HEAVY)
