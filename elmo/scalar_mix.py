"""ELMo's mix of layers: ``gamma * sum_k s_k h_k`` with ``s = softmax(w)``.

Peters et al. 2018, equation 1. The raw weights w are learned by a task, the normalized
s are what it listens to; equal w means the plain mean of the layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

NORMS = ("none", "token", "batch")


def softmax(w: Sequence[float] | np.ndarray) -> np.ndarray:
    """s_k = exp(w_k) / sum_j exp(w_j), float64. Raises ``ValueError`` on values not finite."""
    w = np.asarray(w, dtype=np.float64)
    if w.ndim != 1 or not len(w) or not np.isfinite(w).all():
        raise ValueError(f"scalar weights must be a list of finite numbers, got {w!r}")
    exponentials = np.exp(w - w.max())
    return exponentials / exponentials.sum()


def mix_layers(hidden: np.ndarray, w: Sequence[float], gamma: float = 1.0) -> np.ndarray:
    """The mix of (L, ...) layers under raw weights w, one a layer, and scale gamma."""
    if len(w) != len(hidden):
        raise ValueError(f"{len(hidden)} layers need as many weights, got {len(w)}")
    weights = (gamma * softmax(w)).astype(hidden.dtype)
    return np.tensordot(weights, hidden, axes=1)


class ScalarMix(nn.Module):
    """The trainable mix.

    ``norm`` says what happens to each layer before mixing: ``none``; ``token``, each vector to
    mean 0 and variance 1 by itself; ``batch``, the original's option, one mean and one variance
    a layer over all real positions of the whole batch, which makes a sentence's vectors depend
    on its batch. ``trainable`` is independent of the initial values.
    """

    def __init__(
        self,
        n_layers: int,
        w: Sequence[float] | None = None,
        gamma: float = 1.0,
        norm: str = "none",
        trainable: bool = True,
    ) -> None:
        super().__init__()
        if norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {norm!r}")
        w = [0.0] * n_layers if w is None else list(w)
        if len(w) != n_layers:
            raise ValueError(f"{n_layers} layers need as many weights, got {len(w)}")
        self.norm = norm
        self.w = nn.Parameter(torch.tensor(w, dtype=torch.float32), requires_grad=trainable)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=trainable)

    @property
    def weights(self) -> Tensor:
        """The normalized weights s_k; they sum to 1."""
        return torch.softmax(self.w, dim=0)

    def penalty(self, strength: float) -> Tensor:
        """The paper's regularizer (section 3.3): ``strength * sum_k w_k^2`` on the raw weights."""
        return strength * self.w.square().sum()

    def forward(self, layers: Tensor, mask: Tensor | None = None) -> Tensor:
        """(L, B, T, D) -> (B, T, D). ``mask`` (B, T), true where a token is real, is needed by
        ``batch`` alone."""
        if len(layers) != len(self.w):
            raise ValueError(f"the mix has {len(self.w)} weights, got {len(layers)} layers")
        if self.norm == "token":
            layers = nn.functional.layer_norm(layers, layers.shape[-1:], eps=1e-12)
        elif self.norm == "batch":
            if mask is None:
                raise ValueError("norm='batch' needs the mask of real tokens")
            layers = self._batch_norm(layers, mask)
        return self.gamma * torch.tensordot(self.weights, layers, dims=1)

    @staticmethod
    def _batch_norm(layers: Tensor, mask: Tensor) -> Tensor:
        real = mask[None, :, :, None].to(layers)
        count = real.sum() * layers.shape[-1]
        mean = (layers * real).sum(dim=(1, 2, 3), keepdim=True) / count
        variance = ((layers - mean) * real).square().sum(dim=(1, 2, 3), keepdim=True) / count
        return (layers - mean) / torch.sqrt(variance + 1e-12)
