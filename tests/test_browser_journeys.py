"""What a visitor does, in a real browser."""

import re

import pytest
from conftest import wait_settled

MIX = "#lists .list[data-layer=mix][data-encoder=bilm]"


def neighbors_of(page, column=MIX):
    """The full sentences of a list's rows."""
    return page.locator(f"{column} .neighbor:visible").evaluate_all(
        "rows => rows.map(r => r.title)"
    )


def run_text(page, text):
    """Types a text, presses Ctrl+Enter, waits until it is on the page."""
    page.evaluate("bothways.state.run.waiting = true")
    page.locator("#text textarea").fill(text)
    page.locator("#text textarea").press("Control+Enter")
    page.wait_for_function("!bothways.state.run.waiting")


def drag(page, slider, to):
    """Drags a slider's thumb to a share of its track, in small steps."""
    box = slider.bounding_box()
    value = float(slider.evaluate("r => (r.value - r.min) / (r.max - r.min)"))
    inner, y = box["width"] - 16, box["y"] + box["height"] / 2
    start, end = (box["x"] + 8 + inner * share for share in (value, to))
    page.mouse.move(start, y)
    page.mouse.down()
    for i in range(1, 11):
        page.mouse.move(start + (end - start) * i / 10, y)
        page.wait_for_timeout(10)
    page.mouse.up()


def weight(page, k):
    return page.locator("#mixing input[type=range]").nth(k)


def test_the_page_opens_on_a_computed_example(open_page, services):
    page = open_page()
    example = services.examples[0]
    assert page.locator("#question h2").inner_text() == example.question
    assert page.locator("#strip li").count() == len(example.sentences)
    assert page.locator("#strip .token.chosen").inner_text() == "play"
    assert page.locator("#strip .token.copy").count() == 5
    tabs = page.locator("#tabs [role=tab]:visible").all_inner_texts()
    names = "Maps Neighbors Word Influence Gaps Attention Tasks Claims"
    assert tabs == names.split()
    assert page.locator(".panel:visible").count() == 10
    assert page.locator("#lists .list").count() == 5
    # Six equal vectors are one dot with a count, in both encoders.
    for encoder in ("bilm", "attention"):
        labels = page.locator(f"#maps-{encoder} .panel").first.locator(".labels text:visible")
        assert labels.all_text_contents() == ["\u00d76"]


def test_everything_is_on_the_first_screen_of_a_small_laptop(open_page):
    page = open_page(width=1366, height=768)
    for selector in ["#text", "#strip", ".pills", ".panel", "#lists .neighbor"]:
        box = page.locator(selector).last.bounding_box()
        assert box["y"] + box["height"] <= 768, selector
    assert page.evaluate("document.documentElement.scrollHeight") <= 768


def test_typing_and_running_a_text(open_page):
    page = open_page()
    run_text(page, "The bank raised its rates .\nThey fished from the bank .\n\nIt rained .")
    assert page.locator("#strip .status").inner_text().startswith("3 sentences \u00b7 15 tokens")
    assert page.locator("#strip .token.chosen").inner_text() == "bank"
    assert (
        page.locator("#question h2").inner_text() == "Where does each layer put \u201cbank\u201d?"
    )
    assert page.locator("#picker input").input_value() == ""
    labels = page.locator("#maps-bilm .panel").nth(2).locator(".labels text:visible")
    assert sorted(labels.all_text_contents()) == ["1", "2"]


def test_picking_an_example_fills_the_text_box(open_page, services):
    page = open_page()
    page.locator("#picker input").click()
    page.get_by_role("option", name=services.examples[3].label).click()
    page.wait_for_function(f"bothways.state.run.question === {services.examples[3].question!r}")
    assert page.locator("#text textarea").input_value() == services.examples[3].text


def test_clicking_a_token_chooses_it_everywhere(open_page):
    page = open_page()
    before = neighbors_of(page)
    page.locator("#strip .token", has_text="children").first.click()
    page.wait_for_selector("#lists section:not(.stale) h3 em:text-is('children')")
    assert neighbors_of(page) != before
    assert page.locator("#strip .token.chosen").inner_text() == "children"
    assert "The children play" in page.locator("#lists .where").inner_text()


