"""Neighbors as the page is told: few rows with their products; ``static/ranking.js`` ranks them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.choice import Choice
from app.nearby import K, Near, Pool, find_near
from app.packing import pack
from app.services import Services, Tokens
from app.state import Selection
from elmo.banks.tagged import Tag


def find_all(
    services: Services, sentences: Tokens, selection: Selection, choice: Choice
) -> dict[str, Near | None]:
    """The chosen token's candidates under every encoder; ``None`` where the encoder could not read
    the token or no chosen bank is there."""
    return {kind: near_of(services, kind, sentences, selection, choice) for kind in services.models}


def near_view(
    services: Services, sentences: Tokens, selection: Selection, choice: Choice
) -> dict[str, Any]:
    """The chosen token's neighbors under every encoder; see ``found_view``."""
    found = find_all(services, sentences, selection, choice)
    return found_view(services, found, selection, choice)


def found_view(
    services: Services, found: dict[str, Near | None], selection: Selection, choice: Choice
) -> dict[str, Any]:
    """What ``find_all`` found.

    sentences: [pool, number, tokens] of those that rows refer to; tags: [lemma, pos, gloss,
    supersense]; encoders: by kind, see ``_encoder_view``, or ``None``.
    """
    tables = _Tables()
    return {
        "place": [selection.sentence, selection.token],
        "choice": asdict(choice),
        "k": K,
        "encoders": {kind: near and _encoder_view(near, tables) for kind, near in found.items()},
        "sentences": tables.sentences,
        "tags": tables.tags,
        "pools": pools_view(services, choice.upload),
    }


def near_of(
    services: Services, kind: str, sentences: Tokens, selection: Selection, choice: Choice
) -> Near | None:
    text = services.encode(kind, sentences)
    row = text.row(selection.sentence, selection.token)
    pools = services.pools(kind, sentences, choice, row)
    if row is None or not pools:
        return None
    vectors = text.vectors[row]
    queries = {pool.name: services.queries.query(pool.bank, vectors) for pool in pools}
    return find_near(pools, queries, text.token(row), choice)


def pools_view(services: Services, upload_digest: str | None) -> dict[str, Any]:
    """What there is to look in: how far WordNet is, and the visitor's file."""
    status, upload = services.wordnet.status, services.uploads.get(upload_digest)
    progress = status.progress
    return {
        "n_examples": len(services.bank_sentences),
        "wordnet": {
            "state": status.state,
            "encoder": status.kind,
            "message": status.message,
            "ready": list(services.wordnet.banks),
            "n_sentences": max(
                (len(bank.sentences) for bank in services.wordnet.banks.values()), default=0
            ),
            "done": progress.n_sentences if progress else 0,
            "total": (progress.total or 0) if progress else 0,
            "seconds_left": progress and progress.seconds_left and round(progress.seconds_left),
        },
        "upload": upload
        and {
            "name": upload.name,
            "n_sentences": len(upload.places),
            "notices": upload.notices,
        },
    }


class _Tables:
    """Sentences and tags that several rows share, each sent once."""

    def __init__(self) -> None:
        self.sentences: list[list] = []
        self.tags: list[list[str]] = []
        self._sentence_of: dict[tuple[str, int], int] = {}
        self._tag_of: dict[Tag, int] = {}

    def sentence(self, pool: Pool, number: int) -> int:
        key = (pool.name, number)
        if key not in self._sentence_of:
            self._sentence_of[key] = len(self.sentences)
            self.sentences.append([pool.name, number, pool.bank.sentences[number]])
        return self._sentence_of[key]

    def tag(self, tag: Tag | None) -> int:
        if tag is None:
            return -1
        if tag not in self._tag_of:
            self._tag_of[tag] = len(self.tags)
            self.tags.append([tag.lemma, tag.pos, tag.gloss, tag.supersense])
        return self._tag_of[tag]


def _encoder_view(near: Near, tables: _Tables) -> dict[str, Any]:
    """rows: (M, 3) sentence, token, tag, end to end, -1 for no tag; products, norms: packed
    (pairs, M); norm: (pairs,); n_rows: the candidates were chosen from; exact, n_mixes: see
    ``Near``."""
    rows: list[int] = []
    for index in near.comparison.rows.tolist():
        pool, row = near.place(index)
        sentence = tables.sentence(pool, int(pool.bank.sentence[row]))
        rows += [sentence, int(pool.bank.position[row]), tables.tag(pool.bank.tag_of(row))]
    return {
        "rows": rows,
        "products": pack(near.comparison.products),
        "norms": pack(near.comparison.norms),
        "norm": near.comparison.norm.tolist(),
        "n_rows": near.n_rows,
        "exact": near.exact,
        "n_mixes": near.n_mixes,
    }
