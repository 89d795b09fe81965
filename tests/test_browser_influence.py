"""The tab Influence in a real browser: grids, the chosen pair, and the interaction of two edits."""

import unicodedata

import numpy as np
import pytest

from elmo.both_ways.influence import gradient_grid, random_replacements, replacement_grid
from elmo.scalar_mix import softmax

DONE = "!document.querySelector('#influence .progress').classList.contains('on')"


def open_tab(page, text=None):
    """Opens the tab, with a text of one's own if wanted, and waits for the grids."""
    if text:
        run_text(page, text)
    page.evaluate("bothways.openTab('influence')")  # on a phone it is in a menu
    page.wait_for_selector("#influence .influence-panel .grid:visible")
    wait_for_grids(page)


def run_text(page, text):
    page.evaluate("bothways.state.run.waiting = true")
    page.locator("#text textarea").fill(text)
    page.locator("#text textarea").press("Control+Enter")
    page.wait_for_function("!bothways.state.run.waiting")


def wait_for_grids(page):
    page.wait_for_function(DONE)
    page.wait_for_function("!document.querySelector('#influence .blank:not([hidden])')")


def number(text):
    """A number as the page writes it."""
    digits, _, power = text.partition("\u00b710\u207b")
    return float(digits) / 10 ** int(unicodedata.normalize("NFKC", power) or 0)


def feet(page):
    return page.locator("#influence .foot").all_inner_texts()


def table(page, nth=0, part="#influence"):
    """A table of values: {row head: [cells]}."""
    rows = page.locator(f"{part} table.values").nth(nth).locator("tbody tr")
    return dict(
        rows.evaluate_all(
            """rows => rows.map((row) => {
              const [head, ...cells] = [...row.cells].map((cell) => cell.textContent);
              return [head, cells];
            })"""
        )
    )


def test_the_grids_of_the_chosen_sentence_with_their_zeros_counted(open_page):
    page = open_page()
    open_tab(page, "the cat saw the mat")
    names = page.locator("#influence h3").all_inner_texts()
    assert [name.split("\n")[0].strip() for name in names][:3] == [
        "ELMo, forward \u2192",
        "ELMo, backward \u2190",
        "ELMo, concatenated",
    ]
    # Five positions although "the" occurs twice: 20 pairs of different ones, 10 on each side.
    texts = [" ".join(foot.split()) for foot in feet(page)]
    assert texts[0] == texts[1] == "10 of 10 cells exactly 0"
    assert texts[2] == "20 of 20 pairs move in one half only"
    assert texts[-1] == "20 of 20 pairs move as a whole"
    page.locator("#influence .segmented button", has_text="0").first.click()
    page.wait_for_function(
        "[...document.querySelectorAll('#influence .foot b')]"
        ".every((figure) => figure.textContent === '20 of 20')"
    )
    assert "cells exactly 0" in feet(page)[-1]


def test_a_clicked_cell_tells_its_values_by_layer(open_page):
    page = open_page()
    open_tab(page, "the cat saw the mat")
    grid = page.locator("#influence [data-part=backward] .grid")
    cell = page.evaluate("document.querySelectorAll('#influence canvas')[1].clientHeight")
    assert cell > 0
    grid.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    page.wait_for_function(
        "document.querySelector('#influence .by-layer summary').textContent.startsWith('Replace ')"
    )
    first = page.locator("#influence .by-layer summary").inner_text()
    box = grid.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    page.wait_for_selector("#influence .tip:visible")
    page.mouse.click(box["x"] + 4, box["y"] + 4)
    page.wait_for_function(
        "document.querySelector('#influence .by-layer summary').textContent"
        ".includes('(word 1 of 5), read the (word 1)')"
    )
    assert page.locator("#influence .by-layer summary").inner_text() != first
    values = table(page)
    assert all(number(x) > 0 for x in values["layer 1"])
    page.locator("#influence [data-part=forward] .grid").press("ArrowDown")
    page.wait_for_function(
        "document.querySelector('#influence .by-layer').textContent.includes('(word 2 of 5)')"
    )
    forward, backward, both = table(page)["layer 1"][:3]
    assert forward == "exactly 0"  # word 2 replaced, word 1 read
    assert number(backward) > number(both) > 0


