"""Word: one word in many sentences, its sentence by layer, its letters, and an edited sentence."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from app.handlers.events import MAX_TOKENS, data_of, message, place_of, shows_errors, text_of
from app.services import Model, Services, Tokens
from app.state import Selection
from app.views.word import firing_view, layers_view, moves_view, nearest, sentence_view
from elmo.banks.bank import TokenBank
from elmo.char_filters import firing, spellings, usual_maxima
from elmo.encoders import Encoder
from elmo.probing.metrics import static_vectors, unit
from elmo.probing.one_word import moves, random_tokens, word_layers
from elmo.text import is_truncated, normalize

MAX_OCCURRENCES = 200
N_USUAL_WORDS = 1_000


class WordHandlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._examples = {
            (model.label, kind): _Examples(model)
            for elmo in ("", *services.elmos)
            for kind, model in services.using(elmo).models.items()
        }

    @shows_errors
    def word(self, selection: Selection, sent: str) -> str:
        """The chosen word in all its sentences, and its own sentence by layer."""
        sentences = self._sentences(selection)
        place = place_of(sent, sentences)
        centered = data_of(sent).get("centered") is True
        services = self.services.using(selection.elmo)
        views = {k: self._word(services, k, sentences, place, centered) for k in services.models}
        view = {"sentence": place[0], "token": place[1], "centered": centered, "encoders": views}
        return message({"word": view | {"max_tokens": MAX_TOKENS, "cap": MAX_OCCURRENCES}})

    @shows_errors
    def spelling(self, selection: Selection, sent: str) -> str:
        """A typed word in layer 0: neighbors, inflections, misspellings, filters."""
        word = normalize(text_of(sent, "word", 100))
        if not word or " " in word:
            raise ValueError(f"Type one word without spaces, got {word!r:.60}.")
        if is_truncated(word):
            raise ValueError(f"{word!r:.60} is longer than the characters an encoder reads.")
        models = self.services.using(selection.elmo).models
        views = {kind: self._spelling(model, word) for kind, model in models.items()}
        return message({"spelling": {"word": word, "encoders": views}})

    @shows_errors
    def edit(self, selection: Selection, sent: str) -> str:
        """The chosen sentence and the visitor's version of it."""
        sentences = self._sentences(selection)
        before = sentences[place_of(sent, sentences)[0]]
        text = text_of(sent, "text", 2_000).replace("\n", " ")
        after = self.services.parse(text, selection.pretokenized)[0]
        if max(len(before), len(after)) > MAX_TOKENS:
            raise ValueError(f"This view takes sentences of {MAX_TOKENS} tokens at most.")
        models = self.services.using(selection.elmo).models
        views = {kind: self._edit(model.encoder, before, after) for kind, model in models.items()}
        return message({"edited": {"before": before, "after": after, "encoders": views}})

    def _sentences(self, selection: Selection) -> Tokens:
        return self.services.parse(selection.text, selection.pretokenized)

    def _word(
        self,
        services: Services,
        kind: str,
        sentences: Tokens,
        place: tuple[int, int],
        centered: bool,
    ) -> dict[str, Any]:
        model, text = services.model(kind), services.encode(kind, sentences)
        row = text.row(*place)
        if row is None:
            return {"gap": "This sentence is longer than this encoder was trained on."}
        word, examples = text.token(row), self._examples[model.label, kind]
        found = [(text, i) for i in text.rows_of(word).tolist()]
        for bank, copies in _shared_banks(services, model, sentences):
            repeated = set(copies)
            rows = bank.rows_of(word).tolist()
            found += [(bank, i) for i in rows if int(bank.sentence[i]) not in repeated]
        found = [(b, i) for b, i in found if b.token(i) == word][:MAX_OCCURRENCES]
        # A large bank keeps half precision: all are rounded to it, or equal vectors would differ.
        kept = min((b.vectors.dtype for b, _ in found), key=lambda dtype: dtype.itemsize)
        vectors = np.stack([b.vectors[i].astype(kept) for b, i in found]).astype(np.float32)
        places = {(id(b), int(b.sentence[i])): b for b, i in found}
        around = [b.vectors[b.sentence == s].astype(np.float32) for (_, s), b in places.items()]
        view = layers_view(
            word_layers(vectors, around),
            *examples.baseline,
            examples.lists(word, vectors, row, text),
        )
        own = text.vectors[text.sentence == place[0]].swapaxes(0, 1)
        if own.shape[1] <= MAX_TOKENS:
            mean = model.bank.mean if centered else None
            view["inside"] = sentence_view(own, place[1], model.encoder.halves, mean)
        return view

    def _spelling(self, model: Model, word: str) -> dict[str, Any]:
        examples = self._examples[model.label, model.kind]
        made = [(text, how) for text, how in spellings(word) if not is_truncated(text)]
        encoded = model.encoder.encode([[text] for text in (word, *(t for t, _ in made))])
        layer0 = np.stack([e.hidden[0, 0] for e in encoded]) - model.bank.mean[0]
        cosines = unit(layer0) @ unit(layer0[0])
        cnn = model.encoder.model.token_encoder
        return {
            "n_in_examples": len(model.bank.rows_of(word)),
            "target": rank_of(model.encoder, word),
            "near": nearest(layer0[0], examples.layer0, examples.words, word),
            "forms": [[t, how, float(c)] for (t, how), c in zip(made, cosines[1:], strict=True)],
            "filters": firing_view(firing(cnn, word, examples.usual)),
        }

    def _edit(
        self, encoder: Encoder, before: tuple[str, ...], after: tuple[str, ...]
    ) -> dict[str, Any]:
        limit = encoder.max_tokens
        if limit is not None and max(len(before), len(after)) > limit:
            return {"gap": f"This encoder reads {limit} tokens at most."}
        old, new = (encoder.encode([tokens])[0].hidden for tokens in (before, after))
        return moves_view(moves(before, after, old, new, encoder.halves), encoder.halves)


