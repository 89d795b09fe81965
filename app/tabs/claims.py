"""Claims: what the texts say, what the papers measured, what our models say."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.packing import to_json
from app.parts import part


def build(claims: list[dict[str, Any]]) -> None:
    """``claims``: what ``TasksHandlers.claims`` tells. Nothing here asks the server."""
    with gr.Tab("Claims", id="claims", render_children=True):
        part("claims", value=to_json(claims), elem_id="claims")
