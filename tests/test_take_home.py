"""Files to take home: the same numbers as on the page, readable by others, refused for nonsense."""

import asyncio
import base64
import io
import json
import re
import threading
import zipfile
from dataclasses import replace

import httpx
import numpy as np
import pytest
from conftest import awaited

from app.handlers.take_home import FILES, MAX_AT_ONCE, TakeHome
from app.link import View, encode
from app.packing import pack, unpack
from app.services import Services, make_model
from app.ui import styles
from app.views import map_choice, take_home
from app.views.maps import MAX_BEHIND
from elmo.encoders import untrained_encoder
from elmo.scalar_mix import mix_layers, softmax

TEXT = 'The bank rose .\nThey fished from the bank , "all day" .'
MIX = ((1.0, -0.5, 2.0), 1.5)


@pytest.fixture(scope="module")
def home(services):
    return TakeHome(services, styles)


@pytest.fixture(scope="module")
def view():
    return View(text=TEXT, sentence=1, token=4, tab="neighbors", weights={"bilm": MIX})


def tokens_of(data):
    return json.loads(str(data["tokens"]))


def told_in(page):
    return json.loads(page.decode().split('id="told">')[1].split("</script>")[0])


def test_npz_holds_what_encode_gives(home, view, services):
    data = np.load(io.BytesIO(home.make("vectors", view)), allow_pickle=False)
    sentences = services.parse(TEXT, False)
    assert tokens_of(data) == [token for s in sentences for token in s]
    for kind, model in services.models.items():
        encodings = model.encoder.encode(sentences)
        expected = np.concatenate([e.hidden.transpose(1, 0, 2) for e in encodings])
        np.testing.assert_allclose(data[kind], expected, atol=1e-5)
        assert data[kind].dtype == np.float32
        assert data[f"{kind}_rows"].tolist() == list(range(len(expected)))
    mixed = mix_layers(data["bilm"].transpose(1, 0, 2), *MIX)
    np.testing.assert_allclose(data["bilm_mix"], mixed, rtol=1e-6)


def test_a_sentence_that_is_too_long_for_one_encoder_keeps_its_place(home):
    text = "a b\n" + " ".join(["word"] * 80)
    data = np.load(io.BytesIO(home.make("vectors", View(text=text))), allow_pickle=False)
    assert len(tokens_of(data)) == 82 == len(data["bilm"])
    assert data["attention_rows"].tolist() == [0, 1]


def test_npz_is_read_as_its_readme_says(home, view, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / FILES["vectors"]).write_bytes(home.make("vectors", view))
    readme = str(np.load(FILES["vectors"], allow_pickle=False)["README"])
    steps = re.findall(r"(?:data|tokens) = [^;]+", readme)
    assert len(steps) == 2 and "allow_pickle=False" in steps[0]
    known = {"numpy": np, "json": json}
    exec("\n".join(steps), known)
    data, tokens = known["data"], known["tokens"]
    at = tokens.index("fished")
    assert (data["sentence"][at], data["position"][at]) == (1, 1)
    assert data["bilm"][data["bilm_rows"] == at].shape[:2] == (1, 3)


def test_a_long_token_takes_no_room_from_short_ones(home):
    text = "x" * 16_000 + "\n" + "a b \U0001f600 " * 30
    data = np.load(io.BytesIO(home.make("vectors", View(text=text))), allow_pickle=False)
    assert [len(token) for token in tokens_of(data)[:3]] == [16_000, 1, 1]
    assert len(tokens_of(data)) == 91
    assert data["tokens"].nbytes < 10 * len(text)


