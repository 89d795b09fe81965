"""How much faster does the biLM train than written plainly, and how near is it to the limit?

Four measurements in one run, on random text with the word frequencies of English:

- the processor's own rate of bfloat16 matrix products (2,048 x 2,048, all threads);
- the recurrent part alone (both layers, both directions, forward and backward pass);
- a whole training step of the shipped biLM, as ``python -m elmo train`` takes it;
- the plain way: float32, ``nn.LSTM`` with ``proj_size``, every token's characters encoded, full
  softmax, AdamW.

A token is counted once; both directions are trained. Results are checked before anything is
timed. With ``--memory-steps 2000`` the resident memory is compared between two points of a long
run. The last line is one JSON document.

    python tests/bench_train.py
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo.config import shipped_config
from elmo.language_model import build
from elmo.training import kernels
from elmo.training.batches import Batcher
from elmo.training.corpus import build_vocabulary, load
from elmo.training.objectives import both_ways, next_words
from elmo.training.trainer import TrainConfig, Trainer

N_TOKENS, N_ROWS, PLAIN_ROWS = 20, 256, 64


def english_like(n_sentences: int, n_words: int = 80_000) -> list[list[str]]:
    """Sentences of 20 made-up words whose frequencies fall as 1 / rank."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    words = ["".join(rng.choice(letters, rng.integers(2, 11))) + str(i % 7) for i in range(n_words)]
    p = 1 / (np.arange(n_words) + 3)
    chosen = rng.choice(n_words, (n_sentences, N_TOKENS), p=p / p.sum())
    return [[words[i] for i in row] for row in chosen]


