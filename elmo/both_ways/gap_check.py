"""Do our gap examples hold? Each is tried on the models it is meant to show.

An example holds if neither side's favourite is right but the sides together are: *additive* if
the product of the two language models puts the answer first, *interacting* if it does not and
the joint encoder does.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmo.both_ways.cloze import PREDICTORS, Exponents, fill_gap
from elmo.both_ways.cloze_items import Item, read_own_gaps
from elmo.both_ways.cloze_table import score
from elmo.encoders import Encoder
from elmo.results import GapGuess

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckedGap:
    """One example and what each predictor makes of it.

    measured: ``"additive"``, ``"interacting"``, ``"one side knows"`` (a favourite of one side is
        the answer already), ``"nobody knows"`` or ``"unknown word"``.
    favourites, ranks, probabilities: by "encoder/predictor", the likeliest word, the answer's
        rank and its probability.
    """

    text: str
    answer: str
    label: str
    measured: str
    favourites: dict[str, str]
    ranks: dict[str, int | None]
    probabilities: dict[str, float | None]

    @property
    def holds(self) -> bool:
        """Whether the two sides must be combined, whichever way."""
        return self.measured in ("additive", "interacting")


def judge(guesses: Sequence[GapGuess]) -> str:
    """What one example measures, from all predictors' guesses."""
    if guesses[0].rank is None:
        return "unknown word"
    first = {
        name: [g.rank == 1 for g in guesses if g.predictor in names]
        for name, names in {
            "side": ("forward", "backward"),
            "product": ("product",),
            "joint": ("joint",),
        }.items()
    }
    if any(first["side"]):
        return "one side knows"
    if any(first["product"]):
        return "additive"
    return "interacting" if any(first["joint"]) else "nobody knows"


def check_gaps(
    encoders: Sequence[Encoder], path: Path, exponents: Mapping[str, Exponents]
) -> list[CheckedGap]:
    """Every example of the file under every predictor of the encoders."""
    return [_check(encoders, item, exponents) for item in read_own_gaps(path)]


def find_gaps(
    encoders: Sequence[Encoder],
    sentences: Sequence[Sequence[str]],
    exponents: Mapping[str, Exponents],
) -> list[CheckedGap]:
    """Every gap of the sentences that holds, at a plain lower-case word; labels are as measured.

    Sentences with a word outside the vocabulary are left out.
    """
    words = encoders[0].checkpoint.word_ids
    items = [
        Item(tuple(tokens), i, token, (), "both", "")
        for tokens in sentences
        if all(token in words for token in tokens)
        for i, token in enumerate(tokens)
        if token.isalpha() and token.islower()
    ]
    side, together = np.zeros(len(items), bool), np.zeros(len(items), bool)
    for encoder in encoders:
        first = score(encoder, items, exponents.get(encoder.name)).rank == 1
        for p, name in enumerate(PREDICTORS[encoder.kind]):
            (side if name in ("forward", "backward") else together)[:] |= first[:, p]
    found = [
        _check(encoders, items[i], exponents) for i in np.flatnonzero(together & ~side).tolist()
    ]
    return [dataclasses.replace(gap, label=gap.measured) for gap in found if gap.holds]


def clearest(gaps: Sequence[CheckedGap], n_each: int) -> list[CheckedGap]:
    """Up to ``n_each`` of a label, those first in which the sides' meeting matters most.

    That is, in which the predictor that knows gives the answer the most probability beyond any
    that does not: sides for additive gaps, sides and products for interacting ones. One gap a
    sentence and two an answer at most, for variety.
    """
    chosen: list[CheckedGap] = []
    for label in ("additive", "interacting"):
        sentences, answers = set(), Counter()
        for gap in sorted((g for g in gaps if g.label == label), key=_margin, reverse=True):
            sentence = gap.text.replace("[gap]", gap.answer)
            if sentence in sentences or answers[gap.answer] == 2:
                continue
            sentences.add(sentence)
            answers[gap.answer] += 1
            chosen.append(gap)
            if answers.total() == n_each:
                break
    return chosen


def _margin(gap: CheckedGap) -> float:
    knows = "product" if gap.label == "additive" else "joint"
    knowing, others = 0.0, 0.0
    for name, p in gap.probabilities.items():
        predictor = name.split("/")[1]
        if predictor == knows:
            knowing = max(knowing, p)
        elif predictor != "joint":
            others = max(others, p)
    return knowing - others


def _check(
    encoders: Sequence[Encoder], item: Item, exponents: Mapping[str, Exponents]
) -> CheckedGap:
    guesses = fill_gap(encoders, item.tokens, item.position, exponents, k=1)
    names = [f"{g.encoder}/{g.predictor}" for g in guesses]
    before, after = item.tokens[: item.position], item.tokens[item.position + 1 :]
    return CheckedGap(
        text=" ".join((*before, "[gap]", *after)),
        answer=item.gold,
        label=item.kind,
        measured=judge(guesses),
        favourites={name: g.words[0] for name, g in zip(names, guesses, strict=True)},
        ranks={name: g.rank for name, g in zip(names, guesses, strict=True)},
        probabilities={
            name: None if g.probability is None else round(g.probability, 5)
            for name, g in zip(names, guesses, strict=True)
        },
    )


def write_check(checked: Sequence[CheckedGap], path: Path) -> None:
    """All examples as JSON, and a summary in the log."""
    counts = Counter((gap.label, gap.measured) for gap in checked)
    for (label, measured), n in sorted(counts.items()):
        log.info("labelled %s, measured %s: %d", label, measured, n)
    log.info("%d of %d examples hold", sum(gap.holds for gap in checked), len(checked))
    gaps = [{**dataclasses.asdict(gap), "holds": gap.holds} for gap in checked]
    text = json.dumps({"version": 1, "gaps": gaps}, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
