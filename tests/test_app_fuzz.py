"""Anything may arrive: every endpoint and every handler answers it or says what is wrong with it.

The only exception that leaves one is ``gr.Error``, which reads as a message.
"""

import inspect
import json
import warnings
from dataclasses import replace
from itertools import islice

import gradio as gr
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.choice import POOLS, Choice
from app.endpoints import Endpoints
from app.handlers.attention import AttentionHandlers
from app.handlers.gaps import GapsHandlers
from app.handlers.influence import MEASURES, InfluenceHandlers
from app.handlers.lecture import LectureHandlers
from app.handlers.maps import MapHandlers
from app.handlers.neighbors import NeighborHandlers
from app.handlers.page import Handlers
from app.handlers.share import ShareHandlers
from app.handlers.tasks import TasksHandlers
from app.handlers.word import WordHandlers
from app.lecture import load_lecture
from app.link import View, encode

N_CASES, FEW = 90, 25  # of each of the more than 30; of those that compute anew each time
SLOW = (
    *("Handlers.select", "Handlers.choose_elmo", "WordHandlers.spelling", "LectureHandlers.step"),
    *("AttentionHandlers.gradient", "ShareHandlers.open"),
)


def cases(name):
    return settings(
        max_examples=FEW if name in SLOW else N_CASES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


# Texts are few and short, so that most are in the caches: what is tried is the way there.
TEXTS = st.sampled_from(
    [
        "The bank closed .",
        "A play .\nIt is old .",
        "",
        " \n",
        "x" * 90,
        "\x00 \ud800 <S> \U0001f600",
    ]
) | st.text(max_size=12)
NUMBERS = st.integers(-2, 4) | st.integers() | st.floats() | st.booleans()
SCALARS = st.none() | NUMBERS | TEXTS
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = {  # what the page really sends, by name
    "sentence": st.integers(0, 1),
    "token": st.integers(0, 3),
    "position": st.integers(0, 3),
    "request": st.integers(0, 9),
    "piece": st.just(0),
    "step": st.integers(0, 3),
    "revealed": st.booleans(),
    "seed": st.integers(0, 3),
    "gap": st.none() | st.integers(0, 3),
    "example": st.none() | st.integers(0, 3),
    "number": st.integers(0, 5),
    "measure": st.sampled_from(MEASURES),
    "basis": st.sampled_from(["all", "word", "layers"]),
    "dims": st.integers(2, 3),
    "behind": st.booleans(),
    "color": st.sampled_from(["sense", "pos", "frequency"]),
    "question": st.sampled_from(["word", "sense"]),
    "layer": st.integers(0, 2),
    "head": st.integers(0, 3),
    "query": st.integers(0, 3),
    "key": st.integers(0, 3),
    "address": st.just("http://localhost:7860/"),
    "code": st.just(encode(View(text="The bank closed ."))),
    "pool": st.sampled_from(POOLS),
    "pools": st.lists(st.sampled_from(POOLS), max_size=3),
    "words": st.sampled_from(["any", "only", "exclude"]),
    "metric": st.sampled_from(["cosine", "dot", "euclidean"]),
    "encoder": st.sampled_from(["bilm", "attention"]),
    "source": st.sampled_from(["own", "pos", "sense"]),
    "exponents": st.just({"bilm": [1, 1, 0.5]}),
    "weights": st.just({"bilm": [0, 1, 2]}),
    "left": st.just({"start": 0, "stop": 1, "text": "An"}),
    "right": st.just({"start": 2, "stop": 3, "text": "opened"}),
}
SENT = (
    st.fixed_dictionaries({}, optional={k: v | ANYTHING for k, v in NAMES.items()}).map(json.dumps)
    | st.fixed_dictionaries({}, optional={**NAMES, "text": TEXTS, "word": TEXTS}).map(json.dumps)
    | ANYTHING.map(lambda value: json.dumps(value))
    | ANYTHING
)


@pytest.fixture(scope="module")
def everything(services):
    """All handlers of the page and all endpoints, by name."""
    page = Handlers(services)
    influence, gaps = InfluenceHandlers(services), GapsHandlers(services)
    bound = (
        page,
        NeighborHandlers(services),
        WordHandlers(services),
        influence,
        gaps,
        MapHandlers(services),
        AttentionHandlers(services),
        TasksHandlers(services),
        ShareHandlers(page, ("maps", "gaps")),
        LectureHandlers(page, load_lecture(services.settings.lecture)),
        Endpoints(services, influence, gaps),
    )
    return {
        f"{type(one).__name__}.{name}": call
        for one in bound
        for name, call in inspect.getmembers(one, inspect.ismethod)
        if hasattr(call, "__wrapped__")
    }


def selections(first):
    """What a visitor can have chosen, and what a later text can have left of it."""
    return st.builds(
        lambda text, pretokenized, sentence, token, choice: replace(
            first,
            text=text,
            pretokenized=pretokenized,
            sentence=sentence,
            token=token,
            choice=choice,
        ),
        st.sampled_from(["The bank closed .", "A play .\nIt is old ."]),
        st.booleans(),
        st.just(0),
        st.integers(0, 2),
        st.builds(Choice, words=NAMES["words"], metric=NAMES["metric"], unit=st.booleans()),
    )


def tried(call, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(*args, **kwargs)
            if inspect.isgenerator(found):
                list(islice(found, 1))
                found.close()
        except gr.Error as error:
            assert str(error.message)


HANDLERS = [
    *(f"Handlers.{name}" for name in ("select", "visit", "ask")),
    *(f"MapHandlers.{name}" for name in ("set_basis", "fit", "paint")),
    *(f"AttentionHandlers.{name}" for name in ("heads", "cell", "objectives", "gradient")),
    *("ShareHandlers.link", "ShareHandlers.open"),
    *(f"NeighborHandlers.{name}" for name in ("near", "choose", "status")),
    *(f"WordHandlers.{name}" for name in ("word", "spelling", "edit")),
    *("InfluenceHandlers.grid", "InfluenceHandlers.interaction", "GapsHandlers.guess"),
    *("TasksHandlers.train", "LectureHandlers.step"),
]
TYPED = [
    "Handlers.run",
    "Handlers.choose_example",
    "Handlers.choose_elmo",
    "NeighborHandlers.upload",
]
ENDPOINTS = [f"Endpoints.{n}" for n in ("encode", "mix", "neighbors", "influence", "cloze")]


def test_every_handler_is_tried(everything):
    assert set(everything) == {*HANDLERS, *TYPED, *ENDPOINTS}
    assert sum(FEW if name in SLOW else N_CASES for name in everything) >= 2_000


@pytest.mark.parametrize("name", HANDLERS)
def test_what_the_page_sends(everything, services, name):
    call, first = everything[name], Handlers(services).first_view()[0]

    @cases(name)
    @given(selections(first), SENT)
    def runs(selection, sent):
        tried(call, selection, sent)

    runs()


@pytest.mark.parametrize("name", TYPED)
def test_what_a_visitor_types(everything, services, name):
    call, first = everything[name], Handlers(services).first_view()[0]

    @cases(name)
    @given(selections(first), TEXTS | ANYTHING, st.booleans() | ANYTHING)
    def runs(selection, typed, pretokenized):
        between = (pretokenized,) if name == "Handlers.run" else ()
        tried(call, typed, *between, selection)

    runs()


@pytest.mark.parametrize("name", ENDPOINTS)
def test_what_a_program_asks(everything, name):
    call = everything[name]
    likely = {
        "text": TEXTS,
        "encoder": NAMES["encoder"],
        "weights": st.just([0.0, 1.0, 2.0]),
        "layer": st.integers(0, 2),
        "n": st.integers(1, 9),
        "measure": NAMES["measure"],
        "metric": NAMES["metric"],
    }
    parameters = inspect.signature(call).parameters
    arguments = {k: likely.get(k, st.integers(0, 2)) | ANYTHING for k in parameters}

    @cases(name)
    @given(st.fixed_dictionaries(arguments))
    def runs(arguments):
        tried(call, **arguments)

    runs()
