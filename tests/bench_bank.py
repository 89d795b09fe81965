"""How long does a chosen token, and then a new mix of layers, take over 300,000 rows?

A bank of 300,000 tokens x 3 layers x 512 is written to disk by the same code that writes any bank,
from vectors that are words, senses and contexts drawn at random, and opened memory-mapped. Checked
first, against mixing in float64 and sorting: the 20 nearest of 20 mixes, as exact similarities, in
the whole bank and among the browser's candidates. Then, as medians of ``--repeats`` runs:

- ``select_ms``: a token that is no row of the bank is chosen: its products with all rows, and from
  them the closed form; ``candidates_ms``: the browser's candidates of that token, their number in
  ``n_candidates``; both views that the page offers first, with the bank's mean removed and without;
- ``new_mix_ms``: the exact 20 nearest for another mix, of the token chosen;
- ``rebuild_numpy_ms``, ``rebuild_faiss_ms``: the same by mixing all vectors, normalizing and
  searching anew, in float32, with NumPy, and with a flat index of faiss-cpu where it is installed;
  ``rebuild_ratio``: the faster of the two by ``new_mix_ms``;
- ``open_ms``: opening the bank; ``rss_mb``: the highest resident memory of all of this but the
  rebuilding, less what Python and torch take by themselves. The vectors are counted, though they
  are mapped from a file and the system may drop them.

Run on an idle machine:

    python tests/bench_bank.py [--rows 300000] [--repeats 15] [--threads 1] [--folder DIR]

The last line is one JSON document.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch, as everywhere here
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from elmo.banks.bank import TokenBank  # noqa: E402
from elmo.banks.bank_build import build_files  # noqa: E402
from elmo.banks.bank_files import open_bank  # noqa: E402
from elmo.banks.candidates import find_candidates  # noqa: E402
from elmo.banks.sources import Source  # noqa: E402
from elmo.banks.tagged import TaggedSentence  # noqa: E402
from elmo.results import Encoding  # noqa: E402

N_LAYERS, WIDTH, K = 3, 512, 20
N_WORDS, SENTENCE = 20_000, 10


class DrawnVectors:
    """Stands in for an encoder: layer 0 by word; above, word, sense and context, all of them with
    a common direction."""

    kind = name = "drawn"
    n_layers, d_model, max_tokens, state, precision = N_LAYERS, WIDTH, None, "zero", "float32"
    config = SimpleNamespace(to_dict=dict)
    model = SimpleNamespace(state_dict=dict)

    def __init__(self) -> None:
        self.rng = np.random.default_rng(1)
        self.words = self._draw(N_WORDS)
        self.senses = self._draw(3 * N_WORDS)
        self.common = 0.7 * self._draw(N_LAYERS)

    def _draw(self, n: int) -> np.ndarray:
        return self.rng.standard_normal((n, WIDTH), dtype=np.float32)

    def encode(self, sentences) -> list[Encoding]:
        return [Encoding(tuple(s), self.hidden([int(t[1:]) for t in s])) for s in sentences]

    def hidden(self, words: list[int]) -> np.ndarray:
        senses = [3 * w + int(self.rng.integers(3)) for w in words]
        layers = np.stack([self.words[words]] * N_LAYERS)
        for k in range(1, N_LAYERS):
            layers[k] = layers[k] / (k + 1) + self.senses[senses] + 1.5 * self._draw(len(words))
        return layers + self.common[:, None]


def make_bank(folder: Path, n_rows: int) -> None:
    rng = np.random.default_rng(2)

    def read():
        for _ in range(n_rows // SENTENCE):
            words = np.minimum(rng.zipf(1.3, size=SENTENCE) - 1, N_WORDS - 1)
            yield TaggedSentence(tuple(f"w{w}" for w in words))

    build_files(folder, Source("drawn", f"{n_rows:032d}", read), DrawnVectors())


def mixed(bank: TokenBank, s: np.ndarray, centered: bool) -> np.ndarray:
    """(N, D) float32 mix of every row, the slow way."""
    found = np.empty((len(bank), WIDTH), dtype=np.float32)
    mean = np.tensordot(s, bank.means.raw if centered else 0 * bank.means.raw, axes=1)
    for start in range(0, len(bank), 16_384):
        rows = np.asarray(bank.vectors[start : start + 16_384], dtype=np.float32)
        found[start : start + len(rows)] = np.tensordot(rows, s.astype(np.float32), axes=(1, 0))
    return found - mean.astype(np.float32)


def search_numpy(bank: TokenBank, vector: np.ndarray, s: np.ndarray, centered: bool) -> np.ndarray:
    """Scores of the K nearest, everything anew."""
    rows = mixed(bank, s, centered)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    mean = bank.means.raw if centered else 0
    own = np.tensordot(s, vector - mean, axes=1).astype(np.float32)
    cosine = rows @ (own / np.linalg.norm(own))
    best = np.argpartition(-cosine, K)[:K]
    return np.sort(cosine[best])[::-1]


def search_faiss(bank: TokenBank, vector: np.ndarray, s: np.ndarray, centered: bool) -> np.ndarray:
    import faiss

    rows = mixed(bank, s, centered)
    faiss.normalize_L2(rows)
    index = faiss.IndexFlatIP(WIDTH)
    index.add(rows)
    mean = bank.means.raw if centered else 0
    own = np.tensordot(s, vector - mean, axes=1).astype(np.float32)[None]
    faiss.normalize_L2(own)
    return index.search(own, K)[0][0]


def exact(bank: TokenBank, vector: np.ndarray, s: np.ndarray, centered: bool) -> np.ndarray:
    """Scores of the K nearest in float64."""
    scores = []
    mean = bank.means.raw.astype(np.float64) if centered else 0
    own = np.tensordot(s, vector - mean, axes=1)
    for start in range(0, len(bank), 16_384):
        rows = np.asarray(bank.vectors[start : start + 16_384], dtype=np.float64) - mean
        rows = np.tensordot(rows, s, axes=(1, 0))
        scores.append(rows @ own / np.linalg.norm(rows, axis=1))
    return np.sort(np.concatenate(scores) / np.linalg.norm(own))[::-1][:K]


def timed(call: Callable[[], object], repeats: int) -> dict[str, float]:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return {"median": np.median(times), "low": min(times), "high": max(times)}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1, help="of torch; see neighbors.in_parts")
    parser.add_argument("--folder", type=Path, help="keep the bank here between runs")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.make:
        make_bank(options.make, options.rows)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)) / f"drawn-{options.rows}"
        # in a process of its own, so that drawing the vectors does not count as memory
        command = [sys.executable, __file__, "--rows", str(options.rows), "--make", str(folder)]
        subprocess.run(command, check=True)
        measure(folder, options)


def measure(folder: Path, options: argparse.Namespace) -> None:
    torch.mm(torch.ones(64, 64), torch.ones(64, 64))  # what torch sets up once
    before = peak_mb()
    start = time.perf_counter()
    bank = open_bank(folder)
    results: dict[str, object] = {"open_ms": 1000 * (time.perf_counter() - start)}
    spread: dict[str, dict[str, float]] = {}
    rng = np.random.default_rng(3)
    row = int(rng.integers(len(bank)))
    vector = np.asarray(bank.vectors[row], dtype=np.float32)
    vector = vector + 0.3 * rng.standard_normal(vector.shape, dtype=np.float32)

    def record(name: str, call: Callable[[], object], repeats: int) -> None:
        spread[name] = timed(call, repeats)
        low, middle, high = (spread[name][key] for key in ("low", "median", "high"))
        results[name] = middle
        print(f"{name:<22}{middle:10.2f}   ({low:.2f} to {high:.2f})", flush=True)

    mixes = rng.dirichlet(np.ones(N_LAYERS), 64)
    for centered in (True, False):
        view = "" if centered else "_with_mean"
        record(f"select_ms{view}", lambda c=centered: bank.compare(vector, centered=c), 15)
        comparison = bank.compare(vector, centered=centered)
        record(f"candidates_ms{view}", lambda c=comparison: find_candidates(c, K), 9)
        candidates = find_candidates(comparison, K)
        results[f"n_candidates{view}"] = len(candidates)
        turn = iter(range(10_000))
        record(
            f"new_mix_ms{view}",
            lambda c=comparison, t=turn: c.nearest(mixes[next(t) % 64], K),
            10 * options.repeats,
        )
    results["rss_mb"] = peak_mb() - before
    for centered in (True, False):
        comparison = bank.compare(vector, centered=centered)
        candidates = find_candidates(comparison, K)
        for s in mixes[:10]:
            expected = exact(bank, vector, s, centered)
            for found in (comparison, candidates.comparison):
                assert np.abs(found.nearest(s, K).scores - expected).max() < 2e-5
    s = mixes[0]
    rebuilds = {"rebuild_numpy_ms": search_numpy}
    try:
        import faiss

        faiss.omp_set_num_threads(os.cpu_count())
        rebuilds["rebuild_faiss_ms"] = search_faiss
    except ImportError:
        print("faiss-cpu is not installed: compared with NumPy alone")
    for name, search in rebuilds.items():
        assert np.abs(search(bank, vector, s, True) - exact(bank, vector, s, True)).max() < 1e-4
        record(name, lambda f=search: f(bank, vector, s, True), 3)
    fastest = min(results[name] for name in rebuilds)
    results["rebuild_ratio"] = fastest / results["new_mix_ms"]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    about = {
        "rows": len(bank),
        "threads": options.threads,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "commit": commit.stdout.strip(),
        **{k: round(v, 2) if isinstance(v, float) else v for k, v in results.items()},
        "spread": {k: {n: round(x, 2) for n, x in v.items()} for k, v in spread.items()},
    }
    print(json.dumps(about))


if __name__ == "__main__":
    main()