@pytest.mark.parametrize("measure", ["random word", "gradient"])
def test_the_browsers_numbers_are_the_librarys(open_page, services, measure):
    page = open_page()
    tokens = ["the", "cat", "saw", "the", "mat"]
    open_tab(page, " ".join(tokens))
    page.locator("#influence .segmented button", has_text=measure).click()
    wait_for_grids(page)
    page.evaluate("bothways.setWeights('bilm', {w: [1, -0.5, 0.4]})")
    page.locator("#influence .segmented button", has_text="mix").first.click()
    page.locator("#influence details.numbers summary").click()
    page.wait_for_selector("#influence details.numbers table")
    encoder = services.model("bilm").encoder
    if measure == "gradient":
        grid = gradient_grid(encoder, tokens)
    else:
        words = page.evaluate("JSON.stringify(bothways.state.influence.n_samples)")
        assert words == "4"
        from app.handlers.influence import InfluenceHandlers

        grid = replacement_grid(
            encoder, tokens, random_replacements(tokens, InfluenceHandlers(services).words, 4, 0)
        )
    s = softmax([1, -0.5, 0.4])
    for nth, part in enumerate(("forward", "backward", "whole")):
        cells = page.locator("#influence details.numbers table").nth(nth).locator("tbody tr")
        found = cells.evaluate_all(
            "rows => rows.map(r => [...r.cells].slice(1).map(c => c.textContent))"
        )
        expected, error = grid.mix(s, part), grid.standard_error(s, part)
        for j, row in enumerate(found):
            for t, text in enumerate(row):
                if text == "exactly 0":
                    assert expected[j, t] == 0
                    continue
                value, spread = text.split(" \u00b1 ")
                assert number(value) == pytest.approx(expected[j, t], rel=0.02)
                assert number(spread) == pytest.approx(error[j, t], rel=0.06)
    assert np.isfinite(expected).all()


def test_a_new_choice_ends_the_old_question(open_page):
    page = open_page()
    open_tab(page, "\n".join(f"the cat number {i} saw the mat" for i in range(4)))
    page.locator("#influence .segmented button", has_text="gradient").click()
    for i in (1, 2, 3):
        page.locator(f"#strip .token[data-sentence='{i}'][data-token='3']").click()
    page.locator("#influence .segmented button", has_text="gap token").click()
    page.wait_for_function(
        "document.querySelector('#influence .by-layer summary').textContent.includes('Replace 3')"
    )
    wait_for_grids(page)
    assert page.evaluate("bothways.state.influence.measure") == "gap"


def test_a_sentence_too_long_says_so_and_a_word_of_ones_own(open_page):
    page = open_page()
    open_tab(page, "the cat saw the mat")
    page.locator("#influence .segmented button", has_text="your word").click()
    notice = page.locator("#influence .notice:visible")
    notice.filter(has_text="Type a word").wait_for()
    page.locator("#influence .segmented button", has_text="gap token").click()
    notice.wait_for(state="detached")  # the grids that are there are the ones asked for
    page.locator("#influence .segmented button", has_text="your word").click()
    page.locator("#influence input.word").fill("the")
    page.locator("#influence input.word").press("Enter")
    page.wait_for_function("bothways.state.influence.measure === 'word'")
    wait_for_grids(page)
    page.locator("#strip .token[data-sentence='0'][data-token='3']").click()
    page.wait_for_function(  # by itself: nothing moves
        """() => {
            const answer = document.querySelector('#influence .answer');
            const counts = [...answer.querySelectorAll('b')];
            return answer.textContent.startsWith('Replace the.') && counts.length
              && counts.every(b => b.textContent === '0');
        }"""
    )
    run_text(page, "word " * 61)
    page.wait_for_selector("#influence .notice:visible:has-text('61 tokens')")
    assert not page.locator("#influence .grids").is_visible()


