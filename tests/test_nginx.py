"""The README's nginx configuration, with Debian's nginx before two processes of a small page."""

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import gradio as gr
import httpx
import pytest
from bench_app import free_port
from gradio_client import Client

README = Path(__file__).resolve().parent.parent / "README.md"

pytestmark = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not there")


def small_page(name: str) -> gr.Blocks:
    """A page that says its own name and counts a visitor's calls, started."""

    def count(n: int) -> tuple[str, int]:
        return f"{name} {n + 1}", n + 1

    with gr.Blocks(analytics_enabled=False) as demo:
        number, answer = gr.State(0), gr.Textbox()
        gr.Button().click(count, number, [answer, number], api_name="count")
    demo.launch(server_port=free_port(), prevent_thread_lock=True, quiet=True)
    return demo


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nginx")
    snippet = re.search(r"```nginx\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[1]
    pages = {"7860": small_page("first"), "7861": small_page("second")}
    for port, page in pages.items():
        address = page.local_url.removeprefix("http://").rstrip("/")
        snippet = snippet.replace(f"127.0.0.1:{port};", f"{address};")
    port = free_port()
    snippet = snippet.replace("listen 80;", f"listen 127.0.0.1:{port};")
    places = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"pid {folder}/pid; error_log {folder}/error.log; daemon off; events {{}}\n"
    text += f"http {{ access_log off; {places}\n{snippet}\n}}"
    (folder / "nginx.conf").write_text(text, encoding="utf-8")
    command = ["nginx", "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 20
    while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < deadline:
        assert process.poll() is None, (folder / "error.log").read_text(encoding="utf-8")
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()
    for page in pages.values():
        page.close()  # not close_all: other tests' pages run in this process


def name_of(client: httpx.Client, session: str) -> str:
    """What the page behind answers to one call of a browser, through the queue."""
    config = client.get("/config").json()
    (fn,) = (d["id"] for d in config["dependencies"] if d["api_name"] == "count")
    body = {"data": [None], "fn_index": fn, "session_hash": session}
    client.post("/gradio_api/queue/join", json=body).raise_for_status()
    stream = client.get("/gradio_api/queue/data", params={"session_hash": session}).text
    return re.findall(r'"data":\["(\w+ \d+)"', stream)[-1]


def test_a_visitor_stays_with_one_process_and_visitors_are_spread(proxy):
    """All from one address, as a class behind one router is."""
    names = set()
    for i in range(12):
        with httpx.Client(base_url=proxy) as client:
            assert client.get("/").status_code == 200
            cookie = client.cookies["visitor"]
            answers = [name_of(client, f"session{i}") for _ in range(3)]
            name = answers[0].split()[0]
            assert answers == [f"{name} {n}" for n in (1, 2, 3)]  # its state was there each time
            assert client.cookies["visitor"] == cookie
            names.add(name)
    assert names == {"first", "second"}


def test_a_program_without_cookies_stays_with_one_process(proxy):
    for _ in range(3):
        client = Client(proxy, verbose=False)
        answers = [client.predict(api_name="/count") for _ in range(3)]
        assert {a.split()[0] for a in answers} == {answers[0].split()[0]}
        assert [a.split()[1] for a in answers] == ["1", "2", "3"]
