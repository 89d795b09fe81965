"""What is taken home, in a real browser: the page without a server, and pictures and tables."""

import pytest
from conftest import wait_settled

MIX = ".list[data-layer=mix][data-encoder=bilm]"
DOTS = "document.querySelector('#maps-bilm .mix .plot').data.flatMap((t) => [...t.x])"


def take_home(page, what, folder):
    page.get_by_role("button", name="Share", exact=True).click()
    page.wait_for_function("document.querySelector('.share-row input').value")
    with page.expect_download(timeout=60_000) as download:
        page.locator(f".home [data-what={what}]").click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    page.locator("dialog.share .close").click()
    return path


def neighbors_of(page):
    return page.locator(f"#lists {MIX} .neighbor:visible").evaluate_all(
        "r => r.map((x) => x.title)"
    )


def test_the_page_taken_home_mixes_and_ranks_without_a_server(open_page, browser, tmp_path):
    page = open_page()
    page.evaluate("bothways.setWeights('bilm', {w: [0.5, -0.5, 0], gamma: 1.25})")
    wait_settled(page)
    path = take_home(page, "page", tmp_path)
    assert path.name == "both-ways.html" and path.stat().st_size < 8_000_000

    context = browser.new_context(viewport={"width": 1366, "height": 768}, offline=True)
    home, troubles, requests = context.new_page(), [], []
    home.on("pageerror", lambda error: troubles.append(str(error)))
    home.on("request", lambda request: requests.append(request.url))
    home.goto(path.as_uri())
    home.wait_for_selector("#lists .neighbor:visible")
    home.wait_for_selector("#maps-attention .mix path.point")
    wait_settled(home)
    assert home.evaluate("bothways.weights") == page.evaluate("bothways.weights")
    assert home.evaluate(DOTS) == page.evaluate(DOTS)
    assert neighbors_of(home) == neighbors_of(page)
    before, order = home.evaluate(DOTS), neighbors_of(home)
    for each in (home, page):
        slider = each.locator("#mixing input[type=range]").nth(2)
        box = slider.bounding_box()
        y, start = box["y"] + box["height"] / 2, box["x"] + box["width"] / 2
        each.mouse.move(start, y)
        each.mouse.down()
        each.mouse.move(box["x"] + box["width"] - 4, y, steps=8)
        each.mouse.up()
        wait_settled(each)
        assert each.evaluate("bothways.weights.bilm.w[2]") == 6
    assert home.evaluate(DOTS) == page.evaluate(DOTS) != before
    assert neighbors_of(home) == neighbors_of(page) != order

    home.get_by_label("axes", exact=True).select_option("word")
    assert home.evaluate("bothways.state.maps.wanted") == "word"
    home.get_by_label("color", exact=True).select_option("pos")
    home.get_by_label("axes", exact=True).select_option("umap")
    assert "need the app" in home.locator(".said").inner_text()
    assert home.evaluate("bothways.state.maps.wanted") == "word"
    copy = home.locator("#strip .token.copy").first
    place = [int(copy.get_attribute(f"data-{x}")) for x in ("sentence", "token")]
    copy.click()
    assert home.evaluate("bothways.state.near.place") == place
    home.get_by_role("tab", name="Neighbors").click()
    home.wait_for_selector("#table .neighbor:visible")
    home.locator("#table [data-key=dot]").click()
    assert "need the app" in home.locator(".said").inner_text()
    assert home.locator("#table [data-key=cosine]").get_attribute("aria-pressed") == "true"
    assert not troubles and all(url.startswith("file:") for url in requests)
    context.close()


BEHIND = "Array.from(bothways.state.maps.encoders.bilm.behind.coordinates)"


def test_examples_behind_come_along_on_the_first_axes(open_page, browser, tmp_path):
    page = open_page()
    page.locator(".map-controls .behind").click()
    page.wait_for_function("bothways.state.maps.encoders.bilm.behind")
    path = take_home(page, "page", tmp_path)

    context = browser.new_context(viewport={"width": 1366, "height": 768}, offline=True)
    home, troubles = context.new_page(), []
    home.on("pageerror", lambda error: troubles.append(str(error)))
    home.goto(path.as_uri())
    home.wait_for_selector("#maps-attention .mix path.point")
    assert home.evaluate(BEHIND) == pytest.approx(page.evaluate(BEHIND), abs=0.01)
    pill, axes = home.locator(".map-controls .behind"), home.get_by_label("axes", exact=True)
    first, said = axes.input_value(), home.locator(".said")
    axes.select_option("layers")
    assert home.evaluate("bothways.state.maps.wanted") == "layers"
    assert "Examples" in said.inner_text() and pill.get_attribute("aria-pressed") == "false"
    pill.click()
    assert "need the app" in said.inner_text() and pill.get_attribute("aria-pressed") == "false"
    axes.select_option(first)
    assert said.is_hidden() and pill.get_attribute("aria-pressed") == "true"
    assert home.evaluate(BEHIND) == pytest.approx(page.evaluate(BEHIND), abs=0.01)
    assert not troubles
    context.close()
