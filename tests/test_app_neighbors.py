"""Neighbors as the page gets them: exact for every mix, from any bank, with a file of one's own."""

import contextlib
import hashlib
import json
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import gradio as gr
import httpx
import numpy as np
import pytest
from conftest import awaited
from gradio.data_classes import _StaticFiles
from small_models import small_encoder

from app.choice import Choice
from app.encoders import ABOUT
from app.handlers.neighbors import NeighborHandlers
from app.nearby import K, Near, Pool, compare, find_near
from app.packing import unpack
from app.services import Services, encode_what_fits, make_model
from app.settings import Settings
from app.state import Selection
from app.views.map_choice import text_id
from app.views.nearby import near_view
from app.views.page import token_views
from app.visit import Visit
from app.wordnet_service import WordNetService
from elmo.banks.bank import build_bank, with_means
from elmo.banks.bank_build import bank_folder
from elmo.banks.mixing import simplex_grid
from elmo.banks.neighbors import Comparison
from elmo.banks.sources import sentences_source
from elmo.banks.tagged import Tag, TaggedSentence
from elmo.config import shipped_config

TEXT = "play bank bass run light the a of in on was her old loud deep quick ran sat sang"
WORDS = TEXT.split()
RNG = np.random.default_rng(7)
LARGE = [
    TaggedSentence(
        tuple(RNG.choice(WORDS, size=RNG.integers(3, 9)).tolist()),
        (Tag(0, "word", ("NOUN", "VERB")[i % 2], f"sense {i % 3}", f"gloss {i % 3}"),),
    )
    for i in range(1500)
]
CHOICES = {
    "as opened": Choice(),
    "WordNet": Choice(("wordnet",)),
    "everything": Choice(("examples", "wordnet", "text")),
    "others": Choice(("examples", "wordnet", "text"), words="exclude"),
    "this word": Choice(("examples", "wordnet", "text"), words="only"),
    "verbs": Choice(("wordnet",), pos="VERB"),
    "length 1": Choice(("wordnet", "text"), unit=True),
    "mean kept": Choice(("wordnet",), centered=False),
    "dot": Choice(("wordnet",), metric="dot"),
    "Euclidean": Choice(("wordnet", "text"), metric="euclidean", centered=False),
}


@pytest.fixture(scope="module")
def here(services, tmp_path_factory):
    """Services on the small encoders, with the large bank opened."""
    models = []
    sentences = tuple(s.tokens for s in services.bank_sentences)
    for kind in ("bilm", "attention"):
        encoder = small_encoder(kind)
        bank = build_bank(sentences, encode_what_fits(encoder, sentences))
        models.append(make_model(encoder, False, bank))
    settings = Settings(bank_cache=tmp_path_factory.mktemp("banks"), max_upload_tokens=40)
    made = Services(settings, services.examples, models)
    made.wordnet._find_source = lambda: sentences_source("wordnet", LARGE)
    made.wordnet.start()
    assert made.wordnet.wait(120).state == "ready"
    return made


def selection_of(here, choice=None):
    example = here.examples[0]
    return Selection(example.text, False, *example.focus, choice=choice or Choice())


def vectors_of(here, kind, pool):
    bank = pool.bank
    return np.asarray(bank.vectors, dtype=np.float64)


@pytest.mark.parametrize("name", CHOICES)
def test_the_pages_candidates_hold_the_nearest_of_every_mix(here, name):
    """The message that the page gets, against mixing and searching all vectors anew."""
    choice, sentences = CHOICES[name], here.examples[0].tokens
    selection = selection_of(here)
    view = json.loads(json.dumps(near_view(here, sentences, selection, choice)))
    for kind in here.models:
        found, own = view["encoders"][kind], here.encode(kind, sentences)
        n_layers = own.n_layers
        pairs, n = n_layers * (n_layers + 1) // 2, len(found["rows"]) // 3
        products, norms = (unpack(found[key], pairs, n) for key in ("products", "norms"))
        sent = Comparison(products, norms, np.array(found["norm"]), np.arange(n))
        assert found["exact"]
        query, rows = rows_by_hand(here, kind, choice, sentences, selection)
        assert found["n_rows"] == len(rows)
        for s in np.random.default_rng(3).dirichlet(np.full(n_layers, 0.7), size=200):
            expected = np.sort(by_hand(query, rows, s, choice.metric))
            expected = expected[:K] if choice.metric == "euclidean" else expected[::-1][:K]
            got = sent.nearest(s, K, choice.metric).scores
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(got, expected, atol=3e-4 * scale)


