"""Learning curves at equal cost."""

import json

import pytest
from small_models import KINDS

from app.settings import ROOT
from elmo.__main__ import main
from elmo.training.curves import (
    GAPS,
    PERPLEXITY,
    Curve,
    equal_costs,
    read_curves,
    round_costs,
)

COST = {"tokens": (10, 20), "targets": (20, 40), "minutes": (1, 4)}


def curve(*scores, metric=PERPLEXITY, factor=1):
    costs = {axis: tuple(factor * x for x in values) for axis, values in COST.items()}
    return Curve(costs, scores, metric)


def test_between_evaluations_log_probabilities_lie_on_a_straight_line():
    assert curve(400.0, 100.0).at("tokens", 15) == pytest.approx(200)
    assert curve(-6.0, -5.0, metric=GAPS).at("tokens", 15) == pytest.approx(-5.5)
    assert curve(400.0, 100.0).at("tokens", 9) is None
    assert curve(400.0, 100.0).at("tokens", 21) is None
    assert curve(400.0, 100.0).at("tokens", 20) == pytest.approx(100)


def test_curves_are_compared_where_all_have_arrived():
    found = equal_costs({"a": curve(400.0, 100.0), "b": curve(300.0, 200.0, factor=0.5)})
    assert found["tokens"][0] == 10 and found["minutes"][0] == 2
    assert found["tokens"][1] == pytest.approx({"a": 400.0, "b": 200.0})
    assert found["minutes"][1]["a"] == pytest.approx(400 * 0.25 ** (1 / 3))


def test_round_costs_are_those_that_two_curves_have_measured():
    curves = {"a": curve(4.0, 3.0, factor=1), "b": curve(4.0, 3.0, factor=10), "c": curve(5.0, 4.0)}
    assert round_costs(curves, "tokens") == [10, 20]
    assert round_costs({"a": curves["a"], "b": curves["b"]}, "tokens") == []


def test_evaluations_are_read_by_metric(tmp_path):
    path = tmp_path / "curve.jsonl"
    cost = {"tokens": 10, "targets": 20, "minutes": 1.5}
    rows = [
        cost | {"valid_mean": 300.0},
        {"tokens": 20, "targets": 40, "minutes": 3.0, "valid_mean": 200.0, GAPS: -5.0},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
    curves = read_curves(path)
    assert curves[PERPLEXITY].scores == (300.0, 200.0)
    assert curves[PERPLEXITY].costs["minutes"] == (1.5, 3.0)
    assert curves[GAPS].scores == (-5.0,) and curves[GAPS].costs["tokens"] == (20,)
    path.write_text("\n")
    with pytest.raises(ValueError, match="no evaluation in"):
        read_curves(path)


def test_shipped_curves_are_read_whole():
    for kind in KINDS:
        path = ROOT / "assets" / "models" / kind / "curve.jsonl"
        rows = path.read_text(encoding="utf-8").splitlines()
        own = read_curves(path)[GAPS if kind == "attention" else PERPLEXITY]
        assert len(own.scores) == len(rows)
        assert list(own.costs["tokens"]) == sorted(own.costs["tokens"])


def test_the_command_prints_a_table(tmp_path, capsys):
    for name, factor in (("one", 1), ("two", 2)):
        folder = tmp_path / name
        folder.mkdir()
        rows = [
            {axis: 1e6 * factor * x for axis, x in zip(COST, costs, strict=True)} | {GAPS: score}
            for costs, score in (((10, 20, 1), -6.0), ((20, 40, 4), -5.0))
        ]
        (folder / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "two/card.json").write_text(json.dumps({"history": "restarted once"}))
    assert main(["curves", "--models", str(tmp_path / "one"), str(tmp_path / "two")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| at equal | | one | two |"
    assert lines[2] == "| tokens: 20 M | log-probability of hidden words | -5.00 | -6.00 |"
    assert lines[-1] == "two: restarted once"


def test_runs_whose_folders_share_a_name_are_told_apart(tmp_path, capsys):
    folders = [tmp_path / run / "model" for run in ("one", "two")]
    for folder, score in zip(folders, (-6.0, -5.0), strict=True):
        folder.mkdir(parents=True)
        rows = [{"tokens": n, "targets": n, "minutes": n, GAPS: score} for n in (10, 20)]
        (folder / "curve.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["curves", "--models", *map(str, folders)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"| at equal | | {folders[0]} | {folders[1]} |"
    assert lines[2].endswith("| -6.00 | -5.00 |")
    assert main(["curves", "--models", *[str(folders[0])] * 2]) == 2
    assert "named twice" in capsys.readouterr().err
