"""ELMo as the input layer of a task's own model, frozen or fine-tuned (Peters et al. 2018, 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from elmo.encoders import Encoder
from elmo.scalar_mix import ScalarMix
from elmo.text import BOS, EOS, char_ids


class TaskInput(nn.Module):
    """Sentences in, (B, T, D) with gradients out.

    Two switches, independent of each other and of all initial values: ``train_mix`` (on) for the
    layer weights and gamma, ``train_model`` (off) for the language model itself. With both off
    the output needs no gradient. A frozen model runs without a graph and from the token cache; a
    trained one runs as a plain module and caches nothing.

    n_mixes: several mixes over the same layers, for a task that uses ELMo in several places;
        identical until trained.
    w, gamma, norm: see ``ScalarMix``.
    dropout: after the mix, in training mode only. The paper's 0.5 is not the default.
    """

    def __init__(
        self,
        encoder: Encoder,
        n_mixes: int = 1,
        w: Sequence[float] | None = None,
        gamma: float = 1.0,
        norm: str = "none",
        dropout: float = 0.0,
        train_mix: bool = True,
        train_model: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.model = encoder.model.requires_grad_(train_model)
        self.mixes = nn.ModuleList(
            ScalarMix(encoder.n_layers, w, gamma, norm, train_mix) for _ in range(n_mixes)
        )
        self.dropout = nn.Dropout(dropout)

    def parameter_groups(self, lr: float, model_lr: float | None = None) -> list[dict[str, Any]]:
        """For an optimizer: the mixes at ``lr``, a trained model at ``model_lr``.

        A model that has learned from 100 million tokens is easily destroyed by a task's learning
        rate: without a ``model_lr`` a hundredth of ``lr`` is taken.
        """
        groups = [
            {"name": "mix", "params": list(self.mixes.parameters()), "lr": lr},
            {
                "name": "model",
                "params": list(self.model.parameters()),
                "lr": lr / 100 if model_lr is None else model_lr,
            },
        ]
        for group in groups:
            group["params"] = [p for p in group["params"] if p.requires_grad]
        return [group for group in groups if group["params"]]

    def forward(self, sentences: Sequence[Sequence[str]]) -> tuple[list[Tensor], Tensor]:
        """Ragged lists of tokens -> one (B, T, D) a mix, and the mask (B, T) of real tokens.

        Padding is exactly 0. In carry mode a trained model starts each call from zeros.
        """
        layers, mask = self.layers(sentences)
        mixed = [self.dropout(mix(layers, mask)) * mask[..., None] for mix in self.mixes]
        return mixed, mask

    def layers(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """(L, B, T, D) without boundaries, and the mask (B, T)."""
        trained = any(p.requires_grad for p in self.model.parameters())
        return self._trained(sentences) if trained else self._frozen(sentences)

    def _frozen(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        encodings = self.encoder.encode(sentences)
        device = next(self.mixes.parameters()).device
        mask = _mask([len(e.tokens) for e in encodings], device)
        padded = np.zeros((self.encoder.n_layers, *mask.shape, self.encoder.d_model), np.float32)
        for row, encoding in enumerate(encodings):
            padded[:, row, : len(encoding.tokens)] = encoding.hidden
        return torch.from_numpy(padded).to(device), mask

    def _trained(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        framed = [[BOS, *sentence, EOS] for sentence in self.encoder.validated(sentences)]
        device = next(self.model.parameters()).device
        if not framed:
            shape = (self.encoder.n_layers, 0, 0, self.encoder.d_model)
            return torch.zeros(shape, device=device), _mask([], device)
        index: dict[str, int] = {}
        width, added = self.encoder.config.char.max_characters, self.encoder.added_tokens
        lengths = torch.tensor([len(sentence) for sentence in framed], device=device)
        ids = torch.zeros(len(framed), max(map(len, framed)), dtype=torch.long)
        for row, sentence in enumerate(framed):
            numbers = [index.setdefault(token, len(index)) for token in sentence]
            ids[row, : len(sentence)] = torch.tensor(numbers)
        characters = torch.from_numpy(np.stack([char_ids(t, width, added) for t in index]))
        vectors = self.model.token_encoder(characters.to(device))
        layers = self.encoder.differentiable(len(framed))(vectors[ids.to(device)], lengths)
        mask = _mask([len(sentence) - 2 for sentence in framed], device)
        return layers[:, :, 1:-1] * mask[..., None], mask


def _mask(lengths: list[int], device: torch.device) -> Tensor:
    position = torch.arange(max(lengths, default=0), device=device)
    lengths = torch.tensor(lengths, dtype=torch.long, device=device)
    return position[None, :] < lengths[:, None]
