"""Word: a word's layers, its letters and an edit, against what they must be."""

import base64
import json
from dataclasses import replace

import gradio as gr
import numpy as np
import pytest

from app.handlers.word import MAX_TOKENS, WordHandlers, rank_of
from app.packing import unpack
from app.settings import ROOT
from app.state import Selection
from elmo.banks.bank import build_bank
from elmo.banks.tagged import TaggedSentence
from elmo.char_filters import firing, spellings, usual_maxima
from elmo.encoders import load_encoder
from elmo.probing.one_word import moves, word_layers

TEXT = "the cat saw the mat\nthe dog ran home"


@pytest.fixture(scope="module")
def handlers(services):
    return WordHandlers(services)


def sent(**data):
    return json.dumps({"sentence": 0, "token": 0, **data})


def part(name, message):
    return json.loads(message)[name]


def test_copies_are_one_point_in_layer_0_and_part_above(handlers):
    view = part("word", handlers.word(Selection(TEXT), sent()))
    for found in view["encoders"].values():
        assert found["n"] >= 3
        assert found["n_points"][0] == 1 and found["farthest"][0] == 0
        assert found["similarity"][0] == 1
        assert all(n == found["n"] for n in found["n_points"][1:])
        assert all(x > 0 for x in found["farthest"][1:])


def test_only_copies_with_the_same_letters_are_one_word(handlers):
    view = part("word", handlers.word(Selection("Qux met qux .\nqux left ."), sent(token=2)))
    assert all(found["n"] == 2 for found in view["encoders"].values())


def test_a_word_that_stands_once_has_no_self_similarity(handlers):
    view = part("word", handlers.word(Selection("qux left ."), sent()))
    assert all(set(f["similarity"]) == {None} for f in view["encoders"].values())


