"""Attention and learning: what the page is told, against the encoders themselves."""

import json

import gradio as gr
import numpy as np
import pytest
from small_models import KINDS, small_encoder, small_model

from app.handlers.attention import MAX_TOKENS, AttentionHandlers
from app.services import Services, make_model
from app.settings import ROOT, Settings
from app.state import Selection
from app.views.attention import FULL, allowed_cells, cell_view, heads_view, reach_view
from app.views.attention import unpack_weights as unpack
from app.views.learning import curves_view, objective_view
from elmo.banks.bank import build_bank
from elmo.both_ways.attention_maps import attention_cell, rollout
from elmo.both_ways.learning_signal import objective
from elmo.checkpoint import save_model
from elmo.encoders import load_encoder, untrained_encoder
from elmo.training.curves import GAPS, Curve

TOKENS = ("the", "cat", "saw", "the", "mat")
WORDS = ["<S>", "</S>", "<UNK>", *sorted(set(TOKENS))]
N = len(TOKENS) + 2
TEXT = " ".join(TOKENS)
WITH_HEADS = ("attention", "attention_concat")


class _Example:
    """As much of an ``Example`` as the services read."""

    id, word, more, senses = "one", None, (), (None, None)

    def __init__(self, tokens):
        self.tokens = tokens
        self.sentences = tuple(" ".join(sentence) for sentence in tokens)


@pytest.fixture(scope="module")
def handlers(tmp_path_factory):
    """All three kinds of encoder, small, with a softmax over six words."""
    models = []
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        save_model(folder, small_model(kind, len(WORDS)), WORDS, {"name": kind})
        encoder = load_encoder(folder)
        models.append(make_model(encoder, True, build_bank((TOKENS,), encoder.encode([TOKENS]))))
    return AttentionHandlers(Services(Settings(), [_Example((TOKENS, TOKENS[:3]))], models))


def ask(handlers, event, topic, text=TEXT, **data):
    sent = {"request": 7, "sentence": 0, "kind": "attention", "layer": 1, "head": 0}
    sent |= {"query": 1, "key": 2, "draw": 0, **data}
    selection = Selection(text=text, pretokenized=True)
    view = json.loads(getattr(handlers, event)(selection, json.dumps(sent)))[topic]
    assert view["request"] == 7
    return view


def squares(stack, name, *leading):
    """A stack's weights as squares, closed cells 0."""
    allowed = allowed_cells(stack["direction"], N)
    found = np.zeros((*leading, N, N))
    found[..., allowed] = unpack(stack[name], *leading, allowed.sum())
    return found


@pytest.mark.parametrize("kind", WITH_HEADS)
def test_heads_are_the_encoders_rows_sum_to_1_and_closed_cells_are_0(handlers, kind):
    view = ask(handlers, "heads", "heads", kind=kind)
    encoder = handlers.services.models[kind].encoder
    (encoding,) = encoder.encode([TOKENS], attention=True)
    n_layers, n_heads = view["n_layers"], view["n_heads"]
    heads = [squares(stack, "heads", n_layers, n_heads) for stack in view["stacks"]]
    np.testing.assert_allclose(np.concatenate(heads, axis=1), encoding.attention, atol=1 / FULL)
    reached = rollout(encoding, kind)
    for stack, found in zip(view["stacks"], heads, strict=True):
        np.testing.assert_allclose(found.sum(axis=-1), 1, atol=N / FULL)
        stack_rollout = squares(stack, "rollout", n_layers)
        np.testing.assert_allclose(stack_rollout, reached[stack["direction"]], atol=1 / FULL)
        closed = 0 if kind == "attention" else n_layers * n_heads * N * (N - 1) // 2
        assert stack["n_zero"] == stack["n_closed"] == closed
    assert np.shape(view["statistics"]["entropy"]) == encoding.attention.shape[:2]
    assert view["tokens"] == list(TOKENS)  # both copies of a word keep their place


@pytest.mark.parametrize("kind", WITH_HEADS)
@pytest.mark.parametrize(("query", "key"), [(2, 1), (3, 3), (1, 4), (0, 6)])
def test_a_cell_can_be_recomputed_from_the_numbers_sent(handlers, kind, query, key):
    encoder = handlers.services.models[kind].encoder
    (encoding,) = encoder.encode([TOKENS], attention=True)
    for head in range(encoding.attention.shape[1]):
        cell = ask(handlers, "cell", "cell", kind=kind, head=head, layer=2, query=query, key=key)
        assert cell["products"] == pytest.approx(np.multiply(cell["query"], cell["key"]), rel=1e-4)
        assert cell["dot"] == pytest.approx(sum(cell["products"]), abs=1e-4)
        powers = [0 if score is None else np.exp(score) for score in cell["scores"]]
        weights = np.divide(powers, sum(powers))
        np.testing.assert_allclose(weights, encoding.attention[1, head, query], atol=1e-5)
        np.testing.assert_allclose(cell["weights"], weights, atol=1e-5)
        if cell["scores"][key] is not None:
            assert cell["scores"][key] == pytest.approx(cell["dot"] / cell["scale"], abs=1e-4)
        else:
            assert cell["weights"][key] == 0


