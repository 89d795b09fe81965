"""Products with a fixed matrix, laid out once for the processor (oneDNN, through torch).

Row counts are rounded up to a few sizes, because oneDNN compiles and keeps a kernel for every new
shape. Each row of its products is the same to the last bit whatever the other rows are. Without
oneDNN plain products take their place, equal up to rounding.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def padded_rows(n: int) -> int:
    """The size that n rows are rounded up to, one of 18.

    Never 1: a single row takes another kernel, which adds up in another order.
    """
    if n <= 2:
        return 2
    step = 4 if n <= 16 else 8 if n <= 64 else 64
    return -(-n // step) * step


def _pointwise(*arguments) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise.default(*arguments)


def _pointwise_plus(*arguments) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise.binary(*arguments)


@cache
def _has_onednn(dtype: torch.dtype) -> bool:
    """Whether torch's products with a prepacked weight work here and give the right numbers."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        generator = torch.Generator().manual_seed(0)
        x, weight = (torch.randn(n, 16, generator=generator, dtype=dtype) for n in (4, 32))
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, 4)
        product = _pointwise(x, packed, None, "none", [], "")
        added = _pointwise_plus(x, product, packed, None, "add")
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False
    close = torch.allclose(product.float(), (x.float() @ weight.float().t()), atol=0.1)
    return close and torch.allclose(added.float(), 2 * product.float(), atol=0.1)


class Product:
    """``x W^T + b`` for one W (n_out, n_in), in the layout that this processor likes."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.bias = None if bias is None else bias.detach().float().clone()
        weight = weight.detach().to(dtype).contiguous()
        self.packed = None
        if weight.device.type == "cpu" and _has_onednn(dtype):
            self.packed = torch.ops.mkldnn._reorder_linear_weight(weight, 64)
        else:
            self.weight_t = weight.t()

    def __call__(self, x: Tensor) -> Tensor:
        """(n, n_in) -> (n, n_out) float32."""
        if self.dtype != torch.float32:
            product = self._rounded(x)
            return product if self.bias is None else product.add_(self.bias)
        if self.packed is not None:
            return _pointwise(x, self.packed, self.bias, "none", [], "")
        product = x @ self.weight_t
        return product if self.bias is None else product.add_(self.bias)

    def plus(self, x: Tensor, added: Tensor) -> Tensor:
        """``x W^T + added``, (n, n_out), without the bias."""
        if self.dtype != torch.float32:
            return self._rounded(x).add_(added)
        if self.packed is not None:
            return _pointwise_plus(x, added, self.packed, None, "add")
        return torch.addmm(added, x, self.weight_t)

    def _rounded(self, x: Tensor) -> Tensor:
        x = x.to(self.dtype)
        if self.packed is not None:
            return _pointwise(x, self.packed, None, "none", [], "").float()
        return (x @ self.weight_t).float()
