"""What neighbor lists and the triangle are made of; the browser ranks (``static/ranking.js``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.packing import pack
from elmo.bank import Query, TokenBank
from elmo.mixing import share_among_nearest, simplex_grid

GRID_STEPS = 16  # of the triangle: 153 mixes
N_NEAREST = 10


def pool(bank: TokenBank) -> dict[str, Any]:
    """The rows of a bank and their products with themselves and with the mean.

    sentences: those that have rows, in the order of the rows; a row follows from its token's
    place, so rows are not listed.
    """
    return {
        "n_rows": len(bank),
        "sentences": list(dict.fromkeys(bank.sentence.tolist())),
        "norms": pack(bank.norms),
        "mean_products": pack(bank.mean_products),
        "mean_norm": bank.mean_norm.tolist(),
    }


def query_products(query: Query, text_query: Query, row: int) -> dict[str, Any]:
    """Products of the chosen token with the rows of the bank and of the visitor's text."""
    return {
        "row": row,
        "bank": pack(query.products),
        "text": pack(text_query.products),
        "norm": query.norm.tolist(),
        "mean_products": query.mean_products.tolist(),
    }


def same_word_triangle(bank: TokenBank, text: TokenBank, row: int, hidden: list[int]) -> dict:
    """For every mix: the share of the chosen word's other copies among its nearest tokens."""
    word = text.token(row)
    own = [r for r in text.rows_of(word) if r != row]
    of_bank = ~np.isin(bank.sentence, hidden)
    relevant = np.zeros(len(bank) + len(text), dtype=bool)
    relevant[bank.rows_of(word)] = True
    relevant[len(bank) + np.array(own, dtype=int)] = True
    keep = np.concatenate([of_bank, np.arange(len(text)) != row])
    return _triangle(bank, text, row, relevant, keep, N_NEAREST, "same word")


def same_sense_triangle(
    text: TokenBank, occurrences: list[tuple[int, str]], row: int
) -> dict[str, Any] | None:
    """For every mix: of each labelled copy's nearest copies, the share in its own sense.

    occurrences: (row of the text, sense). A copy is asked for as many neighbors as its sense has
    other copies; the figure is the mean over copies. ``None`` where no sense has two copies or all
    have the same.
    """
    senses = [sense for _, sense in occurrences]
    rows = np.array([r for r, _ in occurrences], dtype=int)
    mixes = simplex_grid(GRID_STEPS)
    shares = []
    for i, (own_row, sense) in enumerate(occurrences):
        same = np.array([s == sense for s in senses])
        same[i] = False
        if not same.any() or same.sum() == len(senses) - 1:
            continue
        others = np.arange(len(rows)) != i
        products, norms, norm = text.centered(text.query(text.vectors[own_row]))
        picked = rows[others]
        shares.append(
            share_among_nearest(
                products[picked], norms[picked], norm, same[others], int(same.sum()), mixes
            )
        )
    if not shares:
        return None
    values = np.mean(shares, axis=0)
    return {"kind": "same sense", "steps": GRID_STEPS, "values": values.round(4).tolist()}


def _triangle(bank, text, row, relevant, keep, k, kind) -> dict[str, Any]:
    vectors = text.vectors[row]
    in_bank = bank.centered(bank.query(vectors))
    in_text = text.centered(text.query(vectors))
    products = np.concatenate([in_bank[0], in_text[0]])[keep]
    norms = np.concatenate([in_bank[1], in_text[1]])[keep]
    n_relevant = int(relevant[keep].sum())
    if not n_relevant:
        return {"kind": kind, "steps": GRID_STEPS, "values": None}
    values = share_among_nearest(
        products, norms, in_text[2], relevant[keep], min(k, n_relevant), simplex_grid(GRID_STEPS)
    )
    return {"kind": kind, "steps": GRID_STEPS, "values": values.round(4).tolist()}
