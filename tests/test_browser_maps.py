"""The maps' projections, colors and third dimension in a real browser."""

import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import CHROMIUM_FLAGS, chromium_path, wait_settled

from app.umap_service import UmapService
from elmo.scalar_mix import softmax

STAND_IN = (sys.executable, str(Path(__file__).with_name("umap_stand_in.py")))
LAST = "#maps-bilm .panel:nth-child(4)"
AXES, COLOR = "select[data-name=axes]", "select[data-name=color]"


@pytest.fixture
def stand_in(services, monkeypatch):
    service = UmapService(STAND_IN)
    monkeypatch.setattr(services, "umap", service)
    yield service
    service.stop()


def fills(page, panel):
    return page.locator(f"#maps-bilm {panel} path.point").evaluate_all(
        "points => points.map((p) => p.style.fill)"
    )


def test_axes_of_each_layer_then_the_points_travel_to_the_top(open_page):
    page = open_page()
    page.locator(AXES).select_option("layers")
    page.wait_for_function("bothways.state.maps.encoders.bilm.basis === 'layers'")
    caption = page.locator("#maps-bilm .method").inner_text()
    assert "PCA of each layer, turned onto the one below" in caption
    assert "no map of the mix" in caption and "true neighbors kept" in caption
    assert page.locator(f"{LAST} .title").inner_text() == "Morph at layer 0"
    page.locator(".pill.morph").click()
    page.wait_for_function(
        f"document.querySelector('{LAST} .title').textContent.includes('at layer 2')"
    )
    wait_settled(page)
    where = """n => [...document.querySelectorAll('#maps-bilm .plot')[n]
      .querySelectorAll('path.point')]
      .map((p) => p.getAttribute('transform').match(/-?[\\d.]+/g).map(Number))"""
    np.testing.assert_allclose(page.evaluate(where, 3), page.evaluate(where, 2), atol=0.1)
    # On shared axes the last map is the mix again.
    page.locator(AXES).select_option("all")
    page.wait_for_function("bothways.state.maps.encoders.bilm.basis === 'all'")
    page.wait_for_function(f"document.querySelector('{LAST} .title').textContent.startsWith('Mix')")


def test_colors_are_the_same_in_all_maps_and_have_a_legend(open_page, services):
    page = open_page()
    page.locator(COLOR).select_option("sentence")
    page.wait_for_function("document.querySelectorAll('.legend .entry').length > 3")
    n = len(services.examples[0].sentences)
    assert page.locator(".legend .entry").all_inner_texts() == [
        f"sentence {i + 1}" for i in range(n)
    ]
    assert len(set(fills(page, ".panel:nth-child(1)"))) == n
    assert fills(page, ".panel:nth-child(1)") == fills(page, ".panel:nth-child(3)")
    for color, said in [
        ("sense", "hollow: sense not known"),
        ("frequency", "frequencies are not known"),
        ("position", "of its sentence"),
    ]:
        page.locator(COLOR).select_option(color)
        page.wait_for_function(
            "said => document.querySelector('.legend').textContent.includes(said)", arg=said
        )
    page.locator(COLOR).select_option("word")
    assert not page.locator(".legend").is_visible()


def test_cosine_colors_equal_the_reference_and_follow_the_mix(open_page, services):
    page = open_page()
    page.locator(COLOR).select_option("cosine")
    page.wait_for_function("bothways.state.paint && !bothways.mustAsk()")
    text, model = services.encode("bilm", services.examples[0].tokens), services.model("bilm")
    row = text.row(*services.examples[0].focus)
    for w in ([0, 0, 0], [2, -1, 0.5]):
        s = softmax(w)
        mixed = np.tensordot(text.vectors - model.bank.mean, s, axes=([1], [0]))
        lengths = np.linalg.norm(mixed, axis=1) * np.linalg.norm(mixed[row])
        found = page.evaluate("s => [...bothways.cosines('bilm', s)]", s.tolist())
        np.testing.assert_allclose(found, mixed @ mixed[row] / lengths, atol=1e-4)
    before, layer = fills(page, LAST.split()[1]), fills(page, ".panel:nth-child(1)")
    page.evaluate("bothways.setWeights('bilm', {w: [6, -6, -6]})")
    wait_settled(page)
    assert fills(page, LAST.split()[1]) == layer != before
    # A new token brings its own cosines.
    page.locator("#strip .token", has_text="children").first.click()
    page.wait_for_function("!bothways.mustAsk()")
    assert "children" in page.locator(".legend").inner_text()