def rows_by_hand(here, kind, choice, sentences, selection):
    """The (L, D) query and the (N, L, D) rows left by the filters, as the choice views them."""
    own, model = here.encode(kind, sentences), here.model(kind)
    row = own.row(selection.sentence, selection.token)
    word = own.token(row).casefold()
    banks = {"examples": model.bank, "wordnet": here.wordnet.banks[kind], "text": own}
    kept = []
    for name in choice.pools:
        bank = banks[name]
        for i in range(len(bank)):
            if name == "text" and i == row:
                continue
            if name != "text" and tuple(bank.sentences[bank.sentence[i]]) in sentences:
                continue
            same = bank.token(i).casefold() == word
            if choice.words != "any" and same != (choice.words == "only"):
                continue
            tag = bank.tag_of(i)
            if choice.pos and (tag is None or tag.pos != choice.pos):
                continue
            kept.append(np.asarray(bank.vectors[i], dtype=np.float64))
    rows, query = np.array(kept), own.vectors[row].astype(np.float64)
    mean = model.bank.means.unit if choice.unit else model.bank.means.raw
    if choice.unit:
        rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
        query = query / np.linalg.norm(query, axis=-1, keepdims=True)
    return (query - mean, rows - mean) if choice.centered else (query, rows)


def by_hand(query, rows, s, metric):
    mixed, wanted = np.tensordot(rows, s, axes=(1, 0)), s @ query
    if metric == "euclidean":
        return np.linalg.norm(mixed - wanted, axis=1)
    dot = mixed @ wanted
    if metric == "dot":
        return dot
    return dot / np.linalg.norm(mixed, axis=1) / np.linalg.norm(wanted)


def test_past_the_limit_the_page_is_told_what_is_certain(monkeypatch):
    """Many rows that are each the nearest under some mix: exact at the mixes that were searched."""
    monkeypatch.setattr("app.nearby.LIMIT", 30)
    monkeypatch.setattr("app.nearby.MOST", 40)
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(3, 3000, 8)).astype(np.float32)
    from elmo.results import Encoding

    tokens = tuple(f"w{i}" for i in range(3000))
    bank = build_bank([tokens], [Encoding(tokens, hidden)])
    pool, query = Pool("examples", bank), bank.query(rng.normal(size=(3, 8)))
    near = find_near([pool], {"examples": query}, "x", Choice(("examples",)))
    assert isinstance(near, Near) and not near.exact and near.n_mixes == 66
    everything = compare([pool], {"examples": query}, "x", Choice(("examples",)))
    for s in ([1, 0, 0], [0.3, 0.3, 0.4], [0, 0.5, 0.5]):
        assert near.comparison.nearest(s, K).rows.tolist() == everything.nearest(s, K).rows.tolist()


def test_copies_of_the_texts_sentences_are_no_neighbors(here):
    choice = Choice(("wordnet", "text"))
    text = " ".join(LARGE[3].tokens)
    view = near_view(here, here.parse(text, True), Selection(text, True, choice=choice), choice)
    others = [number for pool, number, _ in view["sentences"] if pool == "wordnet"]
    same = [i for i, s in enumerate(LARGE) if s.tokens == LARGE[3].tokens]
    assert others and not set(others) & set(same[:1])


def test_rows_come_with_what_is_known_about_them(here):
    sentences = here.examples[0].tokens
    view = near_view(here, sentences, selection_of(here), Choice(("wordnet",), pos="NOUN"))
    found = view["encoders"]["bilm"]["rows"]
    tags = Counter(tuple(view["tags"][tag]) for tag in found[2::3])
    assert tags and all(tag[1] == "NOUN" and tag[2].startswith("gloss") for tag in tags)


