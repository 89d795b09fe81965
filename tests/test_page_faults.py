"""Faults that users of interactive pages like this one reported in public, each shown to be absent.

``ELSEWHERE`` names the report and the tests that show it; the others stand here.
"""

import ast
import json
from pathlib import Path

import pytest

from app.handlers.maps import MapHandlers
from app.handlers.page import Handlers

TESTS = Path(__file__).resolve().parent

ELSEWHERE = {
    "gradio PR#9781, PR#13678 a plot is mounted anew, zoom lost": [
        "test_browser_journeys::test_zoom_survives_sliders_tokens_and_tabs_and_is_shared_by_the_row"
    ],
    "gradio#5292, #11413 no click, no lasso": [
        "test_browser_journeys::test_clicking_a_point_of_a_map_chooses_its_token",
        "test_browser_journeys::test_a_lasso_marks_its_tokens_in_every_map_and_in_the_text",
    ],
    "gradio#11701, #7517 the page grows with every update": [
        "test_browser_access::test_500_slider_steps_change_the_view_and_add_nothing_to_the_page"
    ],
    "plotly.js#1516, plotly.py#4215 repeated tokens merge": [
        "test_browser_influence::test_the_grids_of_the_chosen_sentence_with_their_zeros_counted"
    ],
    "plotly.js#3357 <S> vanishes; tensorflow#21891 non-ASCII breaks it": [
        "test_browser_access::test_hostile_texts_are_drawn_or_explained"
    ],
    "plotly.py#5413 plots ignore the dark theme": [
        "test_browser_access::test_themes_reach_plots_and_text_reads_well"
    ],
    "gradio#3204, #3443, #1453 the last value of a drag is lost": [
        "test_browser_journeys::test_dragging_a_slider_mixes_and_ranks_without_the_server",
        "test_browser_journeys::test_of_quick_clicks_the_last_one_counts",
    ],
    "noUiSlider#994 keys on a slider update nothing": [
        "test_browser_access::test_sliders_by_keyboard_move_everything"
    ],
    "gradio#2559, #12256 a veil blinks over the page": [
        "test_app_wiring::test_no_event_blocks_another_visitor_or_draws_a_veil"
    ],
    "gradio#6435, #11819 one slow event starves the rest": [
        "test_app_server::test_slow_jobs_do_not_keep_others_waiting"
    ],
    "gradio#7861, #3703 of equal words the first is picked": [
        "test_browser_journeys::test_the_second_of_two_equal_words_can_be_chosen"
    ],
    "gradio#12246 an old choice is not among the new ones": [
        "test_app_handlers::test_run_keeps_the_chosen_word_where_the_new_text_has_it"
    ],
    "gradio#11201 one visitor's result in another's view": [
        "test_browser_journeys::test_two_visitors_do_not_see_each_other"
    ],
    "gradio#4332, #1450 hangs without internet": ["conftest::open_page"],
    "gradio#1029, #1238 the layout breaks on a phone": [
        "test_browser_access::test_a_phone_has_one_column_and_no_sideways_scroll"
    ],
    "tensorboard#6271 layers of other lengths break a map": [
        "test_app_figures::test_a_layer_a_hundred_times_as_long_changes_no_map"
    ],
    "tensorboard#3647, #6635 silent sampling": [
        "test_app_figures::test_a_cap_keeps_the_words_copies"
    ],
    "allennlp#1169, #2643 the same sentence, other vectors": [
        "test_app_services::test_equal_texts_are_encoded_once_and_bit_equal_later"
    ],
    "allennlp#2392, #2566 raw weights taken for normalized ones": [
        "test_browser_journeys::test_typed_values_presets_and_reset"
    ],
    "tensorboard#2391 labels too small for a projector": [
        "test_lecture::test_everything_is_readable_from_the_last_row"
    ],
    "bertviz#82, #74 long input": [
        "test_browser_access::test_300_tokens_blank_the_attention_row_with_a_reason"
    ],
}