def test_umap_waits_is_cancelled_and_comes(open_page, stand_in):
    page = open_page()
    page.locator(AXES).select_option("umap")
    page.wait_for_function("bothways.state.maps.encoders.bilm.basis === 'umap'")
    notice = page.locator("#question .notice")
    assert "equal vectors were spread apart (layer 0!)" in notice.inner_text()
    assert "UMAP of each layer, seed 0" in page.locator("#maps-bilm .method").inner_text()
    page.get_by_role("button", name="other seed").click()
    page.wait_for_function("bothways.state.maps.seed === 1 && !bothways.state.maps.waits")
    assert "seed 1" in notice.inner_text()


def test_a_slow_umap_can_be_cancelled_and_the_maps_go_on(open_page, services, stand_in):
    from app.handlers.page import Handlers

    slow = {("slow",): _slow_fit()}
    stand_in.ask("another visitor", slow)
    page = open_page()
    page.locator(AXES).select_option("umap")
    page.locator("#question .cancel").wait_for()
    page.wait_for_function("/UMAP/.test(document.querySelector('#question .notice').textContent)")
    # Meanwhile everything else answers.
    page.locator("#strip .token", has_text="children").first.click()
    page.wait_for_function("!document.querySelector('.lists').classList.contains('stale')")
    page.locator("#question .cancel").click()
    page.wait_for_function("bothways.state.maps.wanted === 'all' && !bothways.state.maps.waits")
    assert not page.locator("#question .notice").is_visible()
    assert Handlers(services).first_view()[0].basis == "all"


def _slow_fit():
    from app.umap_service import Fit

    return Fit(lambda: np.zeros((6, 1, 4), np.float32), 1, seed=9_999)


def test_without_webgl_the_flat_maps_stay_and_say_why(open_page):
    page = open_page()
    page.evaluate("bothways.hasWebGL = () => false")
    page.get_by_role("button", name="3-D").click()
    page.wait_for_function(
        "document.querySelector('#question .notice').textContent.includes('needs WebGL')"
    )
    assert page.locator("#maps-bilm .mix path.point").count() > 10


def test_the_camera_survives_updates(browser, server):
    flags = [f for f in CHROMIUM_FLAGS if f != "--disable-gpu"]
    own = browser.browser_type.launch(
        executable_path=chromium_path(),
        args=[*flags, "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
    )
    try:
        page = own.new_page(viewport={"width": 1366, "height": 768})
        page.goto(server)
        page.wait_for_selector("#maps-attention .mix path.point")
        if not page.evaluate("bothways.hasWebGL()"):
            pytest.skip("this Chromium has no WebGL")
        page.get_by_role("button", name="3-D").click()
        page.wait_for_selector("#maps-bilm .scene canvas")
        page.wait_for_timeout(500)
        node = "document.querySelector('#maps-bilm .scene .plot')"
        page.evaluate(f"{node}.marked = 1")
        box = page.locator("#maps-bilm .scene .plot").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        camera = f"{node}._fullLayout.scene._scene.getCamera().eye"
        eye = f"(({{x, y, z}}) => [x, y, z])({camera})"
        at_first = page.evaluate(eye)
        page.evaluate("window.n = 0; bothways.on('chosen', () => { window.n += 1; })")
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 60, y + 20, steps=5)
        page.mouse.up()
        page.wait_for_function(f"before => Math.abs({camera}.x - before) > 0.05", arg=at_first[0])
        turned = page.evaluate(eye)
        assert page.evaluate("window.n") == 0  # turning chooses no token, whatever lies there
        buttons = page.locator("#maps-bilm .scene .modebar-btn")
        names = buttons.evaluate_all("all => all.map((button) => button.dataset.title)")
        assert len(names) == 4 and any("otation" in name for name in names)
        page.locator("#maps-bilm .scene .choice").last.press("Enter")  # the mix
        assert page.locator("#maps-bilm .scene .choice:focus[aria-pressed=true]").count() == 1
        page.evaluate("bothways.setWeights('bilm', {w: [2, 0, -1]})")
        page.locator("select[data-name=color]").select_option("sentence")
        page.locator("#strip .token", has_text="children").first.click()
        page.wait_for_function("!document.querySelector('.lists').classList.contains('stale')")
        page.wait_for_timeout(400)
        np.testing.assert_allclose(page.evaluate(eye), turned, atol=1e-6)
        assert page.evaluate(f"{node}.marked") == 1
        page.locator(".pill.morph").click()
        page.wait_for_function(
            "[...document.querySelectorAll('#maps-bilm .title')].some("
            "(t) => t.textContent.includes('at layer 2'))"
        )
        np.testing.assert_allclose(page.evaluate(eye), turned, atol=1e-6)
    finally:
        own.close()
