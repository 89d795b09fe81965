"""The lecture: its steps hold, can be entered from anywhere, and run by keyboard alone."""

import dataclasses
import json

import pytest

from app.lecture import EQUAL, Preset, load_lecture
from app.settings import Settings


@pytest.fixture(scope="module")
def lecture():
    return load_lecture(Settings.lecture)


def test_every_step_asks_before_it_tells(lecture, services):
    minutes = [int(m) * 60 + int(s) for m, s in (x.minute.split(":") for x in lecture.steps)]
    assert minutes == sorted(minutes) and minutes[-1] < 600
    for step in lecture.steps:
        assert step.predict.endswith("?") and step.look and step.notes
    known = {example.id for example in services.examples}
    assert {step.example for step in lecture.steps} - {None} <= known


def test_a_step_brings_what_earlier_ones_set(lecture):
    place = {step.id: i for i, step in enumerate(lecture.steps)}
    asked, told = (lecture.state(place["layer-0"], x) for x in (False, True))
    assert asked.shares == pytest.approx(EQUAL, abs=1e-3) and told.shares == (1, 0, 0)
    split = lecture.state(place["split"], True)
    assert split.axes == "word" and split.sweep
    after = lecture.state(place["neighbors"], False)
    assert after.axes == "all" and not after.sweep
    assert lecture.state(place["gamma"], True).gamma == 3
    assert lecture.state(place["influence"], False).gamma == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tab": "map"}, "tab must be one of maps, .*got 'map'"),
        ({"axes": "umap3"}, "axes must be one of all, .*got 'umap3'"),
        ({"shares": [1, 1, 0]}, "shares must sum to 1"),
        ({"example": None}, "names its example"),
    ],
)
def test_a_step_that_cannot_be_shown_is_refused(tmp_path, change, said):
    content = json.loads(Settings.lecture.read_text("utf-8"))
    content["steps"][0].update(change)
    path = tmp_path / "lecture.json"
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ValueError, match=said):
        load_lecture(path)


def test_a_preset_changes_nothing_that_it_does_not_name():
    assert dataclasses.astuple(Preset()) == (None, None, None, False)


def test_the_lecture_runs_start_to_end_by_keyboard(open_page, lecture):
    page = open_page(width=1920, height=1080)
    page.get_by_role("button", name="Lecture", exact=True).press("Enter")
    bar = page.locator(".lecture-bar")
    page.keyboard.press("Tab")  # away from the button, so that keys are the lecture's
    for i, step in enumerate(lecture.steps):
        assert bar.locator(".minute").inner_text() == (
            f"{i + 1} / {len(lecture.steps)} \u00b7 {step.minute}"
        )
        assert bar.locator(".predict").inner_text() == step.predict
        assert bar.locator(".look").inner_text() == "Predict first."
        page.keyboard.press("PageDown")
        assert bar.locator(".look").inner_text() == step.look
        tab = page.locator(f"#tabs [role=tab][data-tab-id={step.tab}]").first
        assert tab.get_attribute("aria-selected") == "true"
        if step.id == "layer-0":
            page.wait_for_function("bothways.weights.bilm.s[0] > 0.999")
        if step.id == "split":
            page.wait_for_function("bothways.state.maps.encoders.bilm.basis === 'word'")
            page.wait_for_function("bothways.weights.bilm.s[2] > 0.999")
        if step.id == "gamma":
            page.wait_for_function("bothways.weights.bilm.gamma === 3")
        page.keyboard.press("PageDown")
    page.keyboard.press("PageUp")
    assert bar.locator(".look").inner_text() == "Predict first."
    page.keyboard.press("Escape")
    assert bar.is_hidden()


