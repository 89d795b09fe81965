"""The page's public endpoints, for programs: encode, mix, neighbors, influence and cloze."""

from __future__ import annotations

from typing import Any

import gradio as gr
import numpy as np

from app.apart import apart
from app.encoders import LEAD
from app.handlers.events import MAX_TOKENS, shows_errors
from app.handlers.gaps import GapsHandlers, unread
from app.handlers.influence import InfluenceHandlers, grid_of
from app.services import Services, Tokens
from app.views.gaps import guess_view
from elmo.banks.bank import TokenBank
from elmo.banks.mixing import METRICS, nearest, similarity
from elmo.both_ways.cloze import Exponents, fill_gap
from elmo.both_ways.influence import N_DIRECTIONS
from elmo.scalar_mix import mix_layers, softmax


class Endpoints:
    """The same numbers that the page shows, for one text a call; no state between calls."""

    def __init__(
        self, services: Services, influence: InfluenceHandlers, gaps: GapsHandlers
    ) -> None:
        """influence, gaps: the page's, for their words and their tuned exponents."""
        self.services = services
        self._influence, self._gaps = influence, gaps

    @shows_errors
    def encode(
        self, text: str, encoder: str = LEAD, layer: int = 0, pretokenized: bool = False
    ) -> dict:
        """Vectors of every token of a text (one sentence a line) in one layer, 0 the lowest.

        Returns {sentences: [{tokens: [...], vectors: [[...], ...]}]}; ``vectors`` is null for a
        sentence longer than the encoder can read.
        """
        sentences, bank = self._read(text, encoder, pretokenized)
        _layer(layer, bank.n_layers)
        return _by_sentence(sentences, bank, bank.vectors[:, layer])

    @shows_errors
    def mix(
        self,
        text: str,
        weights: list[float],
        gamma: float = 1.0,
        encoder: str = LEAD,
        pretokenized: bool = False,
    ) -> dict:
        """Mixed vectors, gamma * sum_k s_k h_k with s the softmax of the raw weights.

        Returns {shares: [...], sentences: [{tokens, vectors}]}.
        """
        sentences, bank = self._read(text, encoder, pretokenized)
        _numbers(weights, gamma, bank.n_layers)
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
        encoder: str = LEAD,
        n: int = 20,
        metric: str = "cosine",
        mean_removed: bool = True,
        gamma: float = 1.0,
        pretokenized: bool = False,
    ) -> list:
        """The n nearest tokens to one token (both counted from 0) under a mix of layers, among our
        example sentences and the text itself: [{token, sentence, position, source, score}]."""
        sentences, own = self._read(text, encoder, pretokenized)
        _whole(sentence=sentence, token=token, n=n)
        _numbers(weights, gamma, own.n_layers)
        row = own.row(sentence, token)
        if row is None:
            raise ValueError(f"there is no readable token {token} in sentence {sentence}")
        if metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
        if not 1 <= n <= 100:
            raise ValueError(f"n must be 1 to 100, got {n}")
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

    @shows_errors
    def influence(
        self,
        text: str,
        sentence: int = 0,
        encoder: str = LEAD,
        layer: int = 0,
        measure: str = "gap",
        word: str = "",
        pretokenized: bool = False,
    ) -> dict:
        """How far each word of one sentence (counted from 0) moves the vector of each other.

        measure: what is done to a word: ``gap`` (the gap token in its place), ``random`` (random
        words), ``word`` (the word given), or ``gradient``. Returns {tokens, influence, reachable}:
        row j, column t is the relative change of t's vector in the layer when j is replaced, and
        whether the architecture lets j reach t at all.
        """
        tokens = self._sentence(text, sentence, pretokenized)
        reader = self.services.model(encoder).encoder
        _layer(layer, reader.n_layers)
        if reader.max_tokens is not None and len(tokens) > reader.max_tokens:
            raise ValueError(f"{encoder} reads {reader.max_tokens} tokens, got {len(tokens)}")
        samples = self._influence.samples(tokens, measure, str(word)[:100])
        n = N_DIRECTIONS if samples is None else len(samples.words)
        grid = grid_of(reader, tokens, samples, 0, n)
        return {
            "tokens": list(tokens),
            "influence": grid.layer(layer).tolist(),
            "reachable": grid.reachable[0, layer].tolist(),
        }

    @shows_errors
    def cloze(
        self, text: str, position: int, sentence: int = 0, n: int = 10, pretokenized: bool = False
    ) -> list:
        """Guesses for one hidden word (counted from 0) of one sentence, of every encoder that has
        a softmax: [{encoder, predictor, words, probabilities, rank, probability, unknown,
        entropy}].

        predictor: ``forward`` (knows the left), ``backward`` (the right), ``product`` of the two,
        ``joint``; rank: of the hidden word, null where it is not in the vocabulary.
        """
        tokens = self._sentence(text, sentence, pretokenized)
        _whole(position=position, n=n)
        if not 0 <= position < len(tokens):
            raise ValueError(f"position must be 0 to {len(tokens) - 1}, got {position}")
        if not 1 <= n <= 100:
            raise ValueError(f"n must be 1 to 100, got {n}")
        found = []
        for kind, model in self.services.models.items():
            if unread(model.encoder, len(tokens)):
                continue
            exponents = {model.encoder.name: Exponents(*self._gaps.tuned(kind))}
            guesses = fill_gap([model.encoder], tokens, position, exponents, n)
            found += [{"encoder": kind} | guess_view(guess) for guess in guesses]
        return found

    def _sentence(self, text: str, sentence: int, pretokenized: bool) -> tuple[str, ...]:
        sentences = self.services.parse(text, pretokenized)
        _whole(sentence=sentence)
        if not 0 <= sentence < len(sentences):
            raise ValueError(f"sentence must be 0 to {len(sentences) - 1}, got {sentence}")
        if len(sentences[sentence]) > MAX_TOKENS:
            raise ValueError(
                f"the sentence has {len(sentences[sentence])} tokens, {MAX_TOKENS} are the most"
            )
        return sentences[sentence]

    def _read(self, text: str, encoder: str, pretokenized: bool) -> tuple[Tokens, TokenBank]:
        sentences = self.services.parse(text, pretokenized)
        return sentences, self.services.encode(encoder, sentences)


