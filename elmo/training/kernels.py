"""The three inner loops of training, compiled where a C++ compiler is, in plain torch elsewhere.

``lstm_layer``, ``char_maxima`` and ``sampled_softmax`` each take the compiled way for bfloat16
tensors on a CPU when ``compiled()`` found one, else the plain way beside it, which computes the
same thing in any dtype on any device (the tests compare both with plain float64 autograd).
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from elmo.bilm import FORGET_BIAS
from elmo.text import N_CHARACTERS

log = logging.getLogger(__name__)
NO_CLIP = 1e30
ROWS_PER_BLOCK = 256  # rows of logits at a time, so that they stay in cache
PADDING = N_CHARACTERS - 1


@lru_cache(maxsize=1)
def compiled() -> ModuleType | None:
    """The C++ module, built on first use (half a minute) and cached by torch; None without a
    compiler."""
    from torch.utils.cpp_extension import load

    source = Path(__file__).with_name("kernels.cpp")
    cpu = platform.machine()
    if Path("/proc/cpuinfo").exists():  # -march=native: a build fits one kind of processor
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu += "".join(line for line in lines if line.startswith(("model name", "flags")))
    # a name of its own for every source and place: two checkouts never rebuild each other's
    key = f"{torch.__version__}{cpu}{source}{source.read_text('utf-8')}"
    tag = hashlib.blake2b(key.encode(), digest_size=4).hexdigest()
    try:
        return load(
            f"both_ways_kernels_{tag}",
            [str(source)],
            extra_cflags=["-O3", "-march=native", "-ffast-math", "-fopenmp"],
        )
    except Exception as error:  # no compiler, no ninja, no headers: many types, one answer
        log.warning("no compiled kernels (%s): training runs in plain torch, slower", error)
        return None


def keep_freed_memory() -> None:
    """Tells glibc to reuse freed blocks instead of returning them to the system, and to take
    large ones in pages of 2 MB.

    A training step allocates some hundred megabytes; fresh small pages for them on every step
    cost a tenth of its time. Blocks above glibc's limit of 32 MB still come and go, which keeps
    the heap from falling to pieces. Call it before the first tensor; no effect elsewhere.
    """
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # read by torch at its first allocation
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    m_trim_threshold, m_mmap_threshold, m_arena_max = -1, -3, -8
    mallopt(m_mmap_threshold, 32 * 2**20)
    mallopt(m_trim_threshold, 2**31 - 1)
    mallopt(m_arena_max, 1)


def return_freed_memory() -> None:
    """Gives pages that are free by now back to the system: called now and then, it bounds what
    batches of ever other shapes leave between them in the heap."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return


def _use_compiled(*tensors: Tensor) -> bool:
    fits = all(t.device.type == "cpu" for t in tensors) and tensors[0].dtype == torch.bfloat16
    return fits and compiled() is not None


# ------------------------------------------------------------------------------ LSTM


class _LSTMLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, projection, cell_clip, projection_clip, skip):
        weight, projection = weight.bfloat16(), projection.bfloat16()
        ctx.options = (cell_clip, projection_clip, skip)
        out, xh, gates, cell, m = compiled().lstm_forward(x, weight, bias, projection, *ctx.options)
        ctx.save_for_backward(xh, gates, cell, m, weight, projection)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        xh, gates, cell, m, weight, projection = ctx.saved_tensors
        grads = compiled().lstm_backward(
            dout.contiguous(), xh, gates, cell, m, weight, projection, *ctx.options
        )
        return *grads, None, None, None


def lstm_layer(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    projection: Tensor,
    cell_clip: float | None,
    projection_clip: float | None,
    skip: bool,
) -> Tensor:
    """One projected LSTM layer of all directions at once, from the zero state.

    x: (directions, T, B, P), each direction in its own order of reading; weight (directions,
    4 C, 2 P), bias (directions, 4 C), projection (directions, P, C) as in
    ``elmo.bilm.ProjectedLSTM``. Returns (directions, T, B, P), the input added if ``skip``.
    The backward pass overwrites what the forward pass kept: it can run once.
    """
    cell_clip = NO_CLIP if cell_clip is None else cell_clip
    projection_clip = NO_CLIP if projection_clip is None else projection_clip
    if _use_compiled(x, weight):
        return _LSTMLayer.apply(x, weight, bias, projection, cell_clip, projection_clip, skip)
    return lstm_layer_plain(x, weight, bias, projection, cell_clip, projection_clip, skip)