def test_the_projectors_pair_has_a_row_for_every_layer_and_the_mix(home, view, services):
    archive = zipfile.ZipFile(io.BytesIO(home.make("projector", view)))
    assert archive.namelist() == ["vectors.tsv", "metadata.tsv"]
    vectors = np.loadtxt(io.BytesIO(archive.read("vectors.tsv")), delimiter="\t")
    head, *rows = archive.read("metadata.tsv").decode().splitlines()
    assert head.split("\t")[:6] == ["token", "sentence", "position", "encoder", "layer", "weights"]
    n_tokens = sum(map(len, services.parse(TEXT, False)))
    assert len(rows) == len(vectors) == 4 * n_tokens
    assert {row.count("\t") for row in [head, *rows]} == {7}
    last = rows[-1].split("\t")
    assert last[4] == "mix"
    assert [float(x) for x in last[5].split()] == pytest.approx(softmax(MIX[0]), abs=1e-4)
    assert last[7] == " ".join(services.parse(TEXT, False)[1])


def test_a_long_sentence_is_cut_around_each_token(home):
    tokens = [*(f"w{i:03}" for i in range(300)), "y" * 500, "z"]
    view = View(text=" ".join(tokens), pretokenized=True)
    archive = zipfile.ZipFile(io.BytesIO(home.make("projector", view)))
    metadata = archive.read("metadata.tsv").decode()
    rows = [row.split("\t") for row in metadata.splitlines()[1:]]
    assert len(rows) == 4 * len(tokens)
    for row in rows:
        assert row[0][:200] in row[7] and 200 < len(row[7]) <= 202
    assert rows[0][7].startswith("w000 w001") and rows[0][7].endswith("\u2026")
    assert rows[301][7].startswith("\u2026") and rows[301][7].endswith("y z")
    middle = rows[150][7]
    assert middle.startswith("\u2026") and middle.endswith("\u2026")
    assert 90 < middle.index("w150") < 110


def test_the_page_is_one_file_without_addresses(home, view):
    page = home.make("page", view).decode()
    assert len(page) < 8_000_000
    head = page[: page.index("<script")]
    assert "<link" not in head and "url(" not in head and "<script src" not in page
    told = told_in(page.encode())
    assert told["messages"][1]["opened"]["weights"] == {"bilm": [list(MIX[0]), MIX[1]]}
    assert told["messages"][1]["near"]["place"] == [1, 4]
    assert "0 1" in told["tokens"] and "1 4" not in told["tokens"]


@pytest.fixture(scope="module")
def three(services):
    """All encoders of the page: the third is there with trained weights only."""
    kind = "attention_concat"
    if kind in services.models:
        return services
    bank = services.model("attention").bank
    third = make_model(untrained_encoder(kind), False, bank)
    return Services(services.settings, services.examples, [*services.models.values(), third])


@pytest.fixture
def many_behind(monkeypatch):
    """As many examples behind as there can be."""

    def many(bank, basis, dims):
        view = one(bank, basis, dims)
        for name, n_axes in (("coordinates", 2), ("depth", 1)):
            found = unpack(view[name], view["n"], -1)
            assert found.shape[1] == n_axes * bank.n_layers
            view[name] = pack(np.resize(found, (MAX_BEHIND, found.shape[1])))
        return view | {"n": MAX_BEHIND}

    one = map_choice.behind_view
    monkeypatch.setattr(map_choice, "behind_view", many)


def test_the_largest_page_is_below_eight_megabytes(three, many_behind, monkeypatch):
    monkeypatch.setattr(take_home, "MAX_SECONDS", 60.0)
    limits = three.settings
    lines = [" ".join(["\U00020000" * 9] * 40)] * limits.max_sentences
    text = "\n".join(line[:-1] + chr(0x20001 + i) for i, line in enumerate(lines))
    view = View(text=text, pretokenized=True, basis="word", dims=3, behind=True)
    assert 0.95 * limits.max_characters < len(text) <= limits.max_characters
    page = TakeHome(three, styles).make("page", view)
    assert len(page) < 8_000_000
    told = told_in(page)
    assert list(told["maps"]) == ["word", "all", "layers"] and told["basis"] == "word"
    assert page.count(b'"behind":{') == 3 and "maps" not in told["messages"][1]
    for row in told["maps"]["word"]["encoders"].values():
        assert row["behind"]["n"] == MAX_BEHIND
    assert told["messages"][1]["near"]["sentences"]


