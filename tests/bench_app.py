"""How long does a visitor wait: for the page, for the first result, for a slider's step?

    python tests/bench_app.py [options of app.py]

Starts ``app.py`` as a user would and drives it in headless Chromium with a real mouse. Before any
timing, neighbors ranked in the browser are compared with the server's. A slider's step is timed
from the browser's input event to the moment after the frame that shows it was painted. The baseline
is the same map and list behind a ``gr.Plot`` callback, in the same run.

The last line is one JSON document: ``start_s`` from process start to a page with maps and
neighbors, ``first_result_s`` from Run to the new view, ``slider_ms_median`` and ``slider_ms_p95``,
``gr_plot_ms_median``, ``gr_plot_ratio`` and what they were measured on.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

from conftest import CHROMIUM_FLAGS, chromium_path  # noqa: E402

N_POINTS = 300
N_CANDIDATES = 2_000  # of the baseline; the page ranks all tokens of its examples, which are more
N_STEPS = 150
N_WARM_UP = 20
N_PLOT_STEPS = 15

# Records the time from each input event of a slider to just after the frame it causes.
RECORD = """selector => {
  window.steps = [];
  document.querySelector(selector).addEventListener('input', (event) => {
    const start = event.timeStamp;
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => window.steps.push(performance.now() - start);
      channel.port2.postMessage(0);
    });
  });
}"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def long_text() -> str:
    """N_POINTS tokens in sentences of 30, none of them in the examples."""
    words = "the river bank was quiet and old boats lay along it while people played"
    tokens = [words.split()[i % len(words.split())] for i in range(N_POINTS)]
    return "\n".join(" ".join(tokens[i : i + 30]) for i in range(0, N_POINTS, 30))


def wait_for_server(port: int, process: subprocess.Popen) -> None:
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            raise SystemExit("app.py ended before it listened")
        time.sleep(0.02)


def open_page(browser, port: int):
    page = browser.new_context(viewport={"width": 1366, "height": 768}).new_page()
    page.goto(f"http://127.0.0.1:{port}/")
    page.wait_for_selector("#lists .neighbor:visible")
    page.wait_for_selector("#maps-attention .mix path.point")
    return page


def run_text(page, text: str) -> float:
    """Seconds from Run to the new text's maps and neighbors on the screen."""
    page.locator("#text textarea").fill(text)
    return page.evaluate(
        """() => new Promise((done) => {
          const start = performance.now();
          bothways.on('near', () => requestAnimationFrame(() => setTimeout(
            () => done((performance.now() - start) / 1000))));
          document.querySelector('#run').click();
        })"""
    )


def check_against_server(page, port: int, text: str) -> None:
    """Raises unless the browser's cosines are the server's, for a few mixes."""
    from gradio_client import Client

    client = Client(f"http://127.0.0.1:{port}/", verbose=False)
    place = page.evaluate("bothways.state.chosen")
    for w in ([0.0, 0.0, 0.0], [1.0, -2.0, 0.5], [-6.0, -6.0, 6.0]):
        expected = client.predict(text=text, weights=w, n=20, **place, api_name="/neighbors")
        found = page.evaluate(
            "w => bothways.rank(bothways.candidatesOf('bilm'), bothways.softmax(w), 1, 20)"
            ".map((hit) => hit.score)",
            w,
        )
        np.testing.assert_allclose(found, [hit["score"] for hit in expected], atol=1e-4)


def time_slider(page) -> list[float]:
    """Milliseconds of each step of a drag to and fro, after a warm-up."""
    selector = "#mixing input[type=range]"
    page.evaluate(RECORD, selector)
    box = page.locator(selector).first.bounding_box()
    y, left, width = box["y"] + box["height"] / 2, box["x"] + 8, box["width"] - 16
    page.mouse.move(left + width / 2, y)
    page.mouse.down()
    for i in range(N_STEPS + N_WARM_UP):
        page.mouse.move(left + width * (0.5 + 0.45 * np.sin(i / 12)), y)
        page.wait_for_timeout(30)
    page.mouse.up()
    page.wait_for_timeout(300)
    return page.evaluate("window.steps")[N_WARM_UP:]


