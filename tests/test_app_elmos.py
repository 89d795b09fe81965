"""A biLM in the original format, of a width and depth of its own, in ELMo's place."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT
from small_models import small_config, small_model

from app.handlers.gaps import GapsHandlers
from app.handlers.influence import InfluenceHandlers
from app.handlers.page import Handlers
from app.handlers.word import WordHandlers
from app.packing import unpack
from app.services import load_services
from app.views.page import bank_view
from elmo.both_ways.influence import gap_replacements, replacement_grid
from elmo.checkpoint import save_model
from elmo.encoders import load_elmo
from elmo.language_model import build
from elmo.original.hdf5 import write_model

# Layers above the characters, and the width of one direction.
SHAPES = {"shallow": (1, 8), "deep": (5, 24)}


def write_elmo(folder, n_layers, width):
    config = small_config("bilm")
    stack = replace(config.stack, n_layers=n_layers, d_projection=width)
    char = replace(config.char, d_output=width)
    write_model(folder, build(replace(config, stack=stack, char=char), seed=1))
    (folder / "weights.hdf5").rename(folder / f"{folder.name}.hdf5")
    return folder / "options.json", folder / f"{folder.name}.hdf5"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elmos")
    return {name: write_elmo(folder / name, *shape) for name, shape in SHAPES.items()}


@pytest.fixture(scope="module")
def with_elmos(services, files):
    return load_services(replace(services.settings, elmos=tuple(files.values())))


@pytest.mark.parametrize("name", SHAPES)
def test_a_given_model_takes_elmos_place_at_its_own_width_and_depth(with_elmos, files, name):
    handlers = Handlers(with_elmos)
    selection, _ = handlers.first_view()
    chosen, message = handlers.choose_elmo(name, selection)
    view = json.loads(message)
    n_layers, width = 1 + SHAPES[name][0], 2 * SHAPES[name][1]
    assert chosen == replace(selection, elmo=name)
    assert view["bank"]["lead"] == "bilm"
    told = view["bank"]["encoders"]["bilm"]
    assert (told["n_layers"], told["d_model"], told["trained"]) == (n_layers, width, True)
    assert told["note"] == f"{name}, {width} wide"
    assert len(view["maps"]["encoders"]["bilm"]["scale"]) == n_layers
    assert len(view["near"]["encoders"]["bilm"]["norm"]) == n_layers * (n_layers + 1) // 2
    assert view["query"]["triangle"] is None  # mixes of other than three layers fill no triangle
    text = with_elmos.parse(chosen.text, False)
    alone = load_elmo(*files[name]).encode([list(text[0])])[0]
    bank = with_elmos.using(name).encode("bilm", text)
    rows = slice(0, len(text[0]))
    np.testing.assert_allclose(bank.vectors[rows].transpose(1, 0, 2), alone.hidden, atol=1e-6)


def test_the_choice_is_one_visitors_and_stays_with_the_text(with_elmos):
    handlers = Handlers(with_elmos)
    selection, _ = handlers.first_view()
    chosen, _ = handlers.choose_elmo("deep", selection)
    after, message, _ = handlers.run("The bat flew .", False, chosen)
    assert after.elmo == "deep"
    assert len(json.loads(message)["near"]["encoders"]["bilm"]["norm"]) == 21
    _, message, _ = handlers.run("The bat flew .", False, selection)
    assert len(json.loads(message)["near"]["encoders"]["bilm"]["norm"]) == 6
    back, message = handlers.choose_elmo("", after)
    assert back.elmo == "" and json.loads(message)["bank"]["encoders"]["bilm"]["n_layers"] == 3
    text = with_elmos.parse("The bat flew .", False)
    shared = with_elmos.using("deep").encode("attention", text)
    assert shared is with_elmos.encode("attention", text)


def test_every_tab_follows_the_model_in_elmos_place(with_elmos, files):
    selection = Handlers(with_elmos).choose_elmo("deep", Handlers(with_elmos).first_view()[0])[0]
    tokens = with_elmos.examples[0].tokens[0]
    place = {"sentence": 0, "token": 2, "position": 2, "request": 1, "piece": 0}
    deep = load_elmo(*files["deep"])

    word = WordHandlers(with_elmos).word(selection, json.dumps(place))
    found = json.loads(word)["word"]["encoders"]["bilm"]["inside"]
    assert (found["n_layers"], found["d_model"]) == (deep.n_layers, deep.d_model)
    values = deep.encode([list(tokens)])[0].hidden[:, 2]
    np.testing.assert_allclose(unpack(found["values"], *values.shape), values, atol=1e-5)

    asked = json.dumps(place | {"measure": "gap"})
    grid = json.loads(InfluenceHandlers(with_elmos).grid(selection, asked))["influence"]
    assert grid["kind"] == "bilm"
    expected = replacement_grid(deep, tokens, gap_replacements(tokens))
    assert grid["n_layers"] == deep.n_layers and grid["n_broken"] == 0
    assert grid["n_zero"] == expected.n_zero > 0

    both = json.loads(InfluenceHandlers(with_elmos).interaction(selection, json.dumps(place)))
    n_between = both["interaction"]["encoders"]["bilm"]["n_between"]
    assert both["interaction"]["encoders"]["bilm"]["n_zero"] == [n_between] * (deep.n_layers + 1)

    gaps = json.loads(GapsHandlers(with_elmos).guess(selection, json.dumps(place)))["gaps"]
    why = {entry["kind"]: entry["why"] for entry in gaps["unread"]}
    assert "has no softmax" in why["bilm"]


def test_a_model_that_is_not_there_is_refused(with_elmos):
    with pytest.raises(ValueError, match="one of 'shallow', 'deep', got 'gpt'"):
        with_elmos.using("gpt")


def test_equal_file_names_stay_apart(services, files):
    again = load_services(replace(services.settings, elmos=(files["shallow"], files["shallow"])))
    assert again.elmos == ("shallow", "shallow (2)")


def test_the_concatenated_attention_joins_where_its_weights_are(services, tmp_path):
    assert "attention_concat" not in bank_view(services)["encoders"]
    _save_concatenated(tmp_path / "attention_concat")
    found = load_services(replace(services.settings, models=tmp_path))
    told = bank_view(found)["encoders"]
    assert list(told) == ["bilm", "attention", "attention_concat"]
    assert told["attention_concat"]["name"] == "Concatenated attention"
    assert told["attention_concat"]["trained"] and not told["bilm"]["trained"]
    _, message = Handlers(found).first_view()
    assert set(json.loads(message)["maps"]["encoders"]) == set(told)


def app(*arguments):
    command = [sys.executable, "app.py", "--no-wordnet", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("fault", ["cut", "missing", "swapped", "alone"])
def test_a_bad_file_ends_the_start_with_one_message(files, tmp_path, fault):
    options, weights = files["shallow"]
    broken = tmp_path / "broken.hdf5"
    if fault == "cut":
        broken.write_bytes(weights.read_bytes()[:1000])
    pair = [options, weights if fault == "alone" else broken]
    if fault == "swapped":
        pair = [weights, options]
    flags = ["--elmo-options", pair[0], "--elmo-weights", pair[1]]
    running = app(*(flags[:2] if fault == "alone" else flags))
    _, errors = running.communicate(timeout=180)
    assert running.returncode == 2
    assert "Traceback" not in errors
    assert errors.count("app.py: error: ") == 1


def test_the_menu_switches_every_view_to_the_models_depth(browser, files):
    flags = [f for o, w in files.values() for f in ("--elmo-options", o, "--elmo-weights", w)]
    running = app("--port", _free_port(), *flags)
    try:
        address = next(m[0] for line in running.stdout if (m := re.search(r"http://\S+", line)))
        page = browser.new_context(viewport={"width": 1366, "height": 768}).new_page()
        troubles = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda m: m.type == "error" and troubles.append(m.text))
        page.goto(address)
        _shows(page, n_layers=3)
        for name, (n_above, _) in [*SHAPES.items(), ("shipped biLM", (2, 0))]:
            page.locator("#elmo input").click()
            page.get_by_role("option", name=name).click()
            _shows(page, n_layers=1 + n_above)
        assert not troubles
        page.context.close()
    finally:
        running.kill()
        running.communicate()


def _shows(page, n_layers):
    """As many maps, lists and sliders as the model has layers, and a mix each."""
    page.wait_for_function(
        "n => window.bothways?.state?.run && bothways.state.bank.encoders.bilm.n_layers === n",
        arg=n_layers,
    )
    page.wait_for_selector("#maps-bilm .mix path.point")
    page.wait_for_selector("#lists .list[data-encoder='bilm'][data-layer='mix'] .neighbor:visible")
    panels = page.locator("#maps-bilm .panel:not(.all-mixes)")
    assert panels.count() == n_layers + 1
    dots = [panel.locator("path.point").count() for panel in panels.all()]
    assert dots[0] > 0 and len(set(dots)) == 1
    assert page.locator("#maps-bilm .all-mixes").count() == (n_layers == 3)
    assert page.locator("#lists .list[data-encoder='bilm']").count() == n_layers + 1
    assert page.locator("#mixing input[type=range]").count() == n_layers + 1
    assert page.locator("#mixing .segment").count() == n_layers
    assert page.locator("#maps-attention .panel").count() == 5


def _free_port():
    from app.cli import _free_port as free

    return free("127.0.0.1", 7950)


def _save_concatenated(folder):
    save_model(folder, small_model("attention_concat"), [], {})
