"""Text in, vectors out: one contract for every encoder.

An ``Encoder`` holds weights and a cache of context-free vectors, never activations and never a
recurrent state, so that any number of threads can share one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmo.checkpoint import Checkpoint, load_model
from elmo.config import shipped_config
from elmo.language_model import LanguageModel, build
from elmo.results import Encoding
from elmo.text import BOS, EOS, char_ids, is_truncated

MAX_CACHED_TOKENS = 50_000
TOKENS_PER_BATCH = 4_096
TOKENS_PER_CHAR_BATCH = 1_024


class Encoder:
    """Vectors of tokens in context from one language model.

    name: what the user calls it; kind: one of ``elmo.config.KINDS``.
    n_layers, d_model: L and D of every ``Encoding``.
    halves: whether a vector is [forward ; backward], each half from one direction only.
    max_tokens: the longest sentence it can encode, or ``None`` for no limit.
    """

    def __init__(
        self, model: LanguageModel, name: str | None = None, checkpoint: Checkpoint | None = None
    ) -> None:
        self.model = model.requires_grad_(False).eval()
        self.config = model.config
        self.kind = model.config.kind
        self.name = name or self.kind
        self.checkpoint = checkpoint
        stack = model.config.stack
        self.d_model = stack.d_model
        self.n_layers = 1 + (stack.n_layers if self.kind == "bilm" else stack.n_blocks)
        self.halves = self.kind != "attention"
        self.max_tokens = None if self.kind == "bilm" else stack.max_tokens
        self._cache: OrderedDict[str, Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def encode(
        self,
        sentences: Sequence[Sequence[str]],
        layers: str | int = "all",
        keep_boundaries: bool = False,
        attention: bool = False,
    ) -> list[Encoding]:
        """One ``Encoding`` a sentence, in the order given.

        sentences: ragged lists of tokens, cased, without boundary tokens (they are added and
            taken away here). An empty sentence gives zero rows.
        layers: ``"all"``: (L, T, D); ``"top"``, ``"mean"`` or a layer's number: (T, D).
        keep_boundaries: keep the vectors of ``<S>`` and ``</S>``.
        attention: also return attention weights, where the encoder has any.

        Raises ``ValueError`` for anything that is not a list of lists of strings, for an unknown
        layer, and for a sentence longer than ``max_tokens``.
        """
        sentences = self._validated(sentences)
        select = self._layer_selector(layers)
        results: list[Encoding | None] = [None] * len(sentences)
        framed = [[BOS, *sentence, EOS] for sentence in sentences]
        inner = slice(None) if keep_boundaries else slice(1, -1)
        width = self.config.char.max_characters
        for batch in self._batches(framed):
            chosen = [framed[i] for i in batch]
            hidden, weights = self._run(chosen, attention)
            for row, i in enumerate(batch):
                tokens = framed[i][inner]
                n = len(framed[i])
                results[i] = Encoding(
                    tokens=tuple(tokens),
                    hidden=np.ascontiguousarray(select(hidden[:, row, :n][:, inner])),
                    attention=None if weights is None else weights[:, row, :, :n, :n].copy(),
                    truncated=tuple(k for k, t in enumerate(tokens) if is_truncated(t, width)),
                )
        return results

    def token_vectors(self, tokens: Sequence[str]) -> Tensor:
        """Context-free vectors (n, P) of distinct tokens, from the cache where it has them."""
        with self._lock:
            known = {token: self._cache[token] for token in tokens if token in self._cache}
        new = [token for token in tokens if token not in known]
        if new:
            width = self.config.char.max_characters
            new.sort(key=lambda token: len(token.encode("utf-8", "ignore")))
            with torch.inference_mode():
                for start in range(0, len(new), TOKENS_PER_CHAR_BATCH):
                    part = new[start : start + TOKENS_PER_CHAR_BATCH]
                    ids = torch.from_numpy(np.stack([char_ids(t, width) for t in part]))
                    known.update(zip(part, self.model.token_encoder(ids), strict=True))
            with self._lock:
                self._cache.update((token, known[token]) for token in new)
                while len(self._cache) > MAX_CACHED_TOKENS:
                    self._cache.popitem(last=False)
        return torch.stack([known[token] for token in tokens])

    def embed(self, framed: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Token vectors (B, T, P) of sentences with their boundaries, and lengths (B,)."""
        index: dict[str, int] = {}
        rows = [[index.setdefault(token, len(index)) for token in s] for s in framed]
        vectors = self.token_vectors(list(index))
        lengths = torch.tensor([len(s) for s in framed])
        ids = torch.zeros(len(framed), int(lengths.max()), dtype=torch.long)
        for row, sentence in zip(ids, rows, strict=True):
            row[: len(sentence)] = torch.tensor(sentence)
        return vectors[ids], lengths

    def _run(
        self, framed: list[list[str]], attention: bool
    ) -> tuple[np.ndarray, np.ndarray | None]:
        with torch.inference_mode():
            hidden, weights = self.model.layers(*self.embed(framed))
        keep = attention and weights is not None
        return hidden.numpy(), weights.numpy() if keep else None

    def _batches(self, framed: list[list[str]]) -> Iterator[list[int]]:
        """Sentences of like length together, bounded by tokens, not by sentences."""
        order = sorted(range(len(framed)), key=lambda i: len(framed[i]))
        batch: list[int] = []
        for i in order:
            if batch and (len(batch) + 1) * len(framed[i]) > TOKENS_PER_BATCH:
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _validated(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        if isinstance(sentences, str):
            raise ValueError(f"sentences must be a list of lists of tokens, got {sentences!r:.60}")
        checked = []
        for sentence in sentences:
            if isinstance(sentence, str) or not all(isinstance(t, str) for t in sentence):
                raise ValueError(f"a sentence must be a list of tokens, got {sentence!r:.60}")
            if self.max_tokens is not None and len(sentence) > self.max_tokens:
                raise ValueError(
                    f"a sentence has {len(sentence)} tokens; the {self.name} encoder reads"
                    f" {self.max_tokens} at most, the longest it was trained on"
                )
            checked.append(list(sentence))
        return checked

    def _layer_selector(self, layers: str | int):
        if layers == "all":
            return lambda hidden: hidden
        if layers == "top":
            return lambda hidden: hidden[-1]
        if layers == "mean":
            return lambda hidden: hidden.mean(axis=0)
        if isinstance(layers, int) and 0 <= layers < self.n_layers:
            return lambda hidden: hidden[layers]
        raise ValueError(
            f"layers must be 'all', 'top', 'mean' or 0 to {self.n_layers - 1}, got {layers!r}"
        )


def load_encoder(folder: str | Path) -> Encoder:
    """An encoder from a model folder (see ``elmo.checkpoint``)."""
    checkpoint = load_model(folder)
    name = checkpoint.card.get("name", Path(folder).name)
    return Encoder(checkpoint.model, name, checkpoint)


def untrained_encoder(kind: str, seed: int = 0) -> Encoder:
    """The shipped architecture with random weights: the control for "emerged from training"."""
    return Encoder(build(shipped_config(kind, n_vocabulary=0), seed), f"{kind} (untrained)")
