"""What encoders and analyses return: frozen values of NumPy arrays and labels."""

from __future__ import annotations

from dataclasses import dataclass

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


# ---------------------------------------------------------------- one direction or both at once


@dataclass(frozen=True)
class InfluenceGrid:
    """How far the vector read at t moves when token j is edited, by layer and half.

    Indices, in this order: sample r of R, part s of S, layers k and l, edited j, read t.

    encoder: its name; tokens: T strings.
    measure: ``"replacement"`` (token j replaced by another) or ``"gradient"`` (random directions
        through the derivative by token j's context-free vector).
    replacement: what was put in place of a token, in words; R random words or directions are
        R samples.
    parts: ``("whole", "forward", "backward")``, or ``("whole",)`` for vectors without halves.
    cross: (R, S, L, L, T, T) float32, inner products of layer k's and layer l's change.
    own: (S, L, L, T) float32, inner products of the unedited layers.
    changed: (S, L, T, T) whether any number of the vector differs, in any sample: compared bit
        by bit, without tolerance.
    reachable: (S, L, T, T) whether the architecture lets token j reach that vector at all.
    """

    encoder: str
    tokens: tuple[str, ...]
    measure: str
    replacement: str
    parts: tuple[str, ...]
    cross: np.ndarray
    own: np.ndarray
    changed: np.ndarray
    reachable: np.ndarray

    @property
    def n_zero(self) -> int:
        """Vectors that cannot be reached: each was checked to be exactly unchanged."""
        return int((~self.reachable).sum())

    @property
    def n_broken(self) -> int:
        """Vectors that cannot be reached and yet differ; anything but 0 is a fault."""
        return int((self.changed & ~self.reachable).sum())

    def layer(self, k: int, part: str = "whole") -> np.ndarray:
        """(T, T) influence of j (row) on t (column) in one layer; see ``mix``."""
        n_layers = self.cross.shape[2]
        if not 0 <= k < n_layers:
            raise ValueError(f"layer must be 0 to {n_layers - 1}, got {k!r}")
        return self._root_mean(np.eye(n_layers)[k], part)

    def mix(self, scalar_weights: np.ndarray, part: str = "whole") -> np.ndarray:
        """(T, T) influence on the mix of layers with the normalized weights s (L,).

        By replacement: the length of the change over the length of the vector, the root of the
        mean square over samples. By gradient: the Frobenius norm of the derivative. The mix's
        change is linear in the layers' changes, so their inner products are all it takes; cells
        that did not change are exactly 0.
        """
        return self._root_mean(np.asarray(scalar_weights, dtype=np.float64), part)

    def standard_error(self, scalar_weights: np.ndarray, part: str = "whole") -> np.ndarray:
        """(T, T) standard error of ``mix`` over the R samples; NaN with a single sample."""
        squares = self._squares(np.asarray(scalar_weights, dtype=np.float64), part)
        n_samples = len(squares)
        if n_samples < 2:
            return np.full(squares.shape[1:], np.nan)
        spread = squares.std(axis=0, ddof=1) / np.sqrt(n_samples)
        root = np.sqrt(squares.mean(axis=0))
        return np.divide(spread, 2 * root, out=np.zeros_like(root), where=root > 0)

    def _root_mean(self, scalar_weights: np.ndarray, part: str) -> np.ndarray:
        return np.sqrt(self._squares(scalar_weights, part).mean(axis=0))

    def _squares(self, scalar_weights: np.ndarray, part: str) -> np.ndarray:
        """(R, T, T) squared influence of every sample."""
        if part not in self.parts:
            raise ValueError(f"part must be one of {', '.join(self.parts)}, got {part!r}")
        n_layers = self.cross.shape[2]
        if scalar_weights.shape != (n_layers,):
            raise ValueError(f"{n_layers} layers need as many weights, got {scalar_weights!r}")
        s = self.parts.index(part)
        pair = np.outer(scalar_weights, scalar_weights)
        squares = np.einsum("kl,rkljt->rjt", pair, self.cross[:, s].astype(np.float64))
        squares = np.maximum(squares, 0.0)  # rounding
        if self.measure == "gradient":
            return squares
        own = np.einsum("kl,klt->t", pair, self.own[s].astype(np.float64))
        return np.divide(squares, own, out=np.zeros_like(squares), where=own > 0)


