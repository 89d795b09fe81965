"""What the maps' colors need beyond the text: senses, parts of speech, frequencies, cosines."""

from __future__ import annotations

import itertools
from typing import Any

from app.packing import pack
from app.services import Services, Tokens
from app.state import Selection
from app.views.map_choice import text_id
from elmo.checkpoint import N_SPECIAL

COLORS = ("sense", "pos", "frequency", "cosine")  # the page knows all others by itself


def paint_view(
    services: Services, sentences: Tokens, selection: Selection, color: str
) -> dict[str, Any]:
    """The numbers or names behind one way to color. Raises ``ValueError`` for another."""
    if color not in COLORS:
        raise ValueError(f"color must be one of {', '.join(COLORS)}, got {color!r:.40}")
    view: dict[str, Any] = {"color": color, "text": text_id(sentences)}
    if color == "cosine":
        view["place"] = [selection.sentence, selection.token]
        view["encoders"] = {
            kind: _products(services, kind, sentences, selection) for kind in services.models
        }
    elif color == "frequency":
        view |= _ranks(services, sentences)
    else:
        view["tags"] = known_tags(services, sentences)
    return view


def _products(
    services: Services, kind: str, sentences: Tokens, selection: Selection
) -> dict[str, Any] | None:
    """Products of the chosen token with every row of the text, and norms, both packed (pairs, N):
    what the cosine under any mix follows from (``elmo.banks.mixing``). ``None`` where the
    encoder could not read the token."""
    text = services.encode(kind, sentences)
    row = text.row(selection.sentence, selection.token)
    if row is None:
        return None
    choice = selection.choice
    found = text.compare(text.vectors[row], unit=choice.unit, centered=choice.centered)
    return {
        "products": pack(found.products),
        "norms": pack(found.norms),
        "norm": found.norm.tolist(),
        "centered": choice.centered,
    }


def known_tags(services: Services, sentences: Tokens) -> list[list[Any]]:
    """[sentence, token, part of speech, sense] of tokens that some source speaks of: the examples,
    and WordNet's where the text repeats a sentence of it."""
    examples = next(iter(services.models.values())).bank
    wordnet = next(iter(services.wordnet.banks.values()), None)
    known: dict[tuple[int, int], list[Any]] = {}
    for i, tokens in enumerate(sentences):
        places = [(examples, number) for number in services.bank_ids((tokens,))]
        places += [(wordnet, number) for number in services.wordnet.copies((tokens,))]
        for (bank, number), k in itertools.product(places, range(len(tokens))):
            row = bank.row(number, k)
            tag = None if row is None else bank.tag_of(row)
            if tag is not None:
                known.setdefault((i, k), [i, k, tag.pos, tag.gloss or tag.sense])
    return list(known.values())


def _ranks(services: Services, sentences: Tokens) -> dict[str, Any]:
    """ranks: of every token in the training text, from 1 for the most frequent, ``None`` where it
    is not among the ``n_words``; 0 words where no model on the page has a vocabulary. All models
    were trained on one text."""
    checkpoints = (model.encoder.checkpoint for model in services.models.values() if model.trained)
    known = next((c for c in checkpoints if c is not None and c.model.head is not None), None)
    if known is None:
        return {"n_words": 0, "ranks": [[None] * len(tokens) for tokens in sentences]}
    return {
        "n_words": len(known.vocabulary) - N_SPECIAL,
        "ranks": [[known.rank(token) for token in tokens] for tokens in sentences],
    }
