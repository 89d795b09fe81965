"""A bank of tokens in context, to look up neighbors in.

A bank is in memory, or memory-mapped in half precision (``bank_files``); nothing here depends
on which. ``query`` reads all vectors once for a chosen token; ``comparison`` then gives the closed
form under one of four views of the vectors:

unit: each layer's vector scaled to length 1 before mixing. Unscaled, a layer with long vectors
    outweighs the others at equal s_k.
centered: the bank's mean vector of each layer subtracted first. Layers of language models are
    anisotropic: all vectors share a direction (Ethayarajh 2019), and so every cosine is high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from elmo.banks.bank_tables import (
    Means,
    index_tags,
    index_words,
    mean_vectors,
    row_products,
    unit_scale,
)
from elmo.banks.mixing import layer_pairs, pair_norms, pair_products
from elmo.banks.neighbors import Comparison, Found, layer_products
from elmo.banks.tagged import Tag
from elmo.results import Encoding

SAME_WORD = ("any", "only", "exclude")


@dataclass(frozen=True)
class Query:
    """Everything similarity to one token needs, for every mix (see ``mixing``).

    table: (L, N, L) inner products of the token's layer with a row's layer.
    norm: (pairs,) of the token with itself; mean_products: (pairs,) of the token with the bank's
    mean; unit_norm, unit_mean_products: the same of the token's vectors scaled to length 1.
    scale: (L,) by which the token's vectors are multiplied for that.
    """

    table: np.ndarray
    norm: np.ndarray
    mean_products: np.ndarray
    unit_norm: np.ndarray
    unit_mean_products: np.ndarray
    scale: np.ndarray

    @cached_property
    def products(self) -> np.ndarray:
        """(N, pairs) with the rows of the bank."""
        return _pairs_of_layers(self.table).T


@dataclass(frozen=True)
class TokenBank:
    """N rows, one a token of a sentence, under one encoder.

    sentences: the tokens of every sentence, also of those without rows.
    sentence, position: (N,) int32, where a row's token stands.
    vectors: (N, L, D) float32 or float16.
    means: subtracted for "mean removed" similarities; often those of another, larger bank.
    norms, mean_products, unit_mean_products: (N, pairs) float32 of a row with itself, with the
        mean, and of its unit vectors with their mean.
    word: (N,) int32, an index into ``words``: the distinct tokens, regardless of case.
    tag: (N,) int32, -1 or an index into ``tags``: what the sentence's source says about the token.
    """

    sentences: Sequence[tuple[str, ...]]
    sentence: np.ndarray
    position: np.ndarray
    vectors: np.ndarray
    means: Means
    norms: np.ndarray
    mean_products: np.ndarray
    unit_mean_products: np.ndarray
    word: np.ndarray
    words: tuple[str, ...]
    tag: np.ndarray
    tags: tuple[Tag, ...] = ()
    name: str = ""
    _views: dict = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def n_layers(self) -> int:
        return self.means.raw.shape[0]

    @property
    def mean(self) -> np.ndarray:
        """(L, D)"""
        return self.means.raw

    @cached_property
    def mean_norm(self) -> np.ndarray:
        """(pairs,)"""
        return pair_norms(self.means.raw[None])[0]

    def token(self, row: int) -> str:
        return self.sentences[self.sentence[row]][self.position[row]]

    def row(self, sentence: int, position: int) -> int | None:
        """The row of a token, or ``None`` where its sentence could not be encoded."""
        start, end = np.searchsorted(self.sentence, [sentence, sentence + 1])
        return int(start) + position if 0 <= position < end - start else None

    @cached_property
    def _word_ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def rows_of(self, word: str) -> np.ndarray:
        """Rows whose token is ``word``, in any case."""
        return np.flatnonzero(self.word == self._word_ids.get(word.casefold(), -1))

    @cached_property
    def sense_ids(self) -> np.ndarray:
        """(N,) int32: equal where the senses of two rows are known and equal; -1 unknown."""
        return self._ids_of([tag.sense for tag in self.tags])

    @cached_property
    def pos_ids(self) -> np.ndarray:
        """(N,) int32 for parts of speech, as ``sense_ids``."""
        return self._ids_of([tag.pos for tag in self.tags])

    def _ids_of(self, names: list[str]) -> np.ndarray:
        ids: dict[str, int] = {}
        of_tag = [ids.setdefault(name, len(ids)) if name else -1 for name in names]
        return np.array([*of_tag, -1], dtype=np.int32)[self.tag]  # tag -1 is the last entry

    def tag_of(self, row: int) -> Tag | None:
        index = int(self.tag[row])
        return self.tags[index] if index >= 0 else None

    def select(
        self,
        word: str | None = None,
        same_word: str = "any",
        pos: str | None = None,
        tagged: bool = False,
        without_sentences: Sequence[int] = (),
    ) -> np.ndarray:
        """Rising rows (int64) that pass every filter.

        same_word: ``only`` or ``exclude`` rows of ``word``, or ``any``. pos: rows known to have
        this part of speech. tagged: rows with a known sense. Raises ``ValueError`` on another
        ``same_word``.
        """
        if same_word not in SAME_WORD:
            raise ValueError(f"same_word must be one of {', '.join(SAME_WORD)}, got {same_word!r}")
        keep = np.ones(len(self), dtype=bool)
        if same_word != "any":
            own = np.zeros(len(self), dtype=bool)
            own[self.rows_of(word or "")] = True
            keep &= own if same_word == "only" else ~own
        if pos is not None:
            of_tag = np.array([*(tag.pos == pos for tag in self.tags), False], dtype=bool)
            keep &= of_tag[self.tag]
        if tagged:
            keep &= self.sense_ids >= 0
        for sentence in without_sentences:
            start, end = np.searchsorted(self.sentence, [sentence, sentence + 1])
            keep[start:end] = False
        return np.flatnonzero(keep)

    def query(self, vectors: np.ndarray) -> Query:
        """Products of a token's (L, D) layers with every row."""
        return self.queries(vectors[None])[0]

    def queries(self, vectors: np.ndarray) -> list[Query]:
        """Products of several tokens' layers (Q, L, D) with every row, in one pass over them."""
        vectors = np.asarray(vectors, dtype=np.float32)
        tables = layer_products(self.vectors, vectors)
        norm = pair_norms(vectors)
        scale = unit_scale(norm, self.n_layers)
        unit = vectors * scale[:, :, None]
        mean_products = pair_products(vectors, self.means.raw)
        unit_mean_products = pair_products(unit, self.means.unit)
        fields = zip(
            tables, norm, mean_products, pair_norms(unit), unit_mean_products, scale, strict=True
        )
        return [Query(*values) for values in fields]

    def comparison(
        self,
        query: Query,
        unit: bool = False,
        centered: bool = True,
        rows: np.ndarray | None = None,
    ) -> Comparison:
        """The closed form of a query and the rows, or some of them (rising int64)."""
        chosen = slice(None) if rows is None else rows
        table, norms = query.table[:, chosen], self._norms(unit, centered)[:, chosen]
        norm = query.unit_norm if unit else query.norm
        if unit:
            table = table * self._scale[chosen] * query.scale[:, None, None]
        products = _pairs_of_layers(table)
        if centered:
            of_row = self.unit_mean_products if unit else self.mean_products
            of_query = query.unit_mean_products if unit else query.mean_products
            of_mean = self._unit_mean_norm if unit else self.mean_norm
            products -= of_row.T[:, chosen]
            products += (of_mean - of_query)[:, None]
            norm = norm - 2 * of_query + of_mean
        return Comparison(
            products,
            np.ascontiguousarray(norms),
            norm.astype(np.float64),
            np.arange(len(self)) if rows is None else np.asarray(rows, dtype=np.int64),
        )

    def compare(self, vectors: np.ndarray, **view) -> Comparison:
        """``comparison`` with a token's (L, D) layers, for when no second view of it is needed."""
        return self.comparison(self.query(vectors), **view)

    def search(self, vectors: np.ndarray, s: np.ndarray, k: int = 20, **view) -> Found:
        """The k nearest rows by cosine: what every bank can do, wherever its vectors are
        (``vector_store`` has another). Here exact."""
        return self.compare(vectors, **view).nearest(s, k)

    def centered(self, query: Query) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(products, norms, query norm) as if the mean had been subtracted everywhere."""
        products = query.products - self.mean_products - query.mean_products + self.mean_norm
        norms = self.norms - 2 * self.mean_products + self.mean_norm
        return products, norms, query.norm - 2 * query.mean_products + self.mean_norm

    @cached_property
    def _scale(self) -> np.ndarray:
        """(N, L) by which the rows' vectors are multiplied to have length 1."""
        return unit_scale(self.norms, self.n_layers)

    @cached_property
    def _unit_mean_norm(self) -> np.ndarray:
        return pair_norms(self.means.unit[None])[0]

    def _norms(self, unit: bool, centered: bool) -> np.ndarray:
        """(pairs, N) of a row with itself; the same for every query, so it is kept."""
        if (unit, centered) not in self._views:
            norms = np.ascontiguousarray(self.norms.T)
            if unit:
                pairs = layer_pairs(self.n_layers)
                norms = np.stack(
                    [
                        n * self._scale[:, k] * self._scale[:, m]
                        for n, (k, m) in zip(norms, pairs, strict=True)
                    ]
                )
            if centered:
                of_row = self.unit_mean_products if unit else self.mean_products
                of_mean = self._unit_mean_norm if unit else self.mean_norm
                norms = norms - 2 * of_row.T + of_mean[:, None]
            self._views[unit, centered] = np.ascontiguousarray(norms, dtype=np.float32)
        return self._views[unit, centered]


