"""Neighbors: the long table, under every layer and mix at once."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from app.parts import part


@dataclass(frozen=True)
class NeighborsTab:
    table: gr.HTML


def build() -> NeighborsTab:
    with gr.Tab("Neighbors", id="neighbors", render_children=True):
        return NeighborsTab(part("table", events=("select", "visit"), elem_id="table"))
