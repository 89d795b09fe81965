import json

import numpy as np
import pytest
from small_models import small_encoder, small_model

from elmo.__main__ import main
from elmo.both_ways.arithmetic import InfluenceGrid
from elmo.both_ways.influence import replacement_grid
from elmo.both_ways.reach import half_life, reach, reach_intervals
from elmo.checkpoint import save_model

SENTENCE = ["the", "cat", "that", "saw", "the", "dog", "ran", "home"]


@pytest.mark.parametrize(
    "profile, expected",
    [
        ([9, 8, 4, 1], 1.0),  # at distance 2, one token beyond the next
        ([9, 8, 6, 2], 1.5),
        ([9, 8, 1], 4 / 7),
        ([9, 8, 7, 6], np.inf),
        ([9, 0, 0], np.nan),
        ([9], np.nan),
    ],
)
def test_half_life_by_eye(profile, expected):
    assert half_life(np.array(profile, dtype=float)) == pytest.approx(expected, nan_ok=True)


def fading_grid(n, rate=0.5):
    """One layer, whose influence is ``rate`` times as large with every token to the right."""
    step = np.arange(n)[None, :] - np.arange(n)[:, None]
    fading = np.where(step >= 0, rate ** np.maximum(step, 0), 0.0)
    cross = (fading**2)[None, None, None, None]
    return InfluenceGrid(
        encoder="made up",
        tokens=("w",) * n,
        measure="gradient",
        replacement="",
        parts=("whole",),
        cross=cross,
        own=np.ones((1, 1, 1, n)),
        changed=fading[None, None] > 0,
        reachable=fading[None, None] > 0,
    )


def test_reach_averages_over_pairs_at_each_distance():
    result = reach([fading_grid(4), fading_grid(4)])
    assert result.n_pairs.tolist() == [[2 * 4, 2 * 6, 2 * 4, 2 * 2]]
    # the whole vector: half of the pairs at a distance look left and have no influence
    np.testing.assert_allclose(result.profile[0, 0], [1, 0.25, 0.125, 0.0625])
    assert result.half_life[0, 0] == pytest.approx(1.0)
    assert result.mean_distance[0, 0] == pytest.approx((0.25 + 0.25 + 0.1875) / 0.4375)


def test_reach_of_halves_counts_their_own_side():
    result = reach([replacement_grid(small_encoder("bilm"), SENTENCE)])
    n = len(SENTENCE)
    assert result.parts == ("whole", "forward", "backward")
    assert result.n_pairs[1].tolist() == [n - d for d in range(n)]
    assert result.n_pairs[2].tolist() == result.n_pairs[1].tolist()
    assert (result.profile[1, 1] > 0).all()
    assert np.isnan(result.half_life[:, 0]).all()  # layer 0: a token reaches itself alone
    assert np.isnan(result.mean_distance[:, 0]).all()


def test_sentences_of_several_lengths_are_averaged_pair_by_pair():
    result = reach([fading_grid(3), fading_grid(5)])
    assert result.n_pairs.tolist() == [[3 + 5, 4 + 8, 2 + 6, 4, 2]]
    np.testing.assert_allclose(result.profile[0, 0], [1, 1 / 4, 1 / 8, 1 / 16, 1 / 32])


def test_intervals_hold_the_estimate_and_are_a_point_where_sentences_agree():
    alike = reach_intervals([fading_grid(6)] * 5)
    np.testing.assert_allclose(alike["half_life"][:, 0, 0], 1.0)
    grids = [fading_grid(8, rate) for rate in (0.4, 0.5, 0.6, 0.7, 0.8)]
    low, high = reach_intervals(grids)["half_life"][:, 0, 0]
    assert low < reach(grids).half_life[0, 0] < high
    low, high = reach_intervals(grids)["mean_distance"][:, 0, 0]
    assert low < reach(grids).mean_distance[0, 0] < high


def test_wrong_grids_are_refused():
    with pytest.raises(ValueError, match="at least one influence grid"):
        reach([])
    grids = [replacement_grid(small_encoder(kind), SENTENCE) for kind in ("bilm", "attention")]
    with pytest.raises(ValueError, match="one encoder"):
        reach(grids)


def test_the_command_writes_profiles(tmp_path):
    vocabulary = ["<S>", "</S>", "<UNK>", "the"]
    save_model(tmp_path / "bilm", small_model("bilm", 4), vocabulary, {"name": "bilm"})
    examples = [{"sentences": ["The cat saw a dog.", "It ran."]}, {"sentences": ["It ran."]}]
    (tmp_path / "examples.json").write_text(json.dumps({"examples": examples}))
    arguments = ["reach", "--models", str(tmp_path / "bilm"), "--out", str(tmp_path / "o.json")]
    assert main([*arguments, "--examples", str(tmp_path / "examples.json")]) == 0
    (bilm,) = json.loads((tmp_path / "o.json").read_text())["encoders"]
    assert bilm["n_sentences"] == 2
    assert bilm["parts"] == ["whole", "forward", "backward"]
    assert bilm["half_life"][0][0] is None  # layer 0 reaches nobody
    assert np.shape(bilm["profile"]) == (3, 3, 6)
