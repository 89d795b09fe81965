"""The README's commands and code do what it says."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SNIPPET = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPETS = SNIPPET.findall((ROOT / "README.md").read_text(encoding="utf-8"))
PAGE = "http://localhost:7860"


def snippet(kind, text):
    """The only snippet of its kind with this text in it."""
    (found,) = (code for name, code in SNIPPETS if name == kind and text in code)
    return found


def commands(start):
    """Lines of shell snippets that start so, without comments."""
    lines = (line for kind, code in SNIPPETS if kind in ("", "sh") for line in code.splitlines())
    return [line.split("  #")[0].strip() for line in lines if line.startswith(start)]


def test_every_snippet_is_tested_here():
    pythons = [code for kind, code in SNIPPETS if kind == "python"]
    assert len(pythons) == 3
    known = ("make ", "python", ".venv", "pip ", "call=", "event=", "  -d", "curl ")
    for kind, code in SNIPPETS:
        assert kind in ("python", "sh", "", "nginx", "yaml")
        if kind == "sh":
            assert all(line.startswith(known) for line in code.splitlines())


@pytest.mark.parametrize("target", ["run", "test"])
def test_make(target):
    assert f"make {target} " in snippet("sh", "make run")
    if shutil.which("make") is None:
        pytest.skip("make is not there")
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"run": "app.py", "test": "-m pytest tests"}[target] in done.stdout


def test_the_same_without_make():
    lines = snippet("sh", "python3 -m venv").splitlines()
    assert all(
        (ROOT / word).exists() for line in lines for word in line.split()[-1:] if word != ".venv"
    )


@pytest.mark.parametrize("line", commands("python -m elmo"))
def test_commands_have_the_options_that_are_shown(line):
    """Without carrying them out: some take hours or a network."""
    words = shlex.split(line.replace("[", "").replace("]", ""))
    n_names = 5 if words[3] == "bank" else 4  # its actions have options of their own
    done = subprocess.run(
        [sys.executable, *words[1:n_names], "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    options = [word for word in words if word.startswith("--")]
    assert all(option in done.stdout for option in options)


def test_encoding_from_python():
    names = {}
    here = os.getcwd()
    os.chdir(ROOT)
    try:
        exec(snippet("python", "load_encoder"), names)
    finally:
        os.chdir(here)
    assert names["encoding"].hidden.shape == (3, 5, 512)


def test_a_model_in_the_original_format(tmp_path, monkeypatch):
    from small_models import small_model

    from elmo.original.hdf5 import write_model

    write_model(tmp_path, small_model("bilm"))
    assert {p.name for p in tmp_path.iterdir()} == {"options.json", "weights.hdf5"}
    monkeypatch.chdir(tmp_path)
    names = {"sentences": [["a", "b"]]}
    exec(snippet("python", "load_elmo"), names)
    assert names["encoding"].hidden.shape[1] == 1


def test_a_program_asks_the_page(server, monkeypatch):
    code = snippet("python", "gradio_client").replace(PAGE, server)
    last = code.strip().splitlines()[-1]
    assert "/cloze" in last  # random weights have no softmax to guess with
    exec(code.replace(last, "guesses = page.predict(text, position=1, api_name='/cloze')"), {})


def test_a_shell_asks_the_page(server):
    if shutil.which("curl") is None:
        pytest.skip("curl is not there")
    code = snippet("sh", "curl").replace(PAGE, server.rstrip("/"))
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True, timeout=60)
    assert "event: complete" in done.stdout, done


def test_the_spaces_header_names_what_is_there():
    yaml = snippet("yaml", "sdk: gradio")
    assert (ROOT / re.search(r"app_file: (\S+)", yaml)[1]).is_file()
    version = re.search(r"sdk_version: (\S+)", yaml)[1]
    assert f"gradio=={version} " in (ROOT / "requirements.txt").read_text(encoding="utf-8")


def test_options_of_the_page_that_are_named_exist():
    from app.cli import parse_arguments

    text = textwrap.dedent((ROOT / "README.md").read_text(encoding="utf-8"))
    serve = text.split("## Serve it to others")[1].split("\n## ")[0]
    named = {*re.findall(r"`(--[a-z-]+)", serve)}
    assert named >= {"--host", "--auth", "--root-path"}
    options = parse_arguments(["--host", "::", "--auth", "a:b", "--root-path", "/elmo"])
    assert (options.host, options.auth, options.root_path) == ("::", ["a:b"], "/elmo")
