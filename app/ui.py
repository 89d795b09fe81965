"""The page: top bar, bench, tabs, and the wires between them."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app import bench, endpoints
from app.events import DONE, QUIET
from app.handlers import Handlers
from app.model_cards import cards_view
from app.packing import to_json
from app.parts import STATIC, feed, part, serve_static_files
from app.services import Services
from app.tabs import maps, neighbors
from app.views import bank_view

TITLE = "Both Ways"
STYLES = ("palette.css", "page.css", "bench.css", "views.css")


def build(services: Services) -> gr.Blocks:
    """The page with its events; ``launch_options`` go to ``launch``."""
    serve_static_files()
    handlers = Handlers(services)
    first, message = handlers.first_view()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as demo:
        selection = gr.State(first)
        feed(to_json({"bank": bank_view(services)}))
        news = feed(message)
        part("top", value=to_json(cards_view(services)), elem_id="top")
        with gr.Row(elem_id="workbench"):
            with gr.Column(elem_id="bench", min_width=280, scale=0):
                left = bench.build(services.examples)
            with gr.Column(elem_id="views", min_width=280, scale=1), gr.Tabs(elem_id="tabs"):
                maps_tab = maps.build()
                neighbors_tab = neighbors.build()
        lists, table = maps_tab.lists, neighbors_tab.table
        bench.connect(left, handlers, selection, news)
        gr.on(
            [p.select for p in (left.strip, maps_tab.bilm, maps_tab.attention, lists, table)],
            handlers.select,
            [selection],
            [selection, news],
            **QUIET,
        )
        for neighbors_part in (lists, table):
            neighbors_part.visit(
                handlers.visit,
                [selection],
                [left.text, left.picker, selection, news],
                **QUIET,
            ).failure(None, js=DONE)
        maps_tab.question.basis(
            handlers.set_basis, [selection], [selection, news], **QUIET
        ).failure(None, js=DONE)
        endpoints.connect(services)
    return demo.queue(default_concurrency_limit=4)


def launch_options() -> dict[str, Any]:
    """Theme, styles and the switches that keep everything on this machine."""
    return {
        "theme": theme(),
        "head": f"<style>{styles()}</style>",  # Gradio rewrites what it gets as css
        "favicon_path": STATIC / "favicon.png",
        "footer_links": [],
        "run_history": False,  # a lecture machine is used by others
        "share": False,
        "ssr_mode": False,
        "enable_monitoring": False,
        "show_error": True,
    }


def styles() -> str:
    """The page's style sheets, one after the other."""
    return "\n".join((STATIC / name).read_text(encoding="utf-8") for name in STYLES)


def theme() -> gr.themes.Base:
    """Gradio's own controls in the page's typeface and colors; the rest is CSS."""
    sans = [gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700)), "sans-serif"]
    return gr.themes.Base(
        font=sans,
        font_mono=sans,
        radius_size=gr.themes.sizes.radius_md,
        text_size=gr.themes.sizes.text_sm,
    )
