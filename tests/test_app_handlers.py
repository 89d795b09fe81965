"""Handlers called directly: what a visitor's action does to the selection and tells the page."""

import json
from dataclasses import replace

import gradio as gr
import numpy as np
import pytest

from app.handlers.maps import MapHandlers
from app.handlers.page import Handlers
from app.packing import unpack
from app.state import Selection
from app.views.page import first_choice
from elmo.banks.mixing import simplex_grid
from elmo.banks.triangle import same_sense_shares


@pytest.fixture
def handlers(services):
    return Handlers(services)


@pytest.fixture
def maps(services):
    return MapHandlers(services)


@pytest.fixture
def first(handlers):
    return handlers.first_view()[0]


def event(**data):
    return json.dumps(data)


def test_the_page_opens_on_the_first_example(handlers, services):
    selection, message = handlers.first_view()
    view = json.loads(message)
    example = services.examples[0]
    assert (selection.sentence, selection.token) == example.focus
    assert view["run"]["sentences"] == [list(s) for s in example.tokens]
    assert view["run"]["question"] == example.question
    assert view["query"]["triangle"]["asked"] == "sense"
    assert set(view["maps"]["encoders"]) == {"bilm", "attention"}


def test_the_triangle_answers_what_it_is_asked(handlers, services, first):
    def asked(question, selection=first):
        chosen, message = handlers.ask(selection, event(question=question))
        assert chosen.question == question
        return json.loads(message)["query"]["triangle"]

    mixes = simplex_grid(16)
    for question in ("sense", "word", "examples"):
        triangle = asked(question)
        assert triangle["asked"] == question
        assert triangle["possible"] == ["sense", "word", "examples"]  # WordNet is not there
        assert len(triangle["values"]) == len(mixes)
        assert 0 <= min(triangle["values"]) <= max(triangle["values"]) <= 1
    assert asked("VERB")["asked"] == "sense"  # cannot be asked: the first that can
    bank, shares = services.models["bilm"].bank, []
    for example in services.examples:
        numbers = services.bank_ids(example.tokens)
        rows, senses = [], []
        for number, sense in zip(numbers, example.senses, strict=True):
            own = [r for r in bank.rows_of(example.word) if bank.sentence[r] == number]
            if sense and own:
                rows, senses = [*rows, own[0]], [*senses, sense]
        found = same_sense_shares(bank.vectors[rows] - bank.mean, senses, mixes)
        if found is not None:
            shares.append(found)
    np.testing.assert_allclose(asked("examples")["values"], np.mean(shares, axis=0), atol=1e-4)
    with pytest.raises(gr.Error, match="question must be one of"):
        handlers.ask(first, event(question="verbs"))


def test_run_keeps_the_chosen_word_where_the_new_text_has_it(handlers, first):
    selection, message, picked = handlers.run("Nobody moved .\nThe play began .", False, first)
    assert (selection.sentence, selection.token) == (1, 1)
    assert selection.text == "Nobody moved .\nThe play began ."
    assert picked is None
    assert json.loads(message)["run"]["sentences"][1] == ["The", "play", "began", "."]


def test_run_of_an_examples_text_is_that_example(handlers, services, first):
    example = services.examples[1]
    selection, message, picked = handlers.run(example.text, False, first)
    assert picked == example.id
    assert (selection.sentence, selection.token) == example.focus
    assert json.loads(message)["run"]["note"] == example.note


def test_run_on_pretokenized_text_splits_at_spaces_only(handlers, first):
    _, message, _ = handlers.run("do n't <S> (ok)", True, first)
    assert json.loads(message)["run"]["sentences"] == [["do", "n't", "<S>", "(ok)"]]


@pytest.mark.parametrize("text", ["", "   \n \n", "\x00", "\ud800"])
def test_text_without_a_word_is_a_message(handlers, first, text):
    with pytest.raises(gr.Error, match="There is no word in the text"):
        handlers.run(text, False, first)


def test_limits_are_messages_that_name_the_number(handlers, services, first):
    limits = services.settings
    with pytest.raises(gr.Error, match="61 sentences; this page takes 60"):
        handlers.run("a b .\n" * 61, False, first)
    with pytest.raises(gr.Error, match="3,601 tokens; this page takes 3,600"):
        handlers.run("a " * 3601, True, first)
    with pytest.raises(gr.Error, match="characters"):
        handlers.run("x" * (limits.max_characters + 1), False, first)


def test_an_example_fills_the_text_box(handlers, services, first):
    example = services.examples[3]
    text, pretokenized, selection, message = handlers.choose_example(example.id, first)
    assert (text, pretokenized) == (example.text, False)
    assert selection == Selection(example.text, False, *example.focus)
    assert json.loads(message)["run"]["question"] == example.question
    with pytest.raises(gr.Error, match="There is no example"):
        handlers.choose_example("nope", first)