def test_what_the_page_may_choose(here):
    handlers = NeighborHandlers(here)
    chosen = {"pools": ["wordnet"], "words": "only", "pos": None, "metric": "dot", "upload": None}
    sent = json.dumps(chosen | {"centered": False, "unit": True})
    selection, message = handlers.choose(selection_of(here), sent)
    assert selection.choice == Choice(("wordnet",), "only", None, "dot", False, True)
    assert json.loads(message)["near"]["choice"]["pools"] == []  # at once; the large bank is asked:
    place = {"sentence": 0, "token": 1, "text": text_id(here.parse(selection.text, False))}
    message = handlers.near(selection_of(here), json.dumps(json.loads(sent) | place))
    assert json.loads(message)["near"]["choice"] == json.loads(sent)
    assert json.loads(message)["near"]["place"] == [0, 1]
    left = json.dumps(json.loads(sent) | place | {"text": "another"})
    assert handlers.near(selection_of(here), left) == gr.skip()
    for wrong in ({"words": "all"}, {"metric": "L1"}, {"pools": ["web"]}, {"pools": "text"}):
        with pytest.raises(gr.Error, match="must be one of|which banks"):
            handlers.choose(selection_of(here), json.dumps(chosen | wrong))
    _, message = handlers.choose(selection_of(here), json.dumps(chosen | {"pools": []}))
    assert set(json.loads(message)["near"]["encoders"].values()) == {None}


def test_the_bank_is_built_while_the_page_is_used_and_opened_the_next_time(tmp_path, here):
    encoders = {"bilm": small_encoder("bilm")}
    means = {"bilm": here.model("bilm").bank.means}
    many = LARGE * 3
    source = sentences_source("wordnet", many)
    service = WordNetService(encoders, means, tmp_path / "new", lambda: source)
    seen, report = [], service._report

    def watch(kind, progress):
        report(kind, progress)
        assert not service.banks
        seen.append((service.status.state, progress.n_sentences, progress.total))

    service._report = watch
    assert service.status.state == "off"
    service.start()
    assert service.wait(120).state == "ready"
    assert [n for _, n, _ in seen] == [1024, 2048, 3072, 4096, 4500]
    assert {(state, total) for state, _, total in seen} == {("building", 4500)}
    # Opened, not built; a damaged one is built again.
    again = WordNetService(encoders, means, tmp_path / "new", lambda: source)
    again._report = lambda *_: pytest.fail("built again")
    again.start()
    assert again.wait(60).state == "ready"
    np.testing.assert_array_equal(again.banks["bilm"].vectors, service.banks["bilm"].vectors)
    file = bank_folder(tmp_path / "new", encoders["bilm"], source) / "rows.i32"
    file.write_bytes(b"\x01" + file.read_bytes()[1:])
    third = WordNetService(encoders, means, tmp_path / "new", lambda: source)
    third.start()
    assert third.wait(120).state == "ready"
    np.testing.assert_array_equal(third.banks["bilm"].sentence, service.banks["bilm"].sentence)


def test_without_wordnet_the_page_says_how_to_get_it(tmp_path, here):
    def missing():
        raise FileNotFoundError("WordNet 3.0 was not found. Get it with pip install.")

    service = WordNetService({}, {}, tmp_path, missing)
    service.start()
    assert service.wait(10).state == "absent"
    assert "Get it with" in service.status.message


def test_where_nothing_can_be_written_a_temporary_folder_is_used(tmp_path, monkeypatch, here):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = sentences_source("wordnet", LARGE[:40])
    encoders = {"bilm": small_encoder("bilm")}
    means = {"bilm": here.model("bilm").bank.means}
    service = WordNetService(encoders, means, tmp_path / "file" / "cache", lambda: source)
    service.start()
    assert service.wait(60).state == "ready"
    assert len(list((tmp_path / "both-ways-banks").glob("bilm-*"))) == 1