@pytest.mark.parametrize("kind", WITH_HEADS)
def test_the_longest_sentence_of_the_shipped_shape_stays_small(kind):
    encoder = untrained_encoder(kind)
    tokens = ["word"] * MAX_TOKENS
    (encoding,) = encoder.encode([tokens], attention=True)
    assert len(json.dumps(heads_view(encoding, kind))) < 300_000
    n_characters = len(json.dumps(cell_view(attention_cell(encoder, tokens, 1, 0, 1, 1))))
    assert n_characters < 10_000


@pytest.mark.parametrize("kind", ["bilm", "attention_concat"])
def test_the_backward_loss_leaves_the_forward_stack_exactly_alone(handlers, kind):
    view = ask(handlers, "gradient", "gradient", kind=kind)
    assert view["losses"] == ["forward", "backward"]
    assert view["zero"] == [[False, False, True, False], [False, True, False, False]]
    assert view["norm"][1][1] == 0 and view["norm"][1][0] > 0 and view["norm"][1][3] > 0


def test_an_encoder_without_a_softmax_says_so():
    encoder = small_encoder("bilm")
    model = make_model(encoder, False, build_bank((TOKENS,), encoder.encode([TOKENS])))
    handlers = AttentionHandlers(Services(Settings(), [_Example((TOKENS, TOKENS[:3]))], [model]))
    assert "no softmax" in ask(handlers, "gradient", "gradient", kind="bilm")["gap"]
    opening = handlers.opening()
    assert opening["with_heads"] == [] and opening["reach"]["encoders"] == {}
    assert opening["learning"]["charts"] == []


def test_objectives_of_all_encoders(handlers):
    view = ask(handlers, "objectives", "objectives", draw=3)
    assert list(view["encoders"]) == list(handlers.services.models)
    expected = objective("attention", TOKENS, seed=3)
    joint = view["encoders"]["attention"]
    assert joint == objective_view(expected)
    assert all(row[t] == "0" for row in joint["context"] for t in joint["targets"])
    elmo = view["encoders"]["bilm"]
    assert elmo["targets"] == [1, 2, 3, 4, 5, 6, 0, 1, 2, 3, 4, 5]
    assert elmo["context"][0] == "1000000" and elmo["context"][6] == "0111111"


def test_half_lives_are_the_shipped_ones_of_trained_encoders():
    shipped = json.loads((ROOT / "assets" / "reach.json").read_text(encoding="utf-8"))
    view = reach_view(shipped, ["bilm"])
    assert list(view["encoders"]) == ["bilm"]
    (entry,) = [e for e in shipped["encoders"] if e["encoder"] == "bilm"]
    elmo = view["encoders"]["bilm"]
    assert elmo["half_life"] == entry["half_life"] and elmo["half_life"][0][0] is None
    assert view["longest"] == len(entry["profile"][0][0])
    low, high = elmo["half_life_interval"]
    for k in (1, 2):
        assert low[0][k] <= elmo["half_life"][0][k] <= high[0][k]


def test_curves_meet_by_metric():
    cost = {"tokens": (10, 20), "targets": (20, 40), "minutes": (1, 4)}
    lm = {"valid_mean": Curve(cost, (400.0, 100.0), "valid_mean")}
    half = {name: tuple(x / 2 for x in values) for name, values in cost.items()}
    other = {"valid_mean": Curve(half, (300.0, 200.0), "valid_mean")}
    masked = {GAPS: Curve(cost, (-6.0, -5.0), GAPS)}
    cards = {
        "a": {"history": "restarted", "command": "train --start MODEL_OF_1200_TOKENS"},
        "c": {"gap_logprob": {"joint": -4.5}},
    }
    view = curves_view({"a": lm, "b": other, "c": masked}, cards)
    assert view["history"] == {"a": "restarted"} and view["starts"] == {"a": 1200}
    perplexity, gaps = view["charts"]
    assert list(perplexity["curves"]) == ["a", "b"] and list(gaps["curves"]) == ["c"]
    assert perplexity["equal"]["tokens"]["at"] == 10
    assert perplexity["equal"]["tokens"]["scores"] == pytest.approx({"a": 400.0, "b": 200.0})
    assert gaps["equal"] is None
    other |= {GAPS: Curve(cost, (-7.0, -4.0), GAPS)}
    _, gaps = curves_view({"b": other, "c": masked}, {})["charts"]
    assert gaps["equal"]["minutes"] == {"at": 4, "scores": {"b": -4.0, "c": -5.0}}


@pytest.mark.parametrize(
    ("event", "data", "problem"),
    [
        ("heads", {"kind": "bilm"}, "kind must be one of attention, attention_concat, got"),
        ("heads", {"text": " ".join("a" * (MAX_TOKENS + 1))}, f"{MAX_TOKENS} at most"),
        ("cell", {"layer": 0}, "layer must be 1 to"),
        ("cell", {"layer": 9}, "layer must be a number from 0 to"),
        ("cell", {"head": -1}, "head must be a number from 0 to"),
        ("cell", {"query": N}, "query must be a number from 0 to 6"),
        ("cell", {"key": "x"}, "key must be a number from 0 to 6"),
        ("objectives", {"draw": 10**6}, "draw must be a number from 0 to 999"),
        ("gradient", {"kind": "<b>"}, "kind must be one of"),
    ],
)
def test_bad_input_is_refused_with_the_reason(handlers, event, data, problem):
    with pytest.raises(gr.Error, match=problem):
        ask(handlers, event, event, **data)
