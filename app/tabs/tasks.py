"""Tasks: which layers a task learns to listen to, as measured and live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.apart import apart
from app.events import QUIET, on
from app.handlers.tasks import TasksHandlers
from app.packing import to_json
from app.parts import feed, part, per_encoder_part

# Two visitors may train at once; others wait in a queue of their own.
APART: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "probe"}
FAILED = "() => { bothways.emit('busy', false); bothways.emit('probe', null); }"


@dataclass(frozen=True)
class TasksTab:
    measured: gr.HTML
    live: gr.HTML
    news: gr.HTML


def build(opening: dict[str, Any]) -> TasksTab:
    """``opening``: what ``TasksHandlers.opening`` tells."""
    with gr.Tab("Tasks", id="tasks", render_children=True):
        measured = part("tasks", value=to_json(opening), events=("question",), elem_id="tasks")
        live = per_encoder_part("probe", to_json(opening | {"table": None}), "train", "stop")
        return TasksTab(measured, live, feed("{}"))


def connect(tab: TasksTab, handlers: TasksHandlers, selection: gr.State) -> None:
    training = on(
        tab.live, "train", apart(handlers.train), [selection], [tab.news], FAILED, **APART
    )
    tab.live.stop(None, cancels=[training], js=FAILED, **QUIET)
