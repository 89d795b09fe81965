"""Linear probes: multinomial logistic regression on a fixed mix of layers, solved to the optimum.

The objective, for a probe that reads ``x = sum_k c_k h_k``:

    mean cross-entropy of softmax(M x + b)  +  alpha / 2 * |M|^2

It is convex, so that the result depends on the data alone. Solved by L-BFGS in the coordinates in
which the features are white: there the objective is nearly round, and some thirty steps replace
several hundred. How a mix is learned is in ``mix_training``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

ALPHAS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5)  # strong to weak
MAX_STEPS = 60
TOLERANCE = 1e-4  # nats a step, on average over STRIDE steps
STRIDE = 5
COVARIANCE_SAMPLE = 4_096


@dataclass(frozen=True)
class Scaling:
    """What is subtracted and divided, learned on training examples.

    mean: (L, F, 1); size: (L,) the root mean square of a layer's centered values.
    """

    mean: Tensor
    size: Tensor

    @classmethod
    def fit(cls, layers: Tensor) -> Scaling:
        mean = layers.mean(dim=2, keepdim=True)
        size = torch.stack(
            [(x - m).square().mean().sqrt() for x, m in zip(layers, mean, strict=True)]
        )
        return cls(mean, size.clamp(min=1e-12))

    def apply(self, layers: Tensor) -> Tensor:
        """Centered layers of equal size, in place of ``layers``: every mix is a matter of c."""
        return layers.sub_(self.mean).div_(self.size[:, None, None])

    def factors(self, equalize: bool) -> Tensor:
        """(L,) what a layer is multiplied by before mixing: 1, or its own size where layers are
        to keep their proportions."""
        if equalize:
            return torch.ones_like(self.size)
        return self.size / self.size.square().mean().sqrt()


def arrange(rows: np.ndarray, spans: np.ndarray) -> Tensor:
    """Examples' features (L, S * D, n) float32 from a table (rows, L, D) and indices (n, S).

    Features run along the second axis, examples along the last: so laid out, the products of the
    solver are about twice as fast.
    """
    n_layers, width = rows.shape[1:]
    features = np.empty((n_layers, spans.shape[1] * width, len(spans)), dtype=np.float32)
    for s in range(spans.shape[1]):
        block = np.asarray(rows[spans[:, s]], dtype=np.float32)  # (n, L, D)
        features[:, s * width : (s + 1) * width] = block.transpose(1, 2, 0)
    return torch.from_numpy(features)


def combine(layers: Tensor, c: Tensor) -> Tensor:
    """sum_k c_k h_k: (L, F, n) and (L,) -> (F, n)."""
    total = layers[0] * c[0]
    for layer, weight in zip(layers[1:], c[1:].tolist(), strict=True):
        total.add_(layer, alpha=weight)
    return total


def with_product(x: Tensor, product: bool) -> Tensor:
    """Pairs [a ; b] as [a ; b ; a * b], where a task compares its two spans."""
    if not product:
        return x
    a, b = x.chunk(2, dim=0)
    return torch.cat([x, a * b])


@dataclass(frozen=True)
class LinearProbe:
    """A fitted probe. matrix: M (K, F); bias: (K, 1); c: (L,) what each scaled layer counts.

    alpha: the L2 strength; loss: the objective at the end; n_evaluations: of the objective.
    """

    matrix: Tensor
    bias: Tensor
    c: Tensor
    product: bool
    alpha: float
    loss: float
    n_evaluations: int

    def logits(self, layers: Tensor) -> Tensor:
        """(L, F, n) scaled layers -> (n, K)."""
        x = with_product(combine(layers, self.c), self.product)
        return torch.addmm(self.bias, self.matrix, x).t()


@dataclass(frozen=True)
class Preconditioner:
    """The eigenvectors (F, F) and variances (F,) of the features."""

    basis: Tensor
    variance: Tensor

    @classmethod
    def fit(cls, x: Tensor) -> Preconditioner:
        step = max(1, x.shape[1] // COVARIANCE_SAMPLE)
        sample = x[:, ::step].contiguous()
        variance, basis = torch.linalg.eigh(sample @ sample.t() / sample.shape[1])
        return cls(basis, variance.clamp(min=0))

    def scale(self, alpha: float) -> Tensor:
        """The diagonal: a quarter of the variance bounds the loss's curvature from above."""
        return (self.variance / 4 + alpha).rsqrt()


def fit_probe(
    layers: Tensor,
    labels: Tensor,
    n_labels: int,
    c: Tensor,
    alpha: float,
    *,
    product: bool = False,
    preconditioner: Preconditioner | None = None,
    start: LinearProbe | None = None,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> LinearProbe:
    """The probe that minimizes the objective in this module's docstring.

    layers: (L, F, n) scaled; labels: (n,) int64 below ``n_labels``; c: (L,) weights of the layers.
    start: where to begin, for a path of falling ``alpha``.
    """
    x = with_product(combine(layers, c), product)
    if preconditioner is None:
        preconditioner = Preconditioner.fit(x)
    basis, scale = preconditioner.basis, preconditioner.scale(alpha)
    if start is not None:
        u, bias = (start.matrix @ basis) / scale, start.bias.clone()
    else:  # the bias alone already predicts how frequent each label is
        u = torch.zeros(n_labels, len(basis))
        counts = torch.bincount(labels, minlength=n_labels).float() + 0.5
        bias = torch.log(counts / counts.sum())[:, None]
    u.requires_grad_()
    bias.requires_grad_()
    index = labels[None, :]
    n_evaluations = 0

    def objective() -> Tensor:
        nonlocal n_evaluations
        n_evaluations += 1
        optimizer.zero_grad()
        scaled = u * scale
        logits = torch.addmm(bias, scaled @ basis.t(), x)  # (K, n)
        loss = (torch.logsumexp(logits, 0) - logits.gather(0, index)[0]).mean()
        loss = loss + alpha / 2 * scaled.square().sum()  # the basis is orthogonal: |M| = |scaled|
        loss.backward()
        return loss

    optimizer = torch.optim.LBFGS(
        [u, bias],
        max_iter=STRIDE,
        history_size=10,
        tolerance_grad=1e-9,
        tolerance_change=0,  # its own test stops at a first short step, after a warm start
        line_search_fn="strong_wolfe",
    )
    with torch.enable_grad():
        losses = [objective().item()]
        for _ in range(max_steps // STRIDE):
            optimizer.step(objective)
            losses.append(objective().item())
            if len(losses) > 3 and losses[-2] - losses[-1] < STRIDE * tolerance:
                break
    with torch.no_grad():
        matrix = (u * scale) @ basis.t()
    return LinearProbe(matrix, bias.detach(), c, product, alpha, losses[-1], n_evaluations)


def center_of_gravity(weights: Sequence[float] | np.ndarray) -> float:
    """sum_k k * s_k, the average layer that a mix listens to (Tenney et al. 2019, equation 3)."""
    weights = np.asarray(weights, dtype=np.float64)
    return float(weights @ np.arange(len(weights)))