def test_clicking_a_point_of_a_map_chooses_its_token(open_page):
    page = open_page()
    target = page.evaluate(
        """() => {  // the grey dot that is farthest from its nearest neighbor
          const node = document.querySelectorAll('#maps-bilm .plot')[2];
          const {xaxis, yaxis} = node._fullLayout;
          const dots = node.data.flatMap((trace) => trace.x.map((x, i) => ({
            place: trace.customdata[i], x: xaxis._offset + xaxis.d2p(x),
            y: yaxis._offset + yaxis.d2p(trace.y[i]), grey: trace.name === 'others'})));
          const room = (a) => Math.min(...dots.filter((b) => b !== a)
            .map((b) => Math.hypot(a.x - b.x, a.y - b.y)));
          const [best] = dots.filter((dot) => dot.grey).sort((a, b) => room(b) - room(a));
          const box = node.getBoundingClientRect();
          return {s: best.place[0], t: best.place[1], x: box.x + best.x, y: box.y + best.y};
        }"""
    )
    page.mouse.move(target["x"] - 1, target["y"])
    page.mouse.move(target["x"], target["y"])
    page.wait_for_timeout(100)
    page.mouse.click(target["x"], target["y"])
    page.wait_for_function(
        f"bothways.state.query.sentence === {target['s']}"
        f" && bothways.state.query.token === {target['t']}"
    )
    chosen = page.locator("#strip .token.chosen")
    assert chosen.get_attribute("data-sentence") == str(target["s"])


