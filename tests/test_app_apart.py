"""Slow work runs in threads of its own, behind everything else."""

import os
import threading

import gradio as gr
import pytest

from app.apart import N_THREADS, NICENESS, apart
from app.handlers.events import shows_errors


def test_it_runs_elsewhere_with_low_priority():
    @apart
    def where():
        return threading.current_thread().name, os.getpriority(
            os.PRIO_PROCESS, threading.get_native_id()
        )

    name, niceness = where()
    assert name.startswith("apart") and niceness >= NICENESS
    assert where.__name__ == "where"


def test_errors_come_back_as_they_are():
    @apart
    @shows_errors
    def fails():
        raise ValueError("n must be 1")

    with pytest.raises(gr.Error, match="n must be 1"):
        fails()


def test_steps_come_one_by_one_and_end_when_nobody_wants_more():
    ended = []

    @apart
    def steps():
        try:
            yield from range(5)
        finally:
            ended.append(True)

    assert list(steps()) == [0, 1, 2, 3, 4]
    some = steps()
    assert next(some) == 0
    some.close()
    assert ended == [True, True]


def test_few_at_once():
    running, most, lock = [], [], threading.Lock()

    @apart
    def slow(i):
        with lock:
            running.append(i)
            most.append(len(running))
        threading.Event().wait(0.02)
        with lock:
            running.remove(i)

    threads = [threading.Thread(target=slow, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == N_THREADS