def test_selecting_a_token_sends_its_products_only(handlers, services, first):
    selection, message = handlers.select(first, event(sentence=2, token=1))
    view = json.loads(message)
    assert (selection.sentence, selection.token) == (2, 1)
    assert "run" not in view and "maps" not in view
    near = view["near"]
    assert near["place"] == [2, 1]
    found = near["encoders"]["bilm"]
    products = unpack(found["products"], 6, len(found["rows"]) // 3)
    sentence, token, _ = found["rows"][:3]
    pool, number, tokens = near["sentences"][sentence]
    bank, own = (services.model("bilm").bank, services.encode("bilm", services.examples[0].tokens))
    source = {"examples": bank, "text": own}[pool]
    assert tokens[token] == source.sentences[number][token]
    row = source.vectors[source.row(number, token), 0] - bank.mean[0]
    query = own.vectors[own.row(2, 1), 0] - bank.mean[0]
    assert products[0, 0] == pytest.approx(row @ query, rel=1e-3)


def test_with_axes_of_the_word_a_new_word_brings_new_maps(handlers, first, maps):
    selection, message = maps.set_basis(first, event(basis="word"))
    assert json.loads(message)["maps"]["encoders"]["bilm"]["basis"] == "word"
    _, message = handlers.select(selection, event(sentence=0, token=0))
    assert "maps" in json.loads(message)


def test_a_rare_word_keeps_the_common_axes_and_says_so(handlers, first, maps):
    selection, _, _ = handlers.run("A zyzzyva slept .", False, first)
    selection = replace(selection, sentence=0, token=1)
    view = json.loads(maps.set_basis(selection, event(basis="word"))[1])["maps"]
    assert view["encoders"]["bilm"]["basis"] == "all"
    assert "less than 3 times" in view["notice"]


@pytest.mark.parametrize(
    "data", [{}, {"sentence": 99, "token": 0}, {"sentence": 0, "token": -1}, {"sentence": "0"}]
)
def test_a_place_that_is_not_there_is_a_message(handlers, first, data):
    with pytest.raises(gr.Error, match="must be a number from 0 to"):
        handlers.select(first, event(**data))
    with pytest.raises(gr.Error, match="must be a number from 0 to"):
        handlers.select(first, "null")


def test_a_neighbors_sentence_joins_the_text_and_is_chosen(handlers, services, first):
    wanted = 40
    added = services.bank_sentences[wanted]
    text, picked, selection, message = handlers.visit(
        first, event(pool="examples", number=wanted, token=2)
    )
    assert text == f"{first.text}\n{added.text}" == selection.text
    assert picked is None
    assert (selection.sentence, selection.token) == (len(first.text.splitlines()), 2)
    assert json.loads(message)["run"]["sentences"][-1] == list(added.tokens)


def test_unknown_axes_are_refused(first, maps):
    with pytest.raises(gr.Error, match="basis must be one of all, word"):
        maps.set_basis(first, event(basis="<script>"))


def test_messages_quote_visitors_text_escaped(first, maps):
    with pytest.raises(gr.Error) as caught:
        maps.set_basis(first, event(basis="<script>"))
    assert "<script>" not in str(caught.value)


def test_attention_leaves_out_what_is_longer_than_it_was_trained_on(handlers, first):
    long = " ".join(f"w{i}" for i in range(300))
    selection, message, _ = handlers.run(f"{long}\nA short one .", True, first)
    view = json.loads(message)
    assert view["run"]["encoders"]["bilm"]["sentences"] == [0, 1]
    assert view["run"]["encoders"]["attention"]["sentences"] == [1]
    assert "Sentence 1 has 300 tokens" in view["run"]["encoders"]["attention"]["message"]
    assert view["near"]["encoders"]["attention"] is None
    _, message, _ = handlers.run(long, True, first)
    view = json.loads(message)
    assert view["maps"]["encoders"]["attention"]["rows"] == []
    assert len(view["maps"]["encoders"]["bilm"]["rows"]) == 300


@pytest.mark.parametrize(
    "text",
    [
        "word",
        "<S> </S> <UNK> <script>alert(1)</script>",
        "x" * 500,
        "\ud83d\ude00 \ud83d\udc69\u200d\ud83d\udc69 flag",
        "\u0643\u062a\u0627\u0628 \u062c\u062f\u064a\u062f",
        "\u0915\u093f\u0924\u093e\u092c \u0928\u0908",
        "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0",
        "half \ud800 pair and \x00 null",
        "\n".join(f"Sentence number {i} about a play ." for i in range(40)),
    ],
    ids=["one", "tags", "long", "emoji", "arabic", "hindi", "japanese", "broken", "forty"],
)
@pytest.mark.parametrize("pretokenized", [False, True])
def test_hostile_text_gives_a_whole_view(handlers, first, text, pretokenized, maps):
    selection, message, _ = handlers.run(text, pretokenized, first)
    message.encode("ascii")  # survives any JSON encoder
    view = json.loads(message)
    n_tokens = sum(map(len, view["run"]["sentences"]))
    for kind, n_layers in [("bilm", 3), ("attention", 4)]:
        row = view["maps"]["encoders"][kind]
        unpack(row["coordinates"], n_tokens, n_layers, 2)
        assert row["n_tokens"] == n_tokens
    handlers.select(selection, event(sentence=0, token=0))
    maps.set_basis(selection, event(basis="word"))


def test_words_longer_than_the_model_reads_are_named(handlers, first):
    _, message, _ = handlers.run(f"a {'x' * 500} b", False, first)
    assert json.loads(message)["run"]["truncated"] == [[0, 1]]


def test_equal_texts_give_equal_views(handlers, first):
    text = "The bank was closed .\nThey sat on the bank ."
    views = []
    for _ in range(2):
        view = json.loads(handlers.run(text, False, first)[1])
        view.pop("serial")
        view["run"].pop("milliseconds")
        views.append(view)
    assert views[0] == views[1]


def test_what_is_chosen_first():
    text = (("The", "cat", "saw", "a", "bat", "."), ("A", "bat", "!"))
    assert first_choice(text) == (0, 4)
    assert first_choice(text, wanted="CAT") == (0, 1)
    assert first_choice((("!", "the", "?"),)) == (0, 0)


def test_a_selection_holds_choices_and_can_be_a_key():
    selection = Selection("text", False, 1, 2, "word")
    assert hash(selection) == hash(Selection("text", False, 1, 2, "word"))
    with pytest.raises(ValueError, match="no token at sentence -1"):
        Selection("text", sentence=-1)
