"""The tab Gaps in a real browser: hide a word, choose a shipped gap, read the table."""


def test_hide_a_word_then_choose_a_gap_that_needs_both_sides(open_page):
    page = open_page()
    chosen = page.evaluate("[bothways.state.chosen.sentence, bothways.state.chosen.token]")
    page.get_by_role("tab", name="Gaps").click()
    page.wait_for_selector(".gap-sentence button[aria-pressed=true]:visible")
    page.locator(".gap-sentence button").first.press("Enter")
    page.wait_for_selector(".gap-sentence button:first-child[aria-pressed=true]")
    assert page.locator(".gap-sentence button[aria-pressed=true]:focus").count() == 1
    # Random weights have no softmax over words, and the page says so for every encoder.
    assert page.locator(".gap-columns .notice").count() == page.evaluate(
        "Object.keys(bothways.state.bank.encoders).length"
    )
    groups = page.locator(".gaps optgroup").evaluate_all("g => g.map((x) => x.label)")
    assert [label.split(":")[0] for label in groups] == ["interacting", "additive"]
    page.locator(".gaps select").first.select_option(index=1)
    known = page.locator(".gaps select").first.locator("option").nth(1).inner_text().split()
    page.wait_for_function(
        "n => document.querySelectorAll('.gap-sentence button').length === n", arg=len(known)
    )
    shown = page.locator(".gap-sentence button").all_inner_texts()
    hidden = page.locator(".gap-sentence button[aria-pressed=true]").inner_text()
    assert shown.index(hidden) == known.index("____")
    assert page.locator(".gap-table svg[role=img] path").count() >= 4
    assert chosen == page.evaluate(
        "[bothways.state.chosen.sentence, bothways.state.chosen.token]"
    )  # a tab of its own word
