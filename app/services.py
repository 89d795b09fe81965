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
from itertools import islice
from typing import Any

import numpy as np

from app.choice import Choice
from app.encoders import ABOUT, LEAD
from app.encoding import encode_what_fits
from app.examples import BankSentence, Example, bank_sentences, load_examples
from app.nearby import Pool
from app.query_cache import QueryCache
from app.settings import Settings
from app.together import Together
from app.umap_service import UmapService
from app.upload_service import UploadService
from app.wordnet_service import WordNetService
from elmo.banks.bank import TokenBank, build_bank
from elmo.banks.bank_build import default_cache
from elmo.banks.layer_maps import fit_layer_basis
from elmo.banks.mixing import layer_pairs
from elmo.banks.projection import Basis, fit_basis, mix_spread, word_rows
from elmo.banks.tagged import Tag
from elmo.encoders import Encoder, load_elmo, load_encoder, untrained_encoder
from elmo.probing.probe_report import read_table as read_probes
from elmo.text import sentences as split_sentences

Tokens = tuple[tuple[str, ...], ...]

TOKENS_PER_BATCH = 1_000  # of several visitors' texts that are encoded together
N_AXES = 3  # the first two make the flat maps

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Model:
    """One encoder with what was computed from the examples once.

    label: the name of a biLM that the visitor brought, in the model menu; empty for shipped ones.
    trained: false where no weights were found and random ones stand in.
    spread: of the examples, by pairs of layers (see ``mix_spread``).
    """

    encoder: Encoder
    trained: bool
    bank: TokenBank
    basis: Basis
    spread: np.ndarray
    label: str = ""

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
        self,
        settings: Settings,
        examples: Sequence[Example],
        models: Sequence[Model],
        elmos: Sequence[Model] = (),
    ) -> None:
        """elmos: further biLMs, each of which can take the place of the leading encoder."""
        self.settings = settings
        self.examples = tuple(examples)
        self.bank_sentences: tuple[BankSentence, ...] = bank_sentences(self.examples)
        self.models: dict[str, Model] = {model.kind: model for model in models}
        self._caches = {kind: TextCache(settings.cache_bytes) for kind in self.models}
        self._encoding = {kind: _together(model) for kind, model in self.models.items()}
        self.queries = QueryCache(settings.query_bytes)
        encoders = {kind: model.encoder for kind, model in self.models.items()}
        means = {kind: model.bank.means for kind, model in self.models.items()}
        self.wordnet = WordNetService(encoders, means, settings.bank_cache or default_cache())
        self.umap = UmapService()
        self._layer_bases: dict[str, Basis] = {}
        self.uploads = UploadService(
            encoders,
            means,
            settings.max_upload_tokens,
            settings.upload_bytes,
            settings.max_upload_bytes,
        )
        table = settings.probes / "table.json"
        self.probes = read_probes(table) if table.is_file() else None
        self._example_of = {example.tokens: example for example in self.examples}
        self._bank_index = {s.tokens: i for i, s in enumerate(self.bank_sentences)}
        others = [model for model in models if model.kind != LEAD]
        self._with_elmo = {m.label: Services(settings, examples, [m, *others]) for m in elmos}
        for services in self._with_elmo.values():  # other encoders' vectors are the same
            services._caches |= {model.kind: self._caches[model.kind] for model in others}
            services._encoding |= {model.kind: self._encoding[model.kind] for model in others}
            services.wordnet, services.umap = self.wordnet, self.umap
            services.uploads.share(self.uploads)

    @property
    def elmos(self) -> tuple[str, ...]:
        """What the model menu lists besides the shipped biLM."""
        return tuple(self._with_elmo)

    def using(self, elmo: str) -> Services:
        """The same with another biLM as the leading encoder; empty for the shipped one.

        Raises ``ValueError`` for one that is not there.
        """
        if elmo and (not isinstance(elmo, str) or elmo not in self._with_elmo):
            names = ", ".join(map(repr, self.elmos)) or "none"
            raise ValueError(f"elmo must be empty or one of {names}, got {elmo!r:.80}")
        return self._with_elmo[elmo] if elmo else self

    def parse(self, text: str, pretokenized: bool) -> Tokens:
        """The visitor's text as sentences of tokens. Raises ``ValueError`` past the limits."""
        limits = self.settings
        if not isinstance(text, str):
            raise ValueError(f"text must be a string, got {text!r:.40}")
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

        Texts of several visitors at the same time are one batch; a text's vectors are the same to
        the last bit in any. Raises ``ValueError`` for an encoder that is not there.
        """
        self.model(kind)
        cache = self._caches[kind]
        bank = cache.get(sentences)
        if bank is None:
            bank = self._encoding[kind](sentences)
            cache.put(sentences, bank)
        return bank

    def model(self, kind: str) -> Model:
        if not isinstance(kind, str) or kind not in self.models:
            raise ValueError(f"encoder must be one of {', '.join(self.models)}, got {kind!r:.40}")
        return self.models[kind]

    def layer_basis(self, kind: str) -> Basis:
        """Axes of each layer by itself, fitted on the examples when first asked for."""
        if kind not in self._layer_bases:
            model = self.model(kind)
            words = model.bank.vectors[word_rows(model.bank)]
            self._layer_bases[kind] = fit_layer_basis(words, model.basis.scale, N_AXES)
        return self._layer_bases[kind]

    def example_of(self, sentences: Tokens) -> Example | None:
        """The curated example with exactly these sentences, if there is one."""
        return self._example_of.get(sentences)

    @property
    def labelled_examples(self) -> list[Tokens]:
        """Texts of the examples whose word has a sense in each sentence that is known."""
        return [tokens for tokens, e in self._example_of.items() if e.word and any(e.senses)]

    def pools(self, kind: str, sentences: Tokens, choice: Choice, row: int | None) -> list[Pool]:
        """The chosen banks that are there, without the chosen token (``row`` of the text) and
        without other copies of the text's sentences."""
        uploaded = self.uploads.get(choice.upload)
        model = self.model(kind)
        wordnet = None if model.label else self.wordnet.banks.get(kind)  # read by shipped ones only
        found = [Pool("examples", model.bank, self.bank_ids(sentences))]
        if wordnet is not None:
            found.append(Pool("wordnet", wordnet, self.wordnet.copies(sentences)))
        if uploaded is not None and kind in uploaded.banks:
            copies = uploaded.places.of(sentences)
            found.append(Pool("upload", uploaded.banks[kind], copies))
        found.append(Pool("text", self.encode(kind, sentences), (), -1 if row is None else row))
        return [pool for pool in found if pool.name in choice.pools]

    def sentence_of(
        self, pool: str, number: Any, upload: str | None
    ) -> tuple[tuple[str, ...], str]:
        """Tokens and text of one sentence of a shared bank, or of the visitor's file. Raises
        ``ValueError`` where there is none of this number."""
        uploaded = self.uploads.get(upload)
        banks = {
            "examples": {k: m.bank for k, m in self.models.items()},
            "wordnet": self.wordnet.banks,
            "upload": uploaded.banks if uploaded else {},
        }.get(pool, {})
        sentences = next(iter(banks.values())).sentences if banks else ()
        if type(number) is not int or not 0 <= number < len(sentences):
            raise ValueError(f"There is no sentence {number!r:.40} in {pool!r:.40}.")
        tokens = tuple(sentences[number])
        text = self.bank_sentences[number].text if pool == "examples" else " ".join(tokens)
        return tokens, text

    def bank_ids(self, sentences: Tokens) -> list[int]:
        """Sentences of the bank that the visitor's text repeats: no neighbors, but copies."""
        return [self._bank_index[s] for s in sentences if s in self._bank_index]