def plot_page():
    """The baseline: the page's nine maps as ``gr.Plot``, one of them redrawn with a list of
    neighbors by a callback for every step of a slider."""
    import gradio as gr
    import plotly.graph_objects as go

    from elmo.banks.mixing import nearest, pair_norms, pair_products, similarity
    from elmo.scalar_mix import softmax

    rng = np.random.default_rng(0)
    coordinates = rng.normal(size=(N_POINTS, 3, 2))
    rows = rng.normal(size=(N_CANDIDATES, 3, 64)).astype(np.float32)
    products, norms = pair_products(rows, rows[0]), pair_norms(rows)
    hover = [f"token {i}, sentence {i // 30}" for i in range(N_POINTS)]

    def make_map(xy, title):
        figure = go.Figure()
        for part in (slice(20, None), slice(1, 20), slice(0, 1)):  # others, copies, chosen
            figure.add_scatter(
                x=xy[part, 0], y=xy[part, 1], text=hover[part], mode="markers", hoverinfo="text"
            )
        margin = {"l": 0, "r": 0, "t": 24, "b": 0}
        return figure.update_layout(title=title, height=170, showlegend=False, margin=margin)

    def draw(w: float):
        s = softmax([w, 0, 0])
        scores = similarity(products, norms, norms[0], s)
        listed = "".join(f"<p>token {i} {scores[i]:.2f}</p>" for i in nearest(scores, 20))
        xy = np.tensordot(coordinates, s, axes=([1], [0]))
        return make_map(xy, f"step {w:.2f}"), listed

    with gr.Blocks(analytics_enabled=False) as demo:
        slider = gr.Slider(-6, 6, value=0, step=0.05, elem_id="slider")
        for _ in range(2):
            with gr.Row():
                for k in range(4):
                    gr.Plot(make_map(coordinates[:, k % 3], f"layer {k}"), min_width=160)
        plot, table = gr.Plot(elem_id="plot"), gr.HTML()
        options = {"show_progress": "hidden", "trigger_mode": "always_last"}
        slider.input(draw, slider, [plot, table], **options)
        demo.load(draw, slider, [plot, table], show_progress="hidden")
    return demo


def time_plot(browser) -> list[float]:
    """Milliseconds from a step of the baseline's slider to its new plot painted."""
    demo = plot_page()
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, run_history=False)
    page = browser.new_page(viewport={"width": 1366, "height": 768})
    page.goto(url)
    page.wait_for_selector("#plot .gtitle")
    times = [
        page.evaluate(
            """(value) => new Promise((done) => {
              const wanted = `step ${value.toFixed(2)}`;
              const range = document.querySelector('#slider input[type=range]');
              const start = performance.now();
              const look = () => {
                const title = document.querySelector('#plot .gtitle');
                const isDrawn = title && title.textContent.includes(wanted);
                if (!isDrawn) return requestAnimationFrame(look);
                setTimeout(() => done(performance.now() - start));
              };
              range.value = value;
              range.dispatchEvent(new Event('input', {bubbles: true}));
              requestAnimationFrame(look);
            })""",
            -2 + 0.25 * i,
        )
        for i in range(N_PLOT_STEPS)
    ]
    demo.close()
    return times[2:]


def main() -> None:
    from playwright.sync_api import sync_playwright

    port = free_port()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        browser.new_page().close()
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "app.py", "--port", str(port), "--no-wordnet", *sys.argv[1:]], cwd=ROOT
        )
        try:
            wait_for_server(port, process)
            page = open_page(browser, port)
            start_s = time.perf_counter() - start
            first_result_s = run_text(page, "She deposited the check .\nThe river burst its bank .")
            text = long_text()
            long_result_s = run_text(page, text)
            check_against_server(page, port, text)
            steps = time_slider(page)
            n_candidates = page.evaluate("bothways.candidatesOf('bilm').scores.length")
            n_points = page.evaluate("bothways.state.maps.encoders.bilm.rows.length")
        finally:
            process.terminate()
            process.wait()
        plot_steps = time_plot(browser)
        browser.close()
    median, plot_median = statistics.median(steps), statistics.median(plot_steps)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    print(
        json.dumps(
            {
                "start_s": round(start_s, 2),
                "first_result_s": round(first_result_s, 3),
                "long_result_s": round(long_result_s, 3),
                "slider_ms_median": round(median, 1),
                "slider_ms_p95": round(float(np.percentile(steps, 95)), 1),
                "gr_plot_ms_median": round(plot_median, 1),
                "gr_plot_ratio": round(plot_median / median, 1),
                "n_steps": len(steps),
                "n_points": n_points,
                "n_candidates": n_candidates,
                "n_cpus": os.cpu_count(),
                "machine": platform.processor() or platform.machine(),
                "load": round(os.getloadavg()[0], 1),
                "commit": commit,
            }
        )
    )


if __name__ == "__main__":
    main()
