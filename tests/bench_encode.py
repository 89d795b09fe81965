"""How fast are the original models here, and how near to what the processor can do?

Random weights of the official sizes are written in the original format, loaded like any model,
and checked against the plain module with gradients before anything is timed. Then, in float32:

- throughput: 32 sentences of 25 English tokens (800 tokens, 490 types), no token known before,
  one thread, tokens per second of processor time;
- latency: one sentence of 10 tokens, none known before, two threads, wall-clock;
- equality: the largest difference between a sentence alone and in company, and between bfloat16
  and float32 products;
- memory (``--memory``): resident megabytes after 12,000 sentences, one of them of 5,000 tokens, in
  one call with all results kept, and their growth over 1,000 further calls;
- the LSTM part of ``original`` against the rate of a 2,048 x 2,048 product by ``torch.mm``, and
  against the same product with a prepacked weight, the fastest that torch has on this machine.

Medians of ``--repeats`` runs, with the range. Run on an idle machine:

    python tests/bench_encode.py [--repeats 9] [--sizes small medium original] [--bf16] [--memory]

The last line is one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch, as everywhere here
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from elmo.config import BiLMConfig, CharConfig, ModelConfig  # noqa: E402
from elmo.encoders import Encoder, load_elmo  # noqa: E402
from elmo.language_model import build  # noqa: E402
from elmo.original.hdf5 import write_model  # noqa: E402
from elmo.products import Product  # noqa: E402
from elmo.text import BOS, EOS  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
SIZES = {"small": (128, 1024, 1), "medium": (256, 2048, 1), "original": (512, 4096, 2)}
N_SENTENCES, N_TOKENS, N_TYPES = 32, 25, 490


def official_config(size: str) -> ModelConfig:
    d_projection, d_cell, n_highway = SIZES[size]
    return ModelConfig(
        "bilm",
        CharConfig(d_projection, filters=FILTERS, n_highway=n_highway),
        BiLMConfig(d_projection, d_cell),
    )


def english() -> list[list[str]]:
    """Tokens of the shipped examples in their order, repeats skipped once there are enough."""
    examples = json.loads((ROOT / "assets" / "examples.json").read_text(encoding="utf-8"))
    lines = [line for example in examples["examples"] for line in example["sentences"]]
    seen: set[str] = set()
    chosen: list[str] = []
    for token in re.findall(r"[\w'-]+|[^\w\s]", " ".join(lines)):
        n_repeats = len(chosen) - len(seen)
        if token in seen and n_repeats < N_SENTENCES * N_TOKENS - N_TYPES:
            chosen.append(token)
        elif token not in seen and len(seen) < N_TYPES:
            seen.add(token)
            chosen.append(token)
    assert len(chosen) == N_SENTENCES * N_TOKENS and len(set(chosen)) == N_TYPES
    return [chosen[i : i + N_TOKENS] for i in range(0, len(chosen), N_TOKENS)]


def median(run: Callable[[], object], repeats: int, clock: Callable[[], float]) -> np.ndarray:
    """Smallest, median and largest seconds, after one run to warm up."""
    run()
    seconds = []
    for _ in range(repeats):
        start = clock()
        run()
        seconds.append(clock() - start)
    return np.percentile(seconds, [0, 50, 100])


def product_rates(repeats: int) -> tuple[float, float]:
    """GFLOP/s of a 2,048 x 2,048 product on one thread: ``torch.mm``, and prepacked."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    packed = Product(b, None, torch.float32)
    with torch.inference_mode():
        seconds = [
            median(run, repeats, time.process_time)[1] for run in (lambda: a @ b, lambda: packed(a))
        ]
    return tuple(2 * 2048**3 / 1e9 / s for s in seconds)


def check(encoder: Encoder, sentences: list[list[str]]) -> float:
    """The fast path against the module with gradients, in ragged company; then each sentence
    alone. Returns the largest difference of the latter."""
    ragged = [sentence[: i % N_TOKENS + 1] for i, sentence in enumerate(sentences[:6])]
    x, lengths = encoder.embed([[BOS, *s, EOS] for s in ragged])
    plain = encoder.model.stack(x, lengths).detach()
    difference = 0.0
    for row, encoding in enumerate(encoder.encode(ragged)):
        expected = plain[:, row, 1 : len(ragged[row]) + 1].numpy()
        np.testing.assert_allclose(encoding.hidden, expected, atol=1e-5, rtol=1e-5)
        encoder.forget()
        alone = encoder.encode([ragged[row]])[0].hidden
        difference = max(difference, float(np.abs(alone - encoding.hidden).max()))
    assert difference <= 1e-6, difference
    return difference


