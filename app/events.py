"""How the page's own events behave: one place for what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr
from gradio.events import Dependency

from app.visit import keeps

# No veil while waiting; of several quick clicks the last one counts; several visitors at once; not
# an endpoint for programs (those are in ``endpoints``).
QUIET: dict[str, Any] = {
    "show_progress": "hidden",
    "trigger_mode": "always_last",
    "concurrency_limit": 4,
    "api_visibility": "private",
}

# Texts that are read at the same time are encoded in one batch, so more of them may be read.
MANY: dict[str, Any] = {"concurrency_limit": 6}

# After a failure the page no longer says that it is reading (the feed does so after a success).
DONE = "() => bothways.emit('busy', false)"


def on(
    part: gr.HTML,
    event: str,
    handler: Callable,
    inputs: Sequence[gr.components.Component],
    outputs: Sequence[gr.components.Component],
    failed: str = DONE,
    **options: Any,
) -> Dependency:
    """Sends an event of a part of the page to a handler, which gets what the part sent along (JSON
    text) as its last argument. inputs: the visitor's choices, if it wants them.

    What is sent travels as the part's value: of several quick events Gradio keeps the last, but
    runs it with the event data of the first; values are read when it runs. ``failed`` is what the
    page does where the handler fails.
    """
    handler = keeps(handler) if inputs else handler
    dependency = getattr(part, event)(handler, [*inputs, part], outputs, **(QUIET | options))
    dependency.failure(None, js=failed)
    return dependency