def test_other_means_are_those_of_the_formula(here):
    bank, means = here.wordnet.banks["bilm"], here.model("bilm").bank.means
    some = build_bank([("a",)], [None], means=means)
    vectors = np.asarray(bank.vectors[:50], dtype=np.float32)
    assert bank.means is means and some.means is means
    expected = [v @ m for v, m in zip(vectors[7], means.raw, strict=True)]
    np.testing.assert_allclose(bank.mean_products[7][[0, 3, 5]], expected, rtol=1e-4)
    unit = vectors[7] / np.linalg.norm(vectors[7], axis=-1, keepdims=True)
    expected = [v @ m for v, m in zip(unit, means.unit, strict=True)]
    np.testing.assert_allclose(bank.unit_mean_products[7][[0, 3, 5]], expected, rtol=1e-3)
    again = with_means(bank, means)
    np.testing.assert_array_equal(again.mean_products, bank.mean_products)


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Puts a file where Gradio would: in a folder named by the content."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))

    def put_one(name, content):
        content = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / hashlib.sha256(content).hexdigest() / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    return put_one


def upload(here, path, elmo=""):
    file = {"path": str(path), "meta": {"_type": "gradio.FileData"}}
    steps = NeighborHandlers(here).upload(file, Selection("a", elmo=elmo))
    return [json.loads(step)["uploading"] for step in steps]


def test_a_file_is_read_deleted_encoded_and_found_by_its_content(here, put):
    path = put("mine.tsv", "text\tword\tsense\nA zebra ran in the light .\tzebra\tanimal\n")
    *steps, last = upload(here, path)
    assert not path.exists()
    assert [(s["done"], s["total"]) for s in steps] == [(0, 2), (1, 2)]
    choice = Choice(("upload",), upload=last["digest"])
    view = near_view(here, here.examples[0].tokens, selection_of(here), choice)
    assert view["pools"]["upload"]["name"] == "mine.tsv"
    assert [s[0] for s in view["sentences"]] == ["upload"]
    assert "zebra" in view["sentences"][0][2]
    other = near_view(here, here.examples[0].tokens, selection_of(here), Choice(("upload",)))
    assert other["encoders"]["bilm"] is None and other["pools"]["upload"] is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pdf", b"%PDF", "must end in"),
        ("a.txt", b"", "no sentence"),
        ("a.txt", b"\x00\x01\x02" * 100, "not a text file"),
        ("a.jsonl", b"{not json}\n", "line 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_and_deleted(here, put, name, content, message):
    path = put(name, content)
    for _ in range(2):  # the second visitor with the same file comes after it was deleted
        (last,) = upload(here, path)
        assert message in last["error"] and not path.exists()


def test_a_long_file_is_cut_and_says_so(here, put):
    path = put("long.txt", "The old bass sang in the light .\n" * 3 + "A deep play .\n" * 30)
    *_, last = upload(here, path)
    found = here.uploads.get(last["digest"])
    assert sum(map(len, found.banks["bilm"].sentences)) <= 40
    assert "are used (40 tokens at most)" in found.notices[-1]


def test_a_class_uploads_the_same_file_at_once(here, put):
    """It is at one place for all of them, and the first one's question deletes it."""
    path = put("handout.txt", "A yak sat on the loud hill .\n")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: upload(here, path), range(8)))
    assert len({steps[-1]["digest"] for steps in found}) == 1
    assert not path.exists()
    path.write_text("A yak sat on the loud hill .\n")  # a latecomer's copy is deleted as well
    assert upload(here, path) == [found[0][-1]] and not path.exists()


def test_what_is_no_longer_there_is_to_be_chosen_again(here, put, monkeypatch):
    monkeypatch.setattr("app.upload_service.MAX_READ", 1)
    first, second = put("first.txt", "A first one .\n"), put("second.txt", "A second one .\n")
    assert "digest" in upload(here, first)[-1] and "digest" in upload(here, second)[-1]
    (last,) = upload(here, first)
    assert last["error"] == "first.txt was read and deleted in the meantime: choose it again."