def test_predict_then_see_exact_zeros_between_the_edits(open_page):
    page = open_page()
    open_tab(page)
    page.wait_for_selector("#interaction .replacement")
    page.locator("#interaction select").select_option("3")
    page.wait_for_function("bothways.state.interaction.tokens[1] === 'doctor'")
    assert not page.locator("#interaction .chart").is_visible()
    page.locator("#interaction .predict .pill", has_text="ELMo").click()
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector("#interaction .card[data-encoder=bilm]")
    assert "You said ELMo. Right" in page.locator("#interaction .verdict").inner_text()
    assert page.locator("#interaction .card[data-encoder=bilm] strong").inner_text() == "0"
    joint = page.locator("#interaction .card[data-encoder=attention] strong").inner_text()
    assert number(joint) > 0
    sizes = table(page, 0, "#interaction")
    assert sizes["ELMo this sentence"][:3] == ["unchanged", "0", "0"]
    assert sizes["Joint attention this sentence"][0] == "unchanged"
    # At the right end one half has seen both edits.
    chart = page.locator("#interaction .chart")
    chart.focus()
    for _ in range(12):
        chart.press("ArrowRight")
    at_the_end = page.locator("#interaction .readout b[data-encoder=bilm]").inner_text()
    assert number(at_the_end) > 0


def test_edits_are_moved_by_a_click_and_typed_over(open_page):
    page = open_page()
    open_tab(page, "the small cat saw the big dog on the mat")
    page.wait_for_selector("#interaction .replacement")
    page.get_by_role("button", name="Show").click()
    page.locator("#interaction .edited .token", has_text="dog").click()
    page.locator("#interaction .segmented button", has_text="mix").click()
    assert page.locator("#interaction .stale").count() == 1  # of the edit that was there before
    page.locator("#interaction .replacement").nth(1).press("ControlOrMeta+a")
    page.keyboard.type("old")
    page.keyboard.press("Enter")
    page.wait_for_function("bothways.state.interaction.right.text === 'old'")
    assert page.locator("#interaction .stale").count() == 0
    assert page.locator("#interaction .replacement:focus").input_value() == "old"
    assert page.evaluate("bothways.state.interaction.right.start") == 6
    right = page.locator("#interaction .replacement").nth(1)
    right.fill("very old")
    right.press("Enter")
    page.get_by_text("must keep the length").wait_for()
    page.wait_for_function(
        "document.querySelectorAll('#interaction .replacement')[1].value === 'old'"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_and_in_the_dark_grids_are_drawn_and_nothing_sticks_out(open_page, theme):
    page = open_page(theme=theme, width=390, height=844)
    page.locator("#pretokenized input").check()
    page.wait_for_function("!bothways.state.run.waiting")
    open_tab(page, "the cat saw \u732b <S> \u732b")
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector("#interaction .chart svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    ground, zero = page.evaluate(
        "[getComputedStyle(document.body).getPropertyValue('--ground'), bothways.color('line')]"
    )
    # The zero below the diagonal of the forward grid is the theme's grey.
    pixel = page.evaluate(
        """() => {
          const canvas = document.querySelector('#influence [data-part=forward] canvas');
          const scale = canvas.width / canvas.clientWidth;
          const side = document.querySelector('#influence [data-part=forward] .blank').style.height;
          const cell = parseFloat(side) / 6, left = canvas.clientWidth - 2 - 6 * cell;
          const context = canvas.getContext('2d');
          const at = (j, t) => [...context.getImageData((left + (t + .4) * cell) * scale,
            (j + .4) * cell * scale, 1, 1).data].slice(0, 3);
          return [at(5, 0), at(0, 0)];
        }"""
    )
    grey = [int(zero[i : i + 2], 16) for i in (1, 3, 5)]
    assert pixel[0] == grey and pixel[1] != grey and zero != ground
    page.locator("#interaction .edited .token, #interaction .edited s").filter(
        has_text="<S>"
    ).first.wait_for()
