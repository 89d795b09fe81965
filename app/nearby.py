"""The chosen token's neighbors for every mix at once, out of the banks that a visitor chose.

The page gets few rows and their products, and ranks them itself while a slider is dragged. What is
certain about these few is in ``Near``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.choice import Choice
from app.turns import turn
from elmo.banks.bank import Query, TokenBank
from elmo.banks.candidates import find_candidates
from elmo.banks.mixing import simplex_grid
from elmo.banks.neighbors import Comparison

K = 20  # neighbors that are exact for every mix
LIMIT = 2_000  # rows that are sent for them
MOST = 3_000  # rows that are sent where it takes more than LIMIT
GRID_STEPS = 10  # of the mixes that are searched where it takes more than MOST


@dataclass(frozen=True)
class Pool:
    """Rows of one bank that may be neighbors: all but those of some sentences, or of one row."""

    name: str
    bank: TokenBank
    without_sentences: Sequence[int] = ()
    without_row: int = -1


@dataclass(frozen=True)
class Near:
    """Candidates of one encoder.

    pools: as asked; n_rows: that pass the filters; comparison: the query beside the candidates,
    whose ``rows`` count through all pools, one after the other. exact: the K nearest of every mix
    are among them (see ``elmo.banks.candidates``); else those of ``n_mixes`` mixes are.
    """

    pools: tuple[Pool, ...]
    n_rows: int
    comparison: Comparison
    exact: bool
    n_mixes: int = 0

    def place(self, row: int) -> tuple[Pool, int]:
        """The pool a candidate is in, and its row there."""
        for pool in self.pools:
            if row < len(pool.bank):
                return pool, row
            row -= len(pool.bank)
        raise ValueError(f"no row {row}")


def compare(
    pools: Sequence[Pool], queries: Mapping[str, Query], word: str, choice: Choice
) -> Comparison:
    """The query beside every row that passes the filters; all pools have the same means.

    queries: of the token with each pool's bank, by the pool's name.
    """
    parts, start = [], 0
    for pool in pools:
        rows = pool.bank.select(
            word, choice.words, choice.pos, without_sentences=pool.without_sentences
        )
        rows = rows[rows != pool.without_row]
        part = pool.bank.comparison(queries[pool.name], choice.unit, choice.centered, rows)
        parts.append((part, rows + start))
        start += len(pool.bank)
    if not parts:
        raise ValueError("choose at least one bank")
    return Comparison(
        np.concatenate([part.products for part, _ in parts], axis=1),
        np.concatenate([part.norms for part, _ in parts], axis=1),
        parts[0][0].norm,
        np.concatenate([rows for _, rows in parts]),
    )


def find_near(
    pools: Sequence[Pool], queries: Mapping[str, Query], word: str, choice: Choice
) -> Near:
    """The candidates; exact for every mix where at most ``MOST`` rows hold that."""
    with turn:
        everything = compare(pools, queries, word, choice)
        found = find_candidates(everything, K, choice.metric, LIMIT)
        if len(found) <= MOST:
            return Near(tuple(pools), len(everything), found.comparison, True)
        mixes = simplex_grid(GRID_STEPS if everything.n_layers <= 3 else 6, everything.n_layers)
        rows = [found.comparison.nearest(s, K, choice.metric).rows for s in mixes]
        kept = np.unique(np.concatenate(rows))
        comparison = found.comparison.take(np.searchsorted(found.comparison.rows, kept))
        return Near(tuple(pools), len(everything), comparison, False, len(mixes))