def test_back_and_closing_show_what_belongs_to_the_step(open_page, lecture):
    page = open_page(width=1920, height=1080)
    page.get_by_role("button", name="Lecture", exact=True).click()
    bar = page.locator(".lecture-bar")
    go_to(page, lecture, "split")
    basis = "axes => bothways.state.maps.encoders.bilm.basis === axes"
    page.wait_for_function(basis, arg="all")
    for key, axes in (("PageDown", "word"), ("PageUp", "all"), ("PageDown", "word")):
        page.keyboard.press(key)
        page.wait_for_function(basis, arg=axes)
    page.get_by_role("button", name="Models").click()
    page.keyboard.press("PageDown")  # the dialog's own
    page.keyboard.press("Escape")
    assert bar.locator(".predict").inner_text() == step_of(lecture, "split").predict
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Lecture", exact=True).click()
    assert bar.locator(".look").inner_text() == "Predict first."
    assert bar.locator(".minute").inner_text().startswith("1 / ")


def test_the_two_edits_can_be_seen_and_shown(open_page, lecture):
    page = open_page(width=1920, height=1080)
    page.get_by_role("button", name="Lecture", exact=True).click()
    go_to(page, lecture, "interaction")
    show = page.locator("#interaction button.primary")
    show.wait_for()
    page.wait_for_timeout(500)
    top = page.locator(".lecture-bar").bounding_box()["y"]
    box = show.bounding_box()
    assert box["y"] > 0 and box["y"] + box["height"] <= top
    go_to(page, lecture, "gaps")
    page.wait_for_function("window.scrollY === 0")


def step_of(lecture, name):
    return next(step for step in lecture.steps if step.id == name)


def go_to(page, lecture, name):
    """Jumps to a step through the notes."""
    page.get_by_role("button", name="lecturer's notes").click()
    number = lecture.steps.index(step_of(lecture, name)) + 1
    page.get_by_role("button", name=f"go to step {number}", exact=True).click()


SMALL = """() => [...document.querySelectorAll('body *')].filter(e =>
     e.checkVisibility({visibilityProperty: true, opacityProperty: true})
     && !e.closest('.visually-hidden')
     && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
     && e.getBoundingClientRect().width > 1
     && parseFloat(getComputedStyle(e).fontSize) * scale(e) < 15.95)
   .map(e => `${e.tagName}.${e.className.baseVal ?? e.className}:`
     + `${getComputedStyle(e).fontSize} ${e.textContent.slice(0, 30)}`);
   function scale(e) {
     const m = e.ownerSVGElement && e.getScreenCTM && e.getScreenCTM();
     return m ? Math.hypot(m.a, m.b) : 1;
   }"""
LATER = {"Neighbors": ".two-lines:visible", "Word": "#word .heat canvas"}  # of what is asked for
CUT = """() => [...document.querySelectorAll('.two-lines > *')].filter(e =>
     e.checkVisibility() && e.scrollHeight > e.clientHeight + 1).map(e => e.className)"""


def test_everything_is_readable_from_the_last_row(open_page):
    page = open_page(width=1920, height=1080)
    page.get_by_role("button", name="Lecture", exact=True).click()
    for tab in page.locator("#tabs [role=tab]:visible").all():
        tab.click()
        if shown := LATER.get(tab.inner_text()):
            page.wait_for_selector(shown)
        assert page.evaluate(SMALL) == [], tab.inner_text()
        assert page.evaluate(CUT) == []
        if tab.inner_text() == "Tasks":
            page.locator(".live-probe button.primary").click()  # no WordNet: a message
            page.locator(".toast-body").wait_for()
            page.wait_for_timeout(500)  # it fades in
            assert page.evaluate(SMALL) == []
    page.get_by_role("button", name="Models").click()
    assert page.evaluate(SMALL) == []


def test_the_notes_say_what_does_not_work(open_page, lecture):
    page = open_page()
    page.get_by_role("button", name="Lecture", exact=True).click()
    page.get_by_role("button", name="lecturer's notes").click()
    notes = page.locator("dialog.notes")
    assert all(text in notes.inner_text() for text in lecture.limits)
    notes.get_by_role("button", name="go to step 6").click()
    assert page.locator(".lecture-bar .minute").inner_text().startswith("6 / ")
