"""Muon for matrices, lazily updated rows for the softmax, and the learning-rate plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

# The quintic of Jordan (2024), as in torch.optim.Muon: five steps bring all singular values
# near 1.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_STEPS = 5


def orthogonalize(matrices: Tensor) -> Tensor:
    """Newton-Schulz iteration on a stack of matrices (n, rows, columns), in their dtype."""
    x = matrices
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / x.float().norm(dim=(1, 2), keepdim=True).clamp(min=1e-7).to(x.dtype)
    for _ in range(_STEPS):
        gram = torch.bmm(x, x.mT)
        update = torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C)
        x = torch.baddbmm(x, update, x, beta=_A)
    return x.mT if tall else x


@dataclass(frozen=True)
class MatrixBlocks:
    """A parameter cut into matrices of their own: rows x columns blocks, in reading order.

    An LSTM's (4 C, 2 P) weight is 4 x 2 blocks, one for each gate and each of the input and
    the recurrent half; most parameters are one block.
    """

    parameter: Tensor
    n_rows: int = 1
    n_columns: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.parameter.shape
        return rows // self.n_rows, columns // self.n_columns

    def split(self, x: Tensor) -> Tensor:
        """(rows, columns) -> (blocks, *self.shape)"""
        rows, columns = self.shape
        x = x.unflatten(1, (self.n_columns, columns)).unflatten(0, (self.n_rows, rows))
        return x.transpose(1, 2).flatten(0, 1)

    def join(self, x: Tensor) -> Tensor:
        x = x.unflatten(0, (self.n_rows, self.n_columns)).transpose(1, 2)
        return x.reshape(self.parameter.shape)


class Muon:
    """Momentum, orthogonalized (Jordan 2024): the step of ``torch.optim.Muon`` with equal
    shapes batched.

    Blocks of one shape, or of its transpose, form one stack, so a whole biLM is one batched
    iteration. A block's step is lr * sqrt(max(1, rows / columns)), as in torch's "original".
    """

    def __init__(
        self,
        blocks: list[MatrixBlocks],
        lr: float,
        momentum: float,
        weight_decay: float,
        dtype: torch.dtype = torch.bfloat16,  # of the iteration
    ) -> None:
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.dtype = dtype
        self.groups: dict[tuple[int, int], list[MatrixBlocks]] = {}
        for block in blocks:
            self.groups.setdefault(tuple(sorted(block.shape)), []).append(block)
        self.buffers = [torch.zeros_like(block.parameter) for block in blocks]
        self.buffer_of = {id(b.parameter): m for b, m in zip(blocks, self.buffers, strict=True)}

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """One step at ``factor`` times the learning rate."""
        for group in self.groups.values():
            updates = []
            for block in group:
                buffer, gradient = self.buffer_of[id(block.parameter)], block.parameter.grad
                buffer.lerp_(gradient, 1 - self.momentum)
                update = block.split(gradient.lerp(buffer, self.momentum))  # Nesterov
                tall = update.shape[1] > update.shape[2]
                updates.append((update.mT if tall else update).to(self.dtype))
            sizes = [len(update) for update in updates]
            for block, update in zip(
                group, orthogonalize(torch.cat(updates)).split(sizes), strict=True
            ):
                rows, columns = block.shape
                update = block.join((update.mT if rows > columns else update).float())
                lr = self.lr * factor
                block.parameter.mul_(1 - lr * self.weight_decay)
                block.parameter.add_(update, alpha=-lr * math.sqrt(max(1, rows / columns)))

    def state_dict(self) -> list[Tensor]:
        return self.buffers

    def load_state_dict(self, buffers: list[Tensor]) -> None:
        for mine, theirs in zip(self.buffers, buffers, strict=True):
            mine.copy_(theirs)


class RowAdam:
    """Adam without momentum, one second moment a row, for rows that are touched now and then.

    Only rows with a gradient in this step are read or written. A row's bias correction counts
    the row's own steps.
    """

    def __init__(self, weight: Tensor, bias: Tensor, lr: float, beta: float = 0.99) -> None:
        self.weight, self.bias, self.lr, self.beta = weight, bias, lr, beta
        n = len(weight)
        self.moment = torch.zeros(n, device=weight.device)
        self.bias_moment = torch.zeros(n, device=weight.device)
        self.steps = torch.zeros(n, device=weight.device)

    @torch.no_grad()
    def step(self, rows: Tensor, d_weight: Tensor, d_bias: Tensor, factor: float) -> None:
        """rows: (R,) distinct row numbers; gradients (R, P) and (R,)."""
        lr, beta = self.lr * factor, self.beta
        steps = self.steps[rows] + 1
        correction = 1 - beta**steps
        moment = torch.lerp(d_weight.square().mean(1), self.moment[rows], beta)
        bias_moment = torch.lerp(d_bias.square(), self.bias_moment[rows], beta)
        self.steps[rows], self.moment[rows], self.bias_moment[rows] = steps, moment, bias_moment
        size = -lr / ((moment / correction).sqrt() + 1e-10)
        self.weight.index_add_(0, rows, d_weight * size[:, None])
        size = -lr / ((bias_moment / correction).sqrt() + 1e-10)
        self.bias.index_add_(0, rows, d_bias * size)

    def state_dict(self) -> dict[str, Tensor]:
        return {"moment": self.moment, "bias_moment": self.bias_moment, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, mine in self.state_dict().items():
            mine.copy_(state[name])


@dataclass(frozen=True)
class Schedule:
    """Warm up, stay constant, decay to zero: a run can be branched off the constant part and
    decayed at any moment. All in tokens seen."""

    warmup: int
    decay_from: int
    total: int
    start: int = 0  # where the warm-up begins: the tokens that given weights have seen

    def __post_init__(self) -> None:
        if not 0 <= self.decay_from <= self.total:
            raise ValueError(f"decay must start within 0 to {self.total}, got {self.decay_from}")

    def factor(self, tokens: int) -> float:
        """The learning rate's share of its peak: linear up, then 1 - sqrt(share of the decay)
        (Haegele et al. 2024)."""
        up = min(1.0, (tokens - self.start + 1) / max(1, self.warmup))
        if tokens <= self.decay_from:
            return up
        share = (tokens - self.decay_from) / max(1, self.total - self.decay_from)
        return up * max(0.0, 1 - math.sqrt(share))
