"""Influence and interaction: what the page is told, against the results themselves."""

import base64
import json

import gradio as gr
import numpy as np
import pytest
from small_models import KINDS, small_encoder

from app.handlers.influence import MAX_TOKENS, MEASURES, InfluenceHandlers
from app.packing import unpack
from app.services import Services, make_model
from app.settings import Settings
from app.state import Selection
from app.views.influence import CHANGED, REACHABLE, grid_view, pieces, readers
from app.views.interaction import averages_view, interaction_view
from elmo.banks.bank import build_bank
from elmo.banks.mixing import layer_pairs, pair_weights
from elmo.both_ways.arithmetic import Edit
from elmo.both_ways.influence import gradient_grid, random_replacements, replacement_grid
from elmo.both_ways.interaction import interaction
from elmo.scalar_mix import softmax

TOKENS = ("the", "cat", "that", "saw", "the", "dog", "ran", "home")
TEXT = " ".join(TOKENS)
EDITS = Edit(1, ("mouse",)), Edit(6, ("fell",))


@pytest.fixture(scope="module")
def services():
    """All three kinds of encoder, small."""
    models = []
    for kind in KINDS:
        encoder = small_encoder(kind)
        bank = build_bank((TOKENS,), encoder.encode([TOKENS]))
        models.append(make_model(encoder, False, bank))
    examples = _Example((TOKENS, ("A", "bird", "sang", "and", "then", "it", "flew", ".")))
    return Services(Settings(), [examples], models)


class _Example:
    """As much of an ``Example`` as the services read."""

    id, word, more, senses = "one", None, (), (None, None)

    def __init__(self, tokens):
        self.tokens = tokens
        self.sentences = tuple(" ".join(sentence) for sentence in tokens)


@pytest.fixture(scope="module")
def handlers(services):
    return InfluenceHandlers(services)


def sent(**data):
    return json.dumps({"request": 7, "sentence": 0, "piece": 0, **data})


def ask_grid(handlers, text=TEXT, **data):
    message = handlers.grid(Selection(text, True), sent(**{"measure": "gap", **data}))
    return json.loads(message)["influence"]


def ask_interaction(handlers, text=TEXT, **data):
    return json.loads(handlers.interaction(Selection(text, True), sent(**data)))["interaction"]


def mixed(view, part, s, n, gradient=False):
    """The influence on a mix as the browser computes it: (R, T, T) squared."""
    n_pairs = len(layer_pairs(len(s)))
    cross = unpack(view["cross"], view["n_samples"], len(view["parts"]), n_pairs, n, n)
    own = unpack(view["own"], len(view["parts"]), n_pairs, n)
    if part != "whole":
        chosen = view["parts"].index(part)
        cross, own = cross[:, chosen : chosen + 1], own[chosen : chosen + 1]
    weights = pair_weights(s)
    squares = np.einsum("p,rhpjt->rjt", weights, cross.astype(np.float64))
    return squares if gradient else squares / np.einsum("p,hpt->t", weights, own)


def states(view, n):
    n_parts = 1 if view["parts"] == ["whole"] else 1 + len(view["parts"])
    raw = np.frombuffer(base64.b64decode(view["state"]), np.uint8)
    return raw.reshape(n_parts, view["n_layers"], n, n)


# ---- views ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_grid_view_holds_every_mix_of_every_part(kind):
    encoder = small_encoder(kind)
    words = random_replacements(TOKENS, ["tree", "go", "seldom"], n_samples=3)
    grid = replacement_grid(encoder, TOKENS, words)
    view = json.loads(json.dumps(grid_view(grid)))
    assert tuple(view["parts"]) == (grid.parts[1:] or grid.parts)
    for s in (np.eye(encoder.n_layers)[1], softmax(np.linspace(-1, 1, encoder.n_layers))):
        for part in grid.parts:
            squares = mixed(view, part, s, len(TOKENS))
            np.testing.assert_allclose(
                np.sqrt(np.maximum(squares, 0).mean(axis=0)), grid.mix(s, part), atol=1e-5
            )


def test_a_grid_view_tells_what_changed_and_what_could():
    encoder = small_encoder("bilm")
    grid = replacement_grid(encoder, TOKENS)
    seen = states(grid_view(grid), len(TOKENS))
    np.testing.assert_array_equal((seen & REACHABLE) > 0, grid.reachable)
    np.testing.assert_array_equal((seen & CHANGED) > 0, grid.changed)
    forward = seen[grid.parts.index("forward"), 1]
    later = np.tril(np.ones(forward.shape, dtype=bool), -1)  # edited j after read t
    assert (forward[later] == 0).all() and (forward[~later] == REACHABLE + CHANGED).all()


def test_a_broken_zero_reaches_the_page():
    grid = replacement_grid(small_encoder("bilm"), TOKENS)
    grid.changed[1, 1, 7, 0] = True
    view = grid_view(grid)
    assert view["n_broken"] == 1
    assert states(view, len(TOKENS))[1, 1, 7, 0] == CHANGED


