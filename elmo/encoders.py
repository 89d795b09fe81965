"""Text in, vectors out: one contract for every encoder.

An ``Encoder`` holds weights and a cache of context-free vectors, never activations. It keeps no
recurrent state either, unless it is told to carry one as the original software did; so any number
of threads can share one.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmo import start_states
from elmo.checkpoint import Checkpoint, load_model
from elmo.config import shipped_config
from elmo.inference import Inference
from elmo.language_model import LanguageModel, build
from elmo.results import Encoding
from elmo.text import BOS, EOS, GAP, char_ids, is_truncated
from elmo.token_cache import TokenCache, weights_stamp

MAX_CACHED_TOKENS = 50_000
TOKENS_PER_BATCH = 4_096
SENTENCES_PER_BATCH = 512
TOKENS_PER_CHAR_BATCH = 1_024
PRECISIONS = ("float32", "bfloat16")


class Encoder:
    """Vectors of tokens in context from one language model.

    name: what the user calls it; kind: one of ``elmo.config.KINDS``.
    n_layers, d_model: L and D of every ``Encoding``.
    halves: whether a vector is [forward ; backward], each half from one direction only.
    max_tokens: the longest sentence it can encode, or ``None`` for no limit.
    state: where a biLM starts a sentence: ``zero``, ``warm`` or ``carry``
        (``elmo.start_states``).
    precision: ``float32``, or ``bfloat16`` for the matrix products of the character CNN and the
        LSTMs, sums and everything between them in float32. Vectors are float32 either way.
    """

    def __init__(
        self,
        model: LanguageModel,
        name: str | None = None,
        checkpoint: Checkpoint | None = None,
        state: str = "zero",
        added_tokens: Mapping[str, int] = GAP,
        precision: str = "float32",
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
        if state not in start_states.MODES:
            modes = ", ".join(start_states.MODES)
            raise ValueError(f"state must be one of {modes}, got {state!r}")
        if state != "zero" and self.kind != "bilm":
            raise ValueError(f"only a biLM has a state; the {self.name} encoder has none")
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
        self.state = state
        self.precision = precision
        self.added_tokens = dict(added_tokens)
        self._cache = TokenCache(MAX_CACHED_TOKENS)
        self._lock = threading.Lock()
        self._inference: tuple[object, Inference] | None = None
        self._carried = start_states.Carried()
        self._warm: tuple[object, start_states.Pair] | None = None

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

        Any number of sentences is split into batches here, unless the state is carried: then the
        call is one batch, and sentence r continues where sentence r of the last call ended.

        Warns of tokens with white space in them and of boundary tokens. Raises ``ValueError`` for
        anything that is not a list of lists of strings, for an unknown layer, and for a sentence
        longer than ``max_tokens``.
        """
        sentences = self.validated(sentences)
        select = self._layer_selector(layers)
        results: list[Encoding | None] = [None] * len(sentences)
        framed = [[BOS, *sentence, EOS] for sentence in sentences]
        inner = slice(None) if keep_boundaries else slice(1, -1)
        for batch in self._batches(framed):
            chosen = [framed[i] for i in batch]
            hidden, weights = self._run(chosen, attention)
            too_long = self._truncated(chosen)
            for row, i in enumerate(batch):
                tokens = framed[i][inner]
                n = len(framed[i])
                results[i] = Encoding(
                    tokens=tuple(tokens),
                    hidden=np.ascontiguousarray(select(hidden[:, row, :n][:, inner])),
                    attention=None if weights is None else weights[:, row, :, :n, :n].copy(),
                    truncated=tuple(k for k, t in enumerate(tokens) if t in too_long)
                    if too_long
                    else (),
                )
        return results

    def reset(self) -> None:
        """Forgets the carried state: the next call starts from zeros."""
        with self._lock:
            self._carried = start_states.Carried()

    def forget(self) -> None:
        """Empties the cache of context-free vectors; results do not change, speed does."""
        self._cache.clear()

    def layers(self, x: Tensor, lengths: Tensor) -> Tensor:
        """(L, B, T, D) of token vectors (B, T, P) with boundaries, from the zero state.

        ``lengths`` (B,) are the real positions; padding is exactly 0. Without gradients.
        """
        with torch.inference_mode():
            return self._ready().layers(x, lengths)[0]

    def token_vectors(self, tokens: Sequence[str]) -> Tensor:
        """Context-free vectors (n, P) of distinct tokens, from the cache where it has them."""
        inference = self._ready()  # another one after every change of the weights
        return self._cache.vectors(
            tokens, inference, lambda new: self._compute_token_vectors(inference, new)
        )

    def _compute_token_vectors(self, inference: Inference, tokens: list[str]) -> Tensor:
        """Words of like length together, in bounded batches."""
        width = self.config.char.max_characters
        ids = np.stack([char_ids(token, width, self.added_tokens) for token in tokens])
        n_used = (ids != ids.max(initial=0)).sum(axis=1)
        order = torch.from_numpy(np.argsort(n_used, kind="stable"))
        ids = torch.from_numpy(ids)[order]
        vectors = torch.empty(len(tokens), self.config.char.d_output, device=self._device)
        with torch.inference_mode():
            for start in range(0, len(tokens), TOKENS_PER_CHAR_BATCH):
                part = slice(start, start + TOKENS_PER_CHAR_BATCH)
                vectors[order[part]] = inference.token_vectors(ids[part].to(self._device))
        return vectors

    def embed(self, framed: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Token vectors (B, T, P) of sentences with their boundaries, and lengths (B,)."""
        index: dict[str, int] = {}
        rows = [[index.setdefault(token, len(index)) for token in s] for s in framed]
        vectors = self.token_vectors(list(index))
        lengths = torch.tensor([len(s) for s in framed])
        ids = torch.zeros(len(framed), int(lengths.max()), dtype=torch.long)
        for row, sentence in zip(ids, rows, strict=True):
            row[: len(sentence)] = torch.tensor(sentence)
        return vectors[ids.to(vectors.device)], lengths.to(vectors.device)

    def differentiable(self, n_sentences: int) -> Callable[[Tensor, Tensor], Tensor]:
        """Token vectors (B, T, P) and lengths (B,) to layers (L, B, T, D) by the plain modules, for
        gradients. Sentences start where ``encode`` starts them, but in carry mode at zero."""
        if self.state != "warm":
            return lambda x, lengths: self.model.layers(x, lengths)[0]
        with torch.no_grad():
            start = start_states.copy_pair(self._warm_pair(), n_sentences)
        return lambda x, lengths: self.model.stack.run(x, lengths, start)[0]

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    def _run(
        self, framed: list[list[str]], attention: bool
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Layers (L, B, T, D) and attention weights of one batch."""
        inference = self._ready()
        with torch.inference_mode():
            x, lengths = self.embed(framed)
            if self.state == "carry":
                with self._lock:
                    start = self._carried.start(self.model.stack, len(framed))
                    hidden, weights, end = inference.layers(x, lengths, start)
                    self._carried.keep(end)
            else:
                start = (None, None)
                if self.state == "warm":
                    start = start_states.repeat_pair(self._warm_pair(), len(framed))
                hidden, weights, _ = inference.layers(x, lengths, start, attention)
        return hidden.cpu().numpy(), None if weights is None else weights.cpu().numpy()

    def _ready(self) -> Inference:
        """The model laid out for this processor, made once for these weights."""
        stamp = weights_stamp(self.model)
        if self._inference is None or self._inference[0] != stamp:
            self._inference = (stamp, Inference(self.model, getattr(torch, self.precision)))
        return self._inference[1]

    def _warm_pair(self) -> start_states.Pair:
        """The state that the warm-up text leaves, one row, made once for these weights."""
        stamp = weights_stamp(self.model)
        if self._warm is None or self._warm[0] != stamp:
            pair = start_states.zero_pair(self.model.stack, 1)
            for line in start_states.WARM_UP.splitlines():
                x, lengths = self.embed([[BOS, *line.split(), EOS]])
                _, _, pair = self._ready().layers(x, lengths, pair)
            self._warm = (stamp, pair)
        return self._warm[1]

    def _batches(self, framed: list[list[str]]) -> Iterator[list[int]]:
        """Sentences of like length together, bounded by tokens, not by sentences."""
        order = sorted(range(len(framed)), key=lambda i: len(framed[i]))
        if self.state == "carry":
            if order:
                yield list(range(len(framed)))
            return
        batch: list[int] = []
        for i in order:
            too_many = (len(batch) + 1) * len(framed[i]) > TOKENS_PER_BATCH
            if batch and (too_many or len(batch) == SENTENCES_PER_BATCH):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _truncated(self, framed: list[list[str]]) -> set[str]:
        width, added = self.config.char.max_characters, self.added_tokens
        distinct = set().union(*framed)
        return {t for t in distinct if len(t) > width // 4 and is_truncated(t, width, added)}

    def validated(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The sentences as lists; the errors and warnings of ``encode``."""
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
        self._warn(checked)
        return checked

    @staticmethod
    def _warn(sentences: list[list[str]]) -> None:
        """Of input that is legal and probably a mistake."""
        distinct = set().union(*sentences)
        if BOS in distinct or EOS in distinct:
            warnings.warn(
                f"the sentences hold {BOS} or {EOS}: boundary tokens are added by the encoder",
                stacklevel=4,
            )
        spaced = sorted(token for token in distinct if len(token.split()) > 1)
        if spaced:
            warnings.warn(
                f"tokens with white space are read as one word each: {spaced[0]!r:.60}"
                f" (and {len(spaced) - 1} more)",
                stacklevel=4,
            )

    def _layer_selector(self, layers: str | int):
        if layers == "all":
            return lambda hidden: hidden
        if layers == "top":
            return lambda hidden: hidden[-1]
        if layers == "mean":
            return lambda hidden: hidden.mean(axis=0)
        number = isinstance(layers, int) and not isinstance(layers, bool)
        if number and 0 <= layers < self.n_layers:
            return lambda hidden: hidden[layers]
        raise ValueError(
            f"layers must be 'all', 'top', 'mean' or 0 to {self.n_layers - 1}, got {layers!r}"
        )


def load_encoder(folder: str | Path, state: str = "zero", precision: str = "float32") -> Encoder:
    """An encoder from a model folder (see ``elmo.checkpoint``)."""
    checkpoint = load_model(folder)
    name = checkpoint.card.get("name", Path(folder).name)
    return Encoder(checkpoint.model, name, checkpoint, state, precision=precision)


def load_elmo(
    options: str | Path,
    weights: str | Path | None = None,
    state: str = "zero",
    precision: str = "float32",
    softmax: str | Path | None = None,
    vocabulary: str | Path | None = None,
) -> Encoder:
    """An encoder from the original format: two files, or one folder or zip archive of both.

    Tokens are read by the original's rules: only ``<S>`` and ``</S>`` are special, unless the
    options add tokens. ``state`` and ``precision`` are those of ``Encoder``.

    softmax, vocabulary: the language-model head, a file with ``softmax/W`` and ``softmax/b``, and
        its words, one a line; for ``elmo.sentence_scores`` and gap guesses, not for vectors.

    Raises ``ValueError`` that lists everything missing, extra or misshapen in the files.
    """
    from elmo.original import hdf5  # h5py is needed for this format alone
    from elmo.original.model_files import find_model
    from elmo.original.options import added_tokens, parse_options

    files = find_model(options, weights)
    values = parse_options(files.options)
    added = added_tokens(values)
    model = hdf5.read_model(values, files.weights)
    checkpoint = None
    if (softmax is None) != (vocabulary is None):
        raise ValueError("softmax and vocabulary belong together: give both or neither")
    if softmax is not None:
        checkpoint = hdf5.with_head(model, softmax, vocabulary)
        model = checkpoint.model
    return Encoder(model, files.name, checkpoint, state, added, precision)


def untrained_encoder(kind: str, seed: int = 0) -> Encoder:
    """The shipped architecture with random weights: the control for "emerged from training"."""
    return Encoder(build(shipped_config(kind, n_vocabulary=0), seed), f"{kind} (untrained)")
