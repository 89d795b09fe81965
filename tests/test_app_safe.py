"""The page among strangers: logins, a proxy, no rights, no pickles."""

import ast
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from conftest import awaited
from test_app_wiring import ENDPOINTS

from app import cli
from app.cli import parse_arguments
from app.link import View, encode
from elmo.banks.bank_build import default_cache

ROOT = Path(__file__).resolve().parent.parent
PASSWORD = "horses"


def test_a_login_needs_a_name_and_a_password(monkeypatch, capsys):
    monkeypatch.setenv("BOTH_WAYS_AUTH", "ann:x bob:y:z")
    assert parse_arguments(["--auth", "eve:1"]).auth == ["eve:1", "ann:x", "bob:y:z"]
    monkeypatch.delenv("BOTH_WAYS_AUTH")
    for wrong in ("ann", "ann:", ":x", ":"):
        with pytest.raises(SystemExit):
            parse_arguments(["--auth", wrong])
        assert "USER:PASSWORD" in capsys.readouterr().err


def test_mcp_without_its_package_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        parse_arguments(["--mcp"])
    assert "pip install 'gradio[mcp]'" in capsys.readouterr().err


def test_a_port_is_a_number_that_ports_have(capsys):
    assert [parse_arguments(["--port", x]).port for x in ("1", "65535")] == [1, 65535]
    for wrong in ("0", "-1", "65536", "99999", "1e3", "many", "9" * 5_000):
        with pytest.raises(SystemExit):
            parse_arguments(["--port", wrong])
        said = capsys.readouterr().err
        assert "--port: must be a number from 1 to 65535, got" in said and wrong[:9] in said


@pytest.fixture
def unloaded(monkeypatch):
    """The command line ends before it loads a model."""
    monkeypatch.delenv("GRADIO_SERVER_NAME", raising=False)
    monkeypatch.setattr(cli, "_load", lambda settings: pytest.fail("models were loaded"))


@pytest.fixture
def taken():
    """Ports that somebody listens on, by host."""
    found, listeners = {}, []
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            listener = socket.create_server((host, 0), family=family)
        except OSError:  # no IPv6 on this computer
            continue
        listeners.append(listener)
        found[host] = listener.getsockname()[1]
    yield found
    for listener in listeners:
        listener.close()


def ends_with(capsys, *arguments):
    """What the start says, which is one line."""
    with pytest.raises(SystemExit) as end:
        cli.main([*arguments, "--no-wordnet"])
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and err.startswith("app.py: error: ")
    return err


def test_a_port_in_use_ends_the_start_with_one_line(unloaded, taken, capsys):
    for host, port in taken.items():
        said = ends_with(capsys, "--host", host, "--port", str(port))
        assert f"host {host}, port {port}: another program listens there" in said
    port = taken["127.0.0.1"]
    assert f"host 0.0.0.0, port {port}" in ends_with(capsys, "--lan", "--port", str(port))


def test_a_host_that_is_not_here_ends_the_start_with_one_line(unloaded, capsys):
    for host, reason in (
        ("203.0.113.9", "this computer has no such address"),
        ("no-such-host.invalid", ""),
        ("x" * 100, ""),
    ):
        for port in ([], ["--port", "7999"]):
            said = ends_with(capsys, "--host", host, *port)
            assert f"host {host}, port {(port or ['', '7860'])[1]}: {reason}" in said
            assert "no free port" not in said


def test_a_free_port_is_one_that_nobody_listens_on(taken):
    for host, port in taken.items():
        assert port < cli._free_port(host, port) < port + 100


def test_the_page_listens_on_ipv6_too(services, taken, monkeypatch, capsys):
    if "::1" not in taken:
        pytest.skip("this computer has no IPv6")
    answers = []

    def look(demo):
        answers.append(httpx.get(f"{demo.local_url}config").status_code)
        demo.close()

    monkeypatch.setenv("GRADIO_SERVER_NAME", "::1")
    monkeypatch.setattr(cli, "ENVIRONMENT", {})
    monkeypatch.setattr(cli, "_load", lambda settings: services)
    monkeypatch.setattr("gradio.Blocks.block_thread", look)
    cli.main(["--no-wordnet"])
    assert answers == [200]
    assert re.search(r"open http://\[::1\]:\d+\n", capsys.readouterr().out)