def test_work_is_cut_into_pieces_that_cover_all_samples_once():
    found = pieces(["bilm", "attention"], 8, 25)
    assert len(found) > 2
    for kind in ("bilm", "attention"):
        covered = [r for name, first, last in found if name == kind for r in range(first, last)]
        assert covered == list(range(8))
    assert pieces(["bilm"], 4, 60) == [("bilm", i, i + 1) for i in range(4)]
    assert pieces(["bilm"], 1, 1) == [("bilm", 0, 1)]


def test_an_encoder_that_cannot_read_so_much_says_why():
    encoders = [small_encoder(kind) for kind in KINDS]
    kinds, unread = readers({encoder.kind: encoder for encoder in encoders}, 21)
    assert kinds == ["bilm"]
    assert "21 tokens" in unread["attention"] and "at most 20" in unread["attention_concat"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_interaction_view_is_the_interaction(kind):
    encoder = small_encoder(kind)
    result = interaction(encoder, TOKENS, *EDITS)
    view = interaction_view(result, result.mix(softmax([0.3] * encoder.n_layers)))
    n_layers = encoder.n_layers
    np.testing.assert_allclose(view["size"][:n_layers], result.size, rtol=1e-3, atol=1e-9)
    assert len(view["size"]) == n_layers + 1
    inside = slice(2, 6)
    np.testing.assert_allclose(view["mean"][:-1], result.size[:, inside].mean(axis=1), rtol=1e-3)
    assert view["n_between"] == 4 and view["n_unchanged"] == [4] + [0] * n_layers
    if encoder.halves:
        assert view["n_zero"] == [4] * (n_layers + 1)
        assert all(row[2:6] == [0, 0, 0, 0] for row in view["size"])
    else:
        assert view["n_zero"] == [4] + [0] * n_layers
    assert view["share"][0] is None
    assert all(row[0] > 0 for row in view["size"][1:])  # outside one half has seen both


def test_averages_are_shown_only_beside_the_weights_they_were_computed_with():
    shipped = {"encoders": [{"encoder": "bilm", "mean": [0.0]}, {"encoder": "attention"}]}
    assert averages_view(shipped, ["bilm"]) == {"bilm": {"mean": [0.0]}}
    assert averages_view(shipped, []) == {}


# ---- handlers ------------------------------------------------------------------------------------


def test_the_tab_opens_with_our_examples(handlers):
    opening = handlers.opening()
    assert len(opening["examples"]) == 40
    assert opening["averages"] == {}  # random weights


def test_pieces_of_the_gap_grid_are_the_encoders_grids(handlers, services):
    view = ask_grid(handlers)
    assert (view["request"], view["n_pieces"], view["n_samples"]) == (7, 3, 1)
    for piece in range(3):
        view = ask_grid(handlers, piece=piece)
        encoder = services.model(view["kind"]).encoder
        s = softmax([0.5] * encoder.n_layers)
        expected = replacement_grid(encoder, TOKENS).mix(s)
        found = np.sqrt(mixed(view, "whole", s, len(TOKENS))[0])
        np.testing.assert_allclose(found, expected, atol=1e-5)
        assert view["n_broken"] == 0


def test_samples_of_all_pieces_are_those_of_one_run(handlers, services, monkeypatch):
    monkeypatch.setattr("app.views.influence.PIECE_WORK", 2 * len(TOKENS) * (len(TOKENS) + 2))
    first, second = (ask_grid(handlers, measure="random", piece=piece) for piece in (0, 1))
    assert first["kind"] == second["kind"] == "bilm" and first["n_pieces"] == 6
    encoder = services.model("bilm").encoder
    words = random_replacements(TOKENS, handlers.words, 4, seed=0)
    grid = replacement_grid(encoder, TOKENS, words)
    s = softmax([0.1, -0.4, 0.9])
    squares = np.concatenate([mixed(v, "whole", s, len(TOKENS)) for v in (first, second)])
    np.testing.assert_allclose(np.sqrt(squares.mean(axis=0)), grid.mix(s), atol=1e-5)
    spread = squares.std(axis=0, ddof=1) / 2 / (2 * np.sqrt(squares.mean(axis=0)))
    np.testing.assert_allclose(spread, grid.standard_error(s), atol=1e-5)


def test_the_gradient_comes_with_eight_directions_and_the_same_each_time(handlers, services):
    view = ask_grid(handlers, measure="gradient")
    assert view["n_samples"] == 8
    assert ask_grid(handlers, measure="gradient")["cross"] == view["cross"]
    encoder = services.model(view["kind"]).encoder
    s = np.eye(encoder.n_layers)[-1]
    norm = np.sqrt(mixed(view, "whole", s, len(TOKENS), gradient=True).mean(axis=0))
    many = gradient_grid(encoder, TOKENS, 128, seed=5)
    assert np.median(np.abs(norm / many.mix(s) - 1)) < 0.5
    assert view["n_broken"] == 0


def test_the_visitors_word_takes_each_place(handlers):
    view = ask_grid(handlers, measure="word", word="the")
    moved = states(view, len(TOKENS))[0, 1] & CHANGED
    assert not moved[[0, 4]].any()  # "the" in place of "the"
    assert moved[[1, 2, 3, 5, 6, 7]].all()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"measure": "word", "word": "two words"}, "replacement must be one word"),
        ({"measure": "word", "word": ""}, "replacement must be one word"),
        ({"measure": "guess"}, "measure must be one of gap, random, word, gradient"),
        ({"measure": None}, "measure must be one of"),
        ({"piece": 3}, "piece must be a number from 0 to 2"),
        ({"piece": -1}, "piece must be"),
        ({"sentence": 1}, "sentence must be a number from 0 to 0"),
        ({"request": "x"}, "request must be a number"),
    ],
)
def test_a_wrong_request_is_a_message(handlers, data, complaint):
    with pytest.raises(gr.Error, match=complaint):
        ask_grid(handlers, **data)


