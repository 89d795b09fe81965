"""Tasks and Claims in a real browser: load a task's weights, train a probe, follow a claim."""

from test_app_tasks import LABELED


def test_a_tasks_weights_move_the_sliders_and_the_neighbors(open_page):
    page = open_page()
    page.get_by_role("tab", name="Tasks").click()
    card = page.locator("[data-task=upos]:visible")
    card.locator(".pill").click()
    mix = page.evaluate("bothways.state.bank.encoders.bilm.tasks.find((t) => t.task === 'upos').s")
    page.wait_for_function(
        "s => s.every((x, k) => Math.abs(x - bothways.weights.bilm.s[k]) < 1e-3)", arg=mix
    )
    assert page.locator(".mixing .pill", has_text="POS").get_attribute("aria-pressed") == "true"
    page.locator(".tasks .loaded button").click()
    page.wait_for_selector("#table:visible")
    n_tasks = page.evaluate("bothways.state.bank.encoders.bilm.tasks.length")
    assert page.locator("#maps-bilm .triangle-mark").count() == n_tasks >= 2
    page.get_by_role("tab", name="Tasks").click()
    for name in ("of equal size", "1"):
        page.locator(".tasks .segmented button", has_text=name).first.click()
    untrained = page.locator(".tasks .segmented button", has_text="untrained biLM")
    untrained.click()
    assert untrained.get_attribute("aria-pressed") == "true"
    assert page.locator(".task-cards .pill:visible").count() == 0  # no sliders of its own


def test_a_probe_learns_in_the_page_and_can_be_stopped(open_page):
    page = open_page()
    page.get_by_role("tab", name="Tasks").click()
    probe = page.locator(".live-probe")
    probe.locator("button", has_text="part of speech").wait_for()
    probe.locator("button.primary").click()  # no WordNet in this server
    page.get_by_text("WordNet's sentences are not there").wait_for()
    page.wait_for_selector(".live-probe button.primary:has-text('Train')")
    probe.locator("button", has_text="my own labels").click()
    probe.locator("textarea").fill(LABELED)
    probe.locator("button.primary").click()
    page.wait_for_selector(".live-probe .curves")
    page.wait_for_selector(".live-probe .probe-layers .track", timeout=60_000)
    assert probe.locator(".curves").count() == 3
    assert "held-out accuracy" in probe.locator(".answer").inner_text()
    learned = page.evaluate("bothways.state.probe")
    assert learned["end"]["n_labels"] == 3
    # Another encoder is chosen for the next run: this one's mix is still ELMo's.
    probe.locator("button", has_text="Self-attention").click()
    probe.locator("button.link").click()
    page.wait_for_function("bothways.weights.bilm.w.some((w) => w !== 0)")
    assert page.evaluate("bothways.weights.attention.w") == [0, 0, 0, 0]
    page.get_by_role("tab", name="Tasks").click()
    probe.locator("button", has_text="ELMo").click()
    probe.locator("input[type=number]").fill("3")
    probe.locator("button.primary").click()
    page.wait_for_selector(".live-probe button.primary:has-text('Stop')")
    page.wait_for_selector(".live-probe .curves:visible")
    probe.locator("button.primary").click()
    page.wait_for_selector(".live-probe button.primary:has-text('Train')")
    assert probe.locator(".probe-layers .track").count() == 0


def test_tasks_and_claims_tell_one_difference_between_syntax_and_meaning(open_page):
    page = open_page()
    page.get_by_role("tab", name="Tasks").click()
    cards = page.locator(".tasks section", has_text="Entities and coreference").last
    assert "coreference" in cards.locator("article").last.get_attribute("data-task")
    told = []
    for layers in ("as they are", "of equal size"):
        page.locator(".tasks .segmented button", has_text=layers).click()
        told.append(page.locator(".tasks .answer").first.inner_text())
    assert all("supersense" in text and "corefer" not in text for text in told)
    page.locator(".tasks .segmented button", has_text="Self-attention").click()
    assert "an interval for ELMo" in page.locator(".tasks .answer").first.inner_text()
    page.get_by_role("tab", name="Claims").click()
    tests = page.locator("[data-claim=weights] .claim-test .foot").all_inner_texts()
    for text, claimed in zip(told, reversed(tests), strict=True):
        assert claimed.split(" \u00b7 ")[0] in text


def test_claims_say_how_they_stand_and_lead_to_where_one_can_look(open_page):
    page = open_page()
    page.get_by_role("tab", name="Claims").click()
    page.wait_for_selector("[data-claim=joint] .verdict-badge:visible")
    assert page.locator(".claims article").count() >= 10
    page.locator("[data-claim=joint] button.link").click()
    page.wait_for_selector(".gap-sentence:visible")


def test_tasks_and_claims_fit_a_phone(open_page):
    page = open_page(theme="dark", width=390, height=844)
    for tab, view in (("tasks", ".task-cards"), ("claims", ".claims")):
        page.evaluate("tab => bothways.openTab(tab)", tab)
        page.wait_for_selector(f"{view}:visible")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
