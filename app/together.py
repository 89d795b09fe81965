"""Calls of several threads at the same time, answered together.

A class that presses Run within seconds asks for one text each. A batch of texts takes the encoders
little longer than one of them, so whatever is asked while a batch is at work forms the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from app.turns import turn

Asked = TypeVar("Asked", bound=Hashable)
Answer = TypeVar("Answer")


class Together(Generic[Asked, Answer]):
    """``work`` gets what was asked, each thing once, and answers in the same order.

    size_of: of a thing asked; a batch is ended where its sizes would sum up to more than
    ``max_size``. Safe to share between threads; what ``work`` raises is raised to all who asked.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Asked]], Sequence[Answer]],
        size_of: Callable[[Asked], int],
        max_size: int,
    ) -> None:
        self._work, self._size_of, self._max_size = work, size_of, max_size
        self._asked: dict[Asked, Future[Answer]] = {}  # until answered, the earliest first
        self._lock = threading.Lock()
        self._turn = threading.Lock()  # held by the thread that works for all

    def __call__(self, asked: Asked) -> Answer:
        with self._lock:
            answer = self._asked.setdefault(asked, Future())
        while not answer.done():
            with self._turn:
                if not answer.done():
                    self._answer_next()
        return answer.result()

    def _answer_next(self) -> None:
        with self._lock:
            batch = self._next_batch()
        try:
            with turn:
                answers = self._work(batch)
        except Exception as error:
            for asked in batch:
                self._take(asked).set_exception(error)
        else:
            for asked, answer in zip(batch, answers, strict=True):
                self._take(asked).set_result(answer)

    def _next_batch(self) -> list[Asked]:
        batch: list[Asked] = []
        size = 0
        for asked in self._asked:
            size += self._size_of(asked)
            if batch and size > self._max_size:
                break
            batch.append(asked)
        return batch

    def _take(self, asked: Asked) -> Future[Answer]:
        with self._lock:
            return self._asked.pop(asked)
