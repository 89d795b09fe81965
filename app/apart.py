"""Slow work in few threads of low priority, so that Run and clicks go first whatever else runs."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, wraps
from typing import Any

N_THREADS = 2
NICENESS = 5

_END = object()


def _let_others_go_first() -> None:
    if hasattr(os, "setpriority"):  # on Linux a thread has a priority of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(N_THREADS, "apart", _let_others_go_first)


def apart(handler: Callable) -> Callable:
    """A handler that runs there; one that yields goes back to the end of the line each time."""

    def there(function: Callable, *args: Any, **kwargs: Any) -> Any:
        return _threads().submit(copy_context().run, function, *args, **kwargs).result()

    @wraps(handler)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return there(handler, *args, **kwargs)

    @wraps(handler)
    def wrapped_steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
        steps = handler(*args, **kwargs)
        try:
            while (step := there(next, steps, _END)) is not _END:
                yield step
        finally:
            steps.close()

    return wrapped_steps if inspect.isgeneratorfunction(handler) else wrapped