def _shared_banks(
    services: Services, model: Model, sentences: Tokens
) -> list[tuple[TokenBank, list[int]]]:
    """The banks of other sentences, with the numbers of those that the text repeats."""
    banks = [(model.bank, services.bank_ids(sentences))]
    wordnet = None if model.label else services.wordnet.banks.get(model.kind)
    if wordnet is not None:
        banks.append((wordnet, services.wordnet.copies(sentences)))
    return banks


def rank_of(encoder: Encoder, word: str) -> int | None:
    """See ``Checkpoint.rank``; 0 where the encoder's vocabulary is not known."""
    known = encoder.checkpoint is not None and encoder.model.head is not None
    return encoder.checkpoint.rank(word) if known else 0


class _Examples:
    """What the examples' tokens are compared with, each computed when first asked for."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._lock = Lock()

    @cached_property
    def baseline(self) -> tuple[np.ndarray, int]:
        return random_tokens(self.model.bank.vectors, self.model.bank.sentence)

    @cached_property
    def _static(self) -> tuple[list[str], np.ndarray]:
        """Words, and each word's average over its contexts about the mean: (W, L, D)."""
        bank = self.model.bank
        names = [bank.token(i) for i in range(len(bank))]
        kept = [i for i, name in enumerate(names) if any(c.isalnum() for c in name)]
        words, vectors, _ = static_vectors(bank.vectors[kept], [names[i] for i in kept])
        return words, (vectors - bank.mean).astype(np.float32)

    @property
    def words(self) -> list[str]:
        with self._lock:
            return self._static[0]

    @property
    def layer0(self) -> np.ndarray:
        with self._lock:
            return self._static[1][:, 0]

    @cached_property
    def usual(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the character filters, over the examples' first words."""
        return usual_maxima(self.model.encoder.model.token_encoder, self.words[:N_USUAL_WORDS])

    def lists(
        self, word: str, occurrences: np.ndarray, row: int, text: TokenBank
    ) -> dict[str, Any]:
        """Nearest words by spelling alone, by the average over contexts, and in this context."""
        bank, words = self.model.bank, self.words
        average = occurrences[:, -1].mean(axis=0) - bank.mean[-1]
        tokens = [bank.token(i) for i in range(len(bank))]
        here = text.vectors[row, -1] - bank.mean[-1]
        return {
            "spelling": nearest(text.vectors[row, 0] - bank.mean[0], self.layer0, words, word),
            "average": nearest(average, self._static[1][:, -1], words, word),
            "context": nearest(here, bank.vectors[:, -1] - bank.mean[-1], tokens, word),
        }
