"""Encoding what an encoder can read, and leaving out the rest."""

from __future__ import annotations

from collections.abc import Sequence

from elmo.encoders import Encoder
from elmo.results import Encoding


def encode_what_fits(
    encoder: Encoder, sentences: Sequence[tuple[str, ...]]
) -> list[Encoding | None]:
    """One encoding a sentence, ``None`` where it is longer than the encoder was trained on."""
    limit = encoder.max_tokens
    fits = [limit is None or len(s) <= limit for s in sentences]
    chosen = [s for s, ok in zip(sentences, fits, strict=True) if ok]
    encoded = iter(encoder.encode(chosen) if chosen else [])
    return [next(encoded) if ok else None for ok in fits]
