"""Who influences whom: edit one token, see which vectors move, and by how much.

Two measures. By replacement: token j gives way to another one and every vector's change is
measured. By gradient: the Frobenius norm of the derivative of a vector by token j's context-free
vector, estimated with random directions (Hutchinson's estimator, in forward mode).

A forward half never sees the right side of its token, a backward half never the left; those cells
are not drawn as zero but computed like all others and found to be exactly zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vmap

from elmo.both_ways.arithmetic import InfluenceGrid
from elmo.both_ways.variants import Progress, Variants, check_sentence, compare
from elmo.encoders import TOKENS_PER_BATCH, Encoder
from elmo.text import BOS, EOS, MASK

N_DIRECTIONS = 8
N_RANDOM_WORDS = 4


@dataclass(frozen=True)
class Replacements:
    """What is put in place of each token: ``words[r][j]`` replaces token j in sample r."""

    label: str
    words: tuple[tuple[str, ...], ...]


def gap_replacements(tokens: Sequence[str]) -> Replacements:
    """The gap token everywhere."""
    return Replacements("gap token", ((MASK,) * len(tokens),))


def word_replacements(tokens: Sequence[str], word: str) -> Replacements:
    """One word everywhere. Raises ``ValueError`` unless it is a single token."""
    if not word or word.split() != [word]:
        raise ValueError(f"the replacement must be one word, got {word!r}")
    return Replacements(word, ((word,) * len(tokens),))


def random_replacements(
    tokens: Sequence[str], words: Sequence[str], n_samples: int = N_RANDOM_WORDS, seed: int = 0
) -> Replacements:
    """Words drawn from ``words`` with a fixed seed, never the token that they replace."""
    candidates = sorted(set(words))
    if len(candidates) < 2:
        raise ValueError("random words need at least two words to draw from")
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(n_samples):
        drawn = [candidates[i] for i in rng.integers(len(candidates), size=len(tokens))]
        for j, token in enumerate(tokens):
            while drawn[j] == token:
                drawn[j] = candidates[rng.integers(len(candidates))]
        samples.append(tuple(drawn))
    return Replacements(f"random word, {n_samples} samples", tuple(samples))


def common_words(vocabulary: Sequence[str], n_words: int = 2_000) -> list[str]:
    """The most frequent lower-case words of a vocabulary: what random words are drawn from."""
    words = (word for word in vocabulary if word.isalpha() and word.islower())
    return [word for word, _ in zip(words, range(n_words), strict=False)]


def replacement_grid(
    encoder: Encoder,
    tokens: Sequence[str],
    replacements: Replacements | None = None,
    progress: Progress | None = None,
) -> InfluenceGrid:
    """The grid by replacement (by the gap token unless told otherwise).

    ``progress`` is called with the share done, 0 to 1. Raises ``ValueError`` for a sentence that
    is empty or longer than the encoder or this analysis reads.
    """
    tokens = check_sentence(tokens)
    replacements = replacements or gap_replacements(tokens)
    grid = _replacement_grid(encoder, tokens, replacements, False, progress)
    if grid.n_broken:  # here a product's rows depend on their place: compare at equal places
        grid = _replacement_grid(encoder, tokens, replacements, True, progress)
    return grid


def _replacement_grid(
    encoder: Encoder,
    tokens: tuple[str, ...],
    replacements: Replacements,
    same_row: bool,
    progress: Progress | None,
) -> InfluenceGrid:
    n, n_samples = len(tokens), len(replacements.words)
    edited = [
        (*tokens[:j], words[j], *tokens[j + 1 :]) for words in replacements.words for j in range(n)
    ]
    grams, moved = [], []
    for first, base, changed in compare(encoder, tokens, edited, same_row):
        delta = torch.from_numpy(changed - base)
        grams.append(_inner_products(encoder, delta))
        moved.append(_any_nonzero(encoder, delta))
        own = _inner_products(encoder, torch.from_numpy(base[:, :1]))[:, :, :, 0]
        if progress:
            progress((first + delta.shape[1]) / len(edited))
    return _grid(encoder, tokens, "replacement", replacements.label, grams, moved, n_samples, own)


def gradient_grid(
    encoder: Encoder,
    tokens: Sequence[str],
    n_directions: int = N_DIRECTIONS,
    seed: int = 0,
    first: int = 0,
    progress: Progress | None = None,
) -> InfluenceGrid:
    """The grid by gradient: ||d h_t / d x_j|| from ``n_directions`` random directions, those from
    ``first`` on of the seed's.

    For u standard normal, the mean of ||J u||^2 is the squared Frobenius norm of J. One pass in
    forward mode carries u through all layers to all positions, so positions that x_j cannot
    reach get exactly 0.
    """
    tokens = check_sentence(tokens)
    if n_directions < 1:
        raise ValueError(f"n_directions must be 1 or more, got {n_directions}")
    Variants(encoder, [tokens])  # its checks
    with torch.no_grad():
        x, lengths = (value.clone() for value in encoder.embed([[BOS, *tokens, EOS]]))
    n, width = len(tokens), x.shape[-1]
    numbers = range(first, first + n_directions)  # each drawn by itself, so that parts make a whole
    drawn = [torch.Generator().manual_seed(100_000 * seed + number) for number in numbers]
    noise = torch.cat([torch.randn(n, width, generator=generator) for generator in drawn])
    run = encoder.differentiable(1)

    def layers(x: Tensor) -> Tensor:
        return run(x, lengths)[:, 0, 1:-1]  # (L, T, D)

    def push(direction: Tensor) -> Tensor:
        return jvp(layers, (x,), (direction[None],))[1]

    grams, moved = [], []
    for rows in torch.arange(len(noise)).split(max(1, TOKENS_PER_BATCH // (n + 2))):
        directions = torch.zeros(len(rows), n + 2, width)
        directions[torch.arange(len(rows)), rows % n + 1] = noise[rows]
        with torch.no_grad():
            delta = vmap(push, out_dims=1)(directions)  # (L, rows, T read, D)
        grams.append(_inner_products(encoder, delta))
        moved.append(_any_nonzero(encoder, delta))
        if progress:
            progress((int(rows[-1]) + 1) / len(noise))
    with torch.no_grad():
        own = _inner_products(encoder, layers(x)[:, None])[:, :, :, 0]
    label = f"{n_directions} random directions"
    return _grid(encoder, tokens, "gradient", label, grams, moved, n_directions, own)


def influence_grids(
    encoders: Sequence[Encoder],
    tokens: Sequence[str],
    replacements: Replacements | None = None,
    progress: Progress | None = None,
) -> list[InfluenceGrid]:
    """``replacement_grid`` of several encoders, with one progress from 0 to 1."""
    grids = []
    for i, encoder in enumerate(encoders):

        def step(share: float, i: int = i) -> None:
            if progress:
                progress((i + share) / len(encoders))

        grids.append(replacement_grid(encoder, tokens, replacements, step))
    return grids


def _parts(encoder: Encoder) -> tuple[str, ...]:
    return ("whole", "forward", "backward") if encoder.halves else ("whole",)


def _inner_products(encoder: Encoder, x: Tensor) -> np.ndarray:
    """(L, n, T, D) -> (S, L, L, n, T): inner products of every two layers, by part."""
    halves = x.chunk(2, dim=-1) if encoder.halves else (x,)
    n_layers = len(x)
    products = np.empty((len(halves), n_layers, n_layers, *x.shape[1:3]), dtype=np.float32)
    for s, half in enumerate(halves):
        for k in range(n_layers):
            for m in range(k, n_layers):
                products[s, k, m] = (half[k] * half[m]).sum(dim=-1).numpy()
                products[s, m, k] = products[s, k, m]
    return np.concatenate([products.sum(axis=0, keepdims=True), products][: len(halves)])


def _any_nonzero(encoder: Encoder, delta: Tensor) -> np.ndarray:
    """(L, n, T, D) -> (S, L, n, T): is any number not exactly 0, by part?"""
    halves = delta.chunk(2, dim=-1) if encoder.halves else ()
    return np.stack([(x != 0).any(dim=-1).numpy() for x in (delta, *halves)])


def _reachable(encoder: Encoder, n_tokens: int) -> np.ndarray:
    """(S, L, T, T): may token j (row) reach the vector at t (column)?"""
    itself = np.eye(n_tokens, dtype=bool)
    everything = np.ones((n_tokens, n_tokens), dtype=bool)
    masks = {"whole": everything, "forward": np.triu(everything), "backward": np.tril(everything)}
    n_above = encoder.n_layers - 1
    return np.stack([[itself] + [masks[part]] * n_above for part in _parts(encoder)])


def _grid(
    encoder: Encoder,
    tokens: tuple[str, ...],
    measure: str,
    label: str,
    grams: list[np.ndarray],
    moved: list[np.ndarray],
    n_samples: int,
    own: np.ndarray,
) -> InfluenceGrid:
    """Batches along the edited axis, sample after sample, to one grid."""
    n = len(tokens)
    cross = np.concatenate(grams, axis=3)  # (S, L, L, R T, T)
    cross = cross.reshape(*cross.shape[:3], n_samples, n, n)
    changed = np.concatenate(moved, axis=2)  # (S, L, R T, T)
    changed = changed.reshape(*changed.shape[:2], n_samples, n, n).any(axis=2)
    return InfluenceGrid(
        encoder=encoder.name,
        tokens=tokens,
        measure=measure,
        replacement=label,
        parts=_parts(encoder),
        cross=np.ascontiguousarray(np.moveaxis(cross, 3, 0)),
        own=own,
        changed=changed,
        reachable=_reachable(encoder, n),
    )
