"""Views in links: what is packed comes back, and nonsense is refused with a reason."""

import base64
import json
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.choice import Choice
from app.cli import parse_arguments
from app.handlers.page import Handlers
from app.handlers.share import ShareHandlers, opened
from app.link import MAX_LINK, View, decode, encode, options_of, shortened, weights_of
from app.qr import BORDER, qr_view
from app.state import Selection

ADDRESS = "http://192.168.0.7:7860/"
TABS = ("maps", "neighbors", "word")

weights = st.floats(-6, 6).map(lambda w: round(w, 4))
views = st.builds(
    View,
    text=st.text(max_size=200),
    pretokenized=st.booleans(),
    sentence=st.integers(0, 50),
    token=st.integers(0, 50),
    tab=st.sampled_from(TABS),
    basis=st.sampled_from(["all", "word", "umap"]),
    dims=st.sampled_from([2, 3]),
    seed=st.integers(0, 9999),
    behind=st.booleans(),
    question=st.sampled_from(["", "word"]),
    choice=st.builds(
        Choice,
        pools=st.sampled_from([("text",), ("examples", "text"), ("wordnet", "examples")]),
        words=st.sampled_from(["any", "only"]),
        pos=st.sampled_from([None, "VERB"]),
        metric=st.sampled_from(["cosine", "dot"]),
        centered=st.booleans(),
        unit=st.booleans(),
    ),
    weights=st.dictionaries(
        st.sampled_from(["bilm", "attention"]),
        st.tuples(st.tuples(weights, weights, weights), st.just(1.5)),
    ),
    options=st.dictionaries(st.just("depth"), st.sampled_from(["mix", 1, True])),
)


def pack(value):
    """A code as ``encode`` makes it, of any JSON."""
    from app.link import _DICTIONARY, VERSION

    packer = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=_DICTIONARY)
    packed = packer.compress(json.dumps(value).encode()) + packer.flush()
    return VERSION + base64.urlsafe_b64encode(packed).decode().rstrip("=")


@given(views)
def test_what_is_packed_comes_back(view):
    assert decode(encode(view)) == view


@given(st.text(max_size=300) | st.binary(max_size=200).map(lambda b: "1" + b.hex()))
def test_any_text_is_a_view_or_a_plain_refusal(code):
    try:
        decode(code)
    except ValueError as error:
        assert 10 < len(str(error)) < 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
names = ("text", "example", "pretokenized", "at", "tab", "basis", "choice", "weights", "options")
names += ("dims", "seed", "behind", "question")


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(names), json_values) | json_values)
def test_any_json_is_a_view_or_a_plain_refusal(services, value):
    try:
        opened(services, decode(pack(value)))
    except ValueError as error:
        assert str(error)


def test_bombs_and_other_versions_are_refused():
    bomb = pack({"text": "x" * 10_000_000})
    assert len(bomb) < 30_000
    for code in (
        bomb,
        "1" + "A" * 300_000,
        "2" + encode(View(text="a"))[1:],
        encode(View(text="a"))[:-3],
        "",
    ):
        with pytest.raises(ValueError, match="damaged"):
            decode(code)


def test_wrong_weights_are_named():
    for mix, message in [
        ([[9, 0, 0], 1], "raw weight"),
        ([[0, 0, 0], -1], "gamma"),
        ([0, 1], "raw weights, gamma"),
        ([[True, 0, 0], 1], "raw weight"),
    ]:
        with pytest.raises(ValueError, match=message):
            weights_of({"bilm": mix})
    assert weights_of({"bilm": [[0, 0, 0], 1]}) == {}


def test_options_that_are_none_are_refused():
    for value in (10**400, -(10**400), 1e9, float("inf"), float("nan"), "x" * 61, None, [1]):
        with pytest.raises(ValueError, match="option depth must be .* number below 1,000,000,000"):
            options_of({"depth": value})
    with pytest.raises(ValueError, match="option depth"):
        decode(pack({"options": {"depth": 10**400}}))
    assert options_of({"depth": 999_999_999, "tab": "x" * 60}) == {
        "depth": 999_999_999,
        "tab": "x" * 60,
    }


