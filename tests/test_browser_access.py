"""Keyboard, themes, phones, and text meant to break the page."""

import re

import pytest
from conftest import wait_settled


def run_text(page, text):
    """Types a text, runs it, waits until it is on the page."""
    page.evaluate("bothways.state.run.waiting = true")
    page.locator("#text textarea").fill(text)
    page.locator("#run").click()
    page.wait_for_function("!bothways.state.run.waiting")


def test_tokens_by_keyboard(open_page):
    page = open_page()
    page.locator("#strip .token.chosen").focus()
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.textContent")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert float(outline.removesuffix("px")) >= 2
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#lists section:not(.stale) h3 em:text-is('{focused}')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    place = page.evaluate("({...document.activeElement.dataset})")
    assert place["token"] == "0"


def test_sliders_by_keyboard_move_everything(open_page):
    page = open_page()
    before = page.locator("#maps-bilm .mix path.point").first.get_attribute("transform")
    slider = page.locator("#mixing input[type=range]").nth(2)
    slider.focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    wait_settled(page)
    assert page.evaluate("bothways.weights.bilm.w[2]") == pytest.approx(1.5)
    assert page.locator("#mixing .typed").nth(2).input_value() == "1.50"
    after = page.locator("#maps-bilm .mix path.point").first.get_attribute("transform")
    assert after != before
    drawn = page.evaluate("document.querySelector('#maps-bilm .mix .plot').data[0].x[0]")
    expected = page.evaluate(
        """() => {
          const map = bothways.state.maps.encoders.bilm;
          const x = new Float64Array(map.rows.length), y = new Float64Array(map.rows.length);
          const factors = bothways.mixFactors(map, bothways.weights.bilm.s, 1);
          bothways.mixCoordinates(map.coordinates, factors, x, y);
          return x[0];
        }"""
    )
    assert drawn == pytest.approx(expected)
    for _ in range(30):
        page.keyboard.press("ArrowLeft")
    assert page.evaluate("bothways.weights.bilm.w[2]") == pytest.approx(0, abs=1e-9)


def test_everything_is_reached_by_tab(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    seen = set()
    for _ in range(90):
        seen.add(
            page.evaluate(
                """() => {
                  const node = document.activeElement;
                  const names = ['run', 'token', 'pill', 'choice', 'typed', 'neighbor', 'dot'];
                  const name = names.find((n) => node.classList.contains(n) || node.id === n);
                  return name || node.getAttribute('role') || node.type || node.tagName;
                }"""
            )
        )
        page.keyboard.press("Tab")
    wanted = {
        "run",
        "token",
        "pill",
        "choice",
        "typed",
        "neighbor",
        "dot",
        "range",
        "tab",
        "textarea",
    }
    assert wanted <= seen


def test_neighbors_and_banks_by_keyboard(open_page):
    page = open_page()
    page.get_by_role("tab", name="Neighbors").click()
    page.wait_for_selector("#table .neighbor:visible")
    page.get_by_role("button", name="our examples").press("Enter")
    page.wait_for_function("bothways.state.near.choice.pools.length === 1")
    page.wait_for_function("!document.querySelector('.table-view').classList.contains('stale')")
    row = page.locator("#table .neighbor:visible").first
    row.press("Enter")
    page.wait_for_function("!document.querySelector('.table-view').classList.contains('stale')")
    chosen = page.locator("#strip .token.chosen")
    assert (chosen.get_attribute("data-sentence"), chosen.get_attribute("data-token")) != ("1", "5")


def rgb(page, selector, what):
    value = page.locator(selector).first.evaluate(f"node => getComputedStyle(node).{what}")
    return [int(x) for x in re.findall(r"\d+", value)[:3]]


def luminance(color):
    parts = [c / 255 for c in color]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes_reach_plots_and_text_reads_well(open_page, theme):
    page = open_page(theme=theme)
    ground = rgb(page, "body", "backgroundColor")
    assert (luminance(ground) < 0.02) == (theme == "dark")
    dot = page.evaluate("document.querySelector('#maps-bilm .plot').data[2].marker.color")
    assert dot == {"light": "#c2500a", "dark": "#f08a4b"}[theme]
    side = {"light": [246, 247, 249], "dark": [27, 31, 38]}[theme]
    for selector, back in [
        (".method", ground), (".row-head h3", ground), ("#maps-attention h3", ground),
        (".neighbor .context", ground), (".neighbor .score", ground), (".view-head .note", ground),
        (".status", side), (".mixing .choice", side), (".typed", side), (".number", side),
    ]:  # fmt: skip
        assert contrast(rgb(page, selector, "color"), back) >= 4.5, selector


def test_a_phone_has_one_column_and_no_sideways_scroll(open_page):
    page = open_page(width=390, height=844, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#mixing input[type=range]").first.bounding_box()["height"] >= 32
    bench, views = (page.locator(s).bounding_box() for s in ("#bench", "#views"))
    assert views["y"] >= bench["y"] + bench["height"] - 1
    panels = page.locator("#maps-bilm .panels")
    assert panels.evaluate("node => node.scrollWidth > node.clientWidth")
    assert panels.evaluate("node => getComputedStyle(node).scrollSnapType").startswith("x")
    page.get_by_role("tab", name="Neighbors").click()
    page.wait_for_selector("#table .neighbor:visible")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_maps_are_swiped_and_tapped(open_page):
    page = open_page(width=390, height=844, has_touch=True, is_mobile=True)
    panels = page.locator("#maps-bilm .panels")
    panels.scroll_into_view_if_needed()
    box = panels.bounding_box()
    finger = page.context.new_cdp_session(page)
    for i in range(13):
        touch = {"x": 250 - 15 * i, "y": box["y"] + 90}
        kind = "touchMove" if i else "touchStart"
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [touch]})
        page.wait_for_timeout(16)
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_function("document.querySelector('#maps-bilm .panels').scrollLeft > 100")
    page.wait_for_timeout(600)  # until the row has snapped
    tap = page.evaluate(
        """() => {
          const node = document.querySelectorAll('#maps-bilm .plot')[2];
          const {xaxis, yaxis} = node._fullLayout, trace = node.data[0];
          const box = node.getBoundingClientRect();
          return {place: trace.customdata[0], x: box.x + xaxis.d2p(trace.x[0]),
                  y: box.y + yaxis.d2p(trace.y[0])};
        }"""
    )
    before = page.evaluate("bothways.state.chosen")
    page.touchscreen.tap(tap["x"], tap["y"])
    page.wait_for_function("!document.querySelector('.lists').classList.contains('stale')")
    assert page.evaluate("bothways.state.chosen") != before


