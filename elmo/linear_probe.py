"""Linear probes: multinomial logistic regression on one layer, or on a learned mix of layers.

The objective, for a probe that reads ``x = sum_k c_k h_k``:

    mean cross-entropy of softmax(M x + b)  +  alpha / 2 * |M|^2  +  lambda * |w|^2

One layer and the plain mean fix c, and the objective is convex. The learned mix has
``c_k = softmax(w)_k``, with the paper's penalty lambda on the raw weights (Peters et al. 2018,
section 3.3). A linear probe cannot tell ELMo's gamma from the size of its own matrix, M = gamma W;
we fix |W| to that of the probe on the plain mean with the same alpha, whose gamma is 1, and report
|M| / |W|.

Solved by L-BFGS in the coordinates in which the features are white: there the objective is nearly
round, and some thirty steps replace several hundred.
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


class _MixLayers(torch.autograd.Function):
    """sum_k c_k h_k without a copy of the layers; the gradient goes to c alone."""

    @staticmethod
    def forward(ctx, c: Tensor, layers: Tensor) -> Tensor:
        ctx.save_for_backward(layers)
        return combine(layers, c)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        (layers,) = ctx.saved_tensors
        flat = gradient.contiguous().flatten()
        return torch.stack([torch.dot(layer.flatten(), flat) for layer in layers]), None


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

    w: raw scalar weights (L,) where they were learned; alpha: the L2 strength; loss: the
    objective at the end; n_evaluations: of the objective.
    """

    matrix: Tensor
    bias: Tensor
    c: Tensor
    product: bool
    alpha: float
    loss: float
    n_evaluations: int
    w: Tensor | None = None

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
    strength: float | None = None,
    preconditioner: Preconditioner | None = None,
    start: LinearProbe | None = None,
    max_steps: int = MAX_STEPS,
    tolerance: float = TOLERANCE,
) -> LinearProbe:
    """The probe that minimizes the objective in this module's docstring.

    layers: (L, F, n) scaled; labels: (n,) int64 below ``n_labels``.
    c: (L,) fixed weights of the layers; where ``strength`` (lambda) is given, the factors that
        the learned softmax weights are multiplied by.
    start: where to begin, for a path of falling ``alpha`` or lambda.
    """
    learned = strength is not None
    w = torch.zeros(len(layers))
    if learned and start is not None and start.w is not None:
        w = start.w.clone()
    fixed = None if learned else with_product(combine(layers, c), product)
    if preconditioner is None:
        first = combine(layers, c * torch.softmax(w, 0)) if learned else None
        preconditioner = Preconditioner.fit(
            fixed if first is None else with_product(first, product)
        )
    basis, scale = preconditioner.basis, preconditioner.scale(alpha)

    u = torch.zeros(n_labels, len(basis))
    bias = torch.zeros(n_labels, 1)
    if start is not None:
        u, bias = (start.matrix @ basis) / scale, start.bias.clone()
    else:  # the bias alone already predicts how frequent each label is
        counts = torch.bincount(labels, minlength=n_labels).float() + 0.5
        bias = torch.log(counts / counts.sum())[:, None]
    parameters = [u.requires_grad_(), bias.requires_grad_()]
    if learned:
        parameters.append(w.requires_grad_())
    index = labels[None, :]
    n_evaluations = 0

    def objective() -> Tensor:
        nonlocal n_evaluations
        n_evaluations += 1
        optimizer.zero_grad()
        scaled = u * scale
        x = fixed
        if learned:
            x = with_product(_MixLayers.apply(c * torch.softmax(w, 0), layers), product)
        logits = torch.addmm(bias, scaled @ basis.t(), x)  # (K, n)
        loss = (torch.logsumexp(logits, 0) - logits.gather(0, index)[0]).mean()
        loss = loss + alpha / 2 * scaled.square().sum()  # the basis is orthogonal: |M| = |scaled|
        if learned:
            loss = loss + strength * w.square().sum()
        loss.backward()
        return loss

    optimizer = torch.optim.LBFGS(
        parameters,
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
        final_c = c * torch.softmax(w, 0) if learned else c
        return LinearProbe(
            matrix=(u * scale) @ basis.t(),
            bias=bias.detach(),
            c=final_c.detach(),
            product=product,
            alpha=alpha,
            loss=losses[-1],
            n_evaluations=n_evaluations,
            w=w.detach() if learned else None,
        )


def center_of_gravity(weights: Sequence[float] | np.ndarray) -> float:
    """sum_k k * s_k, the average layer that a mix listens to (Tenney et al. 2019, equation 3)."""
    weights = np.asarray(weights, dtype=np.float64)
    return float(weights @ np.arange(len(weights)))
