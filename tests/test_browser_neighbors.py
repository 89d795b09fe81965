"""The Neighbors tab in a real browser, with a large bank that arrives while the page is used."""

import random
import threading

import pytest
from conftest import wait_settled
from small_models import small_encoder

from app.services import Services, encode_what_fits, make_model
from app.settings import Settings
from elmo.banks.bank import build_bank
from elmo.banks.sources import Source
from elmo.banks.tagged import Tag, TaggedSentence

TEXT = "bank bass run light the a of in on was her old loud deep quick ran sat sang"
WORDS = TEXT.split()
ROWS = "#table .near-list[data-layer=mix][data-encoder=bilm] li:visible"
FRESH = "!document.querySelector('.table-view').classList.contains('stale')"


def large_bank():
    rng = random.Random(5)
    for i in range(600):
        tokens = ["play", *rng.sample(WORDS, 5)]
        rng.shuffle(tokens)
        pos = ("NOUN", "VERB")[i % 2]
        at = tokens.index("play")
        yield TaggedSentence(tuple(tokens), (Tag(at, "play", pos, f"s{pos}", f"a gloss of {pos}"),))


@pytest.fixture(scope="module")
def gate():
    """Opened when the large bank may be read."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture(scope="module")
def services(services, gate, tmp_path_factory):
    models = []
    sentences = tuple(s.tokens for s in services.bank_sentences)
    for kind in ("bilm", "attention"):
        encoder = small_encoder(kind)
        bank = build_bank(sentences, encode_what_fits(encoder, sentences))
        models.append(make_model(encoder, False, bank))
    settings = Settings(bank_cache=tmp_path_factory.mktemp("banks"))
    made = Services(settings, services.examples, models)

    def read():
        gate.wait(120)
        return large_bank()

    made.wordnet._find_source = lambda: Source("wordnet", "0" * 32, read, 600)
    made.wordnet.start()
    yield made
    gate.set()
    made.wordnet.stop()


@pytest.fixture(scope="module")
def demo(services):
    from app.ui import build

    return build(services)


@pytest.fixture(scope="module")
def server(demo, services):
    from app.ui import launch_options

    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **launch_options(services))
    yield url
    demo.close()


def open_tab(page):
    page.get_by_role("tab", name="Neighbors").click()
    page.wait_for_selector(ROWS)


def texts(page, part):
    return page.locator(f"{ROWS} {part}").all_inner_texts()


def choose(page, group, name):
    page.get_by_role("group", name=group, exact=True).get_by_role(
        "button", name=name, exact=True
    ).click()
    page.wait_for_function(FRESH)


def test_the_large_bank_arrives_and_its_neighbors_have_glosses(open_page, gate, services):
    page = open_page()
    open_tab(page)
    page.wait_for_function("document.querySelector('.table-view .notice').textContent !== ''")
    assert "examples are being" in page.locator(".table-view .notice").inner_text()
    look_in = page.get_by_role("group", name="look in")
    assert look_in.get_by_role("button", name="WordNet").is_disabled()
    assert not any("gloss" in text for text in texts(page, ".gloss"))
    page.locator("#strip .token", has_text="children").first.click()  # it is usable meanwhile
    page.wait_for_function("document.querySelector('.table-view h2').textContent.includes('chil')")
    page.locator("#strip .token", has_text="play").first.click()

    gate.set()
    page.locator(".table-view .method", has_text="600 of WordNet").first.wait_for(timeout=60_000)
    page.wait_for_function(FRESH)
    assert "wordnet" in page.evaluate("bothways.state.near.choice.pools")
    choose(page, "part of speech", "noun")
    assert len(texts(page, ".gloss")) == 10
    assert set(texts(page, ".gloss")) == {"noun: a gloss of NOUN"}
    assert "are exact for every mix" in page.locator(".norms").inner_text()


def test_dragging_moves_rows_without_the_server_and_says_how_far(open_page, gate):
    gate.set()
    page = open_page()
    open_tab(page)
    choose(page, "words", "this one")
    requests = []
    page.wait_for_timeout(300)
    page.on("request", lambda request: requests.append(request.url))
    before = texts(page, ".context")
    page.evaluate("bothways.setWeights('bilm', {w: [-6, -6, 6]})")
    page.wait_for_function("bothways.weights.bilm.s[2] > 0.99")
    wait_settled(page)
    layer = page.locator("#table .near-list[data-layer='2'] li:visible .context")
    after = texts(page, ".context")
    assert after != before and after == layer.all_inner_texts()
    moves = texts(page, ".move")
    assert any(moves)
    for text, move, rank in zip(after, moves, range(10), strict=True):
        if move.startswith("\u25b2") and before.count(text) == 1:
            assert before.index(text) == rank + int(move[1:])
    first, mix = (page.locator(".overlap tbody tr").nth(i) for i in (0, 3))
    assert first.locator("td").nth(3).inner_text() == "1.00"
    assert mix.locator("td").nth(0).inner_text() == "1.00"
    assert requests == []


def test_filters_banks_and_metrics(open_page):
    page = open_page()
    open_tab(page)
    choose(page, "words", "this one")
    assert {word.lower() for word in texts(page, "b")} == {"play"}
    choose(page, "words", "others")
    assert "play" not in {word.lower() for word in texts(page, "b")}
    for name in ("our examples", "WordNet"):
        pressed = page.get_by_role("group", name="look in").get_by_role("button", name=name)
        if pressed.get_attribute("aria-pressed") == "true":
            choose(page, "look in", name)
    assert all(text.startswith("your sentence") for text in texts(page, ".gloss"))
    choose(page, "near by", "Euclidean")
    distances = [float(x) for x in texts(page, ".score")]
    assert distances == sorted(distances)
    choose(page, "layers", "at length 1")
    assert "Every layer has length 1" in page.locator(".norms").inner_text()
    page.get_by_role("group", name="lists of").get_by_role("button", name="Self-attention").click()
    heads = page.locator("#table .near-list h4").all_inner_texts()
    assert [head.split("mix")[0].strip() for head in heads[:1]] == ["Self-attention"]
    assert sum(head.startswith("Layer") for head in heads) == 4


def test_a_small_files_sentence_is_a_neighbor_for_its_visitor_alone(open_page, tmp_path):
    page, other = open_page(), open_page()
    open_tab(page)
    path = tmp_path / "mine.txt"
    path.write_text("A zebra saw the play on the hill .\n")
    page.locator("input[type=file]").first.set_input_files(path)
    page.wait_for_function("bothways.state.near.choice.pools.includes('upload')")
    page.wait_for_function(FRESH)
    for name in ("your text", "our examples", "WordNet"):
        button = page.get_by_role("group", name="look in").get_by_role("button", name=name)
        if button.get_attribute("aria-pressed") == "true":
            choose(page, "look in", name)
    choose(page, "words", "this one")
    assert [w.lower() for w in texts(page, "b")] == ["play"]
    assert texts(page, ".gloss") == ["your file, sentence 1"]
    page.locator(f"{ROWS} button").click()  # its sentence joins the text
    page.wait_for_function("document.querySelector('#strip').textContent.includes('zebra')")
    assert page.locator("#strip .token.chosen").inner_text() == "play"
    assert "zebra" not in other.content()
    bad = tmp_path / "mine.pdf"
    bad.write_bytes(b"%PDF-1.4")
    page.locator("input[type=file]").first.set_input_files(bad)
    page.wait_for_function(
        "document.querySelector('.table-view .notice').textContent.includes('must end in')"
    )
