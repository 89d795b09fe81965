"""Plots that live as long as the page.

``gr.Plot`` replaces its node on every update: zoom is lost, a dragged slider waits a third of a
second, and there are no clicks. Here Plotly draws into nodes that stay (``static/live_plot.js``),
with the plotly.js of the installed plotly package.
"""

from __future__ import annotations

import gradio as gr

from app.parts import part


def live_plot(encoder: str) -> gr.HTML:
    """One encoder's maps in a row; those of its mix follow the sliders.

    Sends ``select`` with {sentence, token} when a point is clicked.
    """
    return part(
        "maps",
        events=("select",),
        needs_plotly=True,
        options={"encoder": encoder},
        elem_id=f"maps-{encoder}",
    )
