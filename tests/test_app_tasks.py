"""Tasks and Claims: what the page is told, and a probe that learns from a visitor's labels."""

import json

import gradio as gr
import numpy as np
import pytest

from app.handlers.tasks import STEPS, TasksHandlers
from app.state import Selection
from app.views.tasks import claims_view, task_mixes, tasks_view
from elmo.probing.claims import Claim, Comparison, Contrast, judge
from elmo.probing.labeled import labeled_features, parse_labeled
from elmo.probing.probe_features import EncoderSource
from elmo.probing.probe_report import read_table
from elmo.probing.probes import layer_accuracies, train_probe
from elmo.results import Difference, ProbeMix, ProbeScore, ProbeTable

LABELED = "\n".join(
    f"{word}\t{label}"
    for i in range(30)
    for word, label in (("the", "D"), (f"cat{i}", "N"), ("runs", "V"), ("", ""))
)
TEXT = "the cat saw the mat"


@pytest.fixture(scope="module")
def handlers(services):
    return TasksHandlers(services)


def sent(**data):
    given = {"request": 4, "seed": 2, "encoder": "bilm", "source": "own", "text": LABELED}
    return json.dumps(given | data)


def hand_made():
    about = {
        "command": "python -m elmo probe",
        "date": "2020-01-01",
        "settings": {"n_train": 10},
        "seeds": [0, 1],
        "tasks": {"upos": {"what": "part of speech", "kind": "syntactic", "data": "d"}},
        "encoders": {"untrained": "u", "bilm": "b", "none": "none"},
    }
    scores = tuple(
        ProbeScore("upos", encoder, name, metric, mean, mean - 1, mean + 1, 50, 10, 2)
        for encoder, name, metric, mean in (
            ("bilm", "layer_0", "score", 80.0),
            ("bilm", "layer_1", "score", 90.0),
            ("bilm", "layer_1", "selectivity", 30.0),
            ("bilm", "layer_1", "unseen", 70.0),
            ("none", "word_majority", "score", 60.0),
        )
    )
    weights = (0.2, 0.5, 0.3), (0.1, 0.4, 0.2), (0.3, 0.6, 0.4)
    mixes = tuple(
        ProbeMix("upos", "bilm", name, *weights, raw, 2.0, 1.1, 1.0, 1.2, 2)
        for name, raw in (("mix_0.001", (0.2, 0.5, 0.3)), ("mix_equal_0.001", (0.7, 0.2, 0.1)))
    )
    return ProbeTable(about, scores, mixes, ())


def test_the_page_is_told_the_tables_own_numbers():
    view = tasks_view(hand_made())
    assert view["encoders"] == [
        {"kind": "bilm", "name": "ELMo"},
        {"kind": "untrained", "name": "untrained biLM"},
    ]
    assert view["scores"]["upos"]["bilm"] == {
        "layer_0": [80.0, 79.0, 81.0, 50],
        "layer_1": [90.0, 89.0, 91.0, 50],
    }
    assert view["scores"]["upos"]["none"]["word_majority"][0] == 60.0
    assert view["selectivity"]["upos"]["bilm"] == {"layer_1": [30.0, 29.0, 31.0, 50]}
    mix = view["mixes"]["upos"]["bilm"]["mix_equal_0.001"]
    assert mix["raw"] == (0.7, 0.2, 0.1) and mix["gravity"] == [1.1, 1.0, 1.2]
    json.dumps(view)
    assert tasks_view(None) is None


def test_marks_and_presets_are_weights_for_layers_as_they_are():
    (mark,) = task_mixes(hand_made(), "bilm")
    assert mark["s"] == [0.2, 0.5, 0.3] and mark["preset"] == "POS" and mark["kind"] == "syntactic"
    assert task_mixes(hand_made(), "attention") == [] == task_mixes(None, "bilm")


def test_a_claim_is_told_with_both_numbers_and_its_verdict():
    contrast = Contrast("d", ("upos",), ((1, "bilm", "layer_1"), (-1, "bilm", "layer_0")))
    claim = Claim("c", "more", "0.5", "paper", (Comparison("what", contrast, 0.5),), view="Word")
    difference = Difference("d", 10.0, 9.0, 11.0, "points", "50")
    (view,) = claims_view(judge([claim], {"d": difference}))
    assert view["verdict"] == "supported here" and view["view"] == "word"
    (test,) = view["tests"]
    assert test["paper"] == 0.5
    assert test["measured"] == {"mean": 10.0, "low": 9.0, "high": 11.0, "unit": "points", "n": "50"}
    (unmeasured,) = claims_view(judge([claim], {}))
    assert unmeasured["tests"][0]["measured"] is None
    assert unmeasured["verdict"] == "not measured yet"


def test_every_claim_leads_to_a_tab_that_is_there(handlers, demo):
    tabs = {b.id for b in demo.blocks.values() if isinstance(b, gr.Tab)}
    claims = handlers.claims()
    assert len(claims) >= 10
    assert {claim["view"] for claim in claims} <= tabs


def test_own_labels_train_the_probe_that_the_library_trains(handlers, services):
    messages = [json.loads(m)["probe"] for m in handlers.train(Selection(TEXT), sent())]
    assert all(m["request"] == 4 for m in messages)
    reports, end = [m["report"] for m in messages[:-1]], messages[-1]["end"]
    features, labels, _, groups = labeled_features(
        services.model("bilm").encoder, parse_labeled(LABELED)
    )
    run = train_probe(features, labels, groups, seed=2, steps=STEPS)
    assert [r["step"] for r in reports] == [s.step for s in run.steps]
    np.testing.assert_allclose(reports[-1]["s"], run.steps[-1].scalar_weights)
    assert reports[0]["s"] == pytest.approx([1 / 3] * 3)
    assert end["majority"] == run.majority_accuracy and end["n_labels"] == 3
    assert end["layers"] == layer_accuracies(features, labels, groups, seed=2)
    assert reports[-1]["held_out"] > 0.9  # three words of which two are always the same


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"source": "verbs"}, "source must be one of pos, supersense, own, got 'verbs'"),
        ({"source": "pos"}, "WordNet's sentences are not there yet"),
        ({"encoder": "gpt"}, "encoder must be one of"),
        ({"seed": 1_000}, "seed must be a number from 0 to 999"),
        ({"text": "no tab here"}, "no tab in"),
        ({"text": "a\tX\n\nb\tX\n" * 20}, "2 to 100 labels"),
        ({"column": "lemma"}, "column must be one of"),
    ],
)
def test_what_cannot_be_trained_says_why(handlers, change, says):
    with pytest.raises(gr.Error) as error:
        list(handlers.train(Selection(TEXT), sent(**change)))
    assert says in error.value.message.replace("&#x27;", "'")


def test_the_shipped_table_is_of_the_shipped_models(services):
    path = services.settings.probes / "table.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    table = read_table(path)
    for kind, key in table.about["encoders"].items():
        folder = type(services.settings).models / kind
        if (folder / "weights.safetensors").is_file():
            assert EncoderSource(kind, folder).key == key
