"""WordNet's example sentences as a bank, opened or built in the background while the page is used.

One thread goes through the encoders. A bank that is on disk is there within seconds; one that is
not takes minutes, and goes on where it was broken off when the program starts again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from elmo.banks.bank import TokenBank, with_means
from elmo.banks.bank_build import Progress, open_or_build
from elmo.banks.bank_tables import Means
from elmo.banks.sources import Source, wordnet_source
from elmo.encoders import Encoder

NICENESS = 5  # of the thread: whoever uses the page goes first
SECONDS_BETWEEN_TRIES = 5.0  # while another process builds the same bank

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """state: ``off``, ``opening``, ``building``, ``ready``, ``absent`` or ``failed``; kind: the
    encoder at work; progress: of a build; message: why there is none."""

    state: str
    kind: str = ""
    progress: Progress | None = None
    message: str = ""


class WordNetService:
    """``banks`` fills up encoder by encoder, all with the means of the encoder's own examples, so
    that similarities to rows of either can stand in one list."""

    def __init__(
        self,
        encoders: Mapping[str, Encoder],
        means: Mapping[str, Means],
        cache: Path,
        find_source: Callable[[], Source] = wordnet_source,
    ) -> None:
        self.banks: dict[str, TokenBank] = {}
        self.status = Status("off")
        self._encoders, self._means = dict(encoders), dict(means)
        self._cache, self._find_source = cache, find_source
        self._places: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins, once; returns at once."""
        if self._thread is None:
            self.status = Status("opening")
            self._thread = threading.Thread(target=self._run, name="wordnet", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ends a build after its chunk; what was done stays for the next time."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def wait(self, seconds: float) -> Status:
        """Until all is done, at most so long."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.status

    def copies(self, sentences: Sequence[tuple[str, ...]]) -> list[int]:
        """Which of WordNet's sentences are among these."""
        if not self.banks:
            return []
        known = next(iter(self.banks.values())).sentences
        found = (self._places.get(hash(s), -1) for s in sentences)
        return [i for i, s in zip(found, sentences, strict=True) if i >= 0 and known[i] == tuple(s)]

    def _run(self) -> None:
        _be_nice()
        try:
            source = _read_once(self._find_source())
            for kind, encoder in self._encoders.items():
                bank = self._open(kind, encoder, source)
                if bank is None:  # stopped
                    return
                if not self._places:
                    self._places = {hash(s): i for i, s in enumerate(bank.sentences)}
                self.banks[kind] = with_means(bank, self._means[kind])
            self.status = Status("ready")
        except FileNotFoundError as error:
            self.status = Status("absent", message=str(error))
        except Exception as error:  # the page goes on with the other sentences, and says why
            log.exception("WordNet's examples are not available")
            self.status = Status("failed", message=f"{type(error).__name__}: {error}")

    def _open(self, kind: str, encoder: Encoder, source: Source) -> TokenBank | None:
        """Where the folder cannot be written to, one for temporary files takes its place."""
        folder = self._cache
        while not self._stop.is_set():
            self.status = Status("opening", kind)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                return open_or_build(
                    folder,
                    source,
                    encoder,
                    lambda progress: self._report(kind, progress),
                    self._stop.is_set,
                )
            except FileNotFoundError:
                raise
            except OSError as error:
                other = Path(tempfile.gettempdir()) / "both-ways-banks"
                if folder == other:
                    raise
                log.warning("%s: the bank goes to %s", error, other)
                folder = other
            except ValueError as error:
                if "another process" not in str(error):
                    raise
                self.status = Status("building", kind, message="another process is building it")
                self._stop.wait(SECONDS_BETWEEN_TRIES)
        return None

    def _report(self, kind: str, progress: Progress) -> None:
        self.status = Status("building", kind, progress)


def _be_nice() -> None:
    with contextlib.suppress(AttributeError, OSError):  # only Linux has it by thread
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _read_once(source: Source) -> Source:
    """Reading takes seconds; the second encoder gets the same sentences."""
    kept: list = []

    def read():
        if not kept:
            kept.extend(source)
        return iter(kept)

    return replace(source, read=read)
