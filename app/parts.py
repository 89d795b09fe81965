"""Pieces of the page that the browser draws: each is one ``gr.HTML``, mounted once and kept.

Their template is constant, so Gradio never rewrites what is inside, and no visitor's text passes
through a template. What they show is sent as JSON through a ``feed``; what a visitor does in
them comes back as their events (``select``, ``visit``, ``basis``).
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import gradio as gr
import plotly

STATIC = Path(__file__).resolve().parent / "static"
PLOTLY_JS = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"
SCRIPTS = (
    "store.js",
    "mixing.js",
    "ranking.js",
    "strip.js",
    "sliders.js",
    "triangle.js",
    "header.js",
    "live_plot.js",
    "labels.js",
    "map_colors.js",
    "map_controls.js",
    "map_behind.js",
    "map_scene.js",
    "map_look.js",
    "maps.js",
    "caught.js",
    "neighbors.js",
    "neighbor_tab.js",
    "lecture.js",
    "values.js",
    "word.js",
    "word_edit.js",
    "influence_grid.js",
    "influence_panel.js",
    "influence.js",
    "interaction_chart.js",
    "interaction.js",
    "gaps.js",
    "attention.js",
    "heads.js",
    "learning.js",
    "task_charts.js",
    "tasks.js",
    "live_probe.js",
    "claims.js",
    "pictures.js",
    "share.js",
)


def serve_static_files() -> None:
    """Lets Gradio serve our scripts and the plotly.js that the plotly package carries."""
    gr.set_static_paths([STATIC, PLOTLY_JS])


@cache
def script_tags(needs_plotly: bool) -> str:
    """Script elements for the page's head; a changed file gets a new address."""
    files = [STATIC / name for name in SCRIPTS] + [PLOTLY_JS] * needs_plotly
    return "".join(f'<script src="{_address(file)}"></script>' for file in files)


def _address(file: Path) -> str:
    version = blake2b(file.read_bytes(), digest_size=4).hexdigest()
    return f"gradio_api/file={file.as_posix()}?v={version}"


def part(
    name: str,
    *,
    value: str | None = None,
    events: tuple[str, ...] = (),
    needs_plotly: bool = False,
    options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> gr.HTML:
    """A piece of the page that ``bothways.part(name, ...)`` in ``static/`` draws.

    events: the events it can send; options: what its script is told besides. A function and not a
    subclass of ``gr.HTML``, for which Gradio would write a stub file beside this one.
    """
    tools = (
        f"{{trigger, props, watch, events: {json.dumps(events)}, ...{json.dumps(options or {})}}}"
    )
    return gr.HTML(
        value,
        html_template="<div></div>",
        js_on_load=f"bothways.mount({json.dumps(name)}, element, {tools});",
        head=script_tags(needs_plotly),
        apply_default_css=False,
        **kwargs,
    )


def per_encoder_part(name: str, value: str, *events: str) -> gr.HTML:
    """A part that is drawn anew when a model of other layers takes ELMo's place."""
    return part(name, value=value, events=events, options={"perEncoder": True}, elem_id=name)


def feed(value: str) -> gr.HTML:
    """Carries messages to the page: its value is the JSON of the latest one."""
    return part("feed", value=value, visible="hidden")
