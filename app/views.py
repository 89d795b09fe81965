"""From a selection to what the page is told: plain values, ready for ``to_json``.

The page is told in three parts, each only when it changed: the text (``run``), the maps
(``maps``), and the chosen token's products with every candidate neighbor (``query``).
"""

from __future__ import annotations

from typing import Any

from app.figures import MIN_OCCURRENCES, map_row, word_basis
from app.services import ENCODER_KINDS, Model, Services, Tokens
from app.state import Selection
from app.tables import pool, query_products, same_sense_triangle, same_word_triangle
from elmo.bank import TokenBank
from elmo.text import is_truncated

# Words too common to be what a visitor wants to look at first.
_COMMON = """
a an and are as at be but by did do does for from had has have he her his i in is it its not of on
or our she so that the their them they this to was we were what which who will with would you your
"""
COMMON = frozenset(_COMMON.split())


def bank_view(services: Services) -> dict[str, Any]:
    """The candidate neighbors every visitor has: the sentences of the examples."""
    return {
        "sentences": [s.tokens for s in services.bank_sentences],
        "senses": [s.sense and [s.word, s.sense] for s in services.bank_sentences],
        "encoders": {kind: _encoder_view(services.model(kind)) for kind in ENCODER_KINDS},
    }


def _encoder_view(model: Model) -> dict[str, Any]:
    encoder = model.encoder
    return {
        "n_layers": encoder.n_layers,
        "max_tokens": encoder.max_tokens,
        "trained": model.trained,
        **pool(model.bank),
    }


def run_view(services: Services, sentences: Tokens, milliseconds: float) -> dict[str, Any]:
    """The text itself: sentences, what was cut or could not be encoded, and the question."""
    example = services.example_of(sentences)
    encoder = services.model("bilm").encoder
    width = encoder.config.char.max_characters
    return {
        "sentences": sentences,
        "senses": example.senses if example else None,
        "question": example.question if example else None,
        "note": example.note if example else None,
        "milliseconds": round(milliseconds),
        "truncated": _truncated(sentences, width),
        "bytes_read": width - 2,
        "copies": services.bank_ids(sentences),
        "encoders": {
            kind: pool(services.encode(kind, sentences))
            | {"message": _gap(services, kind, sentences)}
            for kind in ENCODER_KINDS
        },
    }


def _truncated(sentences: Tokens, width: int) -> list[list[int]]:
    return [
        [i, k]
        for i, tokens in enumerate(sentences)
        for k, token in enumerate(tokens)
        if is_truncated(token, width)
    ]


def _gap(services: Services, kind: str, sentences: Tokens) -> str | None:
    """Why some or all of the text is missing from an encoder's views, if it is."""
    limit = services.model(kind).encoder.max_tokens
    long = [i + 1 for i, s in enumerate(sentences) if limit is not None and len(s) > limit]
    if not long:
        return None
    which = f"Sentence {long[0]}" if len(long) == 1 else f"Sentences {', '.join(map(str, long))}"
    lengths = max(map(len, sentences))
    verb = "has" if len(long) == 1 else "have up to"
    return (
        f"{which} {verb} {lengths} tokens. This encoder was trained on at most {limit}"
        " and has no positions beyond."
    )


def maps_view(services: Services, sentences: Tokens, selection: Selection) -> dict[str, Any]:
    """Both rows of maps, in the axes the visitor chose."""
    word = sentences[selection.sentence][selection.token]
    limit = services.settings.max_map_tokens
    view: dict[str, Any] = {"notice": None}
    for kind in ENCODER_KINDS:
        model, text = services.model(kind), services.encode(kind, sentences)
        basis, used = model.basis, "all"
        if selection.basis == "word":
            fitted = word_basis(word, text, model.bank, model.basis.scale)
            if fitted is None:
                view["notice"] = (
                    f"\u201c{word}\u201d occurs less than {MIN_OCCURRENCES} times in the text and"
                    " the examples: the axes stay those of all words."
                )
            else:
                basis, used = fitted, "word"
        view[kind] = map_row(text, basis, model.spread, word, limit, used)
    return view


def query_view(services: Services, sentences: Tokens, selection: Selection) -> dict[str, Any]:
    """The chosen token against every candidate, under every encoder that could read it."""
    sentence, token = selection.sentence, selection.token
    view: dict[str, Any] = {"sentence": sentence, "token": token, "encoders": {}}
    for kind in ENCODER_KINDS:
        text = services.encode(kind, sentences)
        row = text.row(sentence, token)
        if row is None:
            view["encoders"][kind] = None
            continue
        bank, vectors = services.model(kind).bank, text.vectors[row]
        view["encoders"][kind] = query_products(bank.query(vectors), text.query(vectors), row)
    view["triangle"] = _triangle_view(services, sentences, selection)
    return view


def _triangle_view(services: Services, sentences: Tokens, selection: Selection) -> dict[str, Any]:
    text, example = services.encode("bilm", sentences), services.example_of(sentences)
    row = text.row(selection.sentence, selection.token)
    word = text.token(row)
    if example is not None and (example.word or "").casefold() == word.casefold():
        occurrences = _labelled(text, example.senses, word)
        triangle = same_sense_triangle(text, occurrences, row)
        if triangle is not None:
            return triangle
    return same_word_triangle(services.model("bilm").bank, text, row, services.bank_ids(sentences))


def _labelled(text: TokenBank, senses: tuple[str | None, ...], word: str) -> list[tuple[int, str]]:
    """(row, sense) of the copies of a word; only the first copy in a sentence counts."""
    found: dict[int, tuple[int, str]] = {}
    for row in text.rows_of(word):
        sentence = int(text.sentence[row])
        if (sense := senses[sentence]) is not None:
            found.setdefault(sentence, (int(row), sense))
    return list(found.values())


def first_choice(sentences: Tokens, wanted: str | None = None) -> tuple[int, int]:
    """The token to choose in a new text: the word wanted, if it is there; else the one that
    occurs most often and is not too common a word; else the first word."""
    places: dict[str, list[tuple[int, int]]] = {}
    for i, tokens in enumerate(sentences):
        for k, token in enumerate(tokens):
            places.setdefault(token.casefold(), []).append((i, k))
    if wanted is not None and wanted.casefold() in places:
        return places[wanted.casefold()][0]
    content = [p for w, p in places.items() if w not in COMMON and any(c.isalpha() for c in w)]
    if not content:
        return next(iter(places.values()))[0]
    return max(content, key=len)[0]
