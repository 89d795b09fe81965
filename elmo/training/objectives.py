"""One training step's loss and gradients for each kind of model.

Each objective runs characters once per distinct token, the stack on a detached copy of the token
vectors, the sampled softmax on a detached copy of the top layer, and then hands gradients back
down, adding them up in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmo.bilm import BiLM
from elmo.char_cnn import CharCNN
from elmo.language_model import LanguageModel
from elmo.self_attention import Attention, SelfAttention
from elmo.training.batches import Batch
from elmo.training.kernels import char_maxima, lstm_layer
from elmo.training.sampling import RowGradients, sampled_loss

KEPT, SWAPPED = 0.1, 0.1  # shares of a masked LM's targets that are not hidden


@dataclass(frozen=True)
class StepResult:
    """Loss summed over this process's targets, one entry a direction (or one for masked LM)."""

    loss: Tensor  # (directions,) float64
    n_targets: int  # of the whole batch, in all directions
    head: RowGradients


def linear(module: torch.nn.Linear, x: Tensor) -> Tensor:
    """In x's dtype, whatever the module's own."""
    return F.linear(x, module.weight.to(x.dtype), module.bias.to(x.dtype))


def token_vectors(encoder: CharCNN, ids: Tensor, dtype: torch.dtype) -> Tensor:
    """``CharCNN.forward`` with products in ``dtype`` and the compiled convolution: (M, P)."""
    maxima = char_maxima(encoder.embedding.weight, list(encoder.convolutions), ids)
    x = torch.relu(maxima) if encoder.config.activation == "relu" else torch.tanh(maxima)
    x = x.to(dtype)
    for highway in encoder.highways:
        gate = torch.sigmoid(linear(highway.carry, x))
        x = x + gate * (torch.relu(linear(highway.transform, x)) - x)
    return x if encoder.projection is None else linear(encoder.projection, x)


def _give_back(vectors: Tensor, index: Tensor, gradient: Tensor) -> None:
    """Add the gradients of all occurrences of a token in float32 and continue below."""
    total = torch.zeros(vectors.shape, dtype=torch.float32, device=vectors.device)
    total.index_add_(0, index.flatten(), gradient.flatten(0, -2).float())
    vectors.backward(total.to(vectors.dtype))


def run_bilm(stack: BiLM, x: Tensor) -> Tensor:
    """x (2, T, B, P): forward order, and backward order. Top layers in the same orders."""
    config = stack.config
    for k, pair in enumerate(zip(stack.forward_layers, stack.backward_layers, strict=True)):
        weight, bias, projection = (
            torch.stack([getattr(layer, name) for layer in pair])
            for name in ("weight", "bias", "projection")
        )
        skip = k > 0 and config.skip_connections
        clips = config.cell_clip, config.projection_clip
        x = lstm_layer(x, weight, bias, projection, *clips, skip)
    return x


def both_ways(x: Tensor) -> Tensor:
    """(B, T) with boundaries -> inputs (2, T - 1, B): `<S> w..` and `</S> w..` reversed."""
    return torch.stack([x[:, :-1].t(), x[:, 1:].flip(1).t()])


def next_words(words: Tensor) -> Tensor:
    """(B, T) with boundaries -> what follows each of ``both_ways``'s inputs (2, T - 1, B)."""
    return torch.stack([words[:, 1:].t(), words[:, :-1].flip(1).t()])


def bilm_step(
    model: LanguageModel, batch: Batch, n_draws: int, seed: list[int], dtype: torch.dtype
) -> StepResult:
    """Forward LM: w1..wn `</S>` from `<S>` w1..wn. Backward LM: wn..w1 `<S>` from `</S>` wn..w1.

    The gradient is that of the mean over predictions and directions (half the sum of both means).
    """
    vectors = token_vectors(model.token_encoder, batch.char_ids, dtype)
    index = both_ways(batch.index)
    targets = next_words(batch.words)
    x = vectors.detach()[index].requires_grad_()
    top = run_bilm(model.stack, x)
    hidden = top.detach().flatten(1, 2)
    n_targets = 2 * batch.n_rows * (batch.words.shape[1] - 1)
    loss, d_hidden, head = sampled_loss(
        model.head, hidden, targets.flatten(1).contiguous(), n_draws, seed, 1 / n_targets
    )
    top.backward(d_hidden.view_as(top))
    _give_back(vectors, index, x.grad)
    return StepResult(loss, n_targets, head)


def self_attention(module: Attention, queries: Tensor, x: Tensor, causal: bool) -> Tensor:
    """What the attention part adds to the stream at the queries: (B, Q, D), looking at all of
    x (B, T, D), without padding. Causal where the queries are x itself."""

    def heads(projection: torch.nn.Linear, x: Tensor) -> Tensor:
        return linear(projection, x).unflatten(-1, (module.n_heads, -1)).transpose(1, 2)

    query = heads(module.query, queries)  # (B, H, Q, D / H)
    key, value = heads(module.key, x), heads(module.value, x)  # (B, H, T, D / H)
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    mixed = torch.softmax(scores, dim=-1) @ value
    return linear(module.output, mixed.transpose(1, 2).flatten(-2))


