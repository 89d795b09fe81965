"""How far influence reaches: local against global context, layer by layer.

``python -m elmo reach`` averages over the sentences of the examples and writes the numbers that
the app shows beside the claim that lower layers see nearer context than upper ones.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmo.both_ways.arithmetic import InfluenceGrid, Reach
from elmo.both_ways.influence import replacement_grid
from elmo.encoders import load_encoder
from elmo.text import tokenize

log = logging.getLogger(__name__)
N_BOOTSTRAP = 1_000


def reach(grids: Sequence[InfluenceGrid]) -> Reach:
    """How influence fades with distance, over all pairs of tokens of one encoder's grids.

    Raises ``ValueError`` for no grid and for grids of different encoders or measures.
    """
    total, n_pairs = _sums_by_distance(grids)
    return _reach(grids[0], total.sum(axis=0), n_pairs.sum(axis=0))


def reach_intervals(grids: Sequence[InfluenceGrid], seed: int = 0) -> dict[str, np.ndarray]:
    """95 % bootstrap intervals over sentences: ``half_life`` and ``mean_distance``, (2, S, L)
    each, low then high."""
    total, n_pairs = _sums_by_distance(grids)
    rng = np.random.default_rng(seed)
    drawn: dict[str, list[np.ndarray]] = {"half_life": [], "mean_distance": []}
    for counts in rng.multinomial(len(grids), np.full(len(grids), 1 / len(grids)), N_BOOTSTRAP):
        sample = _reach(
            grids[0],
            np.einsum("n,nslt->slt", counts, total),
            np.einsum("n,nst->st", counts, n_pairs),
        )
        drawn["half_life"].append(sample.half_life)
        drawn["mean_distance"].append(sample.mean_distance)
    # "lower" and "higher" keep infinities out of the interpolation
    return {
        name: np.stack(
            [
                np.percentile(values, 2.5, axis=0, method="lower"),
                np.percentile(values, 97.5, axis=0, method="higher"),
            ]
        )
        for name, values in drawn.items()
    }


def _sums_by_distance(grids: Sequence[InfluenceGrid]) -> tuple[np.ndarray, np.ndarray]:
    """Of each sentence: influence added up by distance (N, S, L, T), and pairs (N, S, T)."""
    if not grids:
        raise ValueError("reach needs at least one influence grid")
    first = grids[0]
    if any((g.encoder, g.measure) != (first.encoder, first.measure) for g in grids):
        raise ValueError("reach needs grids of one encoder and one measure")
    n_layers, longest = first.cross.shape[2], max(len(g.tokens) for g in grids)
    total = np.zeros((len(grids), len(first.parts), n_layers, longest))
    n_pairs = np.zeros((len(grids), len(first.parts), longest), dtype=np.int64)
    for i, grid in enumerate(grids):
        n = len(grid.tokens)
        steps = np.arange(n)[None, :] - np.arange(n)[:, None]  # t - j
        for s, part in enumerate(first.parts):
            pairs = {"whole": steps == steps, "forward": steps >= 0, "backward": steps <= 0}[part]
            distance = np.abs(steps)[pairs]
            n_pairs[i, s] = np.bincount(distance, minlength=longest)
            for k in range(n_layers):
                values = grid.layer(k, part)[pairs]
                total[i, s, k] = np.bincount(distance, weights=values, minlength=longest)
    return total, n_pairs


def _reach(first: InfluenceGrid, total: np.ndarray, n_pairs: np.ndarray) -> Reach:
    profile = total / np.maximum(n_pairs, 1)[:, None]
    distances = np.arange(total.shape[-1])
    weight = profile[..., 1:].sum(axis=-1)
    centre = (profile * distances).sum(axis=-1)
    return Reach(
        encoder=first.encoder,
        parts=first.parts,
        distances=distances,
        n_pairs=n_pairs,
        profile=profile,
        half_life=np.array([[half_life(row) for row in layers] for layers in profile]),
        mean_distance=np.divide(centre, weight, out=np.full_like(weight, np.nan), where=weight > 0),
    )


def half_life(profile: np.ndarray) -> float:
    """Tokens beyond distance 1 until ``profile`` (T,) first falls to half its value at 1.

    Interpolated linearly; infinite if it never does, NaN if there is nothing at distance 1.
    """
    if len(profile) < 2 or not profile[1] > 0:
        return float("nan")
    half = profile[1] / 2
    below = np.flatnonzero(profile[1:] <= half)
    if not len(below):
        return float("inf")
    d = int(below[0]) + 1  # profile[d - 1] > half >= profile[d]
    return float(d - 2 + (profile[d - 1] - half) / (profile[d - 1] - profile[d]))


def read_sentences(path: str | Path) -> list[list[str]]:
    """Every sentence of the example sets, tokenized, once."""
    examples = json.loads(Path(path).read_text("utf-8"))["examples"]
    texts = dict.fromkeys(text for example in examples for text in example["sentences"])
    return [tokenize(text) for text in texts]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--examples", default="assets/examples.json", metavar="JSON")
    parser.add_argument("--out", default="assets/reach.json", metavar="JSON")


def run(options: argparse.Namespace) -> None:
    """Profiles, half-lives and mean distances by encoder, part and layer, as JSON."""
    sentences = read_sentences(options.examples)
    encoders = []
    for folder in options.models:
        encoder = load_encoder(folder)
        grids = [replacement_grid(encoder, tokens) for tokens in sentences]
        result, intervals = reach(grids), reach_intervals(grids)
        encoders.append(
            {
                "encoder": result.encoder,
                "parts": result.parts,
                "n_sentences": len(sentences),
                "n_pairs": result.n_pairs.tolist(),
                "profile": _plain(result.profile),
                "half_life": _plain(result.half_life),
                "half_life_interval": _plain(intervals["half_life"]),
                "mean_distance": _plain(result.mean_distance),
                "mean_distance_interval": _plain(intervals["mean_distance"]),
            }
        )
        log.info("%s: half-life %s", result.encoder, result.half_life.round(2).tolist())
    text = json.dumps({"version": 1, "measure": "gap token", "encoders": encoders})
    Path(options.out).write_text(text + "\n", encoding="utf-8")


def _plain(values: np.ndarray) -> list:
    """Nested lists; JSON has no infinity and no NaN: "inf" and null stand for them."""
    if values.ndim:
        return [_plain(row) for row in values]
    value = float(values)
    return None if np.isnan(value) else "inf" if np.isinf(value) else round(value, 5)
