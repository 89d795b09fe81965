"""Claims about ELMo, and a verdict on each by rule; ``claim_list`` holds them.

The rule: a test is a difference with a claimed sign and a 95 % interval from a paired bootstrap. It
is *supported here* if the whole interval has the claimed sign, *contradicted here* if it has the
other, else *undecided*. A claim with several tests is supported if all of them are, contradicted
if one is, else undecided. Our models are small: a verdict is about them, and "here" is part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from elmo.results import Difference

SUPPORTED = "supported here"
CONTRADICTED = "contradicted here"
UNDECIDED = "undecided"
UNTESTABLE = "cannot be tested here"
UNMEASURED = "not measured yet"
EXACT = "exact in the code"


@dataclass(frozen=True)
class Contrast:
    """A signed sum of probe scores, averaged over tasks: sum of sign * score(encoder, what)."""

    key: str
    tasks: tuple[str, ...]
    terms: tuple[tuple[int, str, str], ...]
    metric: str = "score"


@dataclass(frozen=True)
class Gravity:
    """Mean center of gravity of the second tasks' mixes minus that of the first tasks'."""

    key: str
    lower: tuple[str, ...]
    higher: tuple[str, ...]
    encoder: str
    representation: str


@dataclass(frozen=True)
class Measured:
    """A difference that another measurement ships under this name."""

    key: str


@dataclass(frozen=True)
class Comparison:
    """One comparison: the claim holds if the difference is positive.

    paper: the same difference in the paper, in the same unit, where it has one.
    """

    what: str
    source: Contrast | Gravity | Measured
    paper: float | None = None


@dataclass(frozen=True)
class Claim:
    """One sentence of the texts, and how it stands.

    claim: in our words; paper: the paper's number or finding; source: where it says so.
    tests: what decides. view: the tab where one can look. note: a textbook trap or a caution.
    status: ``EXACT`` or ``UNTESTABLE`` where nothing is to be decided, with ``reason``.
    """

    key: str
    claim: str
    paper: str
    source: str
    tests: tuple[Comparison, ...] = ()
    view: str = "Tasks"
    note: str = ""
    status: str = ""
    reason: str = ""


@dataclass(frozen=True)
class ComparisonResult:
    what: str
    difference: Difference | None
    verdict: str


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    tests: tuple[ComparisonResult, ...]
    verdict: str


def verdict(difference: Difference | None) -> str:
    """On one difference whose claimed sign is plus."""
    if difference is None:
        return UNMEASURED
    if difference.low > 0:
        return SUPPORTED
    if difference.high < 0:
        return CONTRADICTED
    return UNDECIDED


def combine_verdicts(verdicts: Iterable[str]) -> str:
    """Of a claim that says all of its tests at once. Raises ``ValueError`` without any."""
    verdicts = list(verdicts)
    if not verdicts:
        raise ValueError("a claim needs at least one test to be decided")
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    if UNMEASURED in verdicts:
        return UNMEASURED
    return SUPPORTED if set(verdicts) == {SUPPORTED} else UNDECIDED


def judge(claims: Iterable[Claim], differences: Mapping[str, Difference]) -> list[ClaimResult]:
    """Every claim with its tests' differences, looked up by key, and its verdict."""
    results = []
    for claim in claims:
        tests = []
        for test in claim.tests:
            difference = differences.get(test.source.key)
            tests.append(ComparisonResult(test.what, difference, verdict(difference)))
        overall = claim.status or combine_verdicts(t.verdict for t in tests)
        results.append(ClaimResult(claim, tuple(tests), overall))
    return results


def contrasts(claims: Iterable[Claim]) -> list[Contrast | Gravity]:
    """What the probe table must ship differences for."""
    sources = [test.source for claim in claims for test in claim.tests]
    return [s for s in sources if not isinstance(s, Measured)]
