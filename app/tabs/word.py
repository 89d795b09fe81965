"""Word: one word in many sentences, its letters, and what an edit moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.apart import apart
from app.events import on
from app.handlers.word import WordHandlers
from app.parts import feed, part

HEAVY: dict[str, Any] = {"concurrency_limit": 2, "concurrency_id": "word"}


@dataclass(frozen=True)
class WordTab:
    word: gr.HTML
    spelling: gr.HTML
    edit: gr.HTML
    word_news: gr.HTML
    spelling_news: gr.HTML
    edit_news: gr.HTML


def build() -> WordTab:
    with gr.Tab("Word", id="word", render_children=True):
        return WordTab(
            word=part("word", events=("ask",), elem_id="word"),
            edit=part("edit", events=("ask",), elem_id="edit"),
            spelling=part("spelling", events=("ask",), elem_id="spelling"),
            word_news=feed("{}"),
            spelling_news=feed("{}"),
            edit_news=feed("{}"),
        )


def connect(tab: WordTab, handlers: WordHandlers, selection: gr.State) -> None:
    """Each part asks for what it shows."""
    for element, handler, news in (
        (tab.word, handlers.word, tab.word_news),
        (tab.spelling, handlers.spelling, tab.spelling_news),
        (tab.edit, handlers.edit, tab.edit_news),
    ):
        on(element, "ask", apart(handler), [selection], [news], **HEAVY)