def test_a_lasso_marks_its_tokens_in_every_map_and_in_the_text(open_page):
    page = open_page()
    plot = page.locator("#maps-attention .plot").nth(1)
    plot.hover()
    plot.locator(".modebar-btn[data-title*=asso]").click()
    box = plot.bounding_box()
    x, y, width, height = box["x"] + 4, box["y"] + 24, box["width"] - 8, box["height"] - 28
    page.mouse.move(x, y)
    page.mouse.down()
    corners = [(x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    for corner in corners:
        page.mouse.move(*corner, steps=4)
    page.mouse.up()
    page.wait_for_function("bothways.state.lasso.length > 5")
    caught = page.evaluate("bothways.state.lasso.length")
    assert page.locator("#strip .token.caught").count() == caught
    marked = "[...document.querySelectorAll('.plot')].map((plot) => plot.data[1].x.length)"
    counts = set(page.evaluate(marked))
    assert len(counts) == 1 and 0 < counts.pop() <= caught
    assert page.locator("#caught li").count() == caught
    assert not page.locator("#lists .columns").is_visible()
    page.locator("#caught .neighbor").first.click()  # a token of the list is chosen
    page.wait_for_function("bothways.state.query.sentence === bothways.state.chosen.sentence")
    page.get_by_role("button", name="let go").click()
    assert page.locator("#strip .token.caught").count() == 0
    assert page.locator("#lists .columns").is_visible()


def test_pointing_at_a_dot_rings_its_token_in_every_map(open_page):
    page = open_page()
    page.evaluate("bothways.emit('hover', [0, 0])")
    assert page.locator(".ring:visible").count() == 9
    page.evaluate("bothways.emit('hover', null)")
    assert page.locator(".ring:visible").count() == 0


def test_the_second_of_two_equal_words_can_be_chosen(open_page):
    page = open_page()
    run_text(page, "the bank near the other bank")
    page.locator("#strip .token", has_text="bank").nth(1).click()
    page.wait_for_function("bothways.state.query.token === 5")
    assert page.locator("#strip .token.chosen").get_attribute("data-token") == "5"
    assert page.locator("#strip .token.copy").count() == 1


def test_dragging_a_slider_mixes_and_ranks_without_the_server(open_page):
    page = open_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    mark = "document.querySelector('#maps-bilm .mix .plot').marked = 1"
    page.evaluate(mark)
    at_mean = neighbors_of(page)
    drag(page, weight(page, 2), 1.0)
    drag(page, weight(page, 0), 0.0)
    wait_settled(page)
    assert requests == []
    assert neighbors_of(page) != at_mean
    layer_2 = neighbors_of(page, "#lists .list[data-layer='2']")
    assert neighbors_of(page)[:3] == layer_2[:3]
    shown = [float(x.replace("\u2212", "-")) for x in _typed(page)]
    state = page.evaluate("bothways.weights.bilm")
    assert shown == pytest.approx([*state["w"], state["gamma"]], abs=0.005)
    assert page.evaluate("document.querySelector('#maps-bilm .mix .plot').marked") == 1
    # The map of the mix now is the map of layer 2, in Plotly's data and on the screen.
    mix, two = (_drawn(page, selector) for selector in (".panel.mix", ".panel:nth-child(3)"))
    assert mix == pytest.approx(two, abs=0.6)


def _typed(page):
    return page.locator("#mixing .typed").evaluate_all("inputs => inputs.map(i => i.value)")


def _drawn(page, panel):
    """Pixels of every dot of a map, in the order of the rows."""
    return page.locator(f"#maps-bilm {panel} path.point").evaluate_all(
        "points => points.flatMap(p => p.getAttribute('transform').match(/-?[\\d.]+/g).map(Number))"
    )


def test_numbers_in_the_browser_equal_the_servers(open_page, services):
    import numpy as np

    from elmo.banks.mixing import nearest, similarity
    from elmo.scalar_mix import mix_layers, softmax

    page = open_page()
    sentences = services.examples[0].tokens
    rng = np.random.default_rng(4)
    for kind, n_layers in [("bilm", 3), ("attention", 4)]:
        model, own = services.model(kind), services.encode(kind, sentences)
        row = own.row(*services.examples[0].focus)
        for _ in range(4):
            w, gamma = rng.normal(scale=2, size=n_layers).tolist(), float(rng.uniform(0.2, 3))
            scores = []
            for bank in (model.bank, own):
                products, norms, norm = bank.centered(bank.query(own.vectors[row]))
                scores.append(similarity(products, norms, norm, softmax(w)))
            scores[0][np.isin(model.bank.sentence, services.bank_ids(sentences))] = np.nan
            scores[1][row] = np.nan
            expected = np.concatenate(scores)
            expected = expected[nearest(expected, 20)]
            found = page.evaluate(
                """([kind, w, gamma]) => {
                  const s = bothways.softmax(w);
                  const set = bothways.candidatesOf(kind);
                  const map = bothways.state.maps.encoders[kind], n = map.rows.length;
                  const x = new Float64Array(n), y = new Float64Array(n);
                  const factors = bothways.mixFactors(map, s, gamma);
                  bothways.mixCoordinates(map.coordinates, factors, x, y);
                  const scores = bothways.rank(set, s, gamma, 20).map((hit) => hit.score);
                  return {scores, x: [...x], y: [...y]};
                }""",
                [kind, w, gamma],
            )
            np.testing.assert_allclose(found["scores"], expected, atol=1e-4)
            mixed, examples = (
                mix_layers((vectors - mean).transpose(1, 0, 2), w, gamma)
                for vectors, mean in [
                    (own.vectors, model.basis.mean),
                    (model.bank.vectors, model.bank.mean),
                ]
            )
            spread = np.sqrt(np.square(examples).sum(axis=1).mean()) / gamma
            xy = mixed @ model.basis.axes[:, :2] / spread
            np.testing.assert_allclose(np.transpose([found["x"], found["y"]]), xy, atol=1e-4)


def test_typed_values_presets_and_reset(open_page):
    page = open_page()
    typed = page.locator("#mixing .typed").first
    typed.fill("-1,5")
    typed.press("Enter")
    assert page.evaluate("bothways.weights.bilm.w[0]") == -1.5
    typed.fill("nonsense")
    typed.press("Enter")
    page.wait_for_function("document.querySelector('#mixing .typed').value === '\u22121.50'")
    page.locator(".pill", has_text=re.compile("^1$")).click()
    assert page.evaluate("bothways.weights.bilm.s[1]") > 0.9999
    layer_1 = neighbors_of(page, "#lists .list[data-layer='1']")
    wait_settled(page)
    assert neighbors_of(page) == layer_1
    page.locator(".pill", has_text="reset").click()
    wait_settled(page)
    assert page.evaluate("bothways.weights.bilm.w") == [0, 0, 0]
    assert _typed(page) == ["0.00", "0.00", "0.00", "1.00"]


def test_a_mix_of_ones_own_is_kept_and_recalled(open_page):
    page = open_page()
    page.evaluate("bothways.setWeights('bilm', {w: [1, -2, 0.5], gamma: 2})")
    page.locator(".pill.keep").click()
    page.locator(".pill", has_text="reset").click()
    page.wait_for_function("bothways.weights.bilm.gamma === 1")
    page.locator(".pill", has_text="mine").click()
    assert page.evaluate("bothways.weights.bilm.w") == [1, -2, 0.5]
    assert page.evaluate("bothways.weights.bilm.gamma") == 2


def test_gamma_scales_the_map_and_leaves_cosines_alone(open_page):
    page = open_page()
    before, width = neighbors_of(page), _width(page)
    page.locator("#mixing .typed").nth(3).fill("0.5")
    page.locator("#mixing .typed").nth(3).press("Enter")
    wait_settled(page)
    assert neighbors_of(page) == before
    assert _width(page) == pytest.approx(width / 2, rel=0.02)


def _width(page):
    x = _drawn(page, ".panel.mix")[::2]
    return max(x) - min(x)


def test_the_self_attention_mix_has_weights_of_its_own(open_page):
    page = open_page()
    elmo = neighbors_of(page)
    joint = "#lists .list[data-encoder=attention]"
    before = neighbors_of(page, joint)
    page.locator(".choice", has_text="Self-attention").click()
    assert page.locator("#mixing input[type=range]").count() == 5
    page.locator(".pill", has_text=re.compile("^3$")).click()
    wait_settled(page)
    assert neighbors_of(page, joint) != before
    assert neighbors_of(page) == elmo
    assert page.evaluate("bothways.weights.bilm.w") == [0, 0, 0]


def test_the_triangle_is_the_sliders(open_page):
    page = open_page()
    box = page.locator(".triangle .outline").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.6)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1, steps=5)
    page.mouse.up()
    assert page.evaluate("bothways.weights.bilm.s[1]") > 0.95
    wait_settled(page)
    assert float(_typed(page)[1]) > 2
    page.locator(".triangle .dot").press("ArrowUp")
    assert page.evaluate("bothways.weights.bilm.s[2]") > 0.02


