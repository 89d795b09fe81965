"""What Gradio does for a visitor: quickly, since a class arrives all at once, and within bounds.

Gradio describes every component of the page anew for every visitor, before the first event, in the
thread that serves everyone: a quarter of a second each. The page is the same for all of them, so it
is described once. Whoever sends more than can be answered is told so, before others wait. And what
an event names by an address is not fetched: no request leaves this machine.
"""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio.blocks import Block, BlocksConfig
from gradio.queueing import Queue
from gradio_client.utils import is_http_url_like

MAX_WAITING = 40  # requests of one visitor; a page itself never sends as many


class DescribedOnce(BlocksConfig):
    """The page with the description of each component, as long as no visitor has changed it."""

    described: dict[int, tuple[Block, dict[str, Any]]]

    def config_for_block(
        self, _id: int, rendered_ids: list[int], block: Block, renderable: Any = None
    ) -> dict[str, Any]:
        """See ``BlocksConfig``; the caller may replace values of the outer and of ``props``."""
        known = self.described.get(_id)
        if renderable is not None or known is None or known[0] is not block:
            return super().config_for_block(_id, rendered_ids, block, renderable)
        return {**known[1], "props": dict(known[1]["props"])}

    def __copy__(self) -> DescribedOnce:
        new = super().__copy__()
        new.__class__, new.described = DescribedOnce, self.described
        return new


def describe_once(demo: gr.Blocks) -> None:
    """Call when the page is complete."""
    config = demo.default_config
    described = {
        _id: (block, config.config_for_block(_id, [], block))
        for _id, block in config.blocks.items()
        if _id in demo.blocks
    }
    config.__class__, config.described = DescribedOnce, described


class BoundedQueue(Queue):
    """The queue of requests, with a limit for each visitor."""

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """See ``Queue``: whether the request was taken, its id or the reason, and a status."""
        waiting = len(self.pending_event_ids_session.get(body.session_hash, ()))
        if waiting >= MAX_WAITING:
            reason = (
                f"{waiting} requests of yours are waiting, and {MAX_WAITING} may:"
                " read their answers before you send more."
            )
            return False, reason, "error"
        return await super().push(body, request, username)


def bound_queue(demo: gr.Blocks) -> None:
    """Call when the queue is there."""
    demo._queue.__class__ = BoundedQueue


def fetch_nothing(demo: gr.Blocks) -> None:
    """Call when the page is complete."""
    for block in demo.blocks.values():
        block.async_move_resource_to_block_cache = _stays_here


async def _stays_here(path: str) -> str:
    """A file is where it was uploaded to; one named by an address Gradio would download."""
    if is_http_url_like(path):
        raise gr.Error("Only a file of your own can be read.", print_exception=False)
    return path
