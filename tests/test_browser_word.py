"""The tab Word in a real browser: copies, the sentence's grids, a typed word, an edit."""


def open_tab(page):
    page.get_by_role("tab", name="Word", exact=True).click()
    page.wait_for_selector("#word .heat canvas", timeout=60_000)


def run_text(page, text):
    page.evaluate("bothways.state.run.waiting = true")
    page.locator("#text textarea").fill(text)
    page.locator("#text textarea").press("Control+Enter")
    page.wait_for_function("!bothways.state.run.waiting")


def test_copies_in_layer_0_are_one_point_with_a_count(open_page):
    page = open_page()
    open_tab(page)
    for table in page.locator("#word table.values").all():
        rows = dict(
            table.locator("tbody tr").evaluate_all(
                "rows => rows.map((r) => [r.cells[0].textContent, r.cells[1].textContent])"
            )
        )
        assert rows["farthest two copies"] == "exactly 0"
        count = page.evaluate("Object.values(bothways.state.word.encoders)[0].n")
        assert rows["different points"] == f"1 \u00d7{count}"
        assert rows["copies alike"] == "1.00"


def test_repeated_and_strange_tokens_keep_a_row_each(open_page):
    page = open_page(width=390, height=844)
    run_text(page, "<b> the \u732b the \u0928\u092e\u0938\u094d\u0924\u0947 mat")
    open_tab(page)
    page.wait_for_function(
        "document.querySelector('#word .heat-labels')?.innerText.includes('mat')"
    )
    tokens = page.evaluate("bothways.state.run.sentences[0]")
    labels = page.locator("#word .heat-labels").first.locator("span").all_text_contents()
    assert labels == tokens and tokens.count("the") == 2
    canvases = page.locator("#word .heat canvas")
    sizes = canvases.evaluate_all("all => all.map((c) => [c.width, c.height])")
    assert all(w == h and w % len(tokens) == 0 for w, h in sizes)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_edit_moves_the_forward_half_only_after_it(open_page):
    page = open_page()
    run_text(page, "the cat saw the mat")
    open_tab(page)
    page.wait_for_function("document.querySelector('#edit input').value === 'the cat saw the mat'")
    page.locator("#edit input").fill("the cat ate the mat")
    page.locator("#edit input").press("Enter")
    page.wait_for_selector("#edit table")
    rows = page.locator("#edit table").first.locator("tbody tr")
    cells = rows.evaluate_all(
        "rows => rows.map((r) => [...r.cells].slice(1).map((c) => c.textContent === 'exactly 0'))"
    )
    above = [[False] * 4, [True, True, False, False], [False, False, True, True]]
    assert cells == [[True] * 4] * 3 + above * 2  # whole, forward, backward of layers 0, 1, 2


def test_a_typed_word_shows_its_neighbors_forms_and_filters(open_page):
    page = open_page()
    open_tab(page)
    page.locator("#spelling input").fill("<i>qux")
    page.locator("#spelling input").press("Enter")
    page.wait_for_function("bothways.state.spelling?.word === '<i>qux'")
    lists = page.locator("#spelling .near")
    kinds = page.evaluate("Object.keys(bothways.state.bank.encoders)")
    assert lists.count() == 3 * len(kinds)
    assert "<i>quxs" in lists.nth(1).inner_text()
    assert page.locator("#spelling i").count() == 0


def test_a_choice_keeps_the_focus_and_letters_fit_their_rows_in_a_lecture(open_page):
    page = open_page()
    run_text(page, "one two three four five six seven eight nine ten eleven twelve thirteen")
    open_tab(page)
    half = page.locator("#word .segmented button", has_text="forward half")
    half.press("Enter")
    assert half.get_attribute("aria-pressed") == "true"
    assert page.locator("#word .segmented button:focus").inner_text() == "forward half"
    page.evaluate("document.body.classList.add('lecture')")
    page.wait_for_function("document.querySelector('#word .heat canvas').width > 13 * 17")
    sizes = page.locator("#word .heat-labels span").evaluate_all(
        "all => all.map((e) => [parseFloat(getComputedStyle(e).fontSize), e.offsetHeight])"
    )
    assert sizes and all(letters <= height for letters, height in sizes)
