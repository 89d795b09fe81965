"""Maps and tables by their content: hand-made vectors with answers known by eye."""

import numpy as np
import pytest

from app.choice import Choice
from app.nearby import Pool, find_near
from app.packing import pack, to_json, unpack
from app.views.maps import drawn_rows, frame_around, map_row, mix_factors, word_basis
from app.views.triangle import same_word_shares
from elmo.banks.bank import build_bank
from elmo.banks.mixing import simplex_grid
from elmo.banks.projection import fit_basis, mix_spread
from elmo.results import Encoding
from elmo.scalar_mix import softmax

SENTENCES = (("the", "bank", "closed"), ("a", "Bank", "of", "mud"), ("the", "bank", "rose"))


@pytest.fixture
def text():
    """Layer 0 knows the word only; layer 2 puts the third sentence far from the others."""
    rng = np.random.default_rng(1)
    words = sorted({t.lower() for s in SENTENCES for t in s})
    word_vectors = {w: rng.normal(size=8) for w in words}
    encodings = []
    for i, tokens in enumerate(SENTENCES):
        hidden = np.stack([[word_vectors[t.lower()] for t in tokens]] * 3).astype(np.float32)
        hidden[1] += rng.normal(size=hidden[1].shape)
        hidden[2, :, 0] += 10 * (i == 2)
        encodings.append(Encoding(tokens, hidden))
    return build_bank(SENTENCES, encodings)


def coordinates_of(row, n_layers=3):
    return unpack(row["coordinates"], len(row["rows"]), n_layers, 2)


def test_a_row_of_maps_shares_one_frame_that_holds_every_layer(text):
    row = map_row(text, fit_basis(text.vectors), mix_spread(text), "bank", 100, "all")
    xy, (left, right, bottom, top) = coordinates_of(row), row["frame"]
    assert row["rows"] == list(range(10)) and row["outside"] == 0
    assert (xy[..., 0] > left).all() and (xy[..., 0] < right).all()
    assert (xy[..., 1] > bottom).all() and (xy[..., 1] < top).all()
    assert 0 < row["variance"] <= 1 and 0 <= row["neighbors"] <= 1


def test_identical_vectors_have_identical_coordinates(text):
    xy = coordinates_of(
        map_row(text, fit_basis(text.vectors), mix_spread(text), "bank", 100, "all")
    )
    copies = text.rows_of("bank")
    assert len(copies) == 3
    assert np.ptp(xy[copies, 0], axis=0).max() == 0  # layer 0: one dot
    assert np.ptp(xy[copies, 2], axis=0).max() > 5 / fit_basis(text.vectors).scale[2]


def test_any_mix_with_gamma_one_stays_in_the_frame(text):
    row = map_row(text, fit_basis(text.vectors), mix_spread(text), "bank", 100, "all")
    left, right, bottom, top = row["frame"]
    scale, spread = np.array(row["scale"]), np.array(row["spread"])
    for w in np.random.default_rng(0).normal(scale=4, size=(50, 3)):
        factors = mix_factors(scale, spread, softmax(w))
        mixed = np.tensordot(factors, coordinates_of(row), axes=([0], [1]))
        assert (mixed[:, 0] > left).all() and (mixed[:, 0] < right).all()
        assert (mixed[:, 1] > bottom).all() and (mixed[:, 1] < top).all()


def test_every_map_is_in_units_of_its_own_spread(text):
    basis, spread = fit_basis(text.vectors), mix_spread(text)
    for s in (softmax([1, 0, -1]), np.eye(3)[2]):
        mixed = np.tensordot(text.vectors - text.mean, s, axes=([1], [0]))
        own = np.sqrt(np.square(mixed).sum(axis=1).mean())
        factors = mix_factors(basis.scale, spread, s)
        drawn = np.tensordot(basis.project(text.vectors), factors, axes=([1], [0]))
        np.testing.assert_allclose(drawn, mixed @ basis.axes / own, atol=1e-5)
    np.testing.assert_allclose(mix_factors(basis.scale, spread, np.eye(3)), np.eye(3), atol=1e-5)


def test_a_layer_a_hundred_times_as_long_changes_no_map(text):
    longer = text.vectors * np.array([1, 100, 1], np.float32)[:, None]
    first, second = (fit_basis(v).project(v) for v in (text.vectors, longer))
    np.testing.assert_allclose(first, second, atol=1e-4)


def test_axes_of_a_word_show_where_its_copies_differ(text):
    scale = fit_basis(text.vectors).scale
    basis = word_basis("bank", text, text, scale)
    row = map_row(text, basis, mix_spread(text), "bank", 100, "word")
    xy = coordinates_of(row)
    first, _, odd = text.rows_of("bank")
    whole = np.linalg.norm(text.vectors[odd, 2] - text.vectors[first, 2]) / scale[2]
    assert abs(xy[odd, 2, 0] - xy[first, 2, 0]) > 0.75 * whole  # of 8 axes the first one
    assert row["basis"] == "word"
    assert word_basis("mud", text, text, scale) is None


def test_a_cap_keeps_the_words_copies(text):
    rows = drawn_rows(text, "bank", 5)
    assert len(rows) == 5 and set(text.rows_of("bank")) <= set(rows)
    row = map_row(text, fit_basis(text.vectors), mix_spread(text), "bank", 5, "all")
    assert (len(row["rows"]), row["n_tokens"]) == (5, 10)


def test_nothing_to_draw_is_an_empty_row(text):
    empty = build_bank([("x",)], [None], mean=text.mean)
    row = map_row(empty, fit_basis(text.vectors), mix_spread(text), "x", 100, "all")
    assert row["rows"] == [] and row["coordinates"] == ""
    assert frame_around(np.zeros((0, 3, 2)), np.eye(3)).tolist() == [-1, 1, -1, 1]


def test_one_point_has_a_frame_around_it():
    left, right, bottom, top = frame_around(np.full((1, 3, 2), 4.0), np.eye(3))
    assert left < 4 < right and bottom < 4 < top


def test_without_labels_the_triangle_counts_copies_of_the_word(text):
    def shares(sentence, position):
        row, choice = text.row(sentence, position), Choice(pools=("text",))
        queries = {"text": text.query(text.vectors[row])}
        near = find_near([Pool("text", text, (), row)], queries, text.token(row), choice)
        return same_word_shares(near, text.token(row))

    corner = dict(zip(map(tuple, simplex_grid(16)), shares(0, 1), strict=True))
    assert corner[1, 0, 0] == 1  # in layer 0 the two other copies are the two nearest
    assert shares(1, 3) is None


def test_arrays_survive_the_way_to_the_browser():
    array = np.array([[1.5, -2e-7], [3e8, 0]], dtype=np.float32)
    np.testing.assert_array_equal(unpack(pack(array), 2, 2), array)
    assert to_json({"token": "\ud800\u65e5"}) == '{"token":"\\ud800\\u65e5"}'
    assert to_json("<script>") == '"\\u003cscript>"'
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(float("nan"))