def seconds(function: Callable[[], object], repeats: int, warm_up: int = 2) -> tuple[float, float]:
    """Median and spread (interquartile range) of a call."""
    times = []
    for _ in range(warm_up + repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    low, median, high = statistics.quantiles(times[warm_up:], n=4)
    return median, high - low


def product_rate(dtype: torch.dtype) -> float:
    """Matrix products, floating-point operations a second."""
    n = 2048
    a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
    return 2 * n**3 / seconds(lambda: a @ b, 10, 3)[0]


class PlainBiLM(nn.Module):
    """The same biLM as one writes it down first (``nn.LSTM`` cannot clip; no skip connection)."""

    def __init__(self, config) -> None:
        super().__init__()
        model = build(config, 1)
        self.characters, self.head = model.token_encoder, model.head
        stack = config.stack
        self.lstms = nn.ModuleList(
            nn.LSTM(stack.d_input, stack.d_cell, stack.n_layers, proj_size=stack.d_projection)
            for _ in range(2)
        )

    def loss(self, char_ids: Tensor, words: Tensor) -> Tensor:
        """char_ids (B, T, C), words (B, T), boundaries included."""
        vectors = self.characters(char_ids.flatten(0, 1)).unflatten(0, words.shape)
        inputs = vectors[:, :-1].transpose(0, 1), vectors[:, 1:].flip(1).transpose(0, 1)
        total = torch.zeros(())
        for lstm, x, target in zip(self.lstms, inputs, next_words(words), strict=True):
            logits = self.head(lstm(x)[0])
            total = total + F.cross_entropy(logits.flatten(0, 1), target.flatten())
        return total / 2


def check_recurrent_part(inputs: list[Tensor], upstream: Tensor) -> None:
    """bfloat16 kernels against float32 autograd on a slice of the batch."""
    x, weight, bias, projection = inputs
    small = [x[:, :, :16].contiguous(), weight, bias, projection]
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        leaves = [t.detach().clone().requires_grad_() for t in small]
        out = kernels.lstm_layer(leaves[0].to(dtype), *leaves[1:], 3.0, 3.0, True)
        out.backward(upstream[:, :, :16].to(dtype))
        results.append([out.detach().float(), *(leaf.grad for leaf in leaves)])
    for exact, ours in zip(*results, strict=True):
        error = float((exact - ours).norm() / exact.norm())
        assert error < 0.02, f"the kernel differs from plain float32 by {error:.2%}"


def recurrent_part(repeats: int) -> tuple[float, float, int]:
    """Seconds and spread of both layers, forward and backward pass, and their operations."""
    stack = shipped_config("bilm").stack
    p, c, steps = stack.d_projection, stack.d_cell, N_TOKENS + 1
    torch.manual_seed(0)
    x = torch.randn(2, steps, N_ROWS, p)
    parameters = [
        torch.randn(2, 4 * c, 2 * p) * 0.03,
        torch.zeros(2, 4 * c),
        torch.randn(2, p, c) * 0.03,
    ]
    upstream = torch.randn(x.shape).bfloat16() * 1e-3
    check_recurrent_part([x.bfloat16().float(), *parameters], upstream)
    layers = [[t.clone().requires_grad_() for t in parameters] for _ in range(stack.n_layers)]
    x = x.bfloat16().requires_grad_()

    def both_passes() -> None:
        top = x
        for k, layer in enumerate(layers):
            top = kernels.lstm_layer(top, *layer, 3.0, 3.0, k > 0)
        top.backward(upstream)

    n_operations = stack.n_layers * 2 * steps * N_ROWS * 6 * (4 * c * 2 * p + p * c)
    return *seconds(both_passes, repeats), n_operations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--memory-steps", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    kernels.keep_freed_memory()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    print(f"{_processor()}, {args.threads} threads, torch {torch.__version__}, commit {commit}")
    print("kernels:", "compiled" if kernels.compiled() else "plain torch (no C++ compiler)")

    bf16, fp32 = product_rate(torch.bfloat16), product_rate(torch.float32)
    print(f"matrix products: bfloat16 {bf16 / 1e9:.0f}, float32 {fp32 / 1e9:.0f} GFLOP/s")

    part, spread, n_operations = recurrent_part(args.repeats)
    share = n_operations / part / bf16
    print(
        f"recurrent part: {N_ROWS * N_TOKENS / part:.0f} tokens/s ({part * 1e3:.0f} ms,"
        f" spread {spread * 1e3:.0f}), {n_operations / part / 1e9:.0f} GFLOP/s,"
        f" {share:.0%} of the bfloat16 rate"
    )

    corpus = load(english_like(40 * N_ROWS))
    vocabulary = build_vocabulary(corpus, 50_000)
    config = shipped_config("bilm", len(vocabulary))
    batcher = Batcher(corpus, vocabulary, config.char.max_characters)
    trainer, step = Trainer(build(config, 1), TrainConfig()), 0

    def one_step() -> None:
        nonlocal step
        rows = np.arange(N_ROWS) + step % 40 * N_ROWS
        result, _ = trainer.step(batcher.batch(rows, 0, 1, "cpu"), step, 0.1)
        assert result.loss.isfinite().all()
        step += 1

    whole, spread = seconds(one_step, args.repeats)
    ours = N_ROWS * N_TOKENS / whole
    print(f"whole step: {ours:.0f} tokens/s ({whole * 1e3:.0f} ms, spread {spread * 1e3:.0f})")

    plain = PlainBiLM(config)
    optimizer = torch.optim.AdamW(plain.parameters(), 3e-3)
    framed = corpus.framed(np.arange(PLAIN_ROWS))
    char_ids = torch.from_numpy(batcher.characters[framed]).long()
    words = torch.from_numpy(batcher.words[framed])
    assert both_ways(words).shape == next_words(words).shape == (2, N_TOKENS + 1, PLAIN_ROWS)

    def plain_step() -> None:
        optimizer.zero_grad()
        plain.loss(char_ids, words).backward()
        optimizer.step()

    slow, spread = seconds(plain_step, max(3, args.repeats // 4), 1)
    theirs = PLAIN_ROWS * N_TOKENS / slow
    print(f"plain way: {theirs:.0f} tokens/s ({slow * 1e3:.0f} ms, spread {spread * 1e3:.0f})")

    results = {
        "tokens_per_s": round(ours),
        "speedup": round(ours / theirs, 2),
        "ceiling_share": round(share, 3),
        "bf16_gflops": round(bf16 / 1e9),
        "plain_tokens_per_s": round(theirs),
        "recurrent_tokens_per_s": round(N_ROWS * N_TOKENS / part),
    }
    if args.memory_steps:
        marks = []
        for k in range(args.memory_steps):
            one_step()
            if k + 1 in (args.memory_steps // 5, args.memory_steps):
                marks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        print(f"peak memory after a fifth of {args.memory_steps} steps and at the end: {marks} MB")
        results["memory_mb"] = [round(mark) for mark in marks]
    print(json.dumps(results))


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor()
    for line in path.read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
