"""Verdicts follow the rule, and nothing else."""

import numpy as np
import pytest

from elmo.probing.claim_evidence import gap_differences, shipped_differences
from elmo.probing.claim_list import ALL_TASKS, CLAIMS
from elmo.probing.claims import (
    CONTRADICTED,
    EXACT,
    SUPPORTED,
    UNDECIDED,
    UNMEASURED,
    UNTESTABLE,
    Claim,
    Comparison,
    Contrast,
    Gravity,
    Measured,
    combine_verdicts,
    contrasts,
    judge,
    verdict,
)
from elmo.probing.geometry import reach_differences, self_similarity_differences
from elmo.probing.probe_report import write_table
from elmo.probing.probe_tasks import TASKS
from elmo.results import ClozeRow, ClozeTable, Difference, LayerGeometry, ProbeTable


def difference(mean, low, high, key="d"):
    return Difference(key, mean, low, high, "points", "10 sentences")


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.1, 2.0, SUPPORTED),
        (-2.0, -0.1, CONTRADICTED),
        (-0.1, 2.0, UNDECIDED),
        (0.0, 2.0, UNDECIDED),  # an interval that touches 0 does not exclude it
        (-2.0, 0.0, UNDECIDED),
    ],
)
def test_verdict_is_where_the_interval_lies(low, high, expected):
    assert verdict(difference((low + high) / 2, low, high)) == expected


def test_a_large_mean_does_not_help_a_wide_interval():
    assert verdict(difference(9.0, -0.5, 18.0)) == UNDECIDED
    assert verdict(difference(0.02, 0.01, 0.03)) == SUPPORTED


def test_nothing_measured_gives_no_verdict():
    assert verdict(None) == UNMEASURED


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([SUPPORTED, SUPPORTED], SUPPORTED),
        ([SUPPORTED, UNDECIDED], UNDECIDED),
        ([SUPPORTED, CONTRADICTED], CONTRADICTED),
        ([UNDECIDED, CONTRADICTED], CONTRADICTED),
        ([SUPPORTED, UNMEASURED], UNMEASURED),
    ],
)
def test_a_claim_says_all_of_its_tests(parts, expected):
    assert combine_verdicts(parts) == expected


def test_a_claim_without_tests_cannot_be_decided():
    with pytest.raises(ValueError, match="at least one test"):
        combine_verdicts([])


def test_judge_looks_differences_up_by_key():
    claim = Claim("c", "claim", "paper", "source", (Comparison("what", Measured("d")),))
    (result,) = judge([claim], {"d": difference(1.0, 0.5, 1.5)})
    assert result.verdict == result.tests[0].verdict == SUPPORTED
    (missing,) = judge([claim], {})
    assert missing.verdict == UNMEASURED
    assert missing.tests[0].difference is None


def test_definitions_and_untestable_claims_are_not_decided():
    results = {r.claim.key: r for r in judge(CLAIMS, {})}
    assert results["mix"].verdict == EXACT
    assert results["roles"].verdict == UNTESTABLE
    for claim in CLAIMS:
        assert bool(claim.status) == (not claim.tests), claim.key
        assert bool(claim.reason) == bool(claim.status), claim.key


def test_every_claim_names_paper_and_source_and_every_task_exists():
    assert len({c.key for c in CLAIMS}) == len(CLAIMS)
    assert set(ALL_TASKS) == set(TASKS)
    for claim in CLAIMS:
        assert claim.paper and claim.source and claim.claim, claim.key
    for source in contrasts(CLAIMS):
        assert isinstance(source, Contrast | Gravity)
        tasks = source.tasks if isinstance(source, Contrast) else source.lower + source.higher
        assert set(tasks) <= set(TASKS), source.key


def test_a_key_means_one_difference():
    sources = {}
    for claim in CLAIMS:
        for test in claim.tests:
            assert sources.setdefault(test.source.key, test.source) == test.source


def test_papers_numbers_are_the_published_ones():
    by_key = {c.key: c for c in CLAIMS}
    assert "97.3 / 96.8" in by_key["syntax_below_meaning"].paper
    assert "67.4 / 69.0" in by_key["syntax_below_meaning"].paper
    assert "0.7 to 4.7 points absolute" in by_key["contextual"].paper
    assert "4-14 % absolute" in by_key["contextual"].note


def test_gap_differences_are_joint_minus_product():
    values = np.array([-4.0, -5.0, -3.5, -3.8])
    gap = values[:, None] - values[None, :]
    row = ClozeRow(
        *("test", "anywhere", "all", "log-probability", 5000, 0),
        *(values, values, values, gap, gap - 0.1, gap + 0.1),
    )
    predictors = (
        *(("bilm", "forward"), ("bilm", "backward"), ("bilm", "product")),
        ("attention", "joint"),
    )
    (found,) = gap_differences(ClozeTable(predictors, {}, (row,), 0))
    assert found.key == "gaps.attention-bilm"
    assert (found.mean, found.low, found.high) == pytest.approx((-0.3, -0.4, -0.2))
    assert gap_differences(ClozeTable(predictors[:3], {}, (row,), 0)) == []
    assert gap_differences(ClozeTable(predictors, {}, (), 0)) == []


def test_evidence_comes_from_whatever_is_shipped(tmp_path):
    assert shipped_differences(tmp_path / "probes", tmp_path / "cloze") == {}
    table = ProbeTable({}, (), (), (difference(1.0, 0.5, 1.5, key="layers.upos"),))
    write_table(tmp_path / "probes" / "table.json", table)
    found = shipped_differences(tmp_path / "probes", tmp_path / "cloze")
    assert found == {"layers.upos": table.differences[0]}
    results = {r.claim.key: r for r in judge(CLAIMS, found)}
    tests = {t.what: t.verdict for t in results["syntax_below_meaning"].tests}
    assert tests["part of speech: layer 1 minus layer 2"] == SUPPORTED
    (tmp_path / "probes" / "table.json").write_text("{}")
    with pytest.raises(ValueError, match="not a table of probes"):
        shipped_differences(tmp_path / "probes", tmp_path / "cloze")


def test_every_measured_key_is_one_that_some_measurement_ships():
    shipped = {"gaps.attention-bilm", "gaps.attention-attention_concat"}
    geometry = LayerGeometry(
        encoder="bilm",
        words=("a",) * 6,
        by_word=np.tile([1.0, 0.8, 0.6], (6, 1)),
        self_similarity=np.tile([1.0, 0.8, 0.6], (3, 1)),
        baseline=np.zeros(3),
        **dict.fromkeys(("intra_sentence", "explained", "explained_uncentered"), np.zeros((3, 3))),
        **dict.fromkeys(("explained_baseline", "norm_mean", "norm_std"), np.zeros(3)),
        n_sentences=6,
        n_random=6,
    )
    vectors = np.random.default_rng(0).normal(size=(60, 3, 8))
    shipped |= {d.key for d in self_similarity_differences(geometry, vectors, np.arange(60))}
    shipped |= {d.key for d in reach_differences("bilm", np.array([[np.nan, 2.0, 3.0]] * 5))}
    for claim in CLAIMS:
        for test in claim.tests:
            if isinstance(test.source, Measured):
                assert test.source.key in shipped


def test_differences_of_layers_by_hand():
    distances = np.array([[np.nan, 2.0, 3.0], [np.nan, 2.0, 5.0]])
    (found,) = reach_differences("bilm", distances)
    assert found.key == "reach.bilm.2-1"
    assert (found.mean, found.low, found.high) == (2.0, 1.0, 3.0)