@dataclass(frozen=True)
class Reach:
    """How influence fades with distance, averaged over pairs of tokens.

    distances: (T,) 0, 1, ... tokens from edited to read; n_pairs: (S, T) pairs averaged.
    parts: as in ``InfluenceGrid``; "forward" looks to the right of the edited token only,
    "backward" to the left.
    profile: (S, L, T) mean influence at each distance.
    half_life: (S, L) tokens beyond the next one until influence is half of what it is there;
        infinite where it stays above half to the end of the sentence, NaN where it is 0.
    mean_distance: (S, L) distance averaged with influence as weight, the token itself left out;
        NaN where influence is 0.
    """

    encoder: str
    parts: tuple[str, ...]
    distances: np.ndarray
    n_pairs: np.ndarray
    profile: np.ndarray
    half_life: np.ndarray
    mean_distance: np.ndarray


@dataclass(frozen=True)
class Edit:
    """Tokens put in place of as many others, from position ``start`` on."""

    start: int
    words: tuple[str, ...]

    @property
    def stop(self) -> int:
        return self.start + len(self.words)


@dataclass(frozen=True)
class Interaction:
    """One sentence with an edit on the left, one on the right, both, and neither.

    hidden: (2, 2, L, T, D) float32, indexed by whether the left and the right edit were made;
        ``hidden[0, 0]`` is the sentence as it was.
    """

    encoder: str
    tokens: tuple[str, ...]
    left: Edit
    right: Edit
    hidden: np.ndarray

    @property
    def between(self) -> range:
        """Positions strictly between the edits."""
        return range(self.left.stop, self.right.start)

    @property
    def vectors(self) -> np.ndarray:
        """(L, T, D) I = [h(L',R') - h(L',R)] - [h(L,R') - h(L,R)], float32, in this order."""
        return _interaction(self.hidden)

    @property
    def size(self) -> np.ndarray:
        """(L, T) float64 length of I over the length of the unedited vector."""
        return _relative_length(self.vectors, self.hidden[0, 0])

    @property
    def share(self) -> np.ndarray:
        """(L, T) length of I over the summed lengths of the two single changes; NaN where no
        edit changed the vector (0/0): say "unchanged" there."""
        h = self.hidden
        length = np.linalg.norm(self.vectors.astype(np.float64), axis=-1)
        singles = sum(
            np.linalg.norm((changed - h[0, 0]).astype(np.float64), axis=-1)
            for changed in (h[1, 0], h[0, 1])
        )
        nothing = np.full_like(length, np.nan)
        return np.divide(length, singles, out=nothing, where=~self.unchanged & (singles > 0))

    @property
    def unchanged(self) -> np.ndarray:
        """(L, T) whether all four vectors are equal bit by bit, as between the edits in layer 0."""
        h = self.hidden
        return (h == h[0, 0]).all(axis=(0, 1, -1))

    @property
    def exactly_zero(self) -> np.ndarray:
        """(L, T) whether every number of I is exactly 0.0."""
        return (self.vectors == 0).all(axis=-1)

    def mix(self, scalar_weights: np.ndarray, gamma: float = 1.0) -> Interaction:
        """The same with the mix of layers in place of the layers: L = 1."""
        weights = (gamma * np.asarray(scalar_weights)).astype(np.float32)
        if weights.shape != (self.hidden.shape[2],):
            raise ValueError(f"{self.hidden.shape[2]} layers need as many weights, got {weights}")
        mixed = np.zeros_like(self.hidden[:, :, :1])
        for k, weight in enumerate(weights):  # element by element: no sum depends on its place
            mixed += weight * self.hidden[:, :, k : k + 1]
        return Interaction(self.encoder, self.tokens, self.left, self.right, mixed)


def _interaction(hidden: np.ndarray) -> np.ndarray:
    """(2, 2, ...) -> (...): see ``Interaction.vectors``."""
    return (hidden[1, 1] - hidden[1, 0]) - (hidden[0, 1] - hidden[0, 0])


def _relative_length(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Length of x over length of y along the last axis, in float64."""
    x, y = (np.linalg.norm(value.astype(np.float64), axis=-1) for value in (x, y))
    return np.divide(x, y, out=np.zeros_like(x), where=x > 0)


@dataclass(frozen=True)
class InteractionSummary:
    """Relative size of the interaction between the edits, over example sentences.

    size: (N, L) mean of ``Interaction.size`` over the positions between the edits, an example a
        row; mean, low, high: (L,) its mean and 95 % bootstrap interval over examples.
    n_vectors: vectors between the edits, over all examples; n_zero: (L,) those whose interaction
        is exactly 0.0; n_unchanged: (L,) those that no edit changed at all.
    """

    encoder: str
    size: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_vectors: int
    n_zero: np.ndarray
    n_unchanged: np.ndarray


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
    """Measures by layer of one encoder (Ethayarajh 2019); see ``elmo.metrics.layer_geometry``.

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