def test_nothing_but_an_upload_is_read_or_deleted(here, put, tmp_path_factory):
    upload_folder = put("mine.txt", "A fine play .\n").parent.parent
    outside = tmp_path_factory.mktemp("outside") / "store.js"
    outside.write_text("let a = 1\n")
    link = upload_folder / "digest" / "link.txt"
    link.parent.mkdir()
    link.symlink_to(outside)
    deeper = upload_folder / "digest" / "folder" / "a.txt"
    climbing = f"{upload_folder}/digest/../../{outside.parent.name}/store.js"
    for path in (outside, link, upload_folder, link.parent, deeper, climbing, "a.txt", "", "\0"):
        (last,) = upload(here, path)
        assert last["error"]
    for file in (None, "text", {}, {"path": None}, {"path": ["x"]}, [str(outside)]):
        (step,) = NeighborHandlers(here).upload(file, Selection("a"))
        assert json.loads(step)["uploading"]["error"] == "No file was chosen."
    assert outside.exists() and link.is_symlink()


def test_equal_files_of_two_visitors_keep_their_names_and_notices(here, put):
    content = "The caf\u00e9 is old .\n"
    digests = {
        upload(here, put(name, content.encode(encoding)))[-1]["digest"]: (name, encoding)
        for name, encoding in (("anns.txt", "utf-8"), ("bob.txt", "utf-8"), ("bob.txt", "cp1252"))
    }
    assert len(digests) == 3
    for digest, (name, encoding) in digests.items():
        found = here.uploads.get(digest)
        assert found.name == name and len(found.notices) == (encoding == "cp1252")


def test_repeated_lines_are_copies_all_of_them(here, put):
    line = "The old bass ran ."
    *_, last = upload(here, put("twice.txt", f"{line}\nA loud play sat .\n{line}\n"))
    assert len(here.uploads.get(last["digest"]).places) == 3
    choice = Choice(("upload",), upload=last["digest"])
    selection = Selection(line, True, 0, 2, choice=choice)
    view = near_view(here, here.parse(line, True), selection, choice)
    assert view["pools"]["upload"]["n_sentences"] == 3
    assert [number for _, number, _ in view["sentences"]] == [1]


def test_a_file_is_kept_once_for_all_models_in_elmos_place(here, put):
    """Under another biLM the file is there for the encoders that have read it, until it is chosen
    again; then only the other biLM reads it."""
    encoder = small_encoder("bilm", seed=1)
    sentences = tuple(s.tokens for s in here.bank_sentences)
    bank = build_bank(sentences, encode_what_fits(encoder, sentences))
    deep = make_model(encoder, True, bank, "deep")
    both = Services(here.settings, here.examples, list(here.models.values()), [deep])
    path = put("mine.txt", "A zebra ran in the light .\n")
    *_, last = upload(both, path)
    under = both.using("deep").uploads.get(last["digest"])
    assert set(under.banks) == {"attention"} and "choose it again" in under.notices[-1]
    choice = Choice(("upload",), upload=last["digest"])
    selection = replace(selection_of(here), elmo="deep", choice=choice)
    view = near_view(both.using("deep"), here.examples[0].tokens, selection, choice)
    assert view["encoders"]["bilm"] is None and view["encoders"]["attention"]
    assert upload(both, path, "deep") == [
        {"name": "mine.txt", "done": 0, "total": 1},
        {"digest": last["digest"], "name": "mine.txt"},
    ]
    found = [both.using(elmo).uploads.get(last["digest"]) for elmo in ("", "deep")]
    assert all(set(one.banks) == {"bilm", "attention"} and not one.notices for one in found)
    assert found[0].banks["attention"] is found[1].banks["attention"]
    assert found[0].banks["bilm"] is not found[1].banks["bilm"]


def test_four_of_the_largest_files_are_kept():
    settings, per_token = Settings(), 0
    for kind in ABOUT:
        stack = shipped_config(kind).stack
        n_layers = 1 + (stack.n_layers if kind == "bilm" else stack.n_blocks)
        n_pairs = n_layers * (n_layers + 1) // 2
        # Vectors in half precision, three tables of products, and four more once they are asked.
        per_token += n_layers * stack.d_model * 2 + n_pairs * 7 * 4
    assert 4 * settings.max_upload_tokens * per_token <= settings.upload_bytes


def event(demo, name):
    return next(fn for fn in demo.fns.values() if fn.name == name)


