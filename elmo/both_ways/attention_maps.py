"""What heads look at: entropy, distance, rollout, and one cell recomputed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from elmo.encoders import Encoder
from elmo.results import AttentionCell, Encoding, HeadStatistics
from elmo.self_attention import SelfAttention, allowed_keys
from elmo.text import BOS, EOS

DIRECTIONS = {"attention": ("joint",), "attention_concat": ("forward", "backward")}


def head_statistics(encoding: Encoding, kind: str) -> HeadStatistics:
    """Entropy and mean distance of every head, over the sentence's own words as queries.

    Boundaries count as keys, since every row sums to 1 with them. Raises ``ValueError`` for an
    encoding without attention weights or without words.
    """
    attention = _attention(encoding, kind)
    queries = attention[:, :, 1:-1].astype(np.float64)  # (L - 1, H, T, T + 2)
    logs = np.log2(queries, out=np.zeros_like(queries), where=queries > 0)
    n = attention.shape[-1]
    distance = np.abs(np.arange(n)[None, :] - np.arange(1, n - 1)[:, None])
    left = np.arange(n)[None, :] < np.arange(1, n - 1)[:, None]
    itself = distance == 0
    n_heads = attention.shape[1] // len(DIRECTIONS[kind])
    return HeadStatistics(
        directions=tuple(d for d in DIRECTIONS[kind] for _ in range(n_heads)),
        entropy=-(queries * logs).sum(axis=-1).mean(axis=-1),
        distance=(queries * distance).sum(axis=-1).mean(axis=-1),
        to_left=(queries * left).sum(axis=-1).mean(axis=-1),
        to_itself=(queries * itself).sum(axis=-1).mean(axis=-1),
        to_boundaries=(queries[..., 0] + queries[..., -1]).mean(axis=-1),
    )


def rollout(encoding: Encoding, kind: str) -> dict[str, np.ndarray]:
    """Attention rollout (Abnar and Zuidema 2020): one (L - 1, T + 2, T + 2) array a direction.

    Heads are averaged, half the identity stands for the residual stream, and layers are
    multiplied from the bottom up; row t says where the vector at t draws from. Rows sum to 1.
    """
    attention = _attention(encoding, kind).astype(np.float64)
    identity = np.eye(attention.shape[-1])
    stacks = {}
    for direction, heads in zip(
        DIRECTIONS[kind], np.split(attention, len(DIRECTIONS[kind]), axis=1), strict=True
    ):
        steps, reached = [], identity
        for layer in heads.mean(axis=1):
            reached = (0.5 * layer + 0.5 * identity) @ reached
            steps.append(reached)
        stacks[direction] = np.stack(steps)
    return stacks


def attention_cell(
    encoder: Encoder, tokens: Sequence[str], layer: int, head: int, query: int, key: int
) -> AttentionCell:
    """The numbers behind one cell: q, k, their products, the scaled row, its softmax.

    layer: 1 to L - 1; head: 0 to H - 1, a concatenated encoder's forward heads first; query,
    key: positions counted with the boundaries, 0 being ``<S>``.

    Raises ``ValueError`` for an encoder without attention and for a number out of range.
    """
    if encoder.kind not in DIRECTIONS:
        raise ValueError(f"the {encoder.name} encoder has no attention: an LSTM has no heads")
    framed = [BOS, *tokens, EOS]
    stacks: list[SelfAttention] = (
        [encoder.model.stack]
        if encoder.kind == "attention"
        else [encoder.model.stack.forward_stack, encoder.model.stack.backward_stack]
    )
    n_heads = stacks[0].config.n_heads
    for name, value, first, stop in (
        ("layer", layer, 1, encoder.n_layers),
        ("head", head, 0, n_heads * len(stacks)),
        ("query", query, 0, len(framed)),
        ("key", key, 0, len(framed)),
    ):
        if not first <= value < stop:
            raise ValueError(f"{name} must be {first} to {stop - 1}, got {value}")
    stack = stacks[head // n_heads]
    with torch.inference_mode():
        x, lengths = encoder.embed([framed])
        layers, _ = stack.run(x, lengths)
        inputs = [stack.place(x, lengths), *layers][layer - 1]
        block = stack.blocks[layer - 1]
        queries, keys, _ = block.attention.heads(block.attention_norm(inputs))
        q, k = queries[0, head % n_heads], keys[0, head % n_heads]  # (T + 2, D / H)
        allowed = allowed_keys(stack.mask, lengths, len(framed))[0, query]
    q, k, allowed = q[query].numpy(), k.numpy(), allowed.numpy()
    scale = float(np.sqrt(len(q)))
    scores = np.where(allowed, k @ q / scale, -np.inf)
    exponentials = np.exp(scores - scores.max())
    return AttentionCell(
        tokens=tuple(framed),
        direction=DIRECTIONS[encoder.kind][head // n_heads],
        layer=layer,
        head=head,
        query_position=query,
        key_position=key,
        query=q,
        key=k[key],
        products=q * k[key],
        scale=scale,
        scores=scores,
        weights=exponentials / exponentials.sum(),
    )


def _attention(encoding: Encoding, kind: str) -> np.ndarray:
    if kind not in DIRECTIONS or encoding.attention is None:
        raise ValueError(f"no attention weights in this encoding of kind {kind!r}")
    if encoding.attention.shape[-1] < 3:
        raise ValueError("an empty sentence has no heads to describe")
    return encoding.attention
