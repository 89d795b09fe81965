"""Results of the influence and interaction views, with the arithmetic that any mix of layers takes.

Values of NumPy arrays and labels like those of ``elmo.results``; a mix of layers is linear, so
everything about it follows from what is stored here, without another run of an encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
    share: (L,) the same mean of ``Interaction.share``; NaN where no vector changes (layer 0).
    n_vectors: vectors between the edits, over all examples; n_zero: (L,) those whose interaction
        is exactly 0.0; n_unchanged: (L,) those that no edit changed at all.
    """

    encoder: str
    size: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    share: np.ndarray
    n_vectors: int
    n_zero: np.ndarray
    n_unchanged: np.ndarray
