"""From characters to layer 0: convolutions, max over positions, highway, projection.

Peters et al. 2018, section 3.4, after Kim et al. 2016 and Jozefowicz et al. 2016.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from elmo.config import CharConfig
from elmo.text import N_CHARACTERS


class Highway(nn.Module):
    """``y = g * relu(W_t x + b_t) + (1 - g) * x`` with ``g = sigmoid(W_c x + b_c)``.

    In the original weights the gate is called "carry" although it multiplies the transformed
    part; it starts at -2, that is, mostly closed.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.carry = nn.Linear(width, width)
        self.transform = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.carry(x))
        return torch.lerp(x, torch.relu(self.transform(x)), gate)


class CharCNN(nn.Module):
    """Context-free vectors of tokens from their character ids."""

    def __init__(self, config: CharConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(N_CHARACTERS, config.d_char)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.d_char, count, width) for width, count in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.n_filters) for _ in range(config.n_highway))
        self.projection = nn.Linear(config.n_filters, config.d_output) if config.project else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """The original's initialization (bilm-tf); id 0, "no token", keeps a zero vector."""
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0)
        self.embedding.weight[0].zero_()
        for convolution in self.convolutions:
            if self.config.activation == "relu":
                nn.init.uniform_(convolution.weight, -0.05, 0.05)
            else:
                fan_in = convolution.in_channels * convolution.kernel_size[0]
                nn.init.normal_(convolution.weight, std=1 / math.sqrt(fan_in))
            nn.init.zeros_(convolution.bias)
        for highway in self.highways:
            for linear, bias in ((highway.carry, -2.0), (highway.transform, 0.0)):
                nn.init.normal_(linear.weight, std=1 / math.sqrt(linear.in_features))
                nn.init.constant_(linear.bias, bias)
        if self.projection is not None:
            std = 1 / math.sqrt(self.projection.in_features)
            nn.init.normal_(self.projection.weight, std=std)
            nn.init.zeros_(self.projection.bias)

    def n_positions(self, char_ids: Tensor) -> int:
        """How many character positions must be read for exact results.

        Beyond the longest word plus one window of pure padding nothing new can be found: all
        such windows are identical, so the maximum over positions does not change.
        """
        padding = N_CHARACTERS - 1
        longest = int((char_ids != padding).sum(dim=1).max()) if len(char_ids) else 0
        widest = max(width for width, _ in self.config.filters)
        return min(char_ids.shape[1], max(longest + widest, widest))

    def filter_maxima(self, char_ids: Tensor) -> Tensor:
        """Activated maxima of all filters over a word's windows: (N, C) -> (N, F)."""
        x = self.embedding(char_ids[:, : self.n_positions(char_ids)]).transpose(1, 2)
        maxima = [convolution(x).amax(dim=2) for convolution in self.convolutions]
        activation = torch.relu if self.config.activation == "relu" else torch.tanh
        return activation(torch.cat(maxima, dim=1))

    def forward(self, char_ids: Tensor) -> Tensor:
        """Vectors of N tokens: (N, C) ids -> (N, d_output). Each row depends on its token only."""
        if char_ids.dim() != 2 or char_ids.shape[1] != self.config.max_characters:
            raise ValueError(
                f"char_ids must be (tokens, {self.config.max_characters}),"
                f" got {tuple(char_ids.shape)}"
            )
        x = self.filter_maxima(char_ids)
        for highway in self.highways:
            x = highway(x)
        return x if self.projection is None else self.projection(x)

    def filter_names(self) -> list[str]:
        """One label a filter, ``width:index``, in the order of ``filter_maxima``'s columns."""
        return [f"{w}:{i}" for w, n in self.config.filters for i in range(n)]