def time_size(
    size: str, folder: Path, sentences: list[list[str]], repeats: int, precision: str
) -> dict[str, float]:
    encoder = load_elmo(folder, precision=precision)
    n_tokens = N_SENTENCES * N_TOKENS
    result = {}
    if precision == "float32":
        result["alone_difference"] = check(encoder, sentences)
    else:
        exact = load_elmo(folder).encode(sentences)
        rough = encoder.encode(sentences)
        pairs = list(zip(rough, exact, strict=True))
        result["max_error"] = max(float(np.abs(a.hidden - b.hidden).max()) for a, b in pairs)
        result["relative_error"] = float(
            np.sqrt(sum(np.square(a.hidden - b.hidden).sum() for a, b in pairs))
            / np.sqrt(sum(np.square(b.hidden).sum() for _, b in pairs))
        )
    print(f"{size} {precision}: {result}")

    def cold(batch: list[list[str]]) -> None:
        encoder.forget()
        encoder.encode(batch)

    torch.set_num_threads(1)
    for name, run in (
        ("tokens_per_cpu_s", lambda: cold(sentences)),
        ("known_tokens_per_cpu_s", lambda: encoder.encode(sentences)),
    ):
        seconds = median(run, repeats, time.process_time)
        result[name] = n_tokens / seconds[1]
        low, high = n_tokens / seconds[2], n_tokens / seconds[0]
        print(f"{size} {precision} {name}: {result[name]:.0f} ({low:.0f} to {high:.0f})")

    x, lengths = encoder.embed([[BOS, *s, EOS] for s in sentences])
    with torch.inference_mode():
        seconds = median(lambda: encoder.layers(x, lengths), repeats, time.process_time)[1]
    d_projection, d_cell, _ = SIZES[size]
    n_flop = int(lengths.sum()) * 4 * 2 * (2 * d_projection * 4 * d_cell + d_cell * d_projection)
    result["lstm_gflops"] = n_flop / 1e9 / seconds

    for n_threads in (1, 2):
        torch.set_num_threads(n_threads)
        ms = 1e3 * median(lambda: cold([sentences[0][:10]]), 3 * repeats, time.perf_counter)
        name = "latency_ms" if n_threads == 2 else "latency_1_thread_ms"
        result[name] = ms[1]
        print(f"{size} {precision} {name}: {ms[1]:.1f} ({ms[0]:.1f} to {ms[2]:.1f})")
    torch.set_num_threads(1)
    return result


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def memory(folder: Path, sentences: list[list[str]]) -> dict[str, float]:
    """Megabytes of this process, torch and the model included. Linux only."""
    encoder = load_elmo(folder)
    rng = np.random.default_rng(0)
    words = [token for sentence in sentences for token in sentence]

    def sentence(n: int) -> list[str]:
        known, new = rng.choice(words, n), rng.integers(0, 40_000, n)
        return [f"{w}{i}" if i < 2_000 else str(w) for w, i in zip(known, new, strict=True)]

    many = [sentence(n) for n in rng.integers(1, 41, 12_000)]
    many[6_000] = sentence(5_000)
    results = encoder.encode(many)
    report = {"rss_mb": resident_mb(), "results_mb": sum(e.hidden.nbytes for e in results) / 1e6}
    del results
    report["rss_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    before = resident_mb()
    for _ in range(1_000):
        encoder.encode([sentence(n) for n in rng.integers(0, 41, rng.integers(1, 9))])
    report["rss_growth_mb"] = resident_mb() - before
    print(f"memory: {report}")
    return report


def commit() -> str:
    run = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return run.stdout.strip() or "unknown"


def processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "original"])
    parser.add_argument("--bf16", action="store_true", help="also with products in bfloat16")
    parser.add_argument("--memory", action="store_true", help="also 12,000 sentences at once")
    args = parser.parse_args()
    torch.set_num_threads(1)
    sentences = english()
    rate, packed_rate = product_rates(args.repeats)
    print(f"{processor()}, torch {torch.__version__}, commit {commit()}")
    print(f"float32 product, one thread: {rate:.0f} GFLOP/s, prepacked {packed_rate:.0f} GFLOP/s")
    report = {"fp32_gflops_1t": rate, "fp32_packed_gflops_1t": packed_rate}
    for size in args.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_model(folder, build(official_config(size), seed=0))
            if size == "small" and args.memory:
                figures = memory(Path(folder), sentences)
                report |= {f"small_{name}": value for name, value in figures.items()}
            for precision in ["float32", *(["bfloat16"] if args.bf16 else [])]:
                prefix = size if precision == "float32" else f"{size}_bf16"
                figures = time_size(size, Path(folder), sentences, args.repeats, precision)
                report |= {f"{prefix}_{name}": value for name, value in figures.items()}
    lstm = report.get("original_lstm_gflops")
    if lstm:
        report["lstm_ceiling_share"] = lstm / rate
        report["lstm_packed_ceiling_share"] = lstm / packed_rate
        print(
            f"LSTM part of original: {lstm:.0f} GFLOP/s, {lstm / rate:.0%} of the product's rate,"
            f" {lstm / packed_rate:.0%} of the prepacked one's"
        )
    report |= {"processor": processor(), "torch": torch.__version__, "commit": commit()}
    print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in report.items()}))


if __name__ == "__main__":
    main()
