"""The page: top bar, bench, tabs, and the wires between them."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app import bench, endpoints
from app.events import on
from app.handlers.attention import AttentionHandlers
from app.handlers.gaps import GapsHandlers
from app.handlers.influence import InfluenceHandlers
from app.handlers.lecture import LectureHandlers
from app.handlers.maps import MapHandlers
from app.handlers.neighbors import NeighborHandlers
from app.handlers.page import Handlers
from app.handlers.share import ShareHandlers
from app.handlers.take_home import TakeHome
from app.handlers.tasks import TasksHandlers
from app.handlers.word import WordHandlers
from app.lecture import load_lecture
from app.packing import to_json
from app.parts import STATIC, feed, part, serve_static_files
from app.services import Services
from app.sessions import bound_queue, describe_once, fetch_nothing
from app.tabs import attention, claims, gaps, influence, maps, neighbors, share, tasks, word
from app.views.models import cards_view
from app.views.page import bank_view
from app.visit import Visit

TITLE = "Both Ways"
STYLES = (
    "palette.css",
    "page.css",
    "bench.css",
    "views.css",
    "maps.css",
    "neighbors.css",
    "word.css",
    "influence.css",
    "gaps.css",
    "attention.css",
    "tasks.css",
    "claims.css",
    "share.css",
    "lecture.css",
)


def build(services: Services, lan: str | None = None) -> gr.Blocks:
    """The page with its events; ``launch_options`` go to ``launch``. lan: the page's address in
    the local network, where it has one."""
    serve_static_files()
    handlers = Handlers(services)
    influence_handlers = InfluenceHandlers(services)
    gaps_handlers = GapsHandlers(services)
    attention_handlers = AttentionHandlers(services)
    tasks_handlers = TasksHandlers(services)
    first, message = handlers.first_view()
    with gr.Blocks(title=TITLE, fill_width=True, analytics_enabled=False) as demo:
        selection = gr.State(Visit(first))
        feed(to_json({"bank": bank_view(services)}))
        news = feed(message)
        cards = to_json(cards_view(services))
        top = part("top", value=cards, events=("status",), elem_id="top")
        with gr.Row(elem_id="workbench"):
            with gr.Column(elem_id="bench", min_width=280, scale=0):
                left = bench.build(services.examples, services.elmos)
            with gr.Column(elem_id="views", min_width=280, scale=1), gr.Tabs(elem_id="tabs"):
                maps_tab = maps.build(tuple(services.models))
                neighbors_tab = neighbors.build()
                word_tab = word.build()
                influence_tab = influence.build(influence_handlers.opening())
                gaps_tab = gaps.build(gaps_handlers.opening())
                attention_tab = attention.build(attention_handlers.opening())
                tasks_tab = tasks.build(tasks_handlers.opening())
                claims.build(tasks_handlers.claims())
        lists, table = maps_tab.lists, neighbors_tab.table
        bench.connect(left, handlers, selection, news)
        for chooser in (left.strip, *maps_tab.rows, maps_tab.caught, lists, table):
            on(chooser, "select", handlers.select, [selection], [selection, news])
        for neighbors_part in (lists, table):
            outputs = [left.text, left.picker, selection, news]
            on(neighbors_part, "visit", handlers.visit, [selection], outputs)
        neighbor_handlers = NeighborHandlers(services)
        neighbors.connect(neighbors_tab, lists, neighbor_handlers, selection)
        on(top, "status", neighbor_handlers.status, [selection], [news])
        maps.connect(maps_tab, MapHandlers(services), selection, news)
        word.connect(word_tab, WordHandlers(services), selection)
        influence.connect(influence_tab, influence_handlers, selection)
        gaps.connect(gaps_tab, gaps_handlers, selection)
        attention.connect(attention_tab, attention_handlers, selection)
        tasks.connect(tasks_tab, tasks_handlers, selection)
        on(tasks_tab.measured, "question", handlers.ask, [selection], [selection, news])
        lecture = load_lecture(services.settings.lecture)
        stage = part("lecture", value=to_json(lecture.view()), events=("step",), elem_id="lecture")
        outputs = [left.picker, left.text, left.pretokenized, selection, news]
        on(stage, "step", LectureHandlers(handlers, lecture).step, [selection], outputs)
        tab_ids = [block.id for block in demo.blocks.values() if isinstance(block, gr.Tab)]
        share.connect(share.build(lan), ShareHandlers(handlers, tab_ids), left, selection, news)
        endpoints.connect(services, influence_handlers, gaps_handlers)
    describe_once(demo)
    fetch_nothing(demo)
    demo.queue(default_concurrency_limit=4)
    bound_queue(demo)
    return demo


def launch_options(services: Services) -> dict[str, Any]:
    """Theme, styles, downloads, and the switches that keep everything on this machine."""
    return {
        "theme": theme(),
        "head": f"<style>{styles()}</style>",  # Gradio rewrites what it gets as css
        "app_kwargs": {"routes": TakeHome(services, styles).routes()},
        "favicon_path": STATIC / "favicon.png",
        "footer_links": [],
        "run_history": False,  # a lecture machine is used by others
        "share": False,
        "ssr_mode": False,
        "enable_monitoring": False,
        "show_error": True,
        "max_file_size": "20mb",  # past it the server stops listening; ours is smaller and kinder
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
