"""How long do maps take, and do they keep other visitors waiting?

    python tests/bench_maps.py [options of app.py]

First the numbers alone, of real vectors of the example bank: principal components of 5,000 tokens
(all layers, axes and coordinates) beside NumPy's singular value decomposition of the same matrix,
and a UMAP of 1,500 tokens in the process that the page keeps for it, started and warm. Then the
page in headless Chromium: the time from Run to the first maps painted, and one visitor's clicks on
tokens, from the click to the new neighbors painted, while nobody else is there and while another
visitor waits for a UMAP of the longest text the maps draw.

The last line is one JSON document: ``first_map_ms``, ``pca_ms`` and ``svd_ratio``; ``umap_start_s``
until the first fit can begin, ``umap_s`` of a warm one and ``umap_layers_told`` of its progress;
``click_ms`` and ``click_umap_ms`` with median, 95th percentile and maximum, ``umap_page_s`` of the
other visitor's maps, and what it was measured on.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

from bench_app import free_port, open_page, wait_for_server  # noqa: E402
from conftest import CHROMIUM_FLAGS, chromium_path  # noqa: E402
from load_class import NOUNS, OTHERS  # noqa: E402

N_PCA, N_UMAP, N_REPEATS, N_RUNS = 5_000, 1_500, 5, 7
N_CLICKS = 40
SECONDS_BETWEEN = 0.2  # clicks

# Does something that makes the server send news; gives the milliseconds until they are painted.
TIMED = """([event, selector]) => new Promise((done) => {
  const start = performance.now();
  const seen = () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
  let once = true;
  bothways.on(event, () => once && (once = false, seen()));
  document.querySelector(selector).click();
})"""


def example_vectors() -> np.ndarray:
    """(N_PCA, L, D) of the biLM."""
    from app.encoding import encode_what_fits
    from app.examples import bank_sentences, load_examples
    from app.settings import Settings
    from elmo.banks.bank import build_bank
    from elmo.encoders import load_encoder

    settings = Settings()
    sentences = [s.tokens for s in bank_sentences(load_examples(settings.examples))]
    encoder = load_encoder(settings.models / "bilm")
    return build_bank(sentences, encode_what_fits(encoder, sentences)).vectors[:N_PCA]


def median_ms(work) -> float:
    """Of N_REPEATS calls, after one that does not count."""
    work()
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def time_pca(vectors: np.ndarray) -> tuple[float, float]:
    """Milliseconds here, and how many times as long a singular value decomposition takes."""
    from elmo.banks.projection import fit_basis

    flat = (vectors - vectors.mean(axis=0)).reshape(-1, vectors.shape[-1])
    ours = median_ms(lambda: fit_basis(vectors).project(vectors))
    start = time.perf_counter()
    np.linalg.svd(flat, full_matrices=False)
    return ours, 1000 * (time.perf_counter() - start) / ours


def time_umap(vectors: np.ndarray) -> tuple[float, float, int]:
    """Seconds to a process that is ready, seconds of a warm fit, and its different reports."""
    from app.umap_service import Fit, UmapService

    service = UmapService()
    try:
        tiny = {"tiny": Fit(lambda: vectors[:20, :1], 1)}
        start_s, _ = _wait(service, tiny)
        service_s, reports = _wait(service, {"map": Fit(lambda: vectors, vectors.shape[1])})
    finally:
        service.stop()
    return start_s, service_s, reports


def _wait(service, fits) -> tuple[float, int]:
    start, told = time.perf_counter(), set()
    while service.found(list(fits)) is None:
        progress = service.ask("bench", fits)
        assert not progress.failed, progress.failed
        told.add(progress.done)
        time.sleep(0.05)
    return time.perf_counter() - start, len(told)


def longest_text(limit: int) -> str:
    """``limit`` tokens in sentences of 20, all different."""
    draw = np.random.default_rng(0)
    lines = [draw.choice(NOUNS + OTHERS, 20).tolist() for _ in range(limit // 20)]
    return "\n".join(" ".join(line) for line in lines)


def time_runs(page) -> list[float]:
    """Milliseconds from Run to the maps, each of a new text."""
    times = []
    for i in range(N_RUNS):
        page.locator("#text textarea").fill(
            f"The bank raised rate {i} .\nThe river burst its bank ."
        )
        times.append(page.evaluate(TIMED, ["maps", "#run"]))
    return times


def time_clicks(page) -> list[float]:
    """Milliseconds from a click on a token to its neighbors, the tokens in turn."""
    times = []
    for i in range(N_CLICKS):
        n = page.locator("#strip .token").count()
        page.evaluate(f"document.querySelectorAll('#strip .token')[{i % n}].id = 'next-{i}'")
        times.append(page.evaluate(TIMED, ["near", f"#next-{i}"]))
        page.wait_for_timeout(1000 * SECONDS_BETWEEN)
    return times


def summary(times: list[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(times), 1),
        "p95": round(float(np.percentile(times, 95)), 1),
        "max": round(max(times), 1),
    }


def time_page(options: list[str]) -> dict:
    from playwright.sync_api import sync_playwright

    from app.settings import Settings

    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--no-wordnet", *options]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for_server(port, process)
        with sync_playwright() as playwright:
            launch = playwright.chromium.launch
            browser = launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
            page, other = open_page(browser, port), open_page(browser, port)
            runs = time_runs(page)
            alone = time_clicks(page)
            text = longest_text(Settings().max_map_tokens)
            other.locator("#text textarea").fill(text)
            other.evaluate(TIMED, ["near", "#run"])
            start = time.perf_counter()
            other.locator("select[data-name=axes]").select_option("umap")
            other.wait_for_function("bothways.state.maps.waits")
            beside = []
            while other.evaluate("bothways.state.maps.waits"):
                beside += time_clicks(page)
            umap_s = time.perf_counter() - start
            browser.close()
    finally:
        process.terminate()
        process.wait()
    return {
        "first_map_ms": summary(runs),
        "click_ms": summary(alone),
        "click_umap_ms": summary(beside),
        "n_clicks": [len(alone), len(beside)],
        "umap_page_s": round(umap_s, 1),
        "umap_page_points": Settings().max_map_tokens,
    }


def main() -> None:
    import torch

    torch.set_num_threads(1)
    vectors = example_vectors()
    pca_ms, svd_ratio = time_pca(vectors)
    umap_start_s, umap_s, told = time_umap(vectors[:N_UMAP])
    found = time_page(sys.argv[1:])
    print(
        json.dumps(
            {
                "first_map_ms": found.pop("first_map_ms"),
                "pca_ms": round(pca_ms, 1),
                "svd_ratio": round(svd_ratio, 1),
                "n_pca": N_PCA,
                "umap_start_s": round(umap_start_s, 1),
                "umap_s": round(umap_s, 1),
                "umap_layers_told": told,
                "n_umap": N_UMAP,
                **found,
                "n_cpus": os.cpu_count(),
                "machine": platform.processor() or platform.machine(),
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


if __name__ == "__main__":
    main()
