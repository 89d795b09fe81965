"""Neighbors: which banks, filters and similarity; a file of the visitor's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.utils import get_upload_folder

from app.choice import Choice
from app.handlers.events import data_of, message, place_of, shows_errors
from app.services import Services, Tokens
from app.state import Selection
from app.upload_service import UploadedBank
from app.views.map_choice import text_id
from app.views.nearby import near_view, pools_view


class NeighborHandlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @shows_errors
    def near(self, selection: Selection, sent: str) -> str:
        """The neighbors of what the page has chosen, in all banks; no answer about a text that it
        does not show."""
        sentences = self._sentences(selection)
        data = data_of(sent)
        if data.get("text") != text_id(sentences):
            return gr.skip()
        place, choice = place_of(sent, sentences), Choice.of(data)
        asked = replace(selection, sentence=place[0], token=place[1], choice=choice)
        services = self.services.using(selection.elmo)
        return message({"near": near_view(services, sentences, asked, choice)})

    @shows_errors
    def choose(self, selection: Selection, sent: str) -> tuple[Selection, str]:
        """Other banks, filters, or another similarity; the large bank is asked for by ``near``."""
        chosen = replace(selection, choice=Choice.of(data_of(sent)))
        services = self.services.using(selection.elmo)
        view = near_view(services, self._sentences(selection), chosen, chosen.choice.quick)
        return chosen, message({"near": view})

    @shows_errors
    def status(self, selection: Selection, sent: str) -> str:
        """How far the background has come."""
        services = self.services.using(selection.elmo)
        return message({"pools": pools_view(services, selection.choice.upload)})

    @shows_errors
    def upload(self, file: Any, selection: Selection) -> Iterator[str]:
        """Reads a file, deletes it, and encodes it; the page is told how far, and at the end the
        digest that the bank is found by. file: what Gradio says of it."""
        for step in self._bank_of(file, self.services.using(selection.elmo)):
            yield message({"uploading": step})

    def _sentences(self, selection: Selection) -> Tokens:
        return self.services.parse(selection.text, selection.pretokenized)

    def _bank_of(self, file: Any, services: Services) -> Iterator[dict]:
        try:
            read = services.uploads.read(_uploaded(file))
        except ValueError as error:
            yield {"error": str(error)}
            return
        for step in services.uploads.encode(read):
            if isinstance(step, UploadedBank):
                yield {"digest": step.digest, "name": step.name}
            else:
                yield {"name": read.name, "done": step[0], "total": step[1]}


def _uploaded(file: Any) -> Path:
    """Where Gradio has put a file that was uploaded; any other place may be named here. Raises
    ``ValueError``."""
    path = file.get("path") if isinstance(file, dict) else None
    if not isinstance(path, str):
        raise ValueError("No file was chosen.")
    found = Path(path).resolve()
    if found.parent.parent != Path(get_upload_folder()).resolve():
        raise ValueError("Only a file that was uploaded here can be read: choose one.")
    return found
