"""One update: gradients, clipping, and which optimizer moves which parameter."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed, nn

from elmo.config import BiLMConfig
from elmo.language_model import LanguageModel
from elmo.training.batches import Batch
from elmo.training.objectives import StepResult, bilm_step, concatenated_step, masked_step
from elmo.training.optim import MatrixBlocks, Muon, RowAdam


@dataclass(frozen=True)
class TrainConfig:
    """What a run depends on besides the model, the text and the number of tokens."""

    seed: int = 1
    tokens_per_batch: int = 5_120
    n_draws: int = 4_096  # candidates of the sampled softmax, with replacement
    muon_lr: float = 0.02
    muon_momentum: float = 0.95
    weight_decay: float = 0.01  # of Muon's matrices
    adam_lr: float = 3e-3
    softmax_lr: float = 3e-3
    clip_norm: float = 1.0
    warmup_tokens: int = 500_000
    n_masks: int = 2  # masked LM only: masks of one batch, and the share of tokens in each
    mask_share: float = 0.35
    precision: str = "bfloat16"  # of matrix products; weights are float32 always

    def __post_init__(self) -> None:
        if self.precision not in ("bfloat16", "float32"):
            raise ValueError(f"precision must be bfloat16 or float32, got {self.precision!r}")


class Trainer:
    """Weights and optimizers, and one step over a batch.

    Muon takes the stack's matrices, AdamW the rest but for the softmax, whose touched rows are
    updated lazily. Under torch.distributed gradients are summed over all processes.
    """

    def __init__(self, model: LanguageModel, config: TrainConfig) -> None:
        self.model, self.config = model, config
        self.dtype = getattr(torch, config.precision)
        matrices, rest = split_parameters(model)
        self.parameters = [*(block.parameter for block in matrices), *rest]
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.muon = Muon(
            matrices, config.muon_lr, config.muon_momentum, config.weight_decay, self.dtype
        )
        self.adam = torch.optim.AdamW(
            rest, config.adam_lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        self.rows = RowAdam(model.head.weight.data, model.head.bias.data, config.softmax_lr)

    def step(self, batch: Batch, number: int, factor: float) -> tuple[StepResult, float]:
        """Update ``number`` at ``factor`` times the learning rates.

        Returns the loss and the gradient's norm before clipping, the softmax left out.
        """
        for parameter in self.parameters:
            parameter.grad.zero_()
        result = self._gradients(batch, [self.config.seed, number])
        if distributed.is_initialized():
            result = self._reduce(result)
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm))
        self.muon.step(factor)
        for group in self.adam.param_groups:
            group["lr"] = self.config.adam_lr * factor
        self.adam.step()
        self.rows.step(result.head.rows, result.head.weight, result.head.bias, factor)
        return result, norm

    def _gradients(self, batch: Batch, seed: list[int]) -> StepResult:
        args = (self.model, batch, self.config.n_draws, seed, self.dtype)
        if self.model.config.kind == "bilm":
            return bilm_step(*args)
        if self.model.config.kind == "attention_concat":
            return concatenated_step(*args)
        return masked_step(*args, self.config.n_masks, self.config.mask_share)

    def _reduce(self, result: StepResult) -> StepResult:
        """Sums of all processes; the objectives already divide by the whole batch's targets."""
        flat = torch.cat([parameter.grad.flatten() for parameter in self.parameters])
        distributed.all_reduce(flat)
        sizes = [parameter.numel() for parameter in self.parameters]
        for parameter, part in zip(self.parameters, flat.split(sizes), strict=True):
            parameter.grad.copy_(part.view_as(parameter))
        loss = result.loss.clone()
        distributed.all_reduce(loss)
        return dataclasses.replace(result, loss=loss)

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "rows": self.rows.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.rows.load_state_dict(state["rows"])


def split_parameters(model: LanguageModel) -> tuple[list[MatrixBlocks], list[nn.Parameter]]:
    """Muon's matrices, and what AdamW takes. The softmax belongs to neither.

    Each gate of an LSTM, and each of its input and recurrent halves, is a matrix of its own.
    """
    matrices, rest = [], []
    lstm = isinstance(model.config.stack, BiLMConfig)
    for name, parameter in model.named_parameters():
        if name.startswith("head."):
            continue
        if name.startswith("stack.") and parameter.dim() == 2 and "positions" not in name:
            gates = lstm and name.endswith("weight")
            matrices.append(MatrixBlocks(parameter, 4, 2) if gates else MatrixBlocks(parameter))
        else:
            rest.append(parameter)
    return matrices, rest