def test_a_long_sentence_is_refused_by_number(handlers):
    with pytest.raises(gr.Error, match=f"61 tokens; this view takes {MAX_TOKENS}"):
        ask_grid(handlers, text="word " * 61)
    view = ask_grid(handlers, text="word " * 60)
    assert view["n_pieces"] == 1 and set(view["unread"]) == {"attention", "attention_concat"}


@pytest.mark.parametrize("text", ["word", "<S> <S>", "\u732b \u304c \u732b \u3092 \u898b \u305f"])
@pytest.mark.parametrize("measure", [m for m in MEASURES if m != "word"])
def test_any_text_has_a_grid_with_a_cell_a_pair_of_positions(handlers, text, measure):
    view = ask_grid(handlers, text=text, measure=measure)
    n = len(text.split())
    assert states(view, n).shape[-2:] == (n, n)


def test_an_interaction_of_given_edits(handlers, services):
    edits = {
        "left": {"start": 1, "stop": 3, "text": "mouse who"},
        "right": {"start": 6, "stop": 7, "text": "fell"},
    }
    view = ask_interaction(handlers, **edits, weights={"bilm": [1, 0, 2], "attention": "x"})
    assert view["left"] == edits["left"] and view["tokens"] == list(TOKENS)
    assert list(view["encoders"]) == list(KINDS)
    encoder = services.model("bilm").encoder
    result = interaction(encoder, TOKENS, Edit(1, ("mouse", "who")), Edit(6, ("fell",)))
    found = view["encoders"]["bilm"]["size"]
    np.testing.assert_allclose(found[:3], result.size, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(found[3], result.mix(softmax([1, 0, 2])).size[0], rtol=1e-3)


def test_edits_are_proposed_where_none_are_given(handlers):
    view = ask_interaction(handlers)
    (left, right), tokens = (view["left"], view["right"]), view["tokens"]
    assert (tokens[left["start"]], tokens[right["start"]]) == ("cat", "home")
    assert left["text"] in handlers.words and left["text"] != "cat"
    assert view == ask_interaction(handlers)
    own = handlers.examples[3]
    assert ask_interaction(handlers, text=" ".join(own[0]))["left"]["text"] == own[1].words[0]
    assert ask_interaction(handlers, example=3)["tokens"] == list(own[0])


def test_words_are_split_as_the_text_was(handlers):
    selection = Selection(TEXT, False)
    edits = {
        "left": {"start": 1, "stop": 3, "text": "don't"},
        "right": {"start": 6, "stop": 7, "text": "fell"},
    }
    view = json.loads(handlers.interaction(selection, sent(**edits)))["interaction"]
    assert view["left"]["text"] == "do n't"
    with pytest.raises(gr.Error, match="2 for 2, but"):
        ask_interaction(handlers, **edits)  # split at spaces only: one token


@pytest.mark.parametrize(
    ("left", "right", "complaint"),
    [
        ((1, 2, "two words"), (6, 7, "fell"), "left edit must keep the length: 1 for 1"),
        ((1, 2, "mouse"), (2, 3, "who"), "at least one word between"),
        ((1, 2, "cat"), (6, 7, "fell"), "leaves"),
        ((1, 2, "mouse"), (7, 9, "to bed"), "must replace words 0 to 7"),
        ((5, 6, "mouse"), (1, 2, "fell"), "at least one word between"),
        ((1, 2, ""), (6, 7, "fell"), "must keep the length"),
        (("a", 2, "b"), (6, 7, "fell"), "left edit must start and stop at a word"),
        ((1, 2, "mouse"), None, "right edit must start and stop at a word"),
    ],
)
def test_wrong_edits_are_messages(handlers, left, right, complaint):
    def edit(words):
        return words and dict(zip(("start", "stop", "text"), words, strict=True))

    with pytest.raises(gr.Error, match=complaint):
        ask_interaction(handlers, left=edit(left), right=edit(right))


def test_a_sentence_too_short_for_two_edits_is_a_message(handlers):
    with pytest.raises(gr.Error, match="three words or more"):
        ask_interaction(handlers, text="two words")
    view = ask_interaction(handlers, text="just three words")
    assert (view["left"]["start"], view["right"]["start"]) == (0, 2)
