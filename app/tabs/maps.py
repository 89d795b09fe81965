"""Maps: every layer of both encoders, and the neighbors below them."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from app.live_plot import live_plot
from app.parts import part


@dataclass(frozen=True)
class MapsTab:
    question: gr.HTML
    bilm: gr.HTML
    attention: gr.HTML
    lists: gr.HTML


def build() -> MapsTab:
    with gr.Tab("Maps", id="maps"):
        return MapsTab(
            question=part("question", events=("basis",), elem_id="question"),
            bilm=live_plot("bilm"),
            attention=live_plot("attention"),
            lists=part("lists", events=("select", "visit"), elem_id="lists"),
        )
