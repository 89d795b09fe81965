"""How long does the both-ways lab keep a visitor waiting?

Times, on the shipped architectures (trained weights where ``assets/models`` has them, random ones
otherwise; the time is the same):

- the influence grid by replacement for 25 and 60 tokens, all three encoders, against the plain
  way of one ``encode`` call an edit;
- the grid by gradient, the interaction, and the gap guesses of all predictors.

Run: python tests/bench_influence.py [--threads N] [--repeats R]. The last line is one JSON
document; the bars are 2 s and 10 s for the grids and 0.3 s for the guesses.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before torch, as everywhere here
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from elmo.both_ways.arithmetic import Edit  # noqa: E402
from elmo.both_ways.cloze import fill_gap  # noqa: E402
from elmo.both_ways.influence import (  # noqa: E402
    gradient_grid,
    influence_grids,
    random_replacements,
    replacement_grid,
)
from elmo.both_ways.interaction import interaction  # noqa: E402
from elmo.checkpoint import save_model  # noqa: E402
from elmo.config import KINDS, shipped_config  # noqa: E402
from elmo.encoders import Encoder, load_encoder  # noqa: E402
from elmo.language_model import build  # noqa: E402
from elmo.text import BOS, EOS, MASK, UNK  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PHRASE = "the old harbor town had , as its mayor liked to say , more boats than beds"


def encoders(scratch: Path) -> tuple[list[Encoder], str]:
    """Shipped models, or stand-ins of their size; and which of the two."""
    shipped = [ROOT / "assets" / "models" / kind for kind in KINDS]
    if all((folder / "weights.safetensors").is_file() for folder in shipped):
        return [load_encoder(folder) for folder in shipped], "trained"
    vocabulary = [BOS, EOS, UNK, *(f"word{i}" for i in range(50_000 - 3))]
    unigram = np.full(len(vocabulary), -np.log(len(vocabulary)))
    for kind in KINDS:
        model = build(shipped_config(kind), seed=0)
        save_model(scratch / kind, model, vocabulary, {"name": kind}, unigram)
    return [load_encoder(scratch / kind) for kind in KINDS], "random"


def sentence(n_tokens: int) -> list[str]:
    return (PHRASE.split() * n_tokens)[:n_tokens]


def plain_grid(encoder: Encoder, tokens: list[str]) -> np.ndarray:
    """(L, T, T): one ``encode`` call an edit."""
    base = encoder.encode([tokens])[0].hidden
    rows = []
    for j in range(len(tokens)):
        edited = encoder.encode([[*tokens[:j], MASK, *tokens[j + 1 :]]])[0].hidden
        rows.append(np.linalg.norm(edited - base, axis=-1) / np.linalg.norm(base, axis=-1))
    return np.stack(rows, axis=1)


def timed(action, repeats: int) -> dict[str, float]:
    """Median, fastest and slowest of ``repeats`` runs in seconds, after one to warm up."""
    action()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return {
        "median_s": round(float(np.median(seconds)), 3),
        "min_s": round(min(seconds), 3),
        "max_s": round(max(seconds), 3),
    }


def check(models: list[Encoder]) -> None:
    """The grid is that of the plain way, and its zeros are exact."""
    tokens = sentence(12)
    for encoder in models:
        grid = replacement_grid(encoder, tokens)
        found = np.stack([grid.layer(k) for k in range(encoder.n_layers)])
        np.testing.assert_allclose(found, plain_grid(encoder, tokens), atol=1e-4)
        assert grid.n_broken == 0, f"{grid.n_broken} zeros are not exact"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        models, weights = encoders(Path(scratch))
        check(models)
        short, long = sentence(25), sentence(60)
        words = models[0].checkpoint.vocabulary[3:2_003]
        edits = Edit(3, ("village",)), Edit(20, ("ships",))
        actions = {
            "grid_25": lambda: influence_grids(models, short),
            "grid_25_plain": lambda: [plain_grid(e, short) for e in models],
            "grid_60": lambda: influence_grids(models, long),
            "grid_25_random_words": lambda: influence_grids(
                models, short, random_replacements(short, words)
            ),
            "gradient_25": lambda: [gradient_grid(e, short) for e in models],
            "interaction_25": lambda: [interaction(e, short, *edits) for e in models],
            "gap": lambda: fill_gap(models, short, 7),
        }
        results = {}
        for name, action in actions.items():
            results[name] = timed(action, options.repeats)
            print(f"{name:22} {results[name]}", flush=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    print(
        json.dumps(
            {
                **results,
                "grid_25_speedup": round(
                    results["grid_25_plain"]["median_s"] / results["grid_25"]["median_s"], 2
                ),
                "weights": weights,
                "threads": options.threads,
                "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
                "torch": torch.__version__,
                "commit": commit.stdout.strip(),
            }
        )
    )


if __name__ == "__main__":
    main()