def test_the_sweep_walks_from_layer_0_and_stops_on_a_click(open_page):
    page = open_page()
    page.locator(".sweep").click()
    page.wait_for_function("bothways.weights.bilm.s[0] > 0.5 && bothways.weights.bilm.s[1] > 0.1")
    page.locator(".sweep").click()
    page.wait_for_timeout(60)
    stopped = page.evaluate("bothways.weights.bilm.w")
    page.wait_for_timeout(150)
    assert page.evaluate("bothways.weights.bilm.w") == stopped


def test_zoom_survives_sliders_tokens_and_tabs_and_is_shared_by_the_row(open_page):
    page = open_page()
    ranges = (
        "[...document.querySelectorAll('#maps-bilm .plot')].map(p => p._fullLayout.xaxis.range)"
    )
    box = page.locator("#maps-bilm .plot").nth(1).bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 130, box["y"] + 100, steps=6)
    page.mouse.up()
    page.wait_for_timeout(300)
    zoomed = page.evaluate(ranges)
    assert zoomed[0] == pytest.approx(zoomed[3], rel=1e-6)
    drag(page, weight(page, 1), 0.8)
    wait_settled(page)
    page.locator("#strip .token", has_text="children").first.click()
    page.wait_for_function("!document.querySelector('.lists').classList.contains('stale')")
    page.get_by_role("tab", name="Neighbors").click()
    page.get_by_role("tab", name="Maps").click()
    page.wait_for_timeout(200)
    for now, then in zip(page.evaluate(ranges), zoomed, strict=True):
        assert now == pytest.approx(then, rel=1e-6)


def test_a_neighbors_sentence_joins_the_text(open_page):
    page = open_page()
    row = page.locator("#lists .list[data-encoder=attention] .neighbor").first
    sentence, n = row.get_attribute("title"), page.locator("#strip li").count()
    row.click()
    page.wait_for_function(f"document.querySelectorAll('#strip li').length === {n + 1}")
    last = page.locator("#strip li").last
    assert last.locator(".words").inner_text().split() == sentence.split()
    assert last.locator(".token.chosen").count() == 1
    assert page.locator("#text textarea").input_value().count("\n") == n


def test_axes_of_the_chosen_word(open_page):
    page = open_page()
    page.locator("select[data-name=axes]").select_option("word")
    page.wait_for_function("bothways.state.maps.encoders.bilm.basis === 'word'")
    assert "PCA of \u201cplay\u201d" in page.locator("#maps-bilm .method").inner_text()
    page.locator("select[data-name=axes]").select_option("all")
    page.wait_for_function("bothways.state.maps.encoders.bilm.basis === 'all'")


def test_two_visitors_do_not_see_each_other(open_page):
    one, two = open_page(), open_page()
    run_text(one, "A secret about a zebra .")
    two.locator("#strip .token", has_text="children").first.click()
    two.wait_for_function("!document.querySelector('.lists').classList.contains('stale')")
    drag(one, weight(one, 0), 0.9)
    assert "zebra" not in two.content()
    assert two.evaluate("bothways.weights.bilm.w") == [0, 0, 0]
    assert one.locator("#strip .token.chosen").inner_text() != "children"
    one.locator("#strip .token", has_text="zebra").click()
    one.wait_for_function("bothways.state.query.token === 4")


def test_model_cards(open_page):
    page = open_page()
    page.get_by_role("button", name="Models").click()
    dialog = page.locator("dialog.cards[aria-label=Models]")
    assert dialog.is_visible()
    assert dialog.locator("h3").all_inner_texts() == ["ELMo", "Self-attention"]
    assert "random: no trained model was found" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()


def test_of_quick_clicks_the_last_one_counts(open_page):
    """Also while the first is still being answered."""
    page = open_page()
    page.evaluate(
        """() => document.querySelectorAll('#strip .token').forEach(
             (token, i) => i % 7 === 0 && token.click())"""
    )
    page.wait_for_function(
        """() => { const {query, chosen} = bothways.state;
             return query.sentence === chosen.sentence && query.token === chosen.token; }"""
    )
    word = page.evaluate("bothways.chosenWord()")
    assert page.locator("#lists h3 em").inner_text() == word
