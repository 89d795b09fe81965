"""Gaps: what the page is told, against the predictors themselves."""

import json

import gradio as gr
import pytest

from app.handlers.gaps import MAX_TOKENS, N_WORDS, GapsHandlers, unread
from app.settings import ROOT
from app.state import Selection
from app.views.gaps import guess_view
from elmo.both_ways.cloze import Exponents, fill_gap
from elmo.encoders import load_encoder
from elmo.text import MASK

TOKENS = ("the", "cat", "saw", "the", "mat")


@pytest.fixture(scope="module")
def handlers(services):
    return GapsHandlers(services)


def sent(**data):
    return json.dumps({"request": 3, "sentence": 0, "position": 0, **data})


def ask(handlers, text, **data):
    selection = Selection(text=text, pretokenized=True)
    return json.loads(handlers.guess(selection, sent(**data)))["gaps"]


def test_encoders_without_a_softmax_say_so_and_repeated_words_stay_apart(handlers):
    view = ask(handlers, "the cat the mat", position=2)
    assert view["tokens"] == ["the", "cat", "the", "mat"]
    assert view["position"] == 2 and view["guesses"] == []
    assert [one["kind"] for one in view["unread"]] == list(handlers.services.models)
    assert all("no softmax" in one["why"] for one in view["unread"])


def test_the_columns_are_the_predictors_own_numbers():
    folder = ROOT / "assets" / "models" / "bilm"
    if not (folder / "weights.safetensors").is_file():
        pytest.skip(f"no trained weights in {folder}")
    encoder = load_encoder(folder)
    chosen = {encoder.name: Exponents(1.0, 1.0, 1.0)}
    guesses = fill_gap([encoder], TOKENS, 1, chosen, N_WORDS)
    views = [guess_view(guess) for guess in guesses]
    assert [view["predictor"] for view in views] == ["forward", "backward", "product"]
    for view in views:
        assert view["probabilities"] == sorted(view["probabilities"], reverse=True)
        assert len(view["words"]) == N_WORDS
        if view["rank"] <= N_WORDS:
            assert view["words"][view["rank"] - 1] == "cat"
    outside = fill_gap([encoder], ("a", "qzxqzx", "b"), 1)
    assert guess_view(outside[0])["rank"] is None
    assert unread(encoder, 60) is None


def test_shipped_gaps_hold_their_answer_and_a_label(handlers):
    labels = [gap["label"] for gap in handlers.gaps]
    assert labels.count("interacting") >= 40 and labels.count("additive") >= 40
    for gap in handlers.gaps:
        assert MASK not in gap["tokens"] and "[gap]" not in gap["tokens"]
        assert 0 <= gap["position"] < len(gap["tokens"])


def test_the_table_is_the_shipped_one(handlers):
    view = handlers.opening()["table"]
    for shown, row in zip(view["rows"], handlers.table.rows, strict=True):
        assert shown["values"] == pytest.approx(row.values) and shown["n"] == row.n
        assert all(difference[i] == 0 for i, difference in enumerate(shown["difference"]))


@pytest.mark.parametrize(
    ("text", "data", "problem"),
    [
        ("a b", {"position": 2}, "position must be a number from 0 to 1"),
        (" ".join("a" * (MAX_TOKENS + 1)), {}, f"{MAX_TOKENS} at most"),
        ("a b", {"gap": 10_000}, "gap must be a number"),
    ],
)
def test_bad_input_is_refused_with_the_reason(handlers, text, data, problem):
    with pytest.raises(gr.Error, match=problem):
        ask(handlers, text, **data)


@pytest.mark.parametrize("values", [[1, 2], ["a", 1, 1], [9, 1, 1], [True, 1, 1], "x"])
def test_exponents_out_of_range_are_refused(handlers, values):
    with pytest.raises(ValueError, match="exponent"):
        handlers._exponents("bilm", sent(exponents={"bilm": values}))