def test_a_home_that_cannot_be_written_is_no_home_for_banks(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for home in (Path("/proc"), Path("/nonexistent"), Path("/dev/null")):  # for root as well
        monkeypatch.setenv("HOME", str(home))
        folder = default_cache()
        if str(folder).startswith("/nonexistent"):  # root may make it
            folder.rmdir(), folder.parent.rmdir(), folder.parent.parent.rmdir()
            continue
        assert os.access(folder, os.W_OK) and not folder.is_relative_to(home)


def start(home, *arguments, user=None, **environment):
    command = [sys.executable, "app.py", "--no-wordnet", "--models", "/nonexistent", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "HOME": str(home), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        user=user,
    )


def address_of(process):
    for line in process.stdout:
        if "open http" in line:
            return line.split()[-1]
    raise AssertionError("the page did not start")


@pytest.fixture(scope="module")
def guarded():
    """The page as a stranger would run it: no rights, no home, a login, behind a proxy."""
    user = 65534 if hasattr(os, "getuid") and os.getuid() == 0 and _all_may_read() else None
    process = start("/proc", "--root-path", "/elmo", user=user, BOTH_WAYS_AUTH=f"ann:{PASSWORD}")
    yield address_of(process)
    process.terminate()
    process.wait()


def _all_may_read() -> bool:
    """Whether another user can reach the project and Python."""
    test = [sys.executable, "-c", "import torch"]
    try:
        return subprocess.run(test, cwd=ROOT, user=65534, capture_output=True).returncode == 0
    except OSError:
        return False


def test_a_stranger_sees_nothing_and_ann_sees_the_page(guarded):
    with httpx.Client(base_url=guarded, timeout=30) as client:
        config = client.get("/config")
        assert config.status_code == 401
        asked = client.post("/gradio_api/call/encode", json={"data": ["a", "bilm", 0, False]})
        assert asked.status_code == 401
        code = encode(View(text="The bank rose ."))
        for what in ("page", "vectors", "projector", "other"):
            refused = client.post(f"/take-home/{what}", content=code)
            assert refused.status_code == 401 and "Log in first" in refused.text
        wrong = client.post("/login", data={"username": "ann", "password": "x"})
        assert wrong.status_code == 400
        right = client.post("/login", data={"username": "ann", "password": PASSWORD})
        assert right.status_code == 200
        config = client.get("/config").json()
        assert config["root"].endswith("/elmo")
        call = client.post("/gradio_api/call/encode", json={"data": ["a", "bilm", 0, False]})
        event = call.json()["event_id"]
        assert "event: complete" in client.get(f"/gradio_api/call/encode/{event}").text
        vectors = client.post("/take-home/vectors", content=code)
        assert vectors.status_code == 200 and vectors.content[:2] == b"PK"
        name = next(iter(client.cookies))
        client.cookies.clear()
        forged = client.post("/take-home/vectors", content=code, headers={"Cookie": f"{name}=x"})
        assert forged.status_code == 401


def test_nothing_that_is_read_is_a_pickle():
    """Training states are torch files, read as plain tensors (``weights_only``)."""
    found = []
    for path in [*ROOT.glob("app/**/*.py"), *ROOT.glob("elmo/**/*.py"), ROOT / "app.py"]:
        for line in path.read_text(encoding="utf-8").splitlines():
            loads = re.search(r"pickle\.|import pickle|joblib|shelve|marshal", line)
            loads = loads or re.search(r"allow_pickle(?!=False)", line)
            loads = loads or re.search(r"torch\.load\((?!.*weights_only=True)", line)
            if loads:
                found.append(f"{path.name}: {line.strip()}")
    assert not found


async def call_tool(address, name, arguments):
    """As a language model's program does it."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with (
        streamable_http_client(address) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        result = await session.call_tool(name, arguments)
        assert not result.isError, result.content
        return ast.literal_eval(result.content[0].text)  # Gradio sends what Python prints


def test_tools_for_language_models_are_the_endpoints(services):
    from app.ui import build, launch_options

    demo = build(services)
    _, url, _ = demo.launch(
        prevent_thread_lock=True, quiet=True, mcp_server=True, **launch_options(services)
    )
    try:
        deadline = time.monotonic() + 30
        while (answer := httpx.get(f"{url}gradio_api/mcp/schema")).status_code != 200:
            assert time.monotonic() < deadline
        names_of = {tool["name"].rsplit("_", 1)[-1]: tool["name"] for tool in answer.json()}
        assert set(names_of) == ENDPOINTS
        assert all(tool["description"] for tool in answer.json())
        tool, arguments = names_of["mix"], {"text": "A play .", "weights": [0, 0, 0], "gamma": 2}
        found = awaited(call_tool(f"{url}gradio_api/mcp/", tool, arguments))
        assert found["shares"] == pytest.approx([1 / 3] * 3)
        assert found["sentences"][0]["tokens"] == ["A", "play", "."]
    finally:
        demo.close()
