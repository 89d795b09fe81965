"""From a selection to what the page is told: plain values, ready for ``to_json``.

The page is told in three parts, each only when it changed: the text (``run``), the maps
(``maps``), and the chosen token (``query``, and ``near`` from ``views.nearby``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.choice import Choice
from app.encoders import ABOUT, LEAD
from app.nearby import Near
from app.services import Model, Services, Tokens
from app.state import Selection
from app.views.map_choice import text_id
from app.views.nearby import find_all, found_view, near_of
from app.views.tasks import task_mixes
from app.views.triangle import triangle_view
from elmo.text import is_truncated

# Words too common to be what a visitor wants to look at first.
_COMMON = """
a an and are as at be but by did do does for from had has have he her his i in is it its not of on
or our she so that the their them they this to was we were what which who will with would you your
"""
COMMON = frozenset(_COMMON.split())


def bank_view(services: Services) -> dict[str, Any]:
    """The encoders."""
    return {
        "lead": LEAD,
        "elmo": services.models[LEAD].label,
        "encoders": {
            kind: _encoder_view(services, model) for kind, model in services.models.items()
        },
    }


def _encoder_view(services: Services, model: Model) -> dict[str, Any]:
    encoder, about = model.encoder, ABOUT[model.kind]
    return {
        "name": about.name,
        "contrast": about.contrast,
        "halves": encoder.halves,
        "note": f"{model.label}, {encoder.d_model} wide" if model.label else about.note,
        "color": model.kind,  # a variable of palette.css
        "n_layers": encoder.n_layers,
        "d_model": encoder.d_model,
        "max_tokens": encoder.max_tokens,
        "trained": model.trained,
        "tasks": [] if model.label else task_mixes(services.probes, model.kind),
    }


def run_view(services: Services, sentences: Tokens, milliseconds: float) -> dict[str, Any]:
    """The text itself: sentences, what was cut or could not be encoded, and the question."""
    example = services.example_of(sentences)
    encoder = services.model(LEAD).encoder
    width = encoder.config.char.max_characters
    return {
        "sentences": sentences,
        "text": text_id(sentences),
        "senses": example.senses if example else None,
        "question": example.question if example else None,
        "note": example.note if example else None,
        "milliseconds": round(milliseconds),
        "truncated": _truncated(sentences, width),
        "bytes_read": width - 2,
        "encoders": {
            kind: {
                "sentences": list(
                    dict.fromkeys(services.encode(kind, sentences).sentence.tolist())
                ),
                "message": _gap(services, kind, sentences),
            }
            for kind in services.models
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


def token_views(services: Services, sentences: Tokens, selection: Selection) -> dict[str, Any]:
    """The chosen token: what each mix is good for, and the neighbors that are found at once."""
    choice = selection.choice.quick
    found = find_all(services, sentences, selection, choice)
    usual = Choice()
    if replace(choice, upload=None) == usual:
        lead = found[LEAD]
    else:
        lead = near_of(services, LEAD, sentences, selection, usual)
    return {
        "query": _query_view(services, sentences, selection, lead),
        "near": found_view(services, found, selection, choice),
    }


def question_view(services: Services, sentences: Tokens, selection: Selection) -> dict[str, Any]:
    """The chosen token alone: another question was asked about all mixes."""
    lead = near_of(services, LEAD, sentences, selection, Choice())
    return _query_view(services, sentences, selection, lead)


def _query_view(
    services: Services, sentences: Tokens, selection: Selection, lead: Near | None
) -> dict[str, Any]:
    return {
        "sentence": selection.sentence,
        "token": selection.token,
        "triangle": triangle_view(services, sentences, selection, lead),
    }


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


def nearest_copy(tokens: tuple[str, ...], word: str, position: int) -> int:
    """Where a word is in a sentence that was tokenized anew: of its copies the nearest to where it
    was before; the position itself where there is none."""
    copies = [i for i, token in enumerate(tokens) if token == word]
    if not copies:
        return min(position, len(tokens) - 1)
    return min(copies, key=lambda i: abs(i - position))
