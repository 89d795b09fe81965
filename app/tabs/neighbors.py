"""Neighbors: lists under every layer and mix, out of the banks that the visitor chose."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from app.apart import apart
from app.events import DONE, QUIET, on
from app.handlers.neighbors import NeighborHandlers
from app.parts import feed, part
from app.visit import keeps

# Reading a large bank takes longer than anything else: it must not keep others waiting.
APART = {"concurrency_limit": 2, "concurrency_id": "nearby"}

# Nor must encoding a file keep them from their neighbors. What Gradio would do with the file before
# is left out: it would make an empty one beside it.
UPLOAD = {"concurrency_limit": 2, "concurrency_id": "upload", "preprocess": False}


@dataclass(frozen=True)
class NeighborsTab:
    table: gr.HTML
    file: gr.UploadButton
    news: gr.HTML
    progress: gr.HTML


def build() -> NeighborsTab:
    events = ("select", "visit", "near", "choose")
    with gr.Tab("Neighbors", id="neighbors", render_children=True):
        return NeighborsTab(
            table=part("table", events=events, elem_id="table"),
            # The page's own button opens it.
            file=gr.UploadButton("Upload", elem_id="upload-file", visible="hidden"),
            news=feed(""),
            progress=feed(""),
        )


def connect(
    tab: NeighborsTab, lists: gr.HTML, handlers: NeighborHandlers, selection: gr.State
) -> None:
    """``lists``: those below the maps; they ask for the same."""
    for asker in (tab.table, lists):
        on(asker, "near", handlers.near, [selection], [tab.news], **APART)
    on(tab.table, "choose", handlers.choose, [selection], [selection, tab.news], **APART)
    tab.file.upload(
        keeps(apart(handlers.upload)),
        [tab.file, selection],
        [tab.progress],
        **(QUIET | UPLOAD),
    ).failure(None, js=DONE)