def connect(services: Services, influence: InfluenceHandlers, gaps: GapsHandlers) -> None:
    """Adds the endpoints to the page that is being built; slow ones wait with the page's slow
    events."""
    endpoints = Endpoints(services, influence, gaps)
    for call, queue in (
        (endpoints.encode, {"concurrency_limit": 4}),
        (endpoints.mix, {"concurrency_limit": 4}),
        (endpoints.neighbors, {"concurrency_limit": 4}),
        (apart(endpoints.influence), {"concurrency_limit": 2, "concurrency_id": "influence"}),
        (apart(endpoints.cloze), {"concurrency_limit": 2, "concurrency_id": "gaps"}),
    ):
        gr.api(call, api_name=call.__name__, **queue)


def _whole(**numbers: Any) -> None:
    """Programs may send anything; Gradio checks no types."""
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"{name} must be a whole number, got {value!r:.40}")


def _layer(layer: Any, n_layers: int) -> None:
    _whole(layer=layer)
    if not 0 <= layer < n_layers:
        raise ValueError(f"layer must be 0 to {n_layers - 1}, got {layer}")


def _numbers(weights: Any, gamma: Any, n_layers: int) -> None:
    def is_number(x: Any) -> bool:
        return type(x) in (int, float) and abs(x) < 1e6

    if not is_number(gamma):
        raise ValueError(f"gamma must be a number, got {gamma!r:.40}")
    if not isinstance(weights, list) or not all(map(is_number, weights)):
        raise ValueError(f"weights must be a list of numbers, got {weights!r:.60}")
    if len(weights) != n_layers:
        raise ValueError(f"{n_layers} layers need as many weights, got {len(weights)}")


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