def run_attention(
    stack: SelfAttention,
    x: Tensor,
    causal: bool,
    dtype: torch.dtype,
    wanted: Tensor | None = None,
) -> Tensor:
    """Blocks over x (B, T, D), positions already added: products in ``dtype``, the residual
    stream in x's own. Causal means in the order of reading.

    wanted (B, Q): the positions whose top vectors are asked for, (B, Q, D); all of them if None.
    Elsewhere the last block computes keys and values alone.
    """
    for block in stack.blocks:
        normed = block.attention_norm(x).to(dtype)
        queries = normed
        if wanted is not None and block is stack.blocks[-1]:
            queries, x = pick(normed, wanted), pick(x, wanted)
        x = x + self_attention(block.attention, queries, normed, causal)
        inner = F.gelu(linear(block.expand, block.feedforward_norm(x).to(dtype)))
        x = x + linear(block.contract, inner)
    return x


def pick(x: Tensor, positions: Tensor) -> Tensor:
    """x (B, T, D) at positions (B, Q): (B, Q, D)."""
    return x.gather(1, positions[:, :, None].expand(-1, -1, x.shape[2]))


def choose_gaps(n_rows: int, n_tokens: int, n_masks: int, share: float, seed: list[int]) -> Tensor:
    """(n_masks, n_rows, gaps) positions of the gaps of each row, boundaries counted.

    Every row of every mask has the same number of gaps, and the masks of a row do not overlap
    until all its tokens have had their turn.
    """
    n_gaps = max(1, round(share * n_tokens))
    order = np.random.default_rng([*seed, 1]).random((n_rows, n_tokens)).argsort(axis=1)
    turns = np.arange(n_masks * n_gaps) % n_tokens
    gaps = order[:, turns].reshape(n_rows, n_masks, n_gaps).transpose(1, 0, 2)
    return torch.from_numpy(np.sort(gaps, axis=2) + 1)


def choose_fillers(gaps: Tensor, n_tokens: int, seed: list[int]) -> Tensor:
    """What stands at each gap, in the shape of ``gaps``: -1 for the gap token, else the position
    in the row whose token is put there.

    As in BERT (Devlin et al. 2019, section 3.1) 80 % of the targets are hidden, 10 % kept and
    10 % swapped, here for a token of the same sentence. Without the last two nothing would ever
    be asked of a visible token's top vector, and it would mean nothing.
    """
    rng = np.random.default_rng([*seed, 2])
    draw = rng.random(gaps.shape)
    elsewhere = rng.integers(1, n_tokens + 1, gaps.shape)
    fillers = np.where(draw < KEPT, gaps.numpy(), elsewhere)
    return torch.from_numpy(np.where(draw < KEPT + SWAPPED, fillers, -1))


def masked_step(
    model: LanguageModel,
    batch: Batch,
    n_draws: int,
    seed: list[int],
    dtype: torch.dtype,
    n_masks: int,
    share: float,
) -> StepResult:
    """Masked LM: the chosen tokens are hidden, some kept or swapped, and all predicted."""
    vectors = token_vectors(model.token_encoder, batch.char_ids, dtype)
    n_tokens = batch.words.shape[1] - 2
    gaps = choose_gaps(batch.n_rows, n_tokens, n_masks, share, seed)
    fillers = choose_fillers(gaps, n_tokens, seed)
    device = batch.words.device
    gaps, fillers = (x[:, batch.rows].flatten(0, 1).to(device) for x in (gaps, fillers))
    targets = batch.words.repeat(n_masks, 1).gather(1, gaps).flatten()  # gaps: (n_masks x B, ..)
    index = batch.index.repeat(n_masks, 1)
    filled = torch.where(fillers < 0, 0, index.gather(1, fillers.clamp(min=0)))  # row 0: the gap
    index = index.scatter(1, gaps, filled)
    x = vectors.detach()[index].float().requires_grad_()
    placed = x + model.stack.positions[: n_tokens + 2]
    top = run_attention(model.stack, placed, False, dtype, wanted=gaps).flatten(0, 1)
    readout = model.readout["joint"]
    inner = F.gelu(linear(readout.dense, readout.norm(top).to(dtype)))
    hidden = readout.output_norm(inner.float()).to(dtype)
    n_targets = batch.n_rows * n_masks * gaps.shape[1]
    loss, d_hidden, head = sampled_loss(
        model.head, hidden.detach()[None], targets[None], n_draws, seed, 1 / n_targets
    )
    hidden.backward(d_hidden[0])
    _give_back(vectors, index, x.grad)
    return StepResult(loss, n_targets, head)


def concatenated_step(
    model: LanguageModel, batch: Batch, n_draws: int, seed: list[int], dtype: torch.dtype
) -> StepResult:
    """Two causal stacks as forward and backward LM: inputs, targets and loss as in
    ``bilm_step``."""
    vectors = token_vectors(model.token_encoder, batch.char_ids, dtype)
    x = vectors.detach()[batch.index].float().requires_grad_()
    n = x.shape[1]
    stacks = model.stack.forward_stack, model.stack.backward_stack
    inputs = (
        x[:, :-1] + stacks[0].positions[: n - 1],
        x[:, 1:].flip(1) + stacks[1].positions[: n - 1],
    )
    tops = []
    for direction, stack, part in zip(("forward", "backward"), stacks, inputs, strict=True):
        top = model.read(run_attention(stack, part, True, dtype), direction)
        tops.append(top.to(dtype).transpose(0, 1).flatten(0, 1))
    hidden = torch.stack(tops)  # (2, T B, P)
    targets = next_words(batch.words).flatten(1).contiguous()
    n_targets = 2 * batch.n_rows * (n - 1)
    loss, d_hidden, head = sampled_loss(
        model.head, hidden.detach(), targets, n_draws, seed, 1 / n_targets
    )
    hidden.backward(d_hidden)
    _give_back(vectors, batch.index, x.grad)
    return StepResult(loss, n_targets, head)
