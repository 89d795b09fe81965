"""How near is a vector database to the exact bank, and how fast, over a million rows?

    pip install pymilvus milvus-lite
    python -m elmo bank build TEXT --out bank
    python tests/bench_store.py bank [--index IVF_SQ8] [--queries 200] [--folder DIR]

All rows of the bank are stored in Milvus, embedded in a file. Then tokens drawn from the bank are
looked for, each under a mix of layers drawn anew: ``recall`` is the mean share of the exact 20
nearest other rows that are found, with its standard error and the smallest, ``score_difference``
the largest between the score of a row found and its exact one; ``search_ms`` the median time of the
database, ``exact_ms`` that of the bank without one (its closed form: products, then the mix).

The last line is one JSON document.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402

from elmo.banks.bank_files import open_bank  # noqa: E402
from elmo.banks.vector_store import INDEXES, MilvusBank  # noqa: E402

K = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bank", type=Path)
    parser.add_argument("--index", default="IVF_SQ8", choices=INDEXES)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the database is written")
    options = parser.parse_args()
    bank = open_bank(options.bank)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        store = MilvusBank(Path(folder) / "bank.db", "tokens", bank.means, index=options.index)
        try:
            report = measure(bank, store, options)
            size = sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())
        finally:
            store.close()
    print(json.dumps(report | {"file_gb": round(size / 1e9, 2)}))


def measure(bank, store: MilvusBank, options: argparse.Namespace) -> dict:
    start = time.perf_counter()
    for n in store.store(bank):
        if n % 50_000 == 0:
            print(f"{n:,} of {len(bank):,} rows, {time.perf_counter() - start:.0f} s", flush=True)
    seconds = time.perf_counter() - start
    rng = np.random.default_rng(options.seed)
    recall, difference, store_ms, exact_ms = [], 0.0, [], []
    for row in rng.choice(len(bank), options.queries, replace=False):
        vectors = np.asarray(bank.vectors[row], dtype=np.float32)
        s = rng.dirichlet(np.ones(bank.n_layers)).astype(np.float32)
        start = time.perf_counter()
        found = store.search(vectors, s, K + 1)
        store_ms.append(1000 * (time.perf_counter() - start))
        start = time.perf_counter()
        exact = bank.search(vectors, s, K + 1, unit=True, centered=True)
        exact_ms.append(1000 * (time.perf_counter() - start))
        known = dict(zip(exact.rows.tolist(), exact.scores.tolist(), strict=True))
        known.pop(int(row), None)  # the token itself
        both = [(x, known[r]) for r, x in zip(found.rows, found.scores, strict=True) if r in known]
        recall.append(len(both) / len(known))
        difference = max([difference, *(abs(x - y) for x, y in both)])
    return {
        "rows": len(bank),
        "index": options.index,
        "seed": options.seed,
        "queries": options.queries,
        "recall": round(statistics.mean(recall), 4),
        "recall_standard_error": round(statistics.stdev(recall) / len(recall) ** 0.5, 4),
        "recall_smallest": min(recall),
        "score_difference": float(f"{difference:.2g}"),
        "search_ms": round(statistics.median(store_ms), 1),
        "exact_ms": round(statistics.median(exact_ms), 1),
        "store_s": round(seconds),
    }


if __name__ == "__main__":
    main()
