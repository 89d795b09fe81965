"""A bank of tokens in context, to look up neighbors in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elmo.mixing import pair_norms, pair_products
from elmo.results import Encoding


@dataclass(frozen=True)
class Query:
    """Everything similarity to one token needs, for every mix (see ``elmo.mixing``).

    products: (N, pairs) with the rows of a bank; norm: (pairs,) of the token with itself;
    mean_products: (pairs,) of the token with the bank's mean.
    """

    products: np.ndarray
    norm: np.ndarray
    mean_products: np.ndarray


@dataclass(frozen=True)
class TokenBank:
    """N rows, one a token of a sentence, under one encoder.

    sentences: the tokens of every sentence, also of those without rows.
    sentence, position: (N,) int32, where a row's token stands.
    vectors: (N, L, D) float32.
    mean: (L, D) the mean vector of each layer, subtracted for "mean removed" similarities. Layers
        of language models are anisotropic: all vectors share a direction (Ethayarajh 2019).
    norms, mean_products: (N, pairs) of a row with itself, and with the mean; mean_norm: (pairs,).
    """

    sentences: tuple[tuple[str, ...], ...]
    sentence: np.ndarray
    position: np.ndarray
    vectors: np.ndarray
    mean: np.ndarray
    norms: np.ndarray
    mean_products: np.ndarray
    mean_norm: np.ndarray

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def n_layers(self) -> int:
        return self.mean.shape[0]

    def token(self, row: int) -> str:
        return self.sentences[self.sentence[row]][self.position[row]]

    def row(self, sentence: int, position: int) -> int | None:
        """The row of a token, or ``None`` where its sentence could not be encoded."""
        found = np.flatnonzero((self.sentence == sentence) & (self.position == position))
        return int(found[0]) if len(found) else None

    def rows_of(self, word: str) -> np.ndarray:
        """Rows whose token is ``word``, in any case."""
        key = word.casefold()
        same = [i for i in range(len(self)) if self.token(i).casefold() == key]
        return np.array(same, dtype=np.int64)

    def query(self, vectors: np.ndarray) -> Query:
        """Products of a token's (L, D) layers with every row."""
        one = vectors[None]
        return Query(
            pair_products(self.vectors, vectors),
            pair_norms(one)[0],
            pair_products(one, self.mean)[0],
        )

    def centered(self, query: Query) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(products, norms, query norm) as if the mean had been subtracted everywhere."""
        products = query.products - self.mean_products - query.mean_products + self.mean_norm
        norms = self.norms - 2 * self.mean_products + self.mean_norm
        return products, norms, query.norm - 2 * query.mean_products + self.mean_norm


def build_bank(
    sentences: Sequence[Sequence[str]],
    encodings: Sequence[Encoding | None],
    mean: np.ndarray | None = None,
    shape: tuple[int, int] | None = None,
) -> TokenBank:
    """A bank of all tokens, under one encoder.

    encodings: one a sentence, ``None`` where it could not be encoded: such a sentence has no rows.
    mean: another bank's (L, D) mean to use; else the rows' own.
    shape: (L, D), needed only where no sentence was encoded and no mean is given.
    """
    if len(sentences) != len(encodings):
        raise ValueError(f"{len(sentences)} sentences but {len(encodings)} encodings")
    known = [(i, e) for i, e in enumerate(encodings) if e is not None]
    if mean is not None:
        shape = mean.shape
    elif known:
        shape = (known[0][1].hidden.shape[0], known[0][1].hidden.shape[2])
    elif shape is None:
        raise ValueError("no sentence was encoded: the bank's shape (L, D) must be given")
    parts = [e.hidden.transpose(1, 0, 2) for _, e in known]  # (T, L, D) each
    vectors = np.concatenate(parts) if parts else np.zeros((0, *shape), np.float32)
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if mean is None:
        mean = vectors.mean(axis=0) if len(vectors) else np.zeros(shape, np.float32)
    return TokenBank(
        sentences=tuple(tuple(s) for s in sentences),
        sentence=np.array([i for i, e in known for _ in e.tokens], dtype=np.int32),
        position=np.array([t for _, e in known for t in range(len(e.tokens))], dtype=np.int32),
        vectors=vectors,
        mean=mean,
        norms=pair_norms(vectors),
        mean_products=pair_products(vectors, mean),
        mean_norm=pair_norms(mean[None])[0],
    )
