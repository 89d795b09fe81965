"""The softmax in training: against a sample of the vocabulary, touching only the rows it needs.

Jean et al. 2015, as in TensorFlow's ``sampled_softmax_loss`` and the original biLM: candidates are
drawn by rank (log-uniform, close to Zipf's law), shared by the whole batch, and every logit is
corrected by -log of the expected count. All reported perplexities use the full softmax instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, distributed
from torch.nn import functional as F

from elmo.language_model import SoftmaxHead
from elmo.training.kernels import NO_CLIP, sampled_softmax

PAD_TO = 256  # oneDNN prepares a kernel for every new shape: keep their number small


def expected_log_count(words: Tensor, n_vocabulary: int, n_draws: int) -> Tensor:
    """log P(word is among n_draws draws with replacement), float32, for ids sorted by frequency."""
    k = words.double()
    p = torch.log((k + 2) / (k + 1)) / math.log(n_vocabulary + 1)
    return torch.log(-torch.expm1(n_draws * torch.log1p(-p))).float()


def draw_candidates(n_vocabulary: int, n_draws: int, seed: list[int]) -> Tensor:
    """Distinct word ids, ascending: the same for the same seed, on every process."""
    uniform = np.random.default_rng(seed).random(n_draws)
    words = np.exp(uniform * math.log(n_vocabulary + 1)).astype(np.int64) - 1
    return torch.from_numpy(np.unique(words.clip(0, n_vocabulary - 1)))


@dataclass(frozen=True)
class RowGradients:
    """Gradients of the softmax rows that one step touched."""

    rows: Tensor  # (R,) distinct
    weight: Tensor  # (R, P) float32
    bias: Tensor  # (R,) float32


def sampled_loss(
    head: SoftmaxHead, hidden: Tensor, words: Tensor, n_draws: int, seed: list[int], scale: float
) -> tuple[Tensor, Tensor, RowGradients]:
    """hidden (directions, N, P) bfloat16 and its target words (directions, N).

    Returns the summed loss (directions,), the gradient of scale * loss for hidden, and for
    the head. Under torch.distributed the head's gradients are summed over all processes.
    """
    n_vocabulary = len(head.weight)
    device = hidden.device
    candidates = draw_candidates(n_vocabulary, n_draws, seed).to(device)
    targets = _distinct_everywhere(words)
    index = torch.searchsorted(targets, words)

    n_candidates = len(candidates)
    pad = -n_candidates % PAD_TO
    padded = F.pad(candidates, (0, pad))
    bias = head.bias.detach()
    correct = expected_log_count(padded, n_vocabulary, n_draws)
    candidate_bias = bias[padded] - correct
    candidate_bias[n_candidates:] = -NO_CLIP
    target_bias = bias[targets] - expected_log_count(targets, n_vocabulary, n_draws)
    place = torch.searchsorted(candidates, targets).clamp(max=n_candidates - 1)
    hit = torch.where(candidates[place] == targets, place, -1)

    weight = head.weight.detach()
    loss, d_hidden, d_target, d_target_bias, d_candidate, d_candidate_bias = sampled_softmax(
        hidden.contiguous(),
        index,
        weight[targets].to(hidden.dtype),
        target_bias,
        hit,
        weight[padded].to(hidden.dtype),
        candidate_bias,
        scale,
    )
    new, known = hit < 0, hit >= 0
    d_weight = torch.cat([d_candidate[:n_candidates], d_target[new]])
    d_weight.index_add_(0, hit[known], d_target[known])
    d_bias = torch.cat([d_candidate_bias[:n_candidates], d_target_bias[new]])
    d_bias.index_add_(0, hit[known], d_target_bias[known])
    if distributed.is_initialized():
        distributed.all_reduce(d_weight)
        distributed.all_reduce(d_bias)
    rows = torch.cat([candidates, targets[new]])
    return loss, d_hidden, RowGradients(rows, d_weight, d_bias)


def _distinct_everywhere(words: Tensor) -> Tensor:
    """Distinct words of this batch on all processes, ascending."""
    distinct = words.unique()
    if not distributed.is_initialized():
        return distinct
    parts: list = [None] * distributed.get_world_size()
    distributed.all_gather_object(parts, distinct.cpu())
    return torch.cat(parts).unique().to(words.device)
