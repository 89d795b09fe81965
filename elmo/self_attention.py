"""Self-attention, written out: query, key, value, and who may look at whom.

Vaswani et al. 2017, with the normalization before each part (pre-norm). The mask is an argument:
``full`` lets every token look both ways at once, as in BERT (Devlin et al. 2019); ``causal``
and ``anti-causal`` let it look only to the left, or only to the right, itself included.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo.config import AttentionConfig

MASKS = ("full", "causal", "anti-causal")


def allowed_keys(mask: str, lengths: Tensor, n_positions: int) -> Tensor:
    """(B, T, T) booleans: may the row's query look at the column's key?

    A padded query may look at itself, so that its softmax stays finite; it is dropped later.
    """
    if mask not in MASKS:
        raise ValueError(f"mask must be one of {', '.join(MASKS)}, got {mask!r}")
    position = torch.arange(n_positions, device=lengths.device)
    real = position[None, None, :] < lengths[:, None, None]  # (B, 1, T)
    if mask == "full":
        allowed = real.expand(-1, n_positions, -1)
    elif mask == "causal":
        allowed = real & (position[None, :] <= position[:, None])
    else:
        allowed = real & (position[None, :] >= position[:, None])
    return allowed | torch.eye(n_positions, dtype=torch.bool, device=lengths.device)


class Attention(nn.Module):
    """H heads of scaled dot-product attention (Vaswani et al. 2017, equation 1)."""

    def __init__(self, d_stack: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_stack, d_stack)
        self.key = nn.Linear(d_stack, d_stack)
        self.value = nn.Linear(d_stack, d_stack)
        self.output = nn.Linear(d_stack, d_stack)

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of every head, each (B, H, T, D / H)."""

        def split(y: Tensor) -> Tensor:
            return y.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

        return split(self.query(x)), split(self.key(x)), split(self.value(x))

    def forward(self, x: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, D) -> what is added to the stream (B, T, D), and weights (B, H, T, T)."""
        query, key, value = self.heads(x)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, H, T, T)
        scores = scores.masked_fill(~allowed[:, None], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        mixed = (weights @ value).transpose(1, 2).flatten(-2)  # (B, T, D)
        return self.output(mixed), weights


class Block(nn.Module):
    """Attention, then a feed-forward layer, each added to the residual stream."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        d_stack = config.d_stack
        self.attention_norm = nn.LayerNorm(d_stack)
        self.attention = Attention(d_stack, config.n_heads)
        self.feedforward_norm = nn.LayerNorm(d_stack)
        self.expand = nn.Linear(d_stack, config.d_feedforward)
        self.contract = nn.Linear(config.d_feedforward, d_stack)

    def forward(self, x: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        added, weights = self.attention(self.attention_norm(x), allowed)
        x = x + added
        return x + self.contract(F.gelu(self.expand(self.feedforward_norm(x)))), weights


class SelfAttention(nn.Module):
    """One stack of blocks over token vectors with learned positions."""

    def __init__(self, config: AttentionConfig, mask: str = "full") -> None:
        super().__init__()
        if mask not in MASKS:
            raise ValueError(f"mask must be one of {', '.join(MASKS)}, got {mask!r}")
        self.config = config
        self.mask = mask
        self.positions = nn.Parameter(torch.empty(config.max_tokens + 2, config.d_stack))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_blocks))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Normal 0.02 (GPT-2); what is added to the residual stream starts smaller with depth."""
        nn.init.normal_(self.positions, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)
        for block in self.blocks:
            for linear in (block.attention.output, block.contract):
                linear.weight.mul_(1 / math.sqrt(2 * len(self.blocks)))

    def place(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, T, D) with positions added, counted in the order of reading: a stack that reads
        right to left counts from the end, or it would know how many words are still to come."""
        n_positions = x.shape[1]
        if n_positions > len(self.positions):
            raise ValueError(
                f"{n_positions - 2} tokens are more than the {self.config.max_tokens} that the"
                " attention encoder was trained on: shorten or split the sentence"
            )
        if self.mask != "anti-causal":
            return x + self.positions[:n_positions]
        from_end = lengths[:, None] - 1 - torch.arange(n_positions, device=x.device)
        return x + self.positions[from_end.clamp(min=0)]

    def run(self, x: Tensor, lengths: Tensor) -> tuple[list, list]:
        """Layers (B, T, D) after each block, and attention weights (B, H, T, T) of each block."""
        allowed = allowed_keys(self.mask, lengths, x.shape[1])
        x = self.place(x, lengths)
        layers, attention = [], []
        for block in self.blocks:
            x, weights = block(x, allowed)
            layers.append(x)
            attention.append(weights)
        return layers, attention

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """All layers and all attention weights.

        x: (B, T, D) token vectors, boundaries included; lengths: (B,) real positions.
        Returns (L, B, T, D): layer 0 is x itself, before positions are added, layer k the
        residual stream after block k, padding exactly 0; and (L - 1, B, H, T, T).
        """
        layers, attention = self.run(x, lengths)
        real = torch.arange(x.shape[1], device=x.device)[None, :] < lengths[:, None]
        return torch.stack([x, *layers]) * real[:, :, None], torch.stack(attention)


class ConcatenatedAttention(nn.Module):
    """The control: attention that is concatenated like ELMo instead of joint.

    Two stacks of half the width, one causal, one anti-causal. A returned layer is
    [forward_k ; backward_k], with no norm and no projection after the concatenation.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__()
        self.config = config
        self.forward_stack = SelfAttention(config, "causal")
        self.backward_stack = SelfAttention(config, "anti-causal")

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, P) -> (L, B, T, 2 P), layer 0 = [x ; x]; attention (L - 1, B, 2 H, T, T), the
        forward stack's heads first."""
        forward, forward_attention = self.forward_stack(x, lengths)
        backward, backward_attention = self.backward_stack(x, lengths)
        return (
            torch.cat([forward, backward], dim=-1),
            torch.cat([forward_attention, backward_attention], dim=2),
        )
