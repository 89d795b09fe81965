"""Where a sentence's LSTMs start: at zero, warmed up, or where the last sentence left them.

The original software kept the state from one call to the next, row by row, which made a
sentence's vectors depend on everything embedded before it. Here that is one of three modes:

``zero``   every sentence from zeros: deterministic, alone or in any batch.
``warm``   every sentence from one fixed state, the one left by a fixed text: as deterministic,
           and nearer to training, in which a sentence never started from zeros.
``carry``  the original's behavior: row r of a call continues where row r of the last call ended.
"""

from __future__ import annotations

import torch
from torch import Tensor

from elmo.bilm import BiLM, State

MODES = ("zero", "warm", "carry")

WARM_UP = """\
The town council met on Monday to talk about the new bridge .
" We have waited for ten years , " she said , " and we can wait another month . "
It rained all night , but the river did not rise .
He put the letter on the table and went out without a word .
Prices rose by 2.5 percent in March , the office reported .
Who would have thought that the old mill could be saved ?
"""

Pair = tuple[State, State]  # the forward and the backward stack's


def zero_pair(stack: BiLM, n_sentences: int) -> Pair:
    """The zero state of both stacks for so many sentences, float32 whatever the weights are."""

    def zeros(layers) -> State:
        starts = [layer.start(n_sentences) for layer in layers]
        return State(tuple(h.float() for h, _ in starts), tuple(c.float() for _, c in starts))

    return zeros(stack.forward_layers), zeros(stack.backward_layers)


def _map(pair: Pair, change) -> Pair:
    def one(state: State) -> State:
        return State(tuple(map(change, state.hidden)), tuple(map(change, state.cell)))

    return one(pair[0]), one(pair[1])


def repeat_pair(pair: Pair, n_sentences: int) -> Pair:
    """A state of one row for every sentence of a batch."""
    return _map(pair, lambda x: x.expand(n_sentences, -1))


def copy_pair(pair: Pair, n_sentences: int) -> Pair:
    """``repeat_pair`` in memory of its own, which a graph may keep."""
    return _map(pair, lambda x: x.expand(n_sentences, -1).clone())


class Carried:
    """The rows that ``carry`` remembers; as many as the largest batch so far had."""

    def __init__(self) -> None:
        self.pair: Pair | None = None

    def start(self, stack: BiLM, n_sentences: int) -> Pair:
        """Known rows continue, new ones start at zero."""
        if self.pair is None:
            return zero_pair(stack, n_sentences)
        n_known = len(self.pair[0].cell[0])
        if n_known >= n_sentences:
            return _map(self.pair, lambda x: x[:n_sentences])
        return self._joined(self.pair, zero_pair(stack, n_sentences - n_known))

    def keep(self, end: Pair) -> None:
        """A smaller batch leaves the state of the rows that it did not use."""
        n_used = len(end[0].cell[0])
        if self.pair is not None and len(self.pair[0].cell[0]) > n_used:
            end = self._joined(end, _map(self.pair, lambda x: x[n_used:]))
        self.pair = _map(end, Tensor.detach)

    @staticmethod
    def _joined(first: Pair, second: Pair) -> Pair:
        def join(a: State, b: State) -> State:
            rows = [
                tuple(torch.cat(pair) for pair in zip(x, y, strict=True))
                for x, y in ((a.hidden, b.hidden), (a.cell, b.cell))
            ]
            return State(*rows)

        return join(first[0], second[0]), join(first[1], second[1])