def _together(model: Model) -> Together[Tokens, TokenBank]:
    """Encodes the texts that are asked for at the same time in one batch."""

    def encode(texts: Sequence[Tokens]) -> list[TokenBank]:
        encoded = iter(encode_what_fits(model.encoder, [s for text in texts for s in text]))
        means = model.bank.means
        return [build_bank(t, list(islice(encoded, len(t))), means=means) for t in texts]

    return Together(encode, lambda text: sum(map(len, text)), TOKENS_PER_BATCH)


def make_model(encoder: Encoder, trained: bool, bank: TokenBank, label: str = "") -> Model:
    """Fits the maps' axes on the bank's words; punctuation is far from them and would take over."""
    spread = mix_spread(bank)
    scale = np.sqrt([spread[i] for i, (k, m) in enumerate(layer_pairs(bank.n_layers)) if k == m])
    basis = fit_basis(bank.vectors[word_rows(bank)], scale, N_AXES)
    return Model(encoder, trained, bank, basis, spread, label)


def _tags(sentence: BankSentence) -> tuple[Tag, ...]:
    """What an example says about its word, at the word's first copy."""
    word = (sentence.word or "").casefold()
    places = [i for i, token in enumerate(sentence.tokens) if token.casefold() == word]
    if not sentence.sense or not places:
        return ()
    name = f"{sentence.word}: {sentence.sense}"
    return (Tag(places[0], lemma=sentence.word, sense=name, gloss=sentence.sense),)


def load_services(settings: Settings) -> Services:
    """Reads weights and examples, encodes the examples, fits the axes. Seconds, once a process.

    Raises ``ValueError`` or ``OSError`` for files of ``settings.elmos`` that hold no model.
    """
    given = _load_given(settings)  # first: what is wrong with them should be told at once
    start = time.perf_counter()
    examples = load_examples(settings.examples)
    known = bank_sentences(examples)
    sentences = tuple(s.tokens for s in known)
    models = []
    for kind, about in ABOUT.items():
        folder = settings.models / kind
        trained = (folder / "weights.safetensors").is_file()
        if not trained and not about.required:
            continue
        if not trained:
            log.warning("no weights in %s: random ones stand in", folder)
        encoder = load_encoder(folder) if trained else untrained_encoder(kind)
        encodings = encode_what_fits(encoder, sentences)
        bank = build_bank(sentences, encodings, tags=[_tags(s) for s in known])
        models.append(make_model(encoder, trained, bank))
    elmos = []
    for label, encoder in given.items():
        encodings = encode_what_fits(encoder, sentences)
        bank = build_bank(sentences, encodings, tags=[_tags(s) for s in known])
        elmos.append(make_model(encoder, True, bank, label))
    services = Services(settings, examples, models, elmos)
    log.info("models and examples ready in %.1f s", time.perf_counter() - start)
    return services


def _load_given(settings: Settings) -> dict[str, Encoder]:
    """The given biLMs by their names in the menu: those of their files, made distinct."""
    given: dict[str, Encoder] = {}
    for options, weights in settings.elmos:
        encoder = load_elmo(options, weights)
        stem = (weights or options).stem
        taken = sum(label == stem or label.startswith(f"{stem} (") for label in given)
        given[f"{stem} ({taken + 1})" if taken else stem] = encoder
    return given
