"""The lecture's steps: each brings its text, token and axes."""

from __future__ import annotations

from dataclasses import replace

from app.handlers.events import data_of, index_of, shows_errors
from app.handlers.page import Handlers
from app.lecture import Lecture
from app.state import Selection


class LectureHandlers:
    """Bound to the page's handlers and the lecture; holds nothing of any visitor."""

    def __init__(self, page: Handlers, lecture: Lecture) -> None:
        self.page, self.lecture = page, lecture

    @shows_errors
    def step(self, selection: Selection, sent: str) -> tuple:
        """Shows the text of a step, its word chosen, in the step's axes."""
        index = index_of(sent, "step", len(self.lecture.steps))
        state = self.lecture.state(index, data_of(sent).get("revealed") is True)
        shown = self.page.choose_example(state.example, replace(selection, basis=state.axes))
        return state.example, *shown
