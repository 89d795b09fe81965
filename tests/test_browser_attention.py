"""The tab Attention in a real browser: a head, one weight by hand, and how encoders learn."""

import math

SENTENCE = "the <b>cat</b> saw the mat"


def open_tab(page, text=SENTENCE):
    page.evaluate("bothways.state.run.waiting = true")
    page.locator("#text textarea").fill(text)
    page.locator("#text textarea").press("Control+Enter")
    page.wait_for_function("!bothways.state.run.waiting")
    page.evaluate("bothways.openTab('attention')")  # on a phone it is in a menu


def number(text):
    return float(text.replace("\u2212", "-"))


def test_choose_a_head_and_recompute_one_weight(open_page):
    page = open_page()
    open_tab(page)
    page.wait_for_selector(".head-small[aria-pressed=true]:visible")
    tokens = ["<S>", *page.evaluate("bothways.state.run.sentences[0]"), "</S>"]
    assert page.locator(".head-arcs text").all_text_contents() == tokens  # both copies, no tag lost
    assert page.locator(".head-small").count() == 3 * (8 + 1)
    page.locator("#strip .token").nth(1).click()
    page.wait_for_function(
        "document.querySelector('.head-arcs .query').textContent"
        " === bothways.state.run.sentences[0][1]"
    )
    page.locator(".head-small[data-layer='2'][data-head='3']").click()
    page.wait_for_function(
        "document.querySelector('.head-one h3').textContent === 'layer 2, head 4'"
    )
    assert page.locator(".head-small[aria-pressed=true]").count() == 1
    page.wait_for_selector(".head-numbers table", state="attached")
    page.locator(".head-numbers summary").first.click()
    cells = page.locator(".head-numbers table").first.locator("tbody tr td").all_inner_texts()
    scores, weights = [number(x) for x in cells[::3]], [number(x) for x in cells[2::3]]
    total = sum(math.exp(score) for score in scores)
    for score, weight in zip(scores, weights, strict=True):
        assert abs(math.exp(score) / total - weight) < 2e-4
    assert abs(sum(weights) - 1) < 1e-3
    page.locator(".head-large .grid").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(
        "document.querySelector('.head-arcs .query').textContent"
        " === bothways.state.run.sentences[0][2]"
    )
    page.locator(".head-small[data-head=rollout]").last.click()
    page.wait_for_selector(".head-numbers .notice:has-text('product of layers')")


def test_how_they_learn_and_a_sentence_that_is_too_long(open_page):
    page = open_page(width=390, height=844)
    open_tab(page)
    page.wait_for_selector(".head-small:visible")
    page.get_by_role("button", name="How they learn").click()
    page.wait_for_selector(".task-line:visible")
    assert page.locator(".heads").is_hidden()
    assert page.locator(".task-line").count() == 3  # ELMo twice, the joint encoder once
    hidden = page.locator("section[data-encoder=attention] .task-line").inner_text()
    page.wait_for_function("document.querySelectorAll('div.gradients .notice').length === 2")
    page.wait_for_function(
        "!document.querySelector('div.gradients').textContent.includes('computing')"
    )
    assert "no softmax" in page.locator("div.gradients").inner_text()
    for _ in range(6):  # some drawing hides another word
        page.get_by_role("button", name="hide other words").click()
        page.wait_for_timeout(300)
        if page.locator("section[data-encoder=attention] .task-line").inner_text() != hidden:
            break
    assert page.locator("section[data-encoder=attention] .task-line").inner_text() != hidden
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Where they look").first.click()
    open_tab(page, " ".join(["word"] * 61))
    page.wait_for_selector(".heads .notice:has-text('61 tokens'):visible")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_losses_teach_is_asked_for_while_the_view_is_hidden(open_page):
    page = open_page()
    open_tab(page)
    page.wait_for_selector(".head-small:visible")
    page.evaluate("bothways.on('objectives', () => bothways.openTab('maps'))")
    learn = page.get_by_role("button", name="How they learn")
    learn.press("Enter")
    page.wait_for_selector("#maps-bilm .plot:visible")
    page.wait_for_function("document.querySelectorAll('div.gradients .notice').length === 2")
    page.wait_for_function(
        "!document.querySelector('div.gradients').textContent.includes('comput')"
    )
    page.evaluate("bothways.openTab('attention')")
    views = page.locator(".attention-views button:visible")
    views.first.press("Enter")  # the focus goes to the other view's buttons
    page.wait_for_selector(".head-small:visible")
    assert page.evaluate("document.activeElement.textContent") == "Where they look"


def test_an_answer_about_a_sentence_left_meanwhile_is_not_shown(open_page):
    page = open_page()
    open_tab(page, "the cat saw the mat\nit rained")
    page.wait_for_selector(".head-small:visible")
    shown = page.locator(".head-arcs text").all_text_contents()
    page.evaluate(
        """() => new Promise((done) => {
          const frame = (next) => requestAnimationFrame(() => requestAnimationFrame(next));
          bothways.on('heads', () => frame(done));
          bothways.choose(1, 0);
          frame(() => bothways.choose(0, 2));
        })"""
    )
    assert page.locator(".head-arcs text").all_text_contents() == shown
    assert page.locator(".head-arcs .query").text_content() == "saw"