def test_examples_are_behind_axes_that_have_them(home, view, services):
    for basis, on in (("layers", ["layers"]), ("umap", ["all"])):
        selection = replace(view, basis=basis, behind=True)
        maps = told_in(home.make("page", selection))["maps"]
        assert [name for name, found in maps.items() if found["behind"]] == on
    step, packed = maps["all"]["encoders"]["bilm"]["behind"]["coordinates"]
    chosen = selection.selection(TEXT)
    sentences = services.parse(TEXT, False)
    shown = map_choice.maps_view(services, sentences, replace(chosen, basis="all"))
    exact = unpack(shown["encoders"]["bilm"]["behind"]["coordinates"], -1)
    found = step * np.frombuffer(base64.b64decode(packed), "<i2")
    assert np.abs(found - exact).max() <= step and step < np.abs(exact).max() / 30_000


def test_a_page_without_room_leaves_out_axes_that_are_not_chosen(home, view, monkeypatch):
    chosen = replace(view, basis="layers")
    monkeypatch.setattr(take_home, "MAX_SECONDS", -1.0)
    page = home.make("page", chosen)
    assert list(told_in(page)["maps"]) == ["layers", "all", "word"]
    monkeypatch.setattr(take_home, "MAX_PAGE", len(page))
    smaller = home.make("page", chosen)
    assert len(smaller) < len(page) and list(told_in(smaller)["maps"]) == ["layers", "all"]
    monkeypatch.setattr(take_home, "MAX_PAGE", 5_000_000)
    with pytest.raises(ValueError, match="too large"):
        home.make("page", chosen)


def test_who_waits_for_a_file_keeps_nobody_from_the_page(home, view, monkeypatch):
    """Gradio asks in a thread whether a visitor is let in, and there are forty for everyone."""
    from gradio.routes import App

    begun, free = [], threading.Event()

    def slow(*arguments):
        begun.append(arguments)
        free.wait(30)
        return b"done"

    monkeypatch.setattr(take_home, "npz", slow)
    app = App(routes=TakeHome(home.services, styles).routes())
    app.get("/page")(lambda: "there")

    async def crowd():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
            posts = [client.post("/take-home/vectors", content=encode(view)) for _ in range(45)]
            files = [asyncio.create_task(post) for post in posts]
            try:
                await asyncio.sleep(1)
                page = await asyncio.wait_for(client.get("/page"), 10)
                assert page.json() == "there" and len(begun) == MAX_AT_ONCE
            finally:
                free.set()
                answers = await asyncio.gather(*files)
            assert {answer.content for answer in answers} == {b"done"}

    awaited(crowd())
    assert len(begun) == 45


def test_a_hostile_text_does_not_leave_its_string(home):
    page = home.make(
        "page", View(text="</script><script>hacked()</script> <!-- x", pretokenized=True)
    )
    assert b"hacked()</script>" not in page.replace(b"\\u003c", b"")


def test_files_come_over_the_page_s_own_address(server, view):
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    def post(what, body, **headers):
        return urlopen(Request(f"{server}take-home/{what}", body.encode(), headers), timeout=60)

    answer = post("vectors", encode(view))
    assert f'filename="{FILES["vectors"]}"' in answer.headers["Content-Disposition"]
    assert answer.headers["Content-Type"] == "application/octet-stream"
    for what, body, headers, status in [
        ("vectors", "garbage", {}, 400),
        ("vectors", "x" * 300_000, {}, 413),
        ("../etc/passwd", encode(view), {}, 404),
        ("other", encode(view), {}, 404),
        ("page", encode(view), {"Sec-Fetch-Site": "cross-site"}, 404),
        ("page", encode(View(text="a", sentence=4)), {}, 400),
        ("page", encode(View(text="a", options={"depth": 10**400})), {}, 400),
    ]:
        with pytest.raises(HTTPError) as error:
            post(what, body, **headers)
        assert error.value.code == status, what
