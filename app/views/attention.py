"""What the tab Attention is told: all heads of a sentence, one cell, how far influence reaches."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from elmo.both_ways.attention_maps import DIRECTIONS, head_statistics, rollout
from elmo.results import AttentionCell, Encoding

FULL = 65_535  # how a weight of 1 travels


def heads_view(encoding: Encoding, kind: str) -> dict[str, Any]:
    """Every head of every layer of one sentence, and the attention rollout.

    stacks: by direction, heads (L - 1, H, A) and rollout (L - 1, A), packed, A being the cells
    of the square that the direction allows, row by row. The others are not sent: n_zero of them
    are exactly 0 in the encoder, of n_closed.
    """
    attention = encoding.attention
    found = head_statistics(encoding, kind)
    reached = rollout(encoding, kind)
    halves = np.split(attention, len(DIRECTIONS[kind]), axis=1)
    stacks = []
    for direction, heads in zip(DIRECTIONS[kind], halves, strict=True):
        allowed = allowed_cells(direction, attention.shape[-1])
        closed = heads[..., ~allowed]
        stacks.append(
            {
                "direction": direction,
                "heads": pack_weights(heads[..., allowed]),
                "rollout": pack_weights(reached[direction][..., allowed]),
                "n_closed": closed.size,
                "n_zero": int((closed == 0).sum()),
            }
        )
    names = ("entropy", "distance", "to_left", "to_itself", "to_boundaries")
    return {
        "kind": kind,
        "n_layers": attention.shape[0],
        "n_heads": attention.shape[1] // len(stacks),
        "stacks": stacks,
        "statistics": {name: np.round(getattr(found, name), 4).tolist() for name in names},
    }


def allowed_cells(direction: str, n: int) -> np.ndarray:
    """(n, n) booleans: may the row's query look at the column's key?"""
    square = np.ones((n, n), dtype=bool)
    return {"joint": square, "forward": np.tril(square), "backward": np.triu(square)}[direction]


def pack_weights(weights: np.ndarray) -> str:
    """Weights from 0 to 1 as little-endian 16-bit shares of 65,535, in base64."""
    shares = np.round(np.clip(weights, 0, 1) * FULL).astype("<u2")
    return base64.b64encode(shares.tobytes()).decode("ascii")


def unpack_weights(text: str, *shape: int) -> np.ndarray:
    """What ``pack_weights`` packed, to within 0.00001."""
    return np.frombuffer(base64.b64decode(text), dtype="<u2").reshape(shape) / FULL


def cell_view(cell: AttentionCell) -> dict[str, Any]:
    """One weight with all that it is made of; null is a score of minus infinity."""
    return {
        "layer": cell.layer,
        "head": cell.head,
        "query_position": cell.query_position,
        "key_position": cell.key_position,
        "query": _short(cell.query),
        "key": _short(cell.key),
        "products": _short(cell.products),
        "dot": _number(cell.dot),
        "scale": _number(cell.scale),
        "scores": [_number(x) if np.isfinite(x) else None for x in cell.scores],
        "weights": _short(cell.weights),
    }


def reach_view(shipped: dict[str, Any], trained: list[str]) -> dict[str, Any]:
    """Half-lives by part and layer of the encoders whose trained weights are here.

    In tokens beyond the next one; null where a layer has no influence, "inf" where it stays
    above half to the end of every sentence.
    """
    encoders = {
        entry["encoder"]: {
            name: entry[name] for name in ("parts", "half_life", "half_life_interval")
        }
        for entry in shipped["encoders"]
        if entry["encoder"] in trained
    }
    lengths = [len(e["n_pairs"][0]) for e in shipped["encoders"]]
    n_sentences = [e["n_sentences"] for e in shipped["encoders"]]
    return {
        "encoders": encoders,
        "measure": shipped["measure"],
        "n_sentences": max(n_sentences, default=0),
        "longest": max(lengths, default=0),
    }


def _short(values: np.ndarray) -> list[float]:
    return [_number(x) for x in values]


def _number(x: float) -> float:
    return float(f"{x:.6g}")
