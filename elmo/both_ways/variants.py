"""Edited copies of one sentence, run so that what an edit cannot reach stays equal bit for bit.

Floating-point sums depend on their order, and a matrix product chooses its order by its shape,
its place in memory and, with several threads, the row's place in the batch; never by what stands
in the other rows. So two vectors are compared here only if

- every token's context-free vector was computed once and is shared by all copies, and
- both were computed at the same row of equally shaped runs.

What differs then differs because the edit reached it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from elmo.encoders import TOKENS_PER_BATCH, Encoder
from elmo.text import BOS, EOS

MAX_TOKENS = 128  # of a sentence that is edited at every position: the work grows with T squared

Progress = Callable[[float], None]


class Variants:
    """Sentences of one length under one encoder, whose context-free vectors are made at once.

    ``sentences``: every copy that will be run, without boundaries. Raises ``ValueError`` for
    sentences of different or zero length, for more tokens than the encoder reads, and for an
    encoder that carries its state from one run to the next.
    """

    def __init__(self, encoder: Encoder, sentences: Sequence[Sequence[str]]) -> None:
        lengths = {len(sentence) for sentence in sentences}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(
                f"edited sentences must keep their number of words, got {sorted(lengths)}"
            )
        if encoder.state == "carry":
            raise ValueError("an encoder that carries its state has no two equal runs to compare")
        (n_tokens,) = lengths
        if encoder.max_tokens is not None and n_tokens > encoder.max_tokens:
            raise ValueError(
                f"the sentence has {n_tokens} tokens; the {encoder.name} encoder reads"
                f" {encoder.max_tokens} at most, the longest it was trained on"
            )
        self.encoder = encoder
        distinct = dict.fromkeys(token for sentence in sentences for token in sentence)
        encoder.token_vectors(list(dict.fromkeys([BOS, *distinct, EOS])))  # now in its cache

    def run(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """All layers (L, N, T, D) float32 of sentences run as one batch."""
        encodings = self.encoder.encode(sentences)
        return np.stack([encoding.hidden for encoding in encodings], axis=1)

    def run_alone(self, sentences: Sequence[Sequence[str]]) -> np.ndarray:
        """(N, L, T, D) float32, each sentence in a run of its own."""
        return np.stack([self.run([sentence])[:, 0] for sentence in sentences])


def compare(
    encoder: Encoder,
    tokens: Sequence[str],
    edited: Sequence[Sequence[str]],
    same_row: bool = True,
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Runs edited copies against the sentence itself, in batches of equal shape.

    Yields (first, base, changed): ``changed`` (L, n, T, D) holds the copies ``edited[first :
    first + n]``, ``base`` the unedited sentence at the same rows of a batch of its own. Without
    ``same_row`` it is the first row of the same batch, (L, 1, T, D): half the work, and as exact
    where a product's rows do not depend on their place, which the caller has to check.
    """
    variants = Variants(encoder, [tokens, *edited])
    n_rows = max(1, min(len(edited), len(tokens), TOKENS_PER_BATCH // (len(tokens) + 2) - 1))
    base = variants.run([tokens] * n_rows) if same_row else None
    for first in range(0, len(edited), n_rows):
        part = list(edited[first : first + n_rows])
        n = len(part)
        part += [tokens] * (n_rows - n)  # the last batch is filled up: shapes stay equal
        if same_row:
            yield first, base[:, :n], variants.run(part)[:, :n]
        else:
            hidden = variants.run([tokens, *part])
            yield first, hidden[:, :1], hidden[:, 1 : n + 1]


def check_sentence(tokens: Sequence[str]) -> tuple[str, ...]:
    """The sentence as a tuple. Raises ``ValueError`` for none, text, or too many tokens."""
    if isinstance(tokens, str) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"a sentence must be a list of tokens, got {tokens!r:.60}")
    if not 1 <= len(tokens) <= MAX_TOKENS:
        raise ValueError(
            f"a sentence to edit word by word must have 1 to {MAX_TOKENS} tokens, got {len(tokens)}"
        )
    return tuple(tokens)