def test_a_long_text_keeps_the_chosen_sentence_and_its_neighbors():
    lines = [" ".join(f"{i * j * 7919 % 99991}" for j in range(1, 30)) for i in range(12)]
    view = View(text="\n".join(lines), sentence=7, token=3, tab="word")
    code, held = shortened(view)
    assert len(code) <= MAX_LINK and decode(code) == held
    assert held.text.splitlines()[held.sentence] == lines[7]
    assert 1 <= len(held.text.splitlines()) < 12 and held.tab == "word"
    long = View(text=" ".join(str(i * 7919 % 99991) for i in range(900)), token=4, tab="word")
    code, held = shortened(long)
    assert held.text == "" and held.tab == "word" and len(code) <= MAX_LINK


def test_four_hundred_letters_of_english_fit_with_every_choice():
    text = "The bank of the river was steep, and the children played there every day.\n" * 6
    view = View(text=text, sentence=3, token=2, weights={"bilm": ((1.0, -2.0, 0.5), 2.0)})
    assert len(encode(view)) < MAX_LINK / 2


def sent(**more):
    return json.dumps({"address": ADDRESS, "tab": "word", "weights": {}, "options": {}} | more)


def link_to(services, selection, **more):
    handlers = ShareHandlers(Handlers(services), TABS)
    return json.loads(handlers.link(selection, sent(**more)))["share"]


def test_a_link_opens_on_a_page_that_never_met_the_visitor(services):
    chosen = Selection(
        "The bank .\nA river bank .", False, 1, 2, basis="word", choice=Choice(("text",))
    )
    mix = {"bilm": [[1, 0, -1], 2]}
    share = link_to(services, chosen, weights=mix, options={"depth": "mix"})
    code = share["link"].split("#view=")[1]
    assert share["link"].startswith(ADDRESS) and share["notes"] == []
    other = ShareHandlers(Handlers(services), TABS)
    text, pretokenized, picked, elmo, selection, news = other.open(
        Selection("Something else ."), json.dumps({"code": code})
    )
    assert selection == chosen and (text, pretokenized, picked, elmo) == (
        chosen.text,
        False,
        None,
        "",
    )
    told = json.loads(news)
    assert told["opened"]["weights"] == {"bilm": [[1.0, 0.0, -1.0], 2.0]}
    assert told["opened"]["tab"] == "word" and told["opened"]["options"] == {"depth": "mix"}
    assert [told["query"]["sentence"], told["query"]["token"]] == [1, 2]


def test_examples_travel_by_name_and_files_stay(services):
    example = services.examples[1]
    share = link_to(services, Selection(example.text, False, 0, 1))
    assert decode(share["link"].split("=")[1]).example == example.id
    own = Selection("a b", choice=Choice(("upload",), upload="digest"))
    share = link_to(services, own)
    assert "not in the link" in share["notes"][0]
    assert "digest" not in str(decode(share["view"]))


def test_the_address_is_a_web_address(services):
    import gradio as gr

    for address in ("javascript:alert(1)", "file:///etc/passwd", "http://", None, "x" * 400):
        with pytest.raises(gr.Error, match="begin with http"):
            link_to(services, Selection("a b"), address=address)


def test_the_code_is_square_with_a_border_and_holds_the_longest_link():
    qr = qr_view(ADDRESS + "#view=" + "x" * MAX_LINK)
    assert qr["size"] < 150
    first = qr["path"].split("M")[1]
    assert first.startswith(f"{BORDER} {BORDER}h7v1")  # a finder pattern's upper edge


def test_lan_is_an_option_and_off_by_default():
    assert parse_arguments([]).lan is False and parse_arguments(["--lan"]).lan is True