def _pairs_of_layers(table: np.ndarray) -> np.ndarray:
    """(L, N, L) products of the query's and the rows' layers -> (pairs, N)."""
    return np.stack(
        [
            table[k, :, k] if k == m else table[k, :, m] + table[m, :, k]
            for k, m in layer_pairs(len(table))
        ]
    )


def with_means(bank: TokenBank, means: Means) -> TokenBank:
    """The same bank about other means, so that its rows compare with those of another bank.

    One pass over the vectors.
    """
    tables = layer_products(bank.vectors, np.stack([means.raw, means.unit]))
    scale = unit_scale(bank.norms, bank.n_layers)
    return replace(
        bank,
        means=means,
        mean_products=_pairs_of_layers(tables[0]).T,
        unit_mean_products=_pairs_of_layers(tables[1] * scale).T,
        _views={},
    )


def build_bank(
    sentences: Sequence[Sequence[str]],
    encodings: Sequence[Encoding | None],
    mean: np.ndarray | None = None,
    shape: tuple[int, int] | None = None,
    means: Means | None = None,
    tags: Sequence[Sequence[Tag]] | None = None,
    name: str = "",
) -> TokenBank:
    """A bank of all tokens, under one encoder, in memory.

    encodings: one a sentence, ``None`` where it could not be encoded: such a sentence has no rows.
    means: another bank's, to use instead of the rows' own; ``mean`` is its raw half alone.
    shape: (L, D), needed only where no sentence was encoded and no mean is given.
    tags: of each sentence, where known.
    """
    if len(sentences) != len(encodings):
        raise ValueError(f"{len(sentences)} sentences but {len(encodings)} encodings")
    known = [(i, e) for i, e in enumerate(encodings) if e is not None]
    if means is not None:
        mean = means.raw
    if mean is not None:
        shape = mean.shape
    elif known:
        shape = (known[0][1].hidden.shape[0], known[0][1].hidden.shape[2])
    elif shape is None:
        raise ValueError("no sentence was encoded: the bank's shape (L, D) must be given")
    parts = [e.hidden.transpose(1, 0, 2) for _, e in known]  # (T, L, D) each
    vectors = np.concatenate(parts) if parts else np.zeros((0, *shape), np.float32)
    vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    if means is None:
        means = mean_vectors(vectors)
        if mean is not None:
            means = replace(means, raw=mean)
    norms, mean_products, unit_mean_products = row_products(vectors, means)
    lengths = [len(e.tokens) if e is not None else 0 for e in encodings]
    tag_of, tag_table = index_tags(lengths, dict(enumerate(tags or ())))
    word_of, words = index_words(e.tokens for _, e in known)
    return TokenBank(
        sentences=tuple(tuple(s) for s in sentences),
        sentence=np.array([i for i, e in known for _ in e.tokens], dtype=np.int32),
        position=np.array([t for _, e in known for t in range(len(e.tokens))], dtype=np.int32),
        vectors=vectors,
        means=means,
        norms=norms.T,
        mean_products=mean_products.T,
        unit_mean_products=unit_mean_products.T,
        word=word_of,
        words=words,
        tag=tag_of,
        tags=tag_table,
        name=name,
    )
