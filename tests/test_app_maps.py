"""What the maps are told: every projection in one form, and the numbers behind the colors."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import gradio as gr
import numpy as np
import pytest

from app.handlers.maps import MapHandlers
from app.handlers.page import Handlers
from app.packing import unpack
from app.settings import Settings
from app.umap_service import UmapService
from app.views.maps import MAX_BEHIND, behind_view
from elmo.banks.mixing import similarity
from elmo.banks.projection import neighbors_kept, word_rows
from elmo.encoders import load_encoder

STAND_IN = (sys.executable, str(Path(__file__).with_name("umap_stand_in.py")))


@pytest.fixture
def maps(services):
    return MapHandlers(services)


@pytest.fixture
def first(services):
    return Handlers(services).first_view()[0]


@pytest.fixture
def stand_in(services, monkeypatch):
    service = UmapService(STAND_IN)
    monkeypatch.setattr(services, "umap", service)
    yield service
    service.stop()


def event(**data):
    return json.dumps({"visitor": "me"} | data)


def told(message, name="maps"):
    return json.loads(message)[name]


def coordinates_of(row, n_layers):
    xy = unpack(row["coordinates"], len(row["rows"]), n_layers, 2)
    return (
        xy
        if row["depth"] is None
        else np.dstack([xy, unpack(row["depth"], len(row["rows"]), n_layers)]).reshape(
            len(xy), n_layers, 3
        )
    )


def test_a_third_axis_leaves_the_flat_map_alone_and_keeps_more(maps, first, services):
    flat = told(maps.set_basis(first, event(dims=2))[1])["encoders"]["bilm"]
    selection, message = maps.set_basis(first, event(dims=3))
    deep = told(message)["encoders"]["bilm"]
    assert selection.dims == 3 and flat["depth"] is None
    assert flat["coordinates"] == deep["coordinates"]
    assert len(deep["frame"]) == 6 and deep["variance"] > flat["variance"]
    model, text = services.model("bilm"), services.encode("bilm", services.examples[0].tokens)
    depth = unpack(deep["depth"], len(text), 3)
    np.testing.assert_allclose(depth, model.basis.project(text.vectors)[..., 2], atol=1e-5)


def test_each_layers_own_axes_have_no_mix_and_say_what_each_map_keeps(maps, first, services):
    row = told(maps.set_basis(first, event(basis="layers"))[1])["encoders"]["bilm"]
    assert row["basis"] == "layers" and not row["mixes"]
    text, model = services.encode("bilm", services.examples[0].tokens), services.model("bilm")
    xy = coordinates_of(row, 3)
    vectors = model.basis.standardize(text.vectors)
    for layer, (variance, neighbors) in enumerate(row["kept"]):
        centered = vectors[:, layer] - vectors[:, layer].mean(axis=0)
        drawn = xy[:, layer] - xy[:, layer].mean(axis=0)
        assert variance == pytest.approx((drawn**2).sum() / (centered**2).sum(), abs=1e-3)
        kept = neighbors_kept(vectors[:, [layer]], xy[:, [layer]])
        assert neighbors == pytest.approx(kept, abs=0.02)
    copies = text.rows_of("play")
    assert np.ptp(xy[copies, 0], axis=0).max() < 1e-5  # layer 0: one dot


def test_umap_is_fitted_beside_the_page_and_the_axes_stay_until_then(maps, first, stand_in):
    selection, message = maps.set_basis(first, event(basis="umap", seed=3))
    view = told(message)
    assert view["waits"] and view["wanted"] == "umap"
    assert view["encoders"]["bilm"]["basis"] == "all"  # something is there at once
    end = time.monotonic() + 20
    while "maps" not in (answer := json.loads(maps.fit(selection, event()))):
        assert answer["fitting"]["total"] == 7 and time.monotonic() < end
        time.sleep(0.02)
    row = answer["maps"]["encoders"]["bilm"]
    assert row["basis"] == "umap" and not row["mixes"] and not answer["maps"]["waits"]
    assert row["variance"] is None and row["kept"][0][0] is None
    assert 0 <= row["neighbors"] <= 1
    # The same text and seed again: at once. Another seed: anew.
    assert not told(maps.set_basis(selection, event())[1])["waits"]
    assert told(maps.set_basis(selection, event(seed=4))[1])["waits"]


def test_very_few_tokens_have_no_umap_and_the_page_says_so(maps, services, first, stand_in):
    selection, *_ = Handlers(services).run("Too few .", False, first)
    view = told(maps.set_basis(selection, event(basis="aligned"))[1])
    assert not view["waits"] and "5 tokens or more" in view["notice"]
    assert view["encoders"]["bilm"]["basis"] == "all"


def test_examples_behind_are_on_the_same_axes_and_capped(maps, first, services):
    row = told(maps.set_basis(first, event(behind=True))[1])["encoders"]["bilm"]
    model = services.model("bilm")
    words = word_rows(model.bank)
    assert row["behind"]["n"] == min(MAX_BEHIND, len(words)) <= row["behind"]["n_all"]
    xy = unpack(row["behind"]["coordinates"], len(words), 3, 2)
    expected = model.basis.project(model.bank.vectors[words])[..., :2]
    np.testing.assert_allclose(xy, expected, atol=1e-5)
    assert "behind" not in told(maps.set_basis(first, event())[1])["encoders"]["bilm"]
    assert behind_view(model.bank, model.basis, 3)["depth"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dims": 4}, "dims must be 2 or 3, got 4"),
        ({"dims": True}, "dims must be 2 or 3"),
        ({"seed": -1}, "seed must be a number from 0 to 9999"),
        ({"behind": "yes"}, "behind must be true or false"),
        ({"basis": ["all"]}, "basis must be one of"),
    ],
)
def test_choices_that_are_none_are_refused(maps, first, change, said):
    with pytest.raises(gr.Error, match=said):
        maps.set_basis(first, event(**change))


# ---- colors --------------------------------------------------------------------------------------


def test_cosines_follow_from_what_is_sent(maps, first, services):
    selection = replace(first, sentence=2, token=1)
    view = told(maps.paint(selection, event(color="cosine")), "paint")
    assert view["place"] == [2, 1]
    for kind, n_layers in [("bilm", 3), ("attention", 4)]:
        text, mean = (
            services.encode(kind, services.examples[0].tokens),
            services.model(kind).bank.mean,
        )
        sent = view["encoders"][kind]
        n_pairs = n_layers * (n_layers + 1) // 2
        products, norms = (unpack(sent[name], n_pairs, len(text)) for name in ("products", "norms"))
        s = np.random.default_rng(0).dirichlet(np.ones(n_layers))
        found = similarity(products.T, norms.T, np.array(sent["norm"]), s)
        mixed = np.tensordot(text.vectors - mean, s, axes=([1], [0])).astype(np.float64)
        query = mixed[text.row(2, 1)]
        lengths = np.linalg.norm(mixed, axis=1) * np.linalg.norm(query)
        np.testing.assert_allclose(found, mixed @ query / lengths, atol=1e-4)


def test_senses_are_those_of_the_examples(maps, first, services):
    tags = told(maps.paint(first, event(color="sense")), "paint")["tags"]
    example = services.examples[0]
    assert [tag[3] for tag in tags] == list(example.senses)
    assert {example.tokens[s][t].lower() for s, t, *_ in tags} == {"play"}
    selection, *_ = Handlers(services).run("Nobody knows this play .", False, first)
    assert told(maps.paint(selection, event(color="pos")), "paint")["tags"] == []


def test_frequency_is_the_rank_in_the_vocabulary(maps, first, services, monkeypatch):
    view = told(maps.paint(first, event(color="frequency")), "paint")
    assert view["n_words"] == 0 and not any(sum(view["ranks"], []))  # random weights
    folder = Settings.models / "bilm"
    if not (folder / "weights.safetensors").is_file():
        pytest.skip(f"no trained weights in {folder}")
    trained = replace(services.models["bilm"], encoder=load_encoder(folder), trained=True)
    monkeypatch.setitem(services.models, "bilm", trained)
    words = (folder / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[3:]
    view = told(maps.paint(first, event(color="frequency")), "paint")
    assert view["n_words"] == 49_997
    tokens = services.parse(first.text, False)
    for sentence, ranks in zip(tokens, view["ranks"], strict=True):
        assert ranks == [words.index(t) + 1 if t in words else None for t in sentence]


def test_other_colors_are_refused(maps, first):
    with pytest.raises(gr.Error, match="color must be one of sense, pos"):
        maps.paint(first, event(color="mood"))
