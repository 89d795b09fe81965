"""Learning the mix as the paper's tasks do: by gradient descent, together with a classifier.

From equal weights and gamma 1, with Adam on small batches, dropout on the mixed vector and the
penalty lambda on the raw weights (Peters et al. 2018, section 3.3). Dropout matters: without it a
linear classifier soon fits its training tokens, and the weights go to whichever layer they can
be memorized from best.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmo.probing.linear_probe import with_product
from elmo.scalar_mix import ScalarMix

STEPS = 600
BATCH = 256
DROPOUT = 0.5
LEARNING_RATE = 0.01
MIX_LEARNING_RATE = 0.05  # L numbers against thousands in the classifier
LAST_RATE = 0.1  # of the first one, reached by a straight line


@dataclass(frozen=True)
class MixClassifier:
    """A mix of layers and a linear classifier on it."""

    mix: ScalarMix
    linear: nn.Linear
    product: bool = False

    def features(self, layers: Tensor) -> Tensor:
        """(n, L, F) -> (n, F), or (n, 1.5 F) with the product of both halves."""
        mixed = self.mix(layers.transpose(0, 1)[:, None])[0]
        return with_product(mixed.t(), True).t() if self.product else mixed

    def logits(self, layers: Tensor) -> Tensor:
        return self.linear(self.features(layers))


def training_steps(
    layers: Tensor,
    labels: Tensor,
    n_labels: int,
    *,
    seed: int = 0,
    steps: int = STEPS,
    strength: float = 0.001,
    product: bool = False,
    batch: int = BATCH,
) -> Iterator[MixClassifier]:
    """Yields the classifier before the first step and after every one; the same object, learning.

    layers: (n, L, F) float32, centered, of size near 1; labels: (n,) int64 below ``n_labels``.
    Everything random, the batches and the dropout, comes from ``seed``.
    """
    n, n_layers, width = layers.shape
    generator = torch.Generator().manual_seed(seed)
    linear = nn.utils.skip_init(nn.Linear, width * 3 // 2 if product else width, n_labels)
    nn.init.zeros_(linear.weight)
    nn.init.zeros_(linear.bias)
    model = MixClassifier(ScalarMix(n_layers), linear, product)
    groups = [
        {"params": linear.parameters(), "lr": LEARNING_RATE},
        {"params": model.mix.parameters(), "lr": MIX_LEARNING_RATE},
    ]
    optimizer = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: 1 - (1 - LAST_RATE) * k / steps
    )
    order = torch.empty(0, dtype=torch.long)
    yield model
    for _ in range(steps):
        if len(order) < min(batch, n):
            order = torch.randperm(n, generator=generator)
        rows, order = order[:batch], order[batch:]
        with torch.enable_grad():
            x = model.features(layers[rows])
            kept = torch.rand(x.shape, generator=generator) >= DROPOUT
            loss = nn.functional.cross_entropy(linear(x * kept / (1 - DROPOUT)), labels[rows])
            loss = loss + model.mix.penalty(strength)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        schedule.step()
        yield model


def train_mix(layers: Tensor, labels: Tensor, n_labels: int, **options) -> MixClassifier:
    """``training_steps`` to the end."""
    return deque(training_steps(layers, labels, n_labels, **options), maxlen=1)[0]
