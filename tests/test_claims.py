"""Verdicts follow the rule, and nothing else."""

import pytest

from elmo.claim_list import ALL_TASKS, CLAIMS
from elmo.claims import (
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
from elmo.probe_tasks import TASKS
from elmo.results import Difference


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