def test_cosines_of_the_sentence_are_those_of_its_vectors(handlers, services):
    view = part("word", handlers.word(Selection(TEXT), sent(token=1)))
    for kind, found in view["encoders"].items():
        inside = found["inside"]
        hidden = (
            services.model(kind).encoder.encode([["the", "cat", "saw", "the", "mat"]])[0].hidden
        )
        cosines = unpack(inside["cosines"], len(inside["parts"]), len(hidden), 5, 5)
        unit = hidden / np.linalg.norm(hidden, axis=2, keepdims=True)
        assert np.allclose(cosines[0], unit @ unit.swapaxes(1, 2), atol=1e-5)
        assert np.allclose(unpack(inside["values"], *hidden[:, 1].shape), hidden[:, 1], atol=1e-5)
        assert np.allclose(
            unpack(inside["norms"], len(hidden), 5), np.linalg.norm(hidden, axis=2), rtol=1e-5
        )
        if len(inside["parts"]) == 3:
            half = hidden[..., : hidden.shape[2] // 2]
            half = half / np.linalg.norm(half, axis=2, keepdims=True)
            assert np.allclose(cosines[1], half @ half.swapaxes(1, 2), atol=1e-5)


def test_a_long_sentence_has_layers_but_no_grid(handlers):
    text = " ".join(["word"] * (MAX_TOKENS + 1))
    view = part("word", handlers.word(Selection(text), sent()))
    assert all("inside" not in found for found in view["encoders"].values())


def test_an_edit_leaves_the_forward_half_before_it_and_the_backward_half_after_it(handlers):
    message = handlers.edit(Selection("the cat saw the mat"), sent(text="the cat ate the mat"))
    view = part("edited", message)
    bilm = view["encoders"]["bilm"]
    zero = np.frombuffer(base64.b64decode(bilm["zero"]), np.uint8).reshape(3, -1, 4)
    assert bilm["pairs"] == [[0, 0], [1, 1], [3, 3], [4, 4]]
    assert zero[:, 0].all()  # layer 0 knows no context
    assert zero[1, 1:].tolist() == [[1, 1, 0, 0]] * 2  # forward
    assert zero[2, 1:].tolist() == [[0, 0, 1, 1]] * 2  # backward
    assert not zero[0, 1:].any()
    assert view["encoders"]["attention"]["n_zero"] == [[4, 0, 0, 0]]


def test_distances_are_relative_and_zero_only_where_nothing_differs():
    before = np.ones((1, 2, 4), dtype=np.float32)
    after = before.copy()
    after[0, 1, 3] = 2
    found = moves(["a", "b"], ["a", "b"], before, after, halves=True)
    assert found.distance[:, 0].tolist() == [[0, 0.5], [0, 0], [0, 1 / np.sqrt(2)]]
    assert found.zero[:, 0].tolist() == [[True, False], [True, True], [True, False]]


def test_word_layers_of_known_vectors():
    vectors = np.array([[[1, 0], [1, 0]], [[1, 0], [0, 1]]], dtype=np.float32)
    found = word_layers(vectors, [vectors])
    assert found.n_points.tolist() == [1, 2]
    assert found.farthest.tolist() == [0, np.sqrt(2)]
    assert found.similarity.tolist() == [1, 0]
    assert np.allclose(found.within, [1, 1 / np.sqrt(2)])


def test_an_unseen_word_has_neighbors_forms_and_filters(handlers, services):
    view = part("spelling", handlers.spelling(Selection(TEXT), json.dumps({"word": "qux"})))
    for kind, found in view["encoders"].items():
        assert found["n_in_examples"] == 0
        assert len(found["near"]) == 8
        assert [c for _, c in found["near"]] == sorted((c for _, c in found["near"]), reverse=True)
        encoder = services.model(kind).encoder
        mean = services.model(kind).bank.mean[0]
        a, b = (encoder.encode([[w]])[0].hidden[0, 0] - mean for w in ("qux", "quxs"))
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert found["forms"][0][:2] == ["quxs", "-s"]
        assert found["forms"][0][2] == pytest.approx(cosine, abs=1e-5)


def test_a_filter_is_shown_with_the_letters_it_fires_on(services):
    cnn = services.model("bilm").encoder.model.token_encoder
    found = firing(cnn, "caf\u00e9", usual_maxima(cnn, ["the", "cat", "home"]), count=1_000)
    assert found and all(a.above >= b.above for a, b in zip(found, found[1:], strict=False))
    padded = "\u2039caf\u00e9\u203a"
    for f in found:
        letters = f.letters.rstrip("\u00b7")
        assert "\ufffd" in letters or letters in padded


def test_forms_of_a_word_differ_from_it():
    assert ("paly", "two letters swapped") in spellings("play")
    for word in ("a", "ab", "\u732b", "play"):
        assert word not in dict(spellings(word))


@pytest.mark.parametrize("word", ["", "two words", "x" * 90, 3 * "\u732b" * 25])
def test_what_is_no_word_is_refused(handlers, word):
    with pytest.raises(gr.Error):
        handlers.spelling(Selection(TEXT), json.dumps({"word": word}))


@pytest.mark.parametrize("text", ["", " ".join(["a"] * 61)])
def test_an_edit_out_of_bounds_is_refused(handlers, text):
    with pytest.raises(gr.Error):
        handlers.edit(Selection(TEXT), sent(text=text))


def test_the_rank_of_a_word_in_training_is_its_row_after_the_special_ones(services):
    assert rank_of(services.model("bilm").encoder, "the") == 0  # random weights: not known
    folder = ROOT / "assets" / "models" / "bilm"
    if not (folder / "weights.safetensors").is_file():
        pytest.skip(f"no trained weights in {folder}")
    encoder = load_encoder(folder)
    assert rank_of(encoder, "the") == 1 and rank_of(encoder, ",") == 2
    assert rank_of(encoder, "qzxqzx") is None and rank_of(encoder, "<S>") is None


def test_occurrences_in_wordnets_examples_count(services):
    sentences = [TaggedSentence(("a", "cat", "sat"), ()), TaggedSentence(("the", "cat", "ran"), ())]
    banks = {}
    for kind, model in services.models.items():
        tokens = [s.tokens for s in sentences]
        bank = build_bank(tokens, model.encoder.encode(tokens), means=model.bank.means)
        banks[kind] = replace(bank, vectors=bank.vectors.astype(np.float16))  # as on disk
    before = part("word", WordHandlers(services).word(Selection(TEXT), sent(token=1)))
    services.wordnet.banks |= banks
    services.wordnet._places = {hash(s.tokens): i for i, s in enumerate(sentences)}
    try:
        view = part("word", WordHandlers(services).word(Selection(TEXT), sent(token=1)))
        repeated = f"{TEXT}\na cat sat"
        again = part("word", WordHandlers(services).word(Selection(repeated), sent(token=1)))
    finally:
        services.wordnet.banks.clear()
        services.wordnet._places = {}
    for kind, found in view["encoders"].items():
        assert found["n"] == before["encoders"][kind]["n"] + 2
        assert again["encoders"][kind]["n"] == found["n"]  # the text's own copy, not WordNet's
        assert found["farthest"][0] == 0 and found["n_points"][0] == 1
