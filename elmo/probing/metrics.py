"""How contextual the vectors of a layer are (Ethayarajh 2019), and how they lie in space.

Self-similarity, intra-sentence similarity and the variance that one direction explains, each raw
and adjusted: a layer in which any two words are alike (an anisotropic one) has high similarities
that say nothing about context, so that the value for random words is subtracted (section 3.4).
NumPy only; every mean over pairs is exact, from the sum of unit vectors, and not sampled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elmo.results import LayerGeometry

MIN_CONTEXTS = 5  # Ethayarajh 2019, section 3: words in at least five contexts
N_RESAMPLES = 1_000


def unit(vectors: np.ndarray) -> np.ndarray:
    """(..., D) float64 of length 1; a zero vector stays zero."""
    vectors = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def mean_cosine(vectors: np.ndarray) -> np.ndarray:
    """Average cosine over all pairs of n different rows: (n, ..., D) -> (...).

    Equal rows give exactly 1; a single row gives NaN, since it has no pair.
    """
    n = len(vectors)
    if n < 2:
        return np.full(np.shape(vectors)[1:-1], np.nan)
    vectors = np.asarray(vectors)
    units = unit(vectors)
    total = np.square(units.sum(axis=0)).sum(axis=-1)
    ones = np.square(units).sum(axis=-1).sum(axis=0)
    mean = (total - ones) / (n * (n - 1))
    copies = (vectors == vectors[:1]).all(axis=(0, -1)) & (ones > 0)
    return np.where(copies, 1.0, np.clip(mean, -1.0, 1.0))


def self_similarity(occurrences: np.ndarray) -> np.ndarray:
    """Average cosine of a word's vectors across its contexts, by layer: (n, L, D) -> (L,).

    Ethayarajh 2019, definition 1: 1 means that context does nothing.
    """
    return mean_cosine(occurrences)


def intra_sentence_similarity(hidden: np.ndarray) -> np.ndarray:
    """Average cosine of a sentence's words to their mean vector, by layer: (L, T, D) -> (L,).

    Ethayarajh 2019, definition 2. NaN for an empty sentence.
    """
    if hidden.shape[1] == 0:
        return np.full(len(hidden), np.nan)
    mean = unit(hidden.mean(axis=1, keepdims=True, dtype=np.float64))
    return (unit(hidden) * mean).sum(axis=-1).mean(axis=1)


def explained_variance(occurrences: np.ndarray, center: bool = True) -> np.ndarray:
    """Share of variance along the first principal component, by layer: (n, L, D) -> (L,).

    Ethayarajh 2019, definition 3 ("maximum explainable variance"): how well one static vector
    could stand for all occurrences. The definition is on the uncentered vectors
    (``center=False``), the published values come from a centered PCA (the author's code), and the
    two are far apart. NaN where all rows are equal and ``center`` leaves nothing to explain.
    """
    vectors = np.asarray(occurrences, dtype=np.float64).swapaxes(0, 1)  # (L, n, D)
    copies = (vectors == vectors[:, :1]).all(axis=(1, 2))
    if center:
        vectors = vectors - vectors.mean(axis=1, keepdims=True)
    # the n x n and the D x D Gram matrix share their eigenvalues: take the smaller
    if vectors.shape[1] <= vectors.shape[2]:
        gram = vectors @ vectors.swapaxes(1, 2)
    else:
        gram = vectors.swapaxes(1, 2) @ vectors
    total = np.trace(gram, axis1=1, axis2=2)
    top = np.linalg.eigvalsh(gram)[:, -1]
    share = np.divide(top, total, out=np.full_like(total, np.nan), where=total > 0)
    return np.where(copies & center, np.nan, share)


def norms(vectors: np.ndarray) -> np.ndarray:
    """Euclidean lengths: (..., D) -> (...) float64."""
    return np.linalg.norm(np.asarray(vectors, dtype=np.float64), axis=-1)


def cosine_matrix(hidden: np.ndarray) -> np.ndarray:
    """Cosine of every token with every other, by layer: (L, T, D) -> (L, T, T) float64.

    Symmetric; the diagonal is exactly 1, or 0 for a zero vector.
    """
    units = unit(hidden)
    cosine = np.clip(units @ units.swapaxes(-1, -2), -1.0, 1.0)
    diagonal = np.arange(cosine.shape[-1])
    cosine[..., diagonal, diagonal] = (norms(hidden) > 0).astype(np.float64)
    return cosine


def one_per_sentence(sentence: np.ndarray, seed: int = 0) -> np.ndarray:
    """Row indices: one random token of every sentence, so that no two share a context."""
    order = np.random.default_rng(seed).permutation(len(sentence))
    _, first = np.unique(np.asarray(sentence)[order], return_index=True)
    return np.sort(order[first])


def static_vectors(
    vectors: np.ndarray, words: Sequence[str]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Each word's average over its contexts: words in order of first use, (W, L, D), counts."""
    names, first, index = np.unique(np.array(words), return_index=True, return_inverse=True)
    counts = np.bincount(index)
    by_word = np.asarray(vectors)[np.argsort(index, kind="stable")]
    sums = np.add.reduceat(by_word, np.cumsum(counts) - counts, axis=0, dtype=np.float64)
    order = np.argsort(first)
    return names[order].tolist(), (sums / counts[:, None, None])[order], counts[order]


def layer_geometry(
    vectors: np.ndarray,
    words: Sequence[str],
    sentence: Sequence[int] | np.ndarray,
    encoder: str,
    *,
    min_contexts: int = MIN_CONTEXTS,
    max_words: int = 1_000,
    max_contexts: int = 100,
    seed: int = 0,
) -> LayerGeometry:
    """All measures by layer over tokens (N, L, D) of many sentences.

    words: the token of each row, case kept (layer 0 tells "Play" from "play"); a word counts once
    a sentence. sentence: which sentence each row is from.
    Words in fewer than ``min_contexts`` sentences are not measured; of more than ``max_words`` the
    most frequent are, each in at most ``max_contexts`` random sentences. The baseline is the mean
    cosine of one random token from every sentence. Intervals (95 %) resample words, or sentences.
    Raises ``ValueError`` where no word is frequent enough.
    """
    sentence = np.asarray(sentence)
    rng = np.random.default_rng(seed)
    rows_of = _contexts(words, sentence, min_contexts, max_words)
    if not rows_of:
        raise ValueError(f"no word occurs in {min_contexts} sentences or more")
    similarity, explained, uncentered = [], [], []
    for rows in rows_of.values():
        if len(rows) > max_contexts:
            rows = np.sort(rng.choice(rows, max_contexts, replace=False))
        occurrences = np.asarray(vectors[rows], dtype=np.float64)
        similarity.append(self_similarity(occurrences))
        explained.append(explained_variance(occurrences))
        uncentered.append(explained_variance(occurrences, center=False))
    by_word = np.stack(similarity)  # (W, L)

    random_rows = one_per_sentence(sentence, seed)[:5_000]
    random = np.asarray(vectors[random_rows], dtype=np.float64)
    boundaries = np.flatnonzero(np.diff(sentence, prepend=sentence[:1] - 1))
    groups = np.split(np.arange(len(sentence)), boundaries[1:])
    within = np.stack(
        [
            intra_sentence_similarity(np.asarray(vectors[g], dtype=np.float64).swapaxes(0, 1))
            for g in groups[:5_000]
            if len(g) > 1
        ]
    )
    lengths = norms(random)
    return LayerGeometry(
        encoder=encoder,
        words=tuple(rows_of),
        by_word=by_word,
        self_similarity=_with_interval(by_word, rng),
        intra_sentence=_with_interval(within, rng),
        baseline=mean_cosine(random),
        explained=_with_interval(np.stack(explained), rng),
        explained_uncentered=_with_interval(np.stack(uncentered), rng),
        explained_baseline=explained_variance(random),
        norm_mean=lengths.mean(axis=0),
        norm_std=lengths.std(axis=0),
        n_sentences=len(within),
        n_random=len(random),
    )


def _contexts(
    words: Sequence[str], sentence: np.ndarray, min_contexts: int, max_words: int
) -> dict[str, np.ndarray]:
    """Rows of each frequent word, the first of a sentence only, most frequent word first."""
    rows: dict[str, dict[int, int]] = {}
    for i, (word, s) in enumerate(zip(words, sentence.tolist(), strict=True)):
        if any(ch.isalnum() for ch in word):
            rows.setdefault(word, {}).setdefault(s, i)
    frequent = [(word, r) for word, r in rows.items() if len(r) >= min_contexts]
    frequent.sort(key=lambda pair: (-len(pair[1]), pair[0]))
    return {word: np.array(list(r.values())) for word, r in frequent[:max_words]}


def _with_interval(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, L) -> (3, L): mean and 95 % bootstrap interval over rows; NaN rows are left out."""
    result = np.full((3, values.shape[1]), np.nan)
    for k, column in enumerate(values.T):
        column = column[~np.isnan(column)]
        if len(column):
            draws = rng.multinomial(len(column), np.full(len(column), 1 / len(column)), N_RESAMPLES)
            low, high = np.percentile(draws @ column / len(column), [2.5, 97.5])
            result[:, k] = column.mean(), low, high
    return result
