"""UMAP maps, fitted one at a time in a process beside the page, in turn among the visitors.

The page asks, is told how far things are, and asks again; who has not asked for a while has left.
The process is kept, since importing and compiling takes it seconds.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmo.banks.messages import receive, send

ROOT = Path(__file__).resolve().parent.parent
WORKER = (sys.executable, "-m", "elmo.banks.umap_worker")
SECONDS_TO_LEAVE = 20.0  # without a question from the page
MAX_VISITORS = 100
MAX_MAPS = 300

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fit:
    """One encoder's map to be made. vectors: gives (N, L, D), called when its turn comes."""

    vectors: Callable[[], np.ndarray]
    n_layers: int
    n_axes: int = 2
    seed: int = 0
    aligned: bool = False


@dataclass(frozen=True)
class Progress:
    """How far a visitor's maps are. ahead: other visitors whose turn comes first; ready: false
    while the process starts; done, total: layers; failed: why there will be no map."""

    ahead: int
    ready: bool
    done: int
    total: int
    seconds: float
    failed: str = ""


@dataclass
class _Wish:
    fits: dict[Hashable, Fit]
    since: float
    seen: float


class UmapService:
    """Maps by their keys, which must name all that a map follows from. Safe between threads."""

    def __init__(
        self,
        command: tuple[str, ...] = WORKER,
        seconds_to_leave: float = SECONDS_TO_LEAVE,
    ) -> None:
        self._command = command
        self._seconds_to_leave = seconds_to_leave
        self._maps: OrderedDict[Hashable, np.ndarray] = OrderedDict()
        self._failed: dict[Hashable, str] = {}
        self._wishes: OrderedDict[str, _Wish] = OrderedDict()  # whose turn it is comes first
        self._running: Hashable | None = None
        self._layers_done = 0
        self._is_ready = False
        self._process: subprocess.Popen | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._changed = threading.Condition(threading.RLock())

    def start(self) -> None:
        """Starts the process, so that the first map is not the one that waits for it."""
        with self._changed:
            if self._thread is None and not self._is_stopped:
                self._thread = threading.Thread(target=self._run, name="umap", daemon=True)
                self._thread.start()

    def found(self, keys: list[Hashable]) -> dict[Hashable, np.ndarray] | None:
        """The maps of all these keys, if all are there."""
        with self._changed:
            if not all(key in self._maps for key in keys):
                return None
            for key in keys:
                self._maps.move_to_end(key)
            return {key: self._maps[key] for key in keys}

    def ask(self, visitor: str, fits: Mapping[Hashable, Fit]) -> Progress:
        """Wishes for maps, in place of what the visitor wished for before; returns at once.

        Raises ``ValueError`` where too many visitors wait.
        """
        now = time.monotonic()
        with self._changed:
            self._drop_those_who_left(now)
            if visitor not in self._wishes and len(self._wishes) >= MAX_VISITORS:
                raise ValueError("Too many visitors are waiting for UMAP; try again later.")
            wish = self._wishes.get(visitor)
            if wish is None or set(wish.fits) != set(fits):
                wish = self._wishes[visitor] = _Wish(dict(fits), now, now)
            wish.seen = now
            self._end_unwanted()
            self.start()
            self._changed.notify_all()
            return self._progress(visitor, wish, now)

    def cancel(self, visitor: str) -> None:
        """Forgets a visitor's wish; a fit that nobody else waits for ends at once."""
        with self._changed:
            self._wishes.pop(visitor, None)
            self._end_unwanted()
            self._changed.notify_all()

    def stop(self) -> None:
        """Ends the process and its thread."""
        with self._changed:
            self._is_stopped = True
            self._wishes.clear()
            self._kill()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    # ---- under the lock --------------------------------------------------------------------------

    def _progress(self, visitor: str, wish: _Wish, now: float) -> Progress:
        total = sum(fit.n_layers for fit in wish.fits.values())
        done = sum(fit.n_layers for key, fit in wish.fits.items() if key in self._maps)
        if self._running in wish.fits:
            done += min(self._layers_done, wish.fits[self._running].n_layers)
        failed = next((self._failed.pop(key) for key in wish.fits if key in self._failed), "")
        if failed:
            self._wishes.pop(visitor, None)
        order = [name for name in self._wishes if self._next_of(self._wishes[name]) is not None]
        ahead = order.index(visitor) if visitor in order and self._running not in wish.fits else 0
        return Progress(ahead, self._is_ready, done, total, now - wish.since, failed)

    def _next_of(self, wish: _Wish) -> Hashable | None:
        left = (key for key in wish.fits if key not in self._maps and key not in self._failed)
        return next(left, None)

    def _drop_those_who_left(self, now: float) -> None:
        for visitor, wish in list(self._wishes.items()):
            if now - wish.seen > self._seconds_to_leave:
                del self._wishes[visitor]

    def _end_unwanted(self) -> None:
        wanted = any(self._running in wish.fits for wish in self._wishes.values())
        if self._running is not None and not wanted:
            self._running = None
            self._kill()

    def _kill(self) -> None:
        process, self._process, self._is_ready = self._process, None, False
        if process is not None:
            process.kill()
            process.wait()

    def _take(self) -> tuple[Hashable, Fit] | None:
        """The next fit; its visitor's next turn comes after everybody else's."""
        self._drop_those_who_left(time.monotonic())
        for visitor, wish in self._wishes.items():
            key = self._next_of(wish)
            if key is not None:
                self._wishes.move_to_end(visitor)
                return key, wish.fits[key]
        return None

    # ---- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_stopped:
            process = self._worker()
            with self._changed:
                while not self._is_stopped and (taken := self._take()) is None:
                    self._changed.wait(self._seconds_to_leave)
                if self._is_stopped:
                    return
                self._running, fit = taken
                self._layers_done = 0
            result = self._fit(process, fit) if process else "its process does not start"
            with self._changed:
                if self._running is not None:  # else nobody wants it any more
                    self._keep(self._running, result)
                self._running = None

    def _keep(self, key: Hashable, result: np.ndarray | str) -> None:
        if isinstance(result, str):
            log.warning("no UMAP map: %s", result)
            self._failed[key] = result
            return
        self._maps[key] = result
        while len(self._maps) > MAX_MAPS:
            self._maps.popitem(last=False)

    def _worker(self) -> subprocess.Popen | None:
        """The running process, a new one where there is none, once it is ready."""
        with self._changed:
            if self._process is not None:
                return self._process
            process = self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=os.environ | _environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        try:
            receive(process.stdout)
        except (EOFError, OSError, ValueError):
            self._forget(process)
            return None
        self._is_ready = True
        return process

    def _fit(self, process: subprocess.Popen, fit: Fit) -> np.ndarray | str:
        """The map, or why there is none."""
        try:
            send(process.stdin, "fit", [fit.n_axes, fit.seed, fit.aligned], fit.vectors())
            while True:
                kind, value, array = receive(process.stdout)
                if kind != "layers":
                    return value if array is None else array
                self._layers_done = value
        except (EOFError, OSError, ValueError):
            self._forget(process)
            return "the process that fits it ended"

    def _forget(self, process: subprocess.Popen) -> None:
        with self._changed:
            if self._process is process:
                self._kill()


def _environment() -> dict[str, str]:
    """One thread, and a folder that can be written to for what is compiled: a home may not be."""
    user = getattr(os, "getuid", int)()
    cache = Path(tempfile.gettempdir()) / f"both-ways-numba-{user}"
    return {"NUMBA_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
