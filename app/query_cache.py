"""The products of the tokens that were chosen last, so that another filter or metric takes no new
pass over a large bank."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from app.together import Together
from elmo.banks.bank import Query, TokenBank

TOKENS_PER_PASS = 8  # of several visitors, over one bank


@dataclass(frozen=True)
class _Token:
    digest: bytes
    bank: TokenBank = field(compare=False)
    vectors: np.ndarray = field(compare=False)


def _one_pass(tokens: Sequence[_Token]) -> list[Query]:
    """Reading the bank is most of the work: several tokens take little longer than one."""
    return tokens[0].bank.queries(np.stack([token.vectors for token in tokens]))


class QueryCache:
    """Bounded in bytes; safe to share between threads. Keyed by the vectors themselves."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple, tuple[weakref.ref[TokenBank], Query]] = OrderedDict()
        self._together: dict[int, Together[_Token, Query]] = {}  # by the bank's id
        self._lock = threading.Lock()

    def query(self, bank: TokenBank, vectors: np.ndarray) -> Query:
        """``bank.query(vectors)``; what several threads ask at the same time is one pass."""
        digest = blake2b(np.ascontiguousarray(vectors).tobytes()).digest()
        key = (id(bank), digest)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                kept, found = self._kept[key]
                if kept() is bank:
                    return found
            together = self._together.get(id(bank))
            if together is None:
                together = Together(_one_pass, lambda token: 1, TOKENS_PER_PASS)
                self._together[id(bank)] = together
                weakref.finalize(bank, self._together.pop, id(bank), None)
        found = together(_Token(digest, bank, vectors))
        with self._lock:
            self._kept[key] = (weakref.ref(bank), found)  # a text's bank is not kept for this
            while len(self._kept) > 1 and self._bytes() > self._max_bytes:
                self._kept.popitem(last=False)
        return found

    def _bytes(self) -> int:
        return sum(query.table.nbytes for _, query in self._kept.values())