HOSTILE = {
    "one": "word",
    "tags": "<S> <script>window.hacked = 1</script> <img src=x onerror=window.hacked=1> ${1} {{x}}",
    "long": "x" * 500 + " y",
    "emoji": "\U0001f600 \U0001f469\u200d\U0001f469\u200d\U0001f467 laughs \U0001f600",
    "arabic": "\u0647\u0630\u0627 \u0643\u062a\u0627\u0628 \u062c\u062f\u064a\u062f .",
    "hindi": "\u092f\u0939 \u0928\u0908 \u0915\u093f\u0924\u093e\u092c \u0939\u0948 .",
    "japanese": "\u3053\u308c\u306f \u65b0\u3057\u3044 \u672c \u3067\u3059 .",
    "null": "a \x00 null and a half \ud800 pair",
    "forty": "\n".join(f"Sentence number {i} is about a play ." for i in range(40)),
    "combining": "cafe\u0301 caf\u00e9 z\u0335\u0321a\u0334",
}


def test_hostile_texts_are_drawn_or_explained(open_page):
    page = open_page()
    for pretokenized in (False, True):
        page.locator("#pretokenized input").set_checked(pretokenized)
        page.wait_for_timeout(300)
        for name, text in HOSTILE.items():
            run_text(page, text)
            tokens = page.evaluate("bothways.state.run.sentences.flat()")
            shown = page.locator("#strip .token").evaluate_all("b => b.map(x => x.textContent)")
            assert shown == tokens, name
            assert page.locator("#maps-bilm .plot").first.evaluate(
                "node => node.data.reduce((sum, trace) => sum + trace.x.length, 0)"
            ) == len(tokens)
            assert page.locator("#lists .list").first.locator(".neighbor:visible").count() == 5
            hover = page.evaluate(
                "[...document.querySelectorAll('#maps-bilm .plot')].flatMap(p => p.data)"
                ".flatMap(trace => trace.text).join(' ')"
            )
            assert "<script" not in hover and "<img" not in hover and "<S>" not in hover
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 1366


def test_text_beyond_the_limits_leaves_the_view_and_says_why(open_page):
    page = open_page()
    before = page.locator("#strip").inner_text()
    for text, message in [("  \n ", "There is no word"), ("a b\n" * 61, "61 sentences")]:
        page.locator("#text textarea").fill(text)
        page.locator("#run").click()
        page.locator(".toast-body", has_text=message).wait_for()
    assert page.locator("#strip").inner_text() == before


def test_300_tokens_blank_the_attention_row_with_a_reason(open_page):
    page = open_page()
    run_text(page, " ".join(f"word{i}" for i in range(300)))
    blank = page.locator("#maps-attention .blank")
    assert "300 tokens" in blank.inner_text()
    assert page.locator("#maps-attention .panel:visible").count() == 0
    assert page.locator("#maps-bilm .plot").first.locator("path.point").count() == 300
    message = page.locator("#lists .list[data-encoder=attention] .message")
    assert "at most" in message.inner_text()
    page.get_by_role("tab", name="Neighbors").click()
    page.wait_for_selector("#table .neighbor:visible")
    message = page.locator("#table .near-list[data-encoder=attention] .message")
    assert "300 tokens" in message.inner_text()
    page.get_by_role("tab", name="Maps").click()
    run_text(page, "A short one .")
    page.wait_for_selector("#maps-attention .mix path.point:visible")


def test_500_slider_steps_change_the_view_and_add_nothing_to_the_page(open_page):
    page = open_page()
    count = "document.querySelectorAll('*').length"
    before = page.evaluate(count)
    page.evaluate(
        """async () => {
          for (let i = 0; i < 500; i++) {
            bothways.setWeights('bilm', {w: [Math.sin(i), Math.cos(i), 0]});
            if (i % 5 === 0) await new Promise(requestAnimationFrame);
          }
        }"""
    )
    page.wait_for_timeout(400)
    assert page.evaluate(count) <= before + 20
