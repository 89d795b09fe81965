"""The bench on the left: sentences, tokens and mixing, in reach whatever tab is open."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from app.events import DONE, MANY, QUIET
from app.examples import Example
from app.handlers.page import Handlers
from app.parts import part
from app.visit import keeps


@dataclass(frozen=True)
class Bench:
    picker: gr.Dropdown
    text: gr.Textbox
    run: gr.Button
    pretokenized: gr.Checkbox
    strip: gr.HTML
    elmo: gr.Dropdown
    mixing: gr.HTML


def build(examples: tuple[Example, ...], elmos: tuple[str, ...] = ()) -> Bench:
    """Draws the bench, with the first example in it, and a menu where there are further biLMs."""
    picker = gr.Dropdown(
        [(example.label, example.id) for example in examples],
        value=examples[0].id,
        label="Example",
        show_label=False,
        container=False,
        elem_id="picker",
    )
    text = gr.Textbox(
        examples[0].text,
        lines=4,
        max_lines=4,
        label="Sentences, one a line",
        show_label=False,
        container=False,
        placeholder="One sentence a line",
        elem_id="text",
        html_attributes=gr.InputHTMLAttributes(spellcheck=False),
    )
    with gr.Row(elem_id="actions"):
        run = gr.Button("Run", variant="primary", elem_id="run", min_width=64, scale=0)
        pretokenized = gr.Checkbox(
            label="split at spaces only", container=False, elem_id="pretokenized", min_width=120
        )
    strip = part("strip", events=("select",), elem_id="strip")
    elmo = gr.Dropdown(
        [("ELMo: shipped biLM", ""), *((f"ELMo: {name}", name) for name in elmos)],
        value="",
        label="ELMo in use",
        show_label=False,
        container=False,
        visible=bool(elmos),
        elem_id="elmo",
    )
    mixing = part("mixing", elem_id="mixing")
    return Bench(picker, text, run, pretokenized, strip, elmo, mixing)


def connect(bench: Bench, handlers: Handlers, selection: gr.State, feed: gr.HTML) -> None:
    """Run and Ctrl+Enter read the text; the picker replaces it; a token is chosen by a click."""
    gr.on(
        [bench.run.click, bench.pretokenized.input],
        keeps(handlers.run),
        [bench.text, bench.pretokenized, selection],
        [selection, feed, bench.picker],
        **(QUIET | MANY),
    ).failure(None, js=DONE)
    bench.picker.input(
        keeps(handlers.choose_example),
        [bench.picker, selection],
        [bench.text, bench.pretokenized, selection, feed],
        **QUIET,
    ).failure(None, js=DONE)
    bench.elmo.input(
        keeps(handlers.choose_elmo), [bench.elmo, selection], [selection, feed], **QUIET
    ).failure(None, js=DONE)
