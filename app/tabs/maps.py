"""Maps: every layer of every encoder; below the first two, neighbors or what a lasso caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gradio as gr

from app.events import on
from app.handlers.maps import MapHandlers
from app.live_plot import live_plot
from app.parts import part

N_ABOVE = 2  # rows that fit a laptop's screen with the lists; others are scrolled to


@dataclass(frozen=True)
class MapsTab:
    question: gr.HTML
    rows: tuple[gr.HTML, ...]
    caught: gr.HTML
    lists: gr.HTML


def build(kinds: Sequence[str]) -> MapsTab:
    """One row of maps for each kind of encoder."""
    with gr.Tab("Maps", id="maps"):
        question = part("question", events=("basis", "fit", "paint", "warm"), elem_id="question")
        rows = [live_plot(kind) for kind in kinds[:N_ABOVE]]
        caught = part("caught", events=("select",), elem_id="caught")
        lists = part("lists", events=("select", "visit", "near"), elem_id="lists")
        rows += [live_plot(kind) for kind in kinds[N_ABOVE:]]
        return MapsTab(question, tuple(rows), caught, lists)


def connect(tab: MapsTab, handlers: MapHandlers, selection: gr.State, news: gr.HTML) -> None:
    on(tab.question, "basis", handlers.set_basis, [selection], [selection, news])
    on(tab.question, "warm", handlers.warm, [], [])
    on(tab.question, "fit", handlers.fit, [selection], [news])
    on(tab.question, "paint", handlers.paint, [selection], [news])
