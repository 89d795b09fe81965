"""Links in a real browser: what one visitor sees, another opens; and what links must not do."""

import base64
import csv
import io
import re
import struct
from pathlib import Path

import pytest
from conftest import wait_settled

from app.link import View, encode

SEEN = """() => ({
  sentences: bothways.state.run.sentences, chosen: bothways.state.chosen,
  weights: bothways.weights, basis: bothways.state.maps.wanted,
  color: bothways.state.color, choice: bothways.state.choice, depth: bothways.state.depth,
  tab: document.querySelector('#tabs [role=tab][aria-selected=true]').dataset.tabId,
})"""


def link_of(page):
    page.get_by_role("button", name="Share", exact=True).click()
    page.wait_for_function("document.querySelector('.share-row input').value")
    link = page.locator(".share-row input").input_value()
    page.locator("dialog.share .close").click()
    return link


def open_link(page, link):
    """Follows a link and waits until it is on the page."""
    page.evaluate("bothways.state.opened = null")
    page.evaluate("hash => { location.hash = hash; }", link[link.index("#") :])
    page.wait_for_function("bothways.state.opened")


def test_a_link_opens_the_same_view_for_another_visitor(open_page):
    page = open_page()
    page.locator("#text textarea").fill("The bank rose .\nThey fished from the bank < b > .")
    page.locator("#pretokenized input").check()
    page.wait_for_function("bothways.state.run.sentences.length === 2")
    page.locator("#strip .token", has_text="bank").nth(1).click()
    page.wait_for_function("bothways.state.query.token === 4")
    page.get_by_label("axes", exact=True).select_option("word")
    page.wait_for_function("bothways.state.maps.wanted === 'word'")
    page.get_by_label("color", exact=True).select_option("sentence")
    page.evaluate("bothways.setWeights('bilm', {w: [1.25, -0.5, 2], gamma: 1.5})")
    page.get_by_role("tab", name="Neighbors").click()
    page.get_by_role("button", name="dot product").click()
    page.wait_for_function("bothways.state.near.choice.metric === 'dot'")
    page.wait_for_timeout(400)
    seen = page.evaluate(SEEN)
    link = link_of(page)
    assert len(link) < 900 and re.fullmatch(r"http://[^#]+#view=[A-Za-z0-9_-]+", link)

    other = open_page()
    untouched = other.evaluate("bothways.state.run.sentences.length")
    fresh = open_page(address=link)
    fresh.wait_for_function("window.bothways && bothways.state.opened")
    fresh.wait_for_selector("#table .neighbor:visible")
    fresh.wait_for_timeout(400)
    assert fresh.evaluate(SEEN) == seen
    assert fresh.locator("#text textarea").input_value().endswith("bank < b > .")
    assert fresh.locator("#pretokenized input").is_checked()
    assert fresh.locator("#table [data-key=dot]").get_attribute("aria-pressed") == "true"
    assert fresh.locator("#mixing .typed").first.input_value() == "1.25"
    # Two visitors keep two states, and both go on from there.
    fresh.locator("#strip .token").first.click()
    fresh.wait_for_function("bothways.state.query.token === 0")
    assert page.evaluate("bothways.state.chosen.token") == 4
    assert other.evaluate("bothways.state.run.sentences.length") == untouched


def test_an_example_is_named_and_the_code_is_drawn(open_page, services):
    page = open_page()
    page.get_by_role("button", name="Share", exact=True).click()
    page.wait_for_selector("dialog.share svg path[d^=M]", state="attached")
    link = page.locator(".share-row input").input_value()
    assert len(link) < 120
    assert "--lan" in page.locator("dialog.share").inner_text()
    box = page.locator(".share-link svg").bounding_box()
    assert box["width"] >= 180 and abs(box["width"] - box["height"]) < 1
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    page.keyboard.press("Escape")
    assert not page.locator("dialog.share").is_visible()


def test_links_that_hold_nonsense_leave_the_page_and_say_so(open_page):
    page = open_page()
    before = page.locator("#strip").inner_text()
    hostile = View(text="a b", tab="<img src=x onerror=window.hacked=1>")
    for code, message in [
        ("garbage", "damaged"),
        ("<script>window.hacked=1</script>", "damaged"),
        (encode(hostile), "tab must be one of"),
        (encode(View(text="one two", sentence=3)), "no token 0 in sentence 3"),
        (encode(View(text="a b", weights={"bilm": ((1.0, 2.0), 1.0)})), "3 layers"),
        (encode(View(example="<b>none</b>")), "is not on this page"),
    ]:
        page.evaluate("code => { location.hash = `#view=${code}`; }", code)
        page.locator(".toast-body", has_text=message).first.wait_for()
        page.locator(".toast-close").first.click()
        page.wait_for_function("!document.querySelector('.toast-body')")
    assert page.locator("#strip").inner_text() == before
    assert page.evaluate("window.hacked") is None
    tags = encode(View(text="<img src=x onerror=window.hacked=1> tags .", pretokenized=True))
    open_link(page, f"#view={tags}")
    assert page.locator("#strip .token").first.inner_text() == "<img"
    assert page.evaluate("window.hacked") is None


