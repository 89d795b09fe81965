"""The share panel behind the top bar's button: links, and what there is to take home."""

from __future__ import annotations

import gradio as gr

from app.bench import Bench
from app.events import on
from app.handlers.share import ShareHandlers
from app.packing import to_json
from app.parts import part


def build(lan: str | None) -> gr.HTML:
    """lan: the page's address in the local network, where it has one."""
    return part("share", value=to_json({"lan": lan}), events=("link", "open"), elem_id="share")


def connect(
    share: gr.HTML, handlers: ShareHandlers, bench: Bench, selection: gr.State, news: gr.HTML
) -> None:
    on(share, "link", handlers.link, [selection], [news])
    outputs = [bench.text, bench.pretokenized, bench.picker, bench.elmo, selection, news]
    on(share, "open", handlers.open, [selection], outputs)
