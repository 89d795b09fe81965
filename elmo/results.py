"""What encoders and analyses return: frozen values of NumPy arrays and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Encoding:
    """One sentence under one encoder.

    tokens: T strings, boundaries only where they were asked for.
    hidden: (L, T, D) float32, layer 0 first; (T, D) where one layer or a mean was asked for.
    attention: (L - 1, H, T + 2, T + 2) float32 with the boundary tokens, rows sum to 1; ``None``
        for an encoder without attention.
    truncated: positions of tokens with more bytes than the character CNN reads.
    """

    tokens: tuple[str, ...]
    hidden: np.ndarray
    attention: np.ndarray | None = None
    truncated: tuple[int, ...] = ()


@dataclass(frozen=True)
class HeadStatistics:
    """Every head of every layer, means over the sentence's words as queries; (L - 1, H) each.

    directions: of the H heads, ``"joint"``, ``"forward"`` or ``"backward"``.
    entropy: bits; 0 is one key, log2(T + 2) all keys alike. distance: tokens from query to key.
    to_left, to_itself, to_boundaries: share of weight on keys left of the query, on itself, and
        on ``<S>`` and ``</S>``.
    """

    directions: tuple[str, ...]
    entropy: np.ndarray
    distance: np.ndarray
    to_left: np.ndarray
    to_itself: np.ndarray
    to_boundaries: np.ndarray


@dataclass(frozen=True)
class AttentionCell:
    """One attention weight with all that it is made of.

    tokens: T + 2 with boundaries; positions count from ``<S>`` = 0; layer from 1.
    query, key, products: (D / H,) float32; products = query * key.
    scale: sqrt(D / H). scores: (T + 2,) the query's row, sum of products over scale, -inf where
        it may not look. weights: (T + 2,) their softmax.
    """

    tokens: tuple[str, ...]
    direction: str
    layer: int
    head: int
    query_position: int
    key_position: int
    query: np.ndarray
    key: np.ndarray
    products: np.ndarray
    scale: float
    scores: np.ndarray
    weights: np.ndarray

    @property
    def dot(self) -> float:
        """q . k"""
        return float(self.products.sum())

    @property
    def score(self) -> float:
        return float(self.scores[self.key_position])

    @property
    def weight(self) -> float:
        return float(self.weights[self.key_position])


@dataclass(frozen=True)
class Objective:
    """What an encoder is asked to predict on one sentence while it learns, and from what.

    tokens: T + 2 with boundaries, as written; read: the same as the encoder reads them, gaps
        put in. One row a prediction, M in all:
    directions: (M,) ``"forward"``, ``"backward"`` or ``"joint"``; targets: (M,) positions.
    context: (M, T + 2) whether that token may be used for the prediction.
    """

    kind: str
    tokens: tuple[str, ...]
    read: tuple[str, ...]
    directions: tuple[str, ...]
    targets: np.ndarray
    context: np.ndarray


@dataclass(frozen=True)
class GradientTest:
    """Which loss teaches which part: gradients on one sentence, full softmax.

    losses: names of J losses; values: (J,) mean nats a prediction; groups: names of G groups of
    weights, with n_weights (G,) numbers each.
    norm: (J, G) length of the gradient; exactly_zero: (J, G) whether every number of it is 0.0.
    """

    losses: tuple[str, ...]
    values: np.ndarray
    groups: tuple[str, ...]
    n_weights: np.ndarray
    norm: np.ndarray
    exactly_zero: np.ndarray


@dataclass(frozen=True)
class GapGuess:
    """One predictor's distribution over the words that could fill a gap.

    encoder: its name; predictor: ``"forward"``, ``"backward"``, ``"product"`` or ``"joint"``.
    words, probabilities: the K likeliest words, most likely first.
    hidden_word: what stood in the gap, ``None`` if nothing did; probability and rank are its own,
        rank 1 the likeliest; both ``None`` for a word outside the vocabulary.
    unknown: probability of all words outside the vocabulary together.
    entropy: bits.
    """

    encoder: str
    predictor: str
    words: tuple[str, ...]
    probabilities: np.ndarray
    hidden_word: str | None
    rank: int | None
    probability: float | None
    unknown: float
    entropy: float


@dataclass(frozen=True)
class ClozeRow:
    """One row of the table: a score of every predictor on the same items, with what it rests on.

    data: where the items come from; evidence: ``"left"``, ``"right"``, ``"both"`` or
        ``"anywhere"``; kind: the phenomenon, or ``"all"``; score: what is measured.
    n: items scored; n_left_out: items with a word outside the vocabulary.
    values, low, high: (P,) by predictor, with 95 % bootstrap interval over items.
    difference, difference_low, difference_high: (P, P) row predictor minus column predictor on
        the same items, with its own interval.
    """

    data: str
    evidence: str
    kind: str
    score: str
    n: int
    n_left_out: int
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    difference: np.ndarray
    difference_low: np.ndarray
    difference_high: np.ndarray


@dataclass(frozen=True)
class ClozeTable:
    """Where the evidence lies decides who can know.

    predictors: (encoder, predictor) pairs, the order of every row's arrays.
    exponents: by encoder, (forward, backward, unigram) of its product, tuned on validation gaps.
    """

    predictors: tuple[tuple[str, str], ...]
    exponents: dict[str, tuple[float, float, float]]
    rows: tuple[ClozeRow, ...]
    seed: int


# How contextual a layer is ---------------------------------------------------------------------


@dataclass(frozen=True)
class LayerGeometry:
    """Measures by layer of one encoder (Ethayarajh 2019): ``probing.metrics.layer_geometry``.

    words: the W words measured, most frequent first; by_word: (W, L) their self-similarities.
    self_similarity, intra_sentence, explained, explained_uncentered: (3, L) mean, low and high of
        a 95 % interval; ``explained`` is NaN where all vectors of a word are equal (layer 0).
    baseline: (L,) mean cosine of random tokens; explained_baseline: (L,) their ``explained``.
    norm_mean, norm_std: (L,) lengths of random tokens' vectors.
    n_sentences, n_random: sentences behind ``intra_sentence``, tokens behind the baselines.
    """

    encoder: str
    words: tuple[str, ...]
    by_word: np.ndarray
    self_similarity: np.ndarray
    intra_sentence: np.ndarray
    baseline: np.ndarray
    explained: np.ndarray
    explained_uncentered: np.ndarray
    explained_baseline: np.ndarray
    norm_mean: np.ndarray
    norm_std: np.ndarray
    n_sentences: int
    n_random: int

    @property
    def adjusted_self_similarity(self) -> np.ndarray:
        """(3, L): minus what random words have in common."""
        return self.self_similarity - self.baseline

    @property
    def adjusted_intra_sentence(self) -> np.ndarray:
        return self.intra_sentence - self.baseline

    @property
    def adjusted_explained(self) -> np.ndarray:
        return self.explained - self.explained_baseline


# Probes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProbeScore:
    """A score in points (percent), mean over seeds, with its 95 % bootstrap interval over test
    sentences and seeds.

    task, encoder, representation: see ``probing.probe_cells``; encoder ``"none"`` for baselines
    without vectors. metric: ``"score"`` (accuracy, or F1 of entities), ``"accuracy"``,
    ``"control"``, ``"selectivity"``, ``"unseen"``, ``"outside_vocabulary"``, ``"nearest_usage"``.
    n_test: test examples that the metric counts; n_train: training examples a seed.
    """

    task: str
    encoder: str
    representation: str
    metric: str
    mean: float
    low: float
    high: float
    n_test: int
    n_train: int
    n_seeds: int


@dataclass(frozen=True)
class ProbeMix:
    """What a learned mix listens to: means over seeds, with the smallest and largest seed.

    scalar_weights: (L,) normalized weights s_k, and their extremes; gamma; center_of_gravity.
    on_raw_layers: (L,) the same mix written as weights for layers as they are, where it was
        learned on layers scaled to equal size (else equal to ``scalar_weights``).
    """

    task: str
    encoder: str
    representation: str
    scalar_weights: tuple[float, ...]
    scalar_weights_low: tuple[float, ...]
    scalar_weights_high: tuple[float, ...]
    on_raw_layers: tuple[float, ...]
    gamma: float
    center_of_gravity: float
    center_of_gravity_low: float
    center_of_gravity_high: float
    n_seeds: int


@dataclass(frozen=True)
class Difference:
    """One number with a 95 % interval from a paired bootstrap: what a verdict is given on.

    key: its name; unit: of mean, low and high, such as "points"; n: what was resampled, in words.
    """

    key: str
    mean: float
    low: float
    high: float
    unit: str
    n: str


@dataclass(frozen=True)
class ProbeTable:
    """Everything the probe command measured. about: command, date, settings, tasks, encoders."""

    about: dict[str, Any]
    scores: tuple[ProbeScore, ...]
    mixes: tuple[ProbeMix, ...]
    differences: tuple[Difference, ...]

    def score(
        self, task: str, encoder: str, representation: str, metric: str = "score"
    ) -> ProbeScore | None:
        """The score of that name, or ``None`` where it was not measured."""
        wanted = (task, encoder, representation, metric)
        return next((s for s in self.scores if _name(s) == wanted), None)

    def mix(self, task: str, encoder: str, representation: str) -> ProbeMix | None:
        wanted = (task, encoder, representation)
        found = (m for m in self.mixes if (m.task, m.encoder, m.representation) == wanted)
        return next(found, None)


def _name(score: ProbeScore) -> tuple[str, str, str, str]:
    return score.task, score.encoder, score.representation, score.metric


@dataclass(frozen=True)
class ProbeStep:
    """A probe in training, after ``step`` steps: s_k (L,) normalized, gamma, cross-entropy on
    training tokens, and accuracies from 0 to 1."""

    step: int
    scalar_weights: tuple[float, ...]
    gamma: float
    loss: float
    train_accuracy: float
    held_out_accuracy: float


@dataclass(frozen=True)
class ProbeRun:
    """A probe trained live: its reports, and what to compare the last one with.

    majority_accuracy: of the most frequent training label, on the held-out tokens.
    cancelled: whether it was stopped before its last step.
    """

    steps: tuple[ProbeStep, ...]
    labels: tuple[str, ...]
    n_train: int
    n_held_out: int
    majority_accuracy: float
    center_of_gravity: float
    seed: int
    cancelled: bool