def test_a_long_text_says_what_the_link_holds(open_page):
    page = open_page()
    text = "\n".join(" ".join(f"w{i * j * 7919 % 99991}x" for j in range(1, 40)) for i in range(9))
    page.locator("#text textarea").fill(text)
    page.locator("#run").click()
    page.wait_for_function("bothways.state.run.sentences.length === 9")
    page.get_by_role("button", name="Share", exact=True).click()
    page.wait_for_selector(".share-notes .notice")
    assert "too long for a link of 800 characters" in page.locator(".share-notes").inner_text()
    assert len(page.locator(".share-row input").input_value()) < 900


def open_share(page):
    page.locator(".top nav button", has_text="Share").click()
    page.wait_for_selector("dialog.share[open] .home button[aria-label$=PNG]")


def saved(page, label):
    with page.expect_download() as download:
        page.locator(f'dialog.share button[aria-label="{label}"]').click()
    return Path(download.value.path()).read_bytes(), download.value.suggested_filename


def test_a_plot_is_saved_as_it_is_on_the_screen(open_page):
    page = open_page()
    shown = page.locator("#maps-bilm path.point").count()
    box = page.locator("#maps-bilm .map-row").bounding_box()
    open_share(page)
    svg, name = saved(page, "Maps of ELMo, SVG")
    assert name == "both-ways-maps-of-elmo.svg"
    text = svg.decode("utf-8")
    assert text.count('class="point ') == shown > 100
    assert "Layer 0" in text and "IBM Plex Sans" in text and "<script" not in text
    png, _ = saved(page, "Maps of ELMo, PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", png[16:24])
    assert size[0] == pytest.approx(2 * box["width"], abs=4)
    assert size[1] == pytest.approx(2 * box["height"], abs=4)
    page.keyboard.press("Escape")
    # The picture is the screen's: the same share of pixels in the encoder's color.
    drawn = page.evaluate(
        """async (encoded) => {
          const image = new Image();
          image.src = `data:image/png;base64,${encoded}`;
          await image.decode();
          const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
          canvas.drawImage(image, 0, 0);
          const { data } = canvas.getImageData(0, 0, image.width, image.height);
          let n = 0;
          for (let i = 0; i < data.length; i += 4) {
            n += data[i] > 150 && data[i + 1] < 110 && data[i + 2] < 60;
          }
          return n;
        }""",
        base64.b64encode(png).decode("ascii"),
    )
    assert drawn > 500  # dots, frame, triangle


def test_neighbors_are_saved_with_everything_that_names_them(open_page):
    page = open_page()
    page.evaluate("bothways.setWeights('bilm', {w: [0, 1, 2]})")
    wait_settled(page)
    open_share(page)
    data, name = saved(page, "neighbors, CSV")
    assert name == "both-ways-neighbors.csv"
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))
    named = ["encoder", "layer", "weights", "gamma", "rank", "token", "sentence"]
    assert list(rows[0])[:7] == named
    mix = [row for row in rows if row["encoder"] == "bilm" and row["layer"] == "mix"]
    assert [int(row["rank"]) for row in mix] == list(range(1, 21))
    shares = page.evaluate("bothways.weights.bilm.s")
    assert [float(x) for x in mix[0]["weights"].split()] == pytest.approx(shares, abs=1e-4)
    for row in mix:
        assert row["sentence"].split()[int(row["position"])] == row["token"]
    first = page.evaluate(
        "bothways.rank(bothways.candidatesOf('bilm'), bothways.weights.bilm.s, 1, 1)[0].score"
    )
    assert float(mix[0]["cosine, mean removed"]) == pytest.approx(first, abs=1e-5)


def test_a_plot_fills_the_screen_and_escape_leaves(open_page):
    page = open_page()
    open_share(page)
    page.locator('dialog.share button[aria-label="Maps of ELMo, full screen"]').click()
    page.wait_for_function("document.fullscreenElement?.matches('.map-row')")
    page.evaluate("document.exitFullscreen()")
    page.wait_for_function("document.fullscreenElement === null")
    assert page.locator("#maps-bilm path.point").count() > 10


def test_the_page_says_when_everything_is_warm(open_page):
    page = open_page()
    badge = page.locator(".readiness")
    assert badge.inner_text() == "\u25cf ready"  # this server has no WordNet, and that is said
    assert "switched off" in badge.get_attribute("title")
    page.evaluate(
        """bothways.state.pools.wordnet = {state: 'building', done: 1, total: 4, ready: []};
        bothways.emit('pools')"""
    )
    assert badge.inner_text() == "\u25cb preparing WordNet 25 %"
    page.wait_for_function("bothways.state.pools.wordnet.state === 'off'")  # asked without a click
    assert badge.inner_text() == "\u25cf ready"
