"""How the page is put together: events, endpoints, what may import what, what starts slow."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from app.parts import PLOTLY_JS, SCRIPTS, STATIC, script_tags
from app.ui import STYLES, launch_options
from app.views.take_home import OFFLINE

ROOT = Path(__file__).resolve().parent.parent


ENDPOINTS = {"encode", "mix", "neighbors", "influence", "cloze"}


def by_name(demo):
    found = {}
    for fn in demo.fns.values():
        found.setdefault(fn.name, []).append(fn)
    return found


def ids(demo, fn):
    return [demo.blocks[target[0]].elem_id for target in fn.targets]


def test_every_action_reaches_its_handler(demo):
    fns = by_name(demo)
    assert ids(demo, fns["run"][0]) == ["run", "pretokenized"]
    choosers = ["strip", "maps-bilm", "maps-attention", "caught", "lists", "table"]
    assert [ids(demo, fn) for fn in fns["select"]] == [[name] for name in choosers]
    assert ids(demo, fns["choose_example"][0]) == ["picker"]
    assert [ids(demo, fn) for fn in fns["visit"]] == [["lists"], ["table"]]
    assert ids(demo, fns["set_basis"][0]) == ["question"]
    assert [ids(demo, fn) for fn in fns["near"]] == [["table"], ["lists"]]
    assert ids(demo, fns["choose"][0]) == ["table"]
    assert ids(demo, fns["status"][0]) == ["top"]  # which is on the page from the start
    assert ids(demo, fns["upload"][0]) == ["upload-file"]
    assert ids(demo, fns["choose_elmo"][0]) == ["elmo"]


def test_what_a_part_sends_is_read_when_its_handler_runs(demo):
    """As its value and the last input; event data would be that of the first of quick events."""
    for name in (
        "select",
        "visit",
        "set_basis",
        "warm",
        "fit",
        "paint",
        "near",
        "choose",
        "status",
        "step",
        "grid",
        "interaction",
    ):
        for fn in by_name(demo)[name]:
            assert [c.elem_id for c in fn.inputs[-1:]] == ids(demo, fn)


def test_helper_events_are_private_and_endpoints_public(demo):
    visible = {fn.name: fn.api_visibility for fn in demo.fns.values()}
    assert {n for n, v in visible.items() if v == "public"} == ENDPOINTS
    assert all(v == "private" for n, v in visible.items() if n in ("run", "select", "visit"))


def test_no_event_blocks_another_visitor_or_draws_a_veil(demo):
    for fn in demo.fns.values():
        if fn.fn is None:
            continue  # runs in the browser
        assert fn.concurrency_limit > 1
        if fn.api_visibility == "private":
            assert fn.trigger_mode == "always_last"
            assert fn.show_progress == "hidden"
            assert len(fn.outputs) <= 6


def test_nothing_is_recorded_shared_or_served_from_elsewhere(demo, services):
    options = launch_options(services)
    assert options["run_history"] is False and options["share"] is False
    assert demo.analytics_enabled is False
    assert "http" not in options["head"] and "@import" not in options["head"]


def test_scripts_and_styles_are_all_loaded_and_exist():
    on_disk = {path.name for path in STATIC.iterdir()}
    assert on_disk == {*SCRIPTS, *STYLES, *OFFLINE, "favicon.png"}
    tags = script_tags(needs_plotly=True)
    assert all(name in tags for name in (*SCRIPTS, PLOTLY_JS.name))
    assert PLOTLY_JS.name not in script_tags(needs_plotly=False)


def test_starting_loads_nothing_slow_that_is_not_needed():
    code = (
        "import sys, app.ui, app.cli, app.services;"
        "print([m for m in ('umap', 'numba', 'sklearn', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def imports_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importing(pattern, *names):
    return [
        f"{path.name}: {found}"
        for path in sorted(ROOT.glob(pattern))
        for found in imports_of(path)
        if found.startswith(names)
    ]


@pytest.mark.parametrize(
    ("pattern", "forbidden"),
    [
        ("elmo/**/*.py", ("app", "gradio", "plotly")),
        ("elmo/training/*.py", ("elmo.original", "elmo.banks", "elmo.both_ways", "elmo.probing")),
        ("elmo/original/*.py", ("elmo.training", "elmo.banks", "elmo.both_ways", "elmo.probing")),
        ("elmo/banks/*.py", ("elmo.training", "elmo.original", "elmo.both_ways", "elmo.probing")),
        ("elmo/both_ways/*.py", ("elmo.training", "elmo.original", "elmo.banks", "elmo.probing")),
        ("elmo/*.py", ("elmo.training", "elmo.banks", "elmo.both_ways", "elmo.probing")),
        ("app/views/*.py", ("gradio", "torch", "app.handlers", "app.tabs")),
        ("app/handlers/*.py", ("torch", "app.tabs")),
        ("app/state.py", ("gradio", "torch", "elmo")),
        ("app/services.py", ("gradio",)),
        ("app/tabs/*.py", ("app.tabs", "app.services", "elmo")),
        ("elmo/banks/mixing.py", ("torch",)),
        ("elmo/banks/bank.py", ("torch",)),
        ("elmo/banks/projection.py", ("torch",)),
        ("app/**/*.py", ("umap", "numba", "sklearn")),
    ],
)
def test_layers_point_one_way(pattern, forbidden):
    assert importing(pattern, *forbidden) == []


def test_python_modules_stay_readable():
    long = {
        path.name: n
        for path in [*ROOT.glob("app/**/*.py"), *ROOT.glob("app/static/*.js")]
        if (n := len(path.read_text(encoding="utf-8").splitlines())) > 380
    }
    assert not long