def lstm_layer_plain(x, weight, bias, projection, cell_clip, projection_clip, skip) -> Tensor:
    """``lstm_layer`` step by step; pointwise parts in float32 where x is in bfloat16."""
    exact = torch.promote_types(x.dtype, torch.float32)
    weight, projection = weight.to(x.dtype), projection.to(x.dtype)
    h = x.new_zeros(x[:, 0].shape)
    c = x.new_zeros(*h.shape[:2], projection.shape[2], dtype=exact)
    bias = bias.to(exact)[:, None]
    outputs = []
    for x_t in x.unbind(1):
        z = torch.cat([x_t, h], dim=-1) @ weight.mT
        i, j, f, o = (z.to(exact) + bias).chunk(4, dim=-1)
        c = torch.sigmoid(f + FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
        c = c.clamp(-cell_clip, cell_clip)
        m = (torch.sigmoid(o) * torch.tanh(c)).to(x.dtype)
        h = (m @ projection.mT).clamp(-projection_clip, projection_clip)
        outputs.append(h + x_t if skip else h)
    return torch.stack(outputs, dim=1)


# ------------------------------------------------------------------------------ characters


class _CharMaxima(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, char_ids, filters):
        widths, counts = [w for w, _ in filters], [n for _, n in filters]
        ids = char_ids.to(torch.int16).contiguous()
        used = (ids != PADDING).sum(1)
        out, where = compiled().char_forward(table, ids, used, widths, counts)
        ctx.save_for_backward(ids, where)
        ctx.filters = (widths, counts)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        ids, where = ctx.saved_tensors
        args = (dout.contiguous(), ids, where, N_CHARACTERS, *ctx.filters)
        return compiled().char_backward(*args), None, None


def char_maxima(embedding: Tensor, convolutions: list, char_ids: Tensor) -> Tensor:
    """Maxima of all filters over each word's windows: ids (N, C) -> (N, F), before activation.

    Compiled, a convolution is a sum of table rows: embedding and filter are both linear, so
    what a character at an offset adds to a window is computed once per batch, not per token.
    """
    if char_ids.device.type == "cpu" and embedding.dtype == torch.float32 and compiled():
        filters = [(conv.weight.shape[2], conv.weight.shape[0]) for conv in convolutions]
        columns = [conv.weight.permute(1, 2, 0).flatten(1) for conv in convolutions]
        table = embedding @ torch.cat(columns, dim=1)  # (characters, width x count of each)
        bias = torch.cat([conv.bias for conv in convolutions])
        return _CharMaxima.apply(table, char_ids, filters) + bias
    return char_maxima_plain(embedding, convolutions, char_ids)


def char_maxima_plain(embedding: Tensor, convolutions: list, char_ids: Tensor) -> Tensor:
    """``char_maxima`` by convolution. Beyond the longest word plus one window of padding all
    windows are alike, so positions there are not read."""
    widest = max(conv.weight.shape[2] for conv in convolutions)
    longest = int((char_ids != PADDING).sum(1).max())
    x = embedding[char_ids[:, : longest + widest].long()].mT
    return torch.cat([F.conv1d(x, c.weight, c.bias).amax(2) for c in convolutions], dim=1)


# ------------------------------------------------------------------------------ softmax


def sampled_softmax(
    hidden: Tensor,
    target: Tensor,
    target_rows: Tensor,
    target_bias: Tensor,
    hit: Tensor,
    candidate_rows: Tensor,
    candidate_bias: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Cross-entropy of each row's target against shared candidates, and its gradients.

    hidden: (directions, N, P) bfloat16; target: (directions, N) index into the batch's U
    distinct targets, whose softmax rows are target_rows (U, P) and whose biases, corrected by
    -log of the expected count, are target_bias (U,). candidate_rows (K, P) and candidate_bias
    (K,) likewise. hit (U,): the target's place among the candidates, where it is not counted
    as its own negative, or -1.

    Returns the loss summed over rows (directions,), and of scale * loss the gradients for
    hidden, target_rows, target_bias, candidate_rows, candidate_bias.
    """
    args = (hidden, target, target_rows, target_bias, hit, candidate_rows, candidate_bias, scale)
    if _use_compiled(hidden):
        return tuple(compiled().sampled_softmax(*args, ROWS_PER_BLOCK))
    return sampled_softmax_plain(*args)


def sampled_softmax_plain(
    hidden, target, target_rows, target_bias, hit, candidate_rows, candidate_bias, scale
):
    """``sampled_softmax`` by autograd, a block of rows at a time."""
    leaves = [hidden, target_rows, target_bias, candidate_rows, candidate_bias]
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    h, w_t, b_t, w_c, b_c = leaves
    exact = torch.promote_types(hidden.dtype, torch.float32)
    losses = []
    for d in range(len(hidden)):
        loss = torch.zeros((), dtype=torch.float64, device=hidden.device)
        for start in range(0, hidden.shape[1], 4096):
            rows = slice(start, start + 4096)
            t = target[d, rows]
            with torch.enable_grad():
                truth = (h[d, rows].to(exact) * w_t[t].to(exact)).sum(1) + b_t[t]
                logits = (h[d, rows] @ w_c.mT).to(exact) + b_c
                own = hit[t]
                row = torch.arange(len(t), device=t.device)
                mask = torch.zeros_like(logits)
                mask[row[own >= 0], own[own >= 0]] = -NO_CLIP
                everything = torch.cat([logits + mask, truth[:, None]], dim=1)
                part = (torch.logsumexp(everything, dim=1) - truth).sum()
            (part * scale).backward()
            loss += part.detach()
        losses.append(loss)
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]  # no rows
    return torch.stack(losses), gradients[0], *(g.to(exact) for g in gradients[1:])
