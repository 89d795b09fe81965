"""What the nearest tokens have in common with a token, for every mix of layers at once.

The picture of "different tasks want different layers": over all mixes, the share of the k nearest
that are the same word, that have the same part of speech, and that have the same sense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elmo.banks.bank import Query, TokenBank
from elmo.banks.candidates import find_candidates
from elmo.banks.tagged import Tag


@dataclass(frozen=True)
class Question:
    """name: ``same word``, ``same part of speech`` or ``same sense``.

    rows: rising rows of the bank to look among, those for which the answer is known; relevant: the
    answer for each of them.
    """

    name: str
    rows: np.ndarray
    relevant: np.ndarray

    @property
    def chance(self) -> float:
        """The share to expect of rows taken blindly."""
        return float(self.relevant.mean()) if len(self.rows) else 0.0


@dataclass(frozen=True)
class Triangle:
    """shares: (G,) for the (G, L) mixes; k: how many neighbors count, fewer than asked for where
    fewer are relevant, so that 1 can be reached; n_rows, chance: of the question."""

    name: str
    mixes: np.ndarray
    shares: np.ndarray
    k: int
    n_rows: int
    chance: float


def questions(
    bank: TokenBank,
    word: str,
    tag: Tag | None = None,
    without_sentences: Sequence[int] = (),
) -> list[Question]:
    """What can be asked about a word's neighbors.

    Same word: among all rows. Same part of speech: among rows of other words with a known one, as
    the word itself would bring its own. Same sense: among rows of the word with a known sense, as
    senses of different words have nothing in common. Rows of ``without_sentences`` (the word's own
    sentence, and its copies) never count. A question is left out where all rows or none are
    relevant, or where ``tag`` does not say enough to answer it.
    """
    anywhere = bank.select(without_sentences=without_sentences)
    own = np.zeros(len(bank), dtype=bool)
    own[bank.rows_of(word)] = True
    found = [Question("same word", anywhere, own[anywhere])]
    if tag is not None and tag.pos:
        rows = anywhere[(bank.pos_ids[anywhere] >= 0) & ~own[anywhere]]
        wanted = np.array([*(t.pos == tag.pos for t in bank.tags), False], dtype=bool)
        found.append(Question("same part of speech", rows, wanted[bank.tag[rows]]))
    if tag is not None and tag.sense:
        rows = anywhere[(bank.sense_ids[anywhere] >= 0) & own[anywhere]]
        wanted = np.array([*(t.sense == tag.sense for t in bank.tags), False], dtype=bool)
        found.append(Question("same sense", rows, wanted[bank.tag[rows]]))
    return [q for q in found if 0 < q.relevant.sum() < len(q.rows)]


def triangle(
    bank: TokenBank,
    query: Query,
    question: Question,
    mixes: np.ndarray,
    k: int = 10,
    unit: bool = False,
    centered: bool = True,
) -> Triangle:
    """The shares of one token, by cosine. Exact: see ``candidates`` for large banks."""
    k = min(k, int(question.relevant.sum()))
    comparison = bank.comparison(query, unit=unit, centered=centered, rows=question.rows)
    comparison = find_candidates(comparison, k).comparison
    relevant = question.relevant[np.searchsorted(question.rows, comparison.rows)]
    shares = comparison.shares(relevant, k, mixes)
    return Triangle(question.name, mixes, shares, k, len(question.rows), question.chance)


TIE = 1e-6  # cosines this near to each other are equal


def same_sense_shares(
    vectors: np.ndarray, senses: Sequence[str], mixes: np.ndarray
) -> np.ndarray | None:
    """(G,) for every mix (G, L): of each copy's nearest copies by cosine, the share of its sense.

    vectors: (n, L, D) of the copies of one word, the mean removed if wanted. A copy is asked for as
    many neighbors as its sense has other copies; where several are equally near at the edge, their
    mean share counts. The mean over copies; ``None`` where no sense has two, or all have the same.
    """
    n = len(senses)
    itself = np.eye(n, dtype=bool)
    same = np.equal.outer(np.array(senses), np.array(senses)) & ~itself
    wanted = same.sum(axis=1)
    answers = (wanted > 0) & (wanted < n - 1)
    if not answers.any():
        return None
    mixed = np.tensordot(mixes, vectors, axes=(1, 1))  # (G, n, D)
    mixed /= np.maximum(np.linalg.norm(mixed, axis=2, keepdims=True), 1e-12)
    cosines = mixed @ mixed.transpose(0, 2, 1)  # (G, n, n)
    cosines[:, itself] = -np.inf
    cosines, same, wanted = cosines[:, answers], same[answers], wanted[answers, None]
    ranked = -np.sort(-cosines, axis=2)
    edge = np.take_along_axis(ranked, np.broadcast_to(wanted - 1, (*cosines.shape[:2], 1)), axis=2)
    surely, perhaps = cosines > edge + TIE, np.abs(cosines - edge) <= TIE
    open_places = wanted[:, 0] - surely.sum(axis=2)  # (G, n) for those at the edge
    hits = (surely & same).sum(axis=2)
    hits = hits + (perhaps & same).sum(axis=2) * open_places / perhaps.sum(axis=2)
    return (hits / wanted[:, 0]).mean(axis=1)
