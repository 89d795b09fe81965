"""What all visitors share, read-only: encoders, the bank of example sentences, the maps' axes.

Only the caches change, and they are keyed by the text itself, so that nothing in them belongs to
a visitor.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.examples import BankSentence, Example, bank_sentences, load_examples
from app.settings import Settings
from elmo.bank import TokenBank, build_bank
from elmo.encoders import Encoder, load_encoder, untrained_encoder
from elmo.mixing import layer_pairs
from elmo.projection import Basis, fit_basis, mix_spread, word_rows
from elmo.results import Encoding
from elmo.text import sentences as split_sentences

ENCODER_KINDS = ("bilm", "attention")
Tokens = tuple[tuple[str, ...], ...]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Model:
    """One encoder with what was computed from the examples once.

    trained: false where no weights were found and random ones stand in.
    spread: of the examples, by pairs of layers (see ``mix_spread``).
    """

    encoder: Encoder
    trained: bool
    bank: TokenBank
    basis: Basis
    spread: np.ndarray

    @property
    def kind(self) -> str:
        return self.encoder.kind


class TextCache:
    """Token banks of visitors' texts, the latest used kept, bounded in bytes; one per model."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._banks: OrderedDict[Tokens, TokenBank] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, sentences: Tokens) -> TokenBank | None:
        with self._lock:
            if sentences in self._banks:
                self._banks.move_to_end(sentences)
            return self._banks.get(sentences)

    def put(self, sentences: Tokens, bank: TokenBank) -> None:
        with self._lock:
            if sentences in self._banks:
                return
            self._banks[sentences] = bank
            self._bytes += bank.vectors.nbytes
            while self._bytes > self._max_bytes and len(self._banks) > 1:
                self._bytes -= self._banks.popitem(last=False)[1].vectors.nbytes


class Services:
    """Everything a handler may ask for. Safe to share between threads."""

    def __init__(
        self, settings: Settings, examples: Sequence[Example], models: Sequence[Model]
    ) -> None:
        self.settings = settings
        self.examples = tuple(examples)
        self.bank_sentences: tuple[BankSentence, ...] = bank_sentences(self.examples)
        self.models: dict[str, Model] = {model.kind: model for model in models}
        self._caches = {kind: TextCache(settings.cache_bytes) for kind in self.models}
        self._example_of = {example.tokens: example for example in self.examples}
        self._bank_index = {s.tokens: i for i, s in enumerate(self.bank_sentences)}

    def parse(self, text: str, pretokenized: bool) -> Tokens:
        """The visitor's text as sentences of tokens. Raises ``ValueError`` past the limits."""
        limits = self.settings
        if len(text) > limits.max_characters:
            raise ValueError(
                f"The text has {len(text):,} characters; this page takes"
                f" {limits.max_characters:,} at most."
            )
        found = tuple(tuple(s) for s in split_sentences(text, pretokenized))
        n_tokens = sum(map(len, found))
        if not n_tokens:
            raise ValueError("There is no word in the text. Type a sentence, one a line.")
        if len(found) > limits.max_sentences:
            raise ValueError(
                f"The text has {len(found)} sentences; this page takes"
                f" {limits.max_sentences} at most, one a line."
            )
        if n_tokens > limits.max_tokens:
            raise ValueError(
                f"The text has {n_tokens:,} tokens; this page takes {limits.max_tokens:,} at most."
            )
        return found

    def encode(self, kind: str, sentences: Tokens) -> TokenBank:
        """The text's token vectors; sentences beyond the encoder's trained length have no rows.

        Raises ``ValueError`` for an encoder that is not there.
        """
        model = self.model(kind)
        cache = self._caches[kind]
        bank = cache.get(sentences)
        if bank is None:
            encodings = encode_what_fits(model.encoder, sentences)
            bank = build_bank(sentences, encodings, mean=model.bank.mean)
            cache.put(sentences, bank)
        return bank

    def model(self, kind: str) -> Model:
        if kind not in self.models:
            raise ValueError(f"encoder must be one of {', '.join(self.models)}, got {kind!r}")
        return self.models[kind]

    def example_of(self, sentences: Tokens) -> Example | None:
        """The curated example with exactly these sentences, if there is one."""
        return self._example_of.get(sentences)

    def bank_ids(self, sentences: Tokens) -> list[int]:
        """Sentences of the bank that the visitor's text repeats: no neighbors, but copies."""
        return [self._bank_index[s] for s in sentences if s in self._bank_index]


def make_model(encoder: Encoder, trained: bool, bank: TokenBank) -> Model:
    """Fits the maps' axes on the bank's words; punctuation is far from them and would take over."""
    spread = mix_spread(bank)
    scale = np.sqrt([spread[i] for i, (k, m) in enumerate(layer_pairs(bank.n_layers)) if k == m])
    return Model(encoder, trained, bank, fit_basis(bank.vectors[word_rows(bank)], scale), spread)


def encode_what_fits(encoder: Encoder, sentences: Tokens) -> list[Encoding | None]:
    """One encoding a sentence, ``None`` where it is longer than the encoder was trained on."""
    limit = encoder.max_tokens
    fits = [limit is None or len(s) <= limit for s in sentences]
    chosen = [s for s, ok in zip(sentences, fits, strict=True) if ok]
    encoded = iter(encoder.encode(chosen) if chosen else [])
    return [next(encoded) if ok else None for ok in fits]


def load_services(settings: Settings) -> Services:
    """Reads weights and examples, encodes the examples, fits the axes. Seconds, once a process."""
    start = time.perf_counter()
    examples = load_examples(settings.examples)
    sentences = tuple(s.tokens for s in bank_sentences(examples))
    models = []
    for kind in ENCODER_KINDS:
        folder = settings.models / kind
        trained = (folder / "weights.safetensors").is_file()
        if not trained:
            log.warning("no weights in %s: random ones stand in", folder)
        encoder = load_encoder(folder) if trained else untrained_encoder(kind)
        bank = build_bank(sentences, encode_what_fits(encoder, sentences))
        models.append(make_model(encoder, trained, bank))
    services = Services(settings, examples, models)
    log.info("models and examples ready in %.1f s", time.perf_counter() - start)
    return services