def test_encoding_a_file_keeps_nobody_from_their_neighbors(demo, monkeypatch):
    asked = event(demo, "upload")
    assert asked.concurrency_id != event(demo, "near").concurrency_id
    threads = []
    monkeypatch.setattr(
        NeighborHandlers,
        "_bank_of",
        lambda *_: threads.append(threading.current_thread().name) or iter(()),
    )
    assert list(asked.fn(None, Visit(Selection("a")))) == []
    assert threads[0].startswith("apart")


def sent(server, demo, file):
    """What the server answers to an upload event with this file."""
    asked = {"fn_index": event(demo, "upload")._id, "session_hash": "stranger"}
    with httpx.Client(base_url=server, timeout=60) as client:
        body = asked | {"data": [file, None]}
        client.post("/gradio_api/queue/join", json=body).raise_for_status()
        address = "/gradio_api/queue/data?session_hash=stranger"
        with client.stream("GET", address) as lines:
            answers = [json.loads(line[5:]) for line in lines.iter_lines() if line[:5] == "data:"]
    return [answer for answer in answers if answer["msg"].startswith("process_")]


def forged(path):
    return {"path": str(path), "meta": {"_type": "gradio.FileData"}}


def test_a_forged_event_deletes_nothing_of_the_servers(server, demo, tmp_path, monkeypatch):
    script = tmp_path / "store.js"
    script.write_text("let a = 1\n")
    monkeypatch.setattr(_StaticFiles, "all_paths", [*_StaticFiles.all_paths, tmp_path])
    answers = sent(server, demo, forged(script))
    assert script.exists()
    assert "Only a file that was uploaded here" in json.dumps(answers)


def test_a_forged_event_makes_the_server_fetch_nothing(demo, monkeypatch):
    """Whatever the event: a value that looks like a file is fetched before its handler is asked."""
    asked = []

    async def download(url, cache_dir):
        asked.append(url)
        raise ValueError(url)

    monkeypatch.setattr("gradio.processing_utils.async_ssrf_protected_download", download)
    tried = 0
    for function in demo.fns.values():
        values = [forged("http://example.org/a.txt")] * len(function.inputs)
        with contextlib.suppress(Exception):  # most refuse a file anyway
            awaited(demo.preprocess_data(function, values, None))
        tried += bool(values)
    assert tried > 30 and not asked


def test_an_upload_leaves_no_file(server, demo, monkeypatch):
    files = {"files": ("mine.txt", b"A zebra ran .\n")}
    path = httpx.post(f"{server}gradio_api/upload", files=files).json()[0]
    made, make = [], tempfile.NamedTemporaryFile
    monkeypatch.setattr(
        "tempfile.NamedTemporaryFile", lambda *a, **k: made.append(make(*a, **k)) or made[-1]
    )
    answers = sent(server, demo, forged(path))
    assert answers[-1]["success"] and "digest" in json.dumps(answers)
    assert not Path(path).exists() and not made


def test_the_triangle_asks_for_parts_of_speech_that_the_word_has(here):
    selection = replace(selection_of(here), question="VERB")
    sentences = here.parse(selection.text, False)
    found = token_views(here, sentences, selection)["query"]["triangle"]
    assert found["possible"] == ["sense", "word", "NOUN", "VERB", "examples"]
    assert found["asked"] == "VERB"
    bank, text = here.wordnet.banks["bilm"], here.encode("bilm", sentences)
    word = text.token(text.row(selection.sentence, selection.token))
    rows = [r for r in np.flatnonzero(bank.tag >= 0) if bank.token(r) != word]
    is_verb = np.array([bank.tags[bank.tag[r]].pos == "VERB" for r in rows])
    vectors = np.asarray(bank.vectors[rows], np.float64) - bank.mean
    query = text.vectors[text.row(selection.sentence, selection.token)] - bank.mean
    for i, s in enumerate(simplex_grid(16)):
        mixed, wanted = np.tensordot(vectors, s, axes=(1, 0)), s @ query
        cosines = mixed @ wanted / np.linalg.norm(mixed, axis=1)
        last = np.sort(cosines)[-10]
        above, level = cosines > last + 1e-5, abs(cosines - last) <= 1e-5
        share = is_verb[above].sum() + (10 - above.sum()) * is_verb[level].mean()  # ties in parts
        assert found["values"][i] == pytest.approx(share / 10, abs=0.06)