@pytest.mark.parametrize("place", sorted({p for places in ELSEWHERE.values() for p in places}))
def test_the_tests_named_above_exist(place):
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / f"{file}.py").read_text(encoding="utf-8"))
    assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


@pytest.mark.parametrize("n", range(1, 17))
def test_umap764_one_to_sixteen_tokens_never_fail(services, n):
    """umap#631, #764, #201: few points crash."""
    handlers = Handlers(services)
    first = handlers.first_view()[0]
    for text in (" ".join(f"w{i}" for i in range(n)), " ".join(["same"] * n)):
        selection, message, _ = handlers.run(text, True, first)
        view = json.loads(message)
        for found in view["maps"]["encoders"].values():
            assert len(found["rows"]) == n
        basis = MapHandlers(services).set_basis(selection, json.dumps({"basis": "word"}))[1]
        assert json.loads(basis)["maps"]["encoders"]


def test_gradio12832_a_weight_goes_back_to_0(open_page):
    page = open_page()
    typed = page.locator(".mixing .typed").nth(2)
    for value in ("3", "0"):
        typed.fill(value)
        typed.press("Enter")
    page.wait_for_function("bothways.weights.bilm.w[2] === 0")
    assert typed.input_value() == "0.00"
    assert page.locator(".mixing input[type=range]").nth(2).input_value() == "0"
    s = page.evaluate("bothways.weights.bilm.s")
    assert s == pytest.approx([1 / 3] * 3)


def test_plotly337_no_context_is_lost_with_every_tab_opened(open_page):
    """plotly.js#337, #2333: WebGL contexts run out, plots go blank."""
    page = open_page()
    warnings = []
    page.on("console", lambda m: m.type == "warning" and warnings.append(m.text))
    tabs = page.locator("#tabs [role=tab]:visible")
    for i in range(tabs.count()):
        tabs.nth(i).click()
        page.wait_for_timeout(150)
    tabs.first.click()
    for i in range(40):
        page.evaluate("i => bothways.setWeights('bilm', {w: [0, i / 10 - 2, 0]})", i)
        page.wait_for_timeout(10)
    assert [w for w in warnings if "context" in w.lower()] == []
    for plot in page.locator("#maps-bilm .plot").all():
        assert plot.locator("path.point").count() > 10


def test_gradio6850_plots_fill_their_tab_after_it_was_hidden(open_page):
    """gradio#6850, #13539: too small in a hidden tab, or without height."""
    page = open_page()
    tabs = page.locator("#tabs [role=tab]:visible")
    for i in [*range(tabs.count()), 0]:
        tabs.nth(i).click()
        page.wait_for_timeout(400)
        panel = page.locator("#tabs .tabitem:visible").first
        box = panel.bounding_box()
        assert box["height"] > 200 and box["width"] > 900, tabs.nth(i).inner_text()
    for panel in page.locator("#maps-bilm .panel:not(.all-mixes)").all():
        drawn, room = panel.locator(".main-svg").first.bounding_box(), panel.bounding_box()
        assert abs(drawn["width"] - room["width"]) <= 3
        assert drawn["height"] > 100


def test_embedding_atlas33_maps_draw_without_webgl(open_page):
    page = open_page()
    page.context.add_init_script(
        """const get = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
          return /webgl/.test(kind) ? null : get.call(this, kind, ...rest);
        };"""
    )
    page.reload()
    page.wait_for_selector("#maps-bilm .mix path.point")
    assert page.locator("#maps-bilm .plot").first.locator("path.point").count() > 10


def test_datamapplot106_the_chosen_words_copies_stand_out(open_page):
    """datamapplot#106: labels drown the selection."""
    page = open_page()
    grey = page.evaluate("bothways.color('dot')")
    colors = page.evaluate(
        "document.querySelector('#maps-bilm .plot').data.map(trace => trace.marker.color)"
    )
    assert colors[0] == grey and grey not in colors[2:]
    labels = page.locator("#maps-bilm .labels").first.locator("text")
    copies = page.locator("#strip .token.copy, #strip .token.chosen").count()
    assert 0 < labels.count() <= copies  # no other token carries a label
