"""What the tests of the page share: services without trained weights, one server, one browser."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HF_HUB_OFFLINE"] = "1"
torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parent.parent
N_EXAMPLES = 10

# Headless, and silent: without these flags Chromium looks for its own servers.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_configure(config):
    """Gradio's own use of pandas warns on every call; that is not ours to mend."""
    for message in ("'future.no_silent_downcasting'", "The copy keyword is deprecated"):
        config.addinivalue_line("filterwarnings", f"ignore:{message}")


def awaited(coroutine):
    """What it returns; in a thread of its own: Playwright leaves a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def wait_settled(page):
    """Until the views have followed the last step of a slider and the rest after it counts as its
    end: frames and timers of the page itself, so that a busy machine only makes it longer."""
    page.evaluate(
        """() => new Promise((resolve) => {
             const drawn = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
             drawn(() => setTimeout(() => drawn(resolve), 220));
           })"""
    )


def chromium_path() -> str | None:
    """The system's browser; ``None`` leaves the choice to Playwright."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def services(tmp_path_factory):
    """Encoders of the shipped shape with random weights, and the first few examples."""
    from app.services import load_services
    from app.settings import Settings

    folder = tmp_path_factory.mktemp("page")
    examples = json.loads((ROOT / "assets" / "examples.json").read_text(encoding="utf-8"))
    examples["examples"] = examples["examples"][:N_EXAMPLES]
    path = folder / "examples.json"
    path.write_text(json.dumps(examples), encoding="utf-8")
    return load_services(Settings(models=folder / "models", examples=path))


@pytest.fixture(scope="session")
def demo(services):
    from app.ui import build

    return build(services)


@pytest.fixture(scope="session")
def server(demo, services):
    """The address of the running page."""
    from app.ui import launch_options

    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options(services))
    yield url
    demo.close()


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, server):
    """Opens the page as a new visitor; afterwards checks that nothing went wrong unseen.

    ``open_page(theme="dark", width=390, height=844)``; ``address``: a link to open instead. Fails
    on a console error, an uncaught exception, and on any request that leaves the machine.
    """
    contexts, troubles = [], []

    def open_one(
        theme: str = "light",
        width: int = 1366,
        height: int = 768,
        address: str | None = None,
        **options,
    ):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(1_000 * float(os.environ.get("BROWSER_SECONDS", "30")))
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(f"exception: {error}"))
        page.on(
            "console",
            lambda message: message.type == "error" and troubles.append(f"console: {message.text}"),
        )
        page.on("request", lambda request: troubles.extend(_outside(request.url, server)))
        page.goto(address or f"{server}?__theme={theme}")
        if address is None:
            page.wait_for_selector("#lists .neighbor:visible")
            page.wait_for_selector("#maps-attention .mix path.point")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not troubles


def _outside(url: str, server: str) -> list[str]:
    is_local = url.startswith((server, "data:", "blob:"))
    return [] if is_local else [f"request to {url}"]
