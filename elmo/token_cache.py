"""Context-free vectors by token string, a bounded number of them, shared by threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor


class TokenCache:
    """A table of vectors that fills up and then overwrites its oldest rows.

    ``stamp`` names the weights that the vectors were made with; a new stamp empties the table,
    so that no vector outlives a change of the weights.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be positive, got {capacity}")
        self.capacity = capacity
        self._lock = threading.Lock()
        self._stamp: object = None
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[str, int] = {}
        self._owners: list[str] = []
        self._next = 0
        self._table: Tensor | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        with self._lock:
            self._forget()

    def vectors(
        self, tokens: Sequence[str], stamp: object, compute: Callable[[list[str]], Tensor]
    ) -> Tensor:
        """Vectors (n, P) of n distinct tokens; ``compute`` makes those of unknown ones."""
        with torch.inference_mode(False), torch.no_grad():  # rows must stay writable later
            return self._vectors(tokens, stamp, compute)

    def _vectors(
        self, tokens: Sequence[str], stamp: object, compute: Callable[[list[str]], Tensor]
    ) -> Tensor:
        with self._lock:
            if stamp != self._stamp:
                self._stamp = stamp
                self._forget()
            rows = [self._rows.get(token, -1) for token in tokens]
            known = [i for i, row in enumerate(rows) if row >= 0]
            new = [i for i, row in enumerate(rows) if row < 0]
            found = self._table[[rows[i] for i in known]] if known else None
        if not new:
            return found
        made = compute([tokens[i] for i in new])
        with self._lock:
            if stamp == self._stamp:
                self._store([tokens[i] for i in new], made)
        if found is None:
            return made
        result = made.new_empty(len(tokens), made.shape[1])
        result[known] = found
        result[new] = made
        return result

    def _store(self, tokens: list[str], vectors: Tensor) -> None:
        tokens, vectors = tokens[-self.capacity :], vectors[-self.capacity :]
        slots = []
        for token in tokens:
            if token in self._rows:  # another thread was faster; the vectors are the same
                slots.append(self._rows[token])
                continue
            slot = self._next
            if slot < len(self._owners):
                del self._rows[self._owners[slot]]
                self._owners[slot] = token
            else:
                self._owners.append(token)
            self._rows[token] = slot
            self._next = (slot + 1) % self.capacity
            slots.append(slot)
        self._grow(vectors)
        self._table[slots] = vectors

    def _grow(self, vectors: Tensor) -> None:
        n_rows = 0 if self._table is None else len(self._table)
        if n_rows >= len(self._owners):
            return
        size = min(self.capacity, max(len(self._owners), 2 * n_rows, 1024))
        table = vectors.new_empty(size, vectors.shape[1])
        if self._table is not None:
            table[:n_rows] = self._table
        self._table = table


def weights_stamp(module: torch.nn.Module) -> tuple:
    """Changes when a parameter of the module is replaced or changed in place."""
    return tuple(
        (p.data_ptr(), 0 if p.is_inference() else p._version, p.dtype, p.device)
        for p in module.parameters()
    )
