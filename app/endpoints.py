"""The page's public endpoints, for programs: ``/encode``, ``/mix`` and ``/neighbors``."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np

from app.handlers import shows_errors
from app.services import Services, Tokens
from elmo.bank import TokenBank
from elmo.mixing import METRICS, nearest, similarity
from elmo.scalar_mix import mix_layers, softmax


class Endpoints:
    """The same numbers that the page shows, for one text a call; no state between calls."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @shows_errors
    def encode(
        self, text: str, encoder: str = "bilm", layer: int = 0, pretokenized: bool = False
    ) -> dict:
        """Vectors of every token of a text (one sentence a line) in one layer, 0 the lowest.

        Returns {sentences: [{tokens: [...], vectors: [[...], ...]}]}; ``vectors`` is null for a
        sentence longer than the encoder can read.
        """
        sentences, bank = self._read(text, encoder, pretokenized)
        if not 0 <= layer < bank.n_layers:
            raise ValueError(f"layer must be 0 to {bank.n_layers - 1}, got {layer}")
        return _by_sentence(sentences, bank, bank.vectors[:, layer])

    @shows_errors
    def mix(
        self,
        text: str,
        weights: list[float],
        gamma: float = 1.0,
        encoder: str = "bilm",
        pretokenized: bool = False,
    ) -> dict:
        """Mixed vectors, gamma * sum_k s_k h_k with s the softmax of the raw weights.

        Returns {shares: [...], sentences: [{tokens, vectors}]}.
        """
        sentences, bank = self._read(text, encoder, pretokenized)
        layers = bank.vectors.transpose(1, 0, 2)
        mixed = mix_layers(layers, weights, gamma)
        return {"shares": softmax(weights).tolist()} | _by_sentence(sentences, bank, mixed)

    @shows_errors
    def neighbors(
        self,
        text: str,
        sentence: int,
        token: int,
        weights: list[float],
        encoder: str = "bilm",
        n: int = 20,
        metric: str = "cosine",
        mean_removed: bool = True,
        gamma: float = 1.0,
        pretokenized: bool = False,
    ) -> list:
        """The n nearest tokens to one token (both counted from 0) under a mix of layers, among our
        example sentences and the text itself: [{token, sentence, position, source, score}]."""
        sentences, own = self._read(text, encoder, pretokenized)
        row = own.row(sentence, token)
        if row is None:
            raise ValueError(f"there is no readable token {token} in sentence {sentence}")
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
        if not 1 <= n <= 100:
            raise ValueError(f"n must be 1 to 100, got {n}")
        if len(weights) != own.n_layers:
            raise ValueError(f"{own.n_layers} layers need as many weights, got {len(weights)}")
        s, vectors = softmax(weights), own.vectors[row]
        copies = self.services.bank_ids(sentences)
        bank = self.services.model(encoder).bank
        scores = []
        for pool in (bank, own):
            query = pool.query(vectors)
            known = (
                pool.centered(query) if mean_removed else (query.products, pool.norms, query.norm)
            )
            scores.append(similarity(*known, s, metric, gamma))
        scores[0][np.isin(bank.sentence, copies)] = np.nan
        scores[1][row] = np.nan
        together = np.concatenate(scores)
        return [
            _neighbor(bank, own, int(i), float(together[i])) for i in nearest(together, n, metric)
        ]

    def _read(self, text: str, encoder: str, pretokenized: bool) -> tuple[Tokens, TokenBank]:
        sentences = self.services.parse(text, pretokenized)
        return sentences, self.services.encode(encoder, sentences)


def connect(services: Services) -> None:
    """Adds the endpoints to the page that is being built."""
    endpoints = Endpoints(services)
    for call in (endpoints.encode, endpoints.mix, endpoints.neighbors):
        gr.api(call, api_name=call.__name__, concurrency_limit=4)


def _by_sentence(sentences: Tokens, bank: TokenBank, vectors: np.ndarray) -> dict[str, Any]:
    parts = []
    for i, tokens in enumerate(sentences):
        rows = bank.sentence == i
        parts.append(
            {"tokens": list(tokens), "vectors": vectors[rows].tolist() if rows.any() else None}
        )
    return {"sentences": parts}


def _neighbor(bank: TokenBank, own: TokenBank, index: int, score: float) -> dict[str, Any]:
    pool, row = (bank, index) if index < len(bank) else (own, index - len(bank))
    return {
        "token": pool.token(row),
        "sentence": " ".join(pool.sentences[pool.sentence[row]]),
        "position": int(pool.position[row]),
        "source": "examples" if pool is bank else "text",
        "score": score,
    }
