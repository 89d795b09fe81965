"""What the triangle of all mixes shows: what the nearest tokens have in common with the chosen one.

Several questions can be asked; which ones depends on what is known of the word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from app.choice import PARTS_OF_SPEECH
from app.encoders import LEAD
from app.nearby import Near
from app.services import Services, Tokens
from app.state import Selection
from elmo.banks.bank import TokenBank
from elmo.banks.mixing import simplex_grid
from elmo.banks.tagged import Tag
from elmo.banks.triangle import questions, same_sense_shares, triangle

GRID_STEPS = 16  # of the triangle: 153 mixes
N_NEAREST = 10


def triangle_view(
    services: Services, sentences: Tokens, selection: Selection, near: Near | None
) -> dict[str, Any] | None:
    """values: the answer to the question at every mix of ``simplex_grid``, ``None`` where there is
    nothing to find; asked: the question, possible: all that can be asked. ``None`` where there
    are not three layers: their mixes fill no triangle.

    near: the chosen token's candidates by cosine, which hold the nearest of every mix.
    """
    lead = services.model(LEAD)
    if lead.encoder.n_layers != 3:
        return None
    text = services.encode(LEAD, sentences)
    row = text.row(selection.sentence, selection.token)
    word = text.token(row)
    copies = _labelled_copies(services, sentences, text, word)
    wordnet = None if lead.label else services.wordnet.banks.get(LEAD)
    found: dict[str, Any] = {}
    if (values := _sense_shares(text, copies)) is not None:
        found["sense"] = values
    found["word"] = near and same_word_shares(near, word)
    if wordnet is not None:
        tags = wordnet.tags
        known = {tags[i].pos for i in wordnet.tag[wordnet.rows_of(word)] if i >= 0}
        found |= {pos: None for pos in PARTS_OF_SPEECH if pos in known}
    found["examples"] = None
    asked = selection.question if selection.question in found else next(iter(found))
    if asked in PARTS_OF_SPEECH:
        found[asked] = _pos_shares(services, wordnet, text.vectors[row], sentences, word, asked)
    elif asked == "examples":
        found[asked] = _examples_shares(services)
    values = found[asked]
    return {
        "asked": asked,
        "possible": list(found),
        "steps": GRID_STEPS,
        "values": None if values is None else np.round(values, 4).tolist(),
    }


def same_word_shares(near: Near, word: str) -> np.ndarray | None:
    """For every mix: the share of the word's other copies among its nearest tokens."""
    relevant, n_relevant, start = [], 0, 0
    for pool in near.pools:
        rows = pool.bank.select(word, "only", without_sentences=pool.without_sentences)
        rows = rows[rows != pool.without_row]
        relevant.append(rows + start)
        n_relevant += len(rows)
        start += len(pool.bank)
    if not n_relevant:
        return None
    is_relevant = np.isin(near.comparison.rows, np.concatenate(relevant))
    k = min(N_NEAREST, n_relevant)
    return near.comparison.shares(is_relevant, k, simplex_grid(GRID_STEPS))


def _pos_shares(
    services: Services,
    wordnet: TokenBank,
    vectors: np.ndarray,
    sentences: Tokens,
    word: str,
    pos: str,
) -> np.ndarray | None:
    """For every mix: the share of one part of speech among the nearest words of WordNet's examples
    whose part of speech is known."""
    copies = services.wordnet.copies(sentences)
    asked = questions(wordnet, word, Tag(0, pos=pos), copies)
    question = next((q for q in asked if q.name == "same part of speech"), None)
    if question is None:
        return None
    query = services.queries.query(wordnet, vectors)
    return triangle(wordnet, query, question, simplex_grid(GRID_STEPS), N_NEAREST).shares


def _examples_shares(services: Services) -> np.ndarray | None:
    """The share of the same sense, over the words of all our examples that have labelled senses."""
    bank = services.model(LEAD).bank
    shares = []
    for sentences in services.labelled_examples:
        example = services.example_of(sentences)
        numbers = services.bank_ids(sentences)
        copies: dict[int, tuple[int, str]] = {}
        for row in bank.rows_of(example.word).tolist():
            number = int(bank.sentence[row])
            if number in numbers:
                sense = example.senses[numbers.index(number)]
                if sense is not None:
                    copies.setdefault(number, (row, sense))
        found = _sense_shares(bank, list(copies.values()))
        if found is not None:
            shares.append(found)
    return np.mean(shares, axis=0) if shares else None


def _sense_shares(bank: TokenBank, copies: list[tuple[int, str]]) -> np.ndarray | None:
    """copies: (row, sense); see ``same_sense_shares``."""
    if not copies:
        return None
    rows = [row for row, _ in copies]
    vectors = bank.vectors[rows] - bank.mean
    return same_sense_shares(vectors, [sense for _, sense in copies], simplex_grid(GRID_STEPS))


def _labelled_copies(
    services: Services, sentences: Tokens, text: TokenBank, word: str
) -> list[tuple[int, str]]:
    """(row, sense) of the copies of an example's word; only the first in a sentence counts."""
    example = services.example_of(sentences)
    if example is None or (example.word or "").casefold() != word.casefold():
        return []
    found: dict[int, tuple[int, str]] = {}
    for row in text.rows_of(word):
        sentence = int(text.sentence[row])
        if (sense := example.senses[sentence]) is not None:
            found.setdefault(sentence, (int(row), sense))
    return list(found.values())
