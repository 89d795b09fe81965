"""Self-attention without gradients: what an encoder runs instead of the modules.

The tokens of all sentences of a batch are the rows of every product, without padding. Scores are
computed among sentences of equal length, so that a sentence's vectors are the same to the last bit
in any batch, as those of the LSTMs are (``elmo.products``).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from elmo.products import Product, padded_rows
from elmo.self_attention import Block, ConcatenatedAttention, SelfAttention

MAX_ROWS = 512  # of one product


def _all_rows(product: Product, x: Tensor) -> Tensor:
    """``product(x)`` in parts of at most ``MAX_ROWS``."""
    if len(x) <= MAX_ROWS:
        return product(x)
    return torch.cat([product(part) for part in x.split(MAX_ROWS)])


class _FastBlock:
    """``Block`` over packed rows."""

    def __init__(self, block: Block, dtype: torch.dtype) -> None:
        attention = block.attention
        heads = (attention.query, attention.key, attention.value)
        self.n_heads = attention.n_heads
        self.attention_norm, self.feedforward_norm = block.attention_norm, block.feedforward_norm
        self.heads = Product(
            torch.cat([h.weight for h in heads]), torch.cat([h.bias for h in heads]), dtype
        )
        self.output, self.expand, self.contract = (
            Product(linear.weight, linear.bias, dtype)
            for linear in (attention.output, block.expand, block.contract)
        )

    def __call__(
        self, x: Tensor, groups: list[tuple[int, int, int]], mask: str
    ) -> tuple[Tensor, list[Tensor]]:
        """Rows (n, D) -> rows, and the weights (B, H, T, T) of each group (first row, B, T)."""
        projected = _all_rows(self.heads, self.attention_norm(x))
        mixed, weights = torch.zeros_like(x), []
        for start, n, length in groups:
            rows = slice(start, start + n * length)
            shape = (n, length, 3, self.n_heads, -1)
            # Copied, so that one sentence and many lie in memory alike and take the same kernel.
            query, key, value = projected[rows].reshape(shape).permute(2, 0, 3, 1, 4).contiguous()
            scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
            if mask != "full":
                side = torch.ones(length, length, dtype=torch.bool, device=x.device)
                hidden = side.triu(1) if mask == "causal" else side.tril(-1)
                scores = scores.masked_fill_(hidden, float("-inf"))
            weights.append(torch.softmax(scores, dim=-1))
            mixed[rows] = (weights[-1] @ value).transpose(1, 2).reshape(n * length, -1)
        x = x + _all_rows(self.output, mixed)
        expanded = F.gelu(_all_rows(self.expand, self.feedforward_norm(x)))
        return x + _all_rows(self.contract, expanded), weights


class _FastStack:
    """``SelfAttention`` over packed rows."""

    def __init__(self, stack: SelfAttention, dtype: torch.dtype) -> None:
        self.stack = stack
        self.blocks = [_FastBlock(block, dtype) for block in stack.blocks]

    def run(
        self, x: Tensor, places: Tensor, groups: list[tuple[int, int, int]]
    ) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Rows after each block, and each block's weights; ``places`` counts in reading order."""
        x = x + self.stack.positions[places]
        layers, attention = [], []
        for block in self.blocks:
            x, weights = block(x, groups, self.stack.mask)
            layers.append(x)
            attention.append(weights)
        return layers, attention


class FastAttention:
    """``SelfAttention`` and ``ConcatenatedAttention`` without gradients."""

    def __init__(self, stack: SelfAttention | ConcatenatedAttention, dtype: torch.dtype) -> None:
        joint = isinstance(stack, SelfAttention)
        self.max_positions = stack.config.max_tokens + 2
        both = (stack,) if joint else (stack.forward_stack, stack.backward_stack)
        self.stacks = [_FastStack(part, dtype) for part in both]

    def __call__(
        self, x: Tensor, lengths: Tensor, attention: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """(B, T, P) -> (L, B, T, D), and the weights (L - 1, B, H, T, T) where asked for; padding
        is exactly 0 in either."""
        n_positions = x.shape[1]
        if n_positions > self.max_positions:
            raise ValueError(
                f"{n_positions - 2} tokens are more than the {self.max_positions - 2} that the"
                " attention encoder was trained on: shorten or split the sentence"
            )
        order = torch.argsort(lengths, stable=True)
        sizes = lengths[order]
        row = torch.repeat_interleave(order, sizes)
        n = len(row)
        position = torch.arange(n, device=x.device)
        position -= torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
        from_end = torch.repeat_interleave(sizes, sizes) - 1 - position
        groups = _equal_lengths(sizes.tolist())
        whole = n - n % MAX_ROWS
        packed = x.new_zeros(whole + (padded_rows(n - whole) if n > whole else 0), x.shape[2])
        packed[:n] = x[row, position]
        width = x.shape[2]
        n_layers, n_stacks = 1 + len(self.stacks[0].blocks), len(self.stacks)
        result = x.new_zeros(n_layers, *x.shape[:2], width * n_stacks)
        found = []
        for i, stack in enumerate(self.stacks):
            places = from_end if stack.stack.mask == "anti-causal" else position
            layers, weights = stack.run(packed, F.pad(places, (0, len(packed) - n)), groups)
            for k, layer in enumerate([packed, *layers]):
                result[k, row, position, i * width : (i + 1) * width] = layer[:n]
            found.append(weights)
        return result, _unpacked(found, groups, order, n_positions) if attention else None


def _equal_lengths(sizes: list[int]) -> list[tuple[int, int, int]]:
    """(first row, sentences, tokens) of each run of equal lengths."""
    groups: list[tuple[int, int, int]] = []
    start = 0
    for length in dict.fromkeys(sizes):
        n = sizes.count(length)
        if length:
            groups.append((start, n, length))
        start += n * length
    return groups


def _unpacked(
    found: list[list[list[Tensor]]],
    groups: list[tuple[int, int, int]],
    order: Tensor,
    n_positions: int,
) -> Tensor:
    """Weights by stack, block and group -> (L - 1, B, H, T, T), the first stack's heads first."""
    n_heads = found[0][0][0].shape[1]
    shape = (len(found[0]), len(order), n_heads * len(found), n_positions, n_positions)
    result = found[0][0][0].new_zeros(shape)
    for i, blocks in enumerate(found):
        for k, by_group in enumerate(blocks):
            first = 0
            for (_, n, length), weights in zip(groups, by_group, strict=True):
                heads = slice(i * n_heads, (i + 1) * n_heads)
                result[k, order[first : first + n], heads, :length, :length] = weights
                first += n
    return result
