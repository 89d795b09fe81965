"""``python -m elmo cloze``: who can know, by where the evidence lies.

Every predictor scores the same gaps. Scores are kept a thousand gaps at a time, so an
interrupted run goes on where it stopped; the table follows from them and the seed alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import torch

from elmo.both_ways.cloze import (
    PREDICTORS,
    Exponents,
    gap_log_probabilities,
    log_unigram,
    predictor_log_probabilities,
    rank_of,
    tune_exponents,
)
from elmo.both_ways.cloze_items import (
    Item,
    own_sentences,
    random_items,
    read_agreement,
    read_minimal_pairs,
    read_own_gaps,
)
from elmo.checkpoint import file_digest
from elmo.encoders import Encoder, load_encoder
from elmo.results import ClozeRow, ClozeTable
from elmo.text import UNK

log = logging.getLogger(__name__)
N_BOOTSTRAP = 2_000
MIN_EACH_WAY = 5  # lines of a pair of words, either way round, to be balanced by itself
PART = 1_000
N_FOUND = 40  # found gaps of each label that are kept
ONE_ANSWER = "accuracy, one answer always right"  # a favourite without evidence may win it
ROWS = 100  # gaps at a time: each costs a few rows of the vocabulary's size


@dataclass(frozen=True)
class Scores:
    """Of n items under P predictors: natural log-probability of the word (n, P), its rank
    (n, P), and whether it beats its rivals (n, P): 1, 0, or 0.5 for a tie."""

    log_probability: np.ndarray
    rank: np.ndarray
    correct: np.ndarray


def score(encoder: Encoder, items: Sequence[Item], exponents: Exponents | None) -> Scores:
    """Raises ``KeyError`` for a word outside the vocabulary."""
    ids = encoder.checkpoint.word_ids
    names = PREDICTORS[encoder.kind]
    result = Scores(*(np.empty((len(items), len(names)), np.float32) for _ in range(3)))
    order = sorted(range(len(items)), key=lambda i: len(items[i].tokens))
    for start in range(0, len(order), ROWS):
        rows = order[start : start + ROWS]
        part = [items[i] for i in rows]
        gold = torch.tensor([ids[item.gold] for item in part])
        sentences, positions = [item.tokens for item in part], [item.position for item in part]
        logs = predictor_log_probabilities(encoder, sentences, positions, exponents)
        for p, name in enumerate(names):
            own = logs[name].gather(1, gold[:, None])[:, 0]
            result.log_probability[rows, p] = own
            result.rank[rows, p] = rank_of(logs[name], gold, ids[UNK])
            for i, (row, item) in enumerate(zip(rows, part, strict=True)):
                rivals = logs[name][i, [ids[word] for word in item.alternatives]]
                best = float(rivals.max()) if len(rivals) else -np.inf
                result.correct[row, p] = (own[i] > best) + 0.5 * (own[i] == best)
    return result


def score_in_parts(
    encoder: Encoder, items: Sequence[Item], exponents: Exponents | None, work: Path
) -> Scores:
    """``score``, kept on disk part by part under a name that stands for model and items."""
    weights = file_digest(encoder.checkpoint.folder)
    parts = []
    for start in range(0, len(items), PART):
        part = items[start : start + PART]
        key = repr((weights, exponents, part)).encode()
        file = work / f"{hashlib.blake2b(key, digest_size=12).hexdigest()}.npz"
        if not file.exists():
            made = score(encoder, part, exponents)
            partial = file.with_suffix(".partial.npz")
            np.savez(partial, **dataclasses.asdict(made))
            partial.replace(file)
            log.info("%s: %d of %d", encoder.name, start + len(part), len(items))
        with np.load(file) as arrays:
            parts.append(Scores(**{name: arrays[name] for name in arrays.files}))
    names = [field.name for field in dataclasses.fields(Scores)]
    return Scores(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def balanced_strata(items: Sequence[Item]) -> list[tuple[float, np.ndarray]]:
    """Strata (weight, item numbers) whose weighted means add up to balanced accuracy.

    A predictor that has its own favourite of two words and no evidence is right as often as that
    favourite is the answer. So each pair of words is balanced by itself: the mean over items
    where the one is right counts as much as that where the other is. Pairs met less than 5
    times either way are pooled by phenomenon, and there the two sides are "the word is the
    longer one" and its contrary: within agreement that is singular against plural. Where one side
    is always right nothing can be balanced: those items are left out.
    """
    pairs: Counter = Counter()
    for item in items:
        pairs[_pair(item), item.gold.lower()] += 1
    groups: dict = defaultdict(lambda: defaultdict(list))
    for i, item in enumerate(items):
        pair, gold = _pair(item), item.gold.lower()
        alone = all(pairs[pair, word] >= MIN_EACH_WAY for word in pair[1]) and len(pair[1]) == 2
        side = gold if alone else len(gold) > len(item.alternatives[0])
        groups[pair if alone else item.kind][side].append(i)
    kept = [list(sides.values()) for sides in groups.values() if len(sides) > 1]
    n_kept = sum(len(rows) for sides in kept for rows in sides)
    return [
        (sum(map(len, sides)) / n_kept / len(sides), np.array(rows))
        for sides in kept
        for rows in sides
    ]


def _pair(item: Item) -> tuple[str, frozenset[str]]:
    return item.kind, frozenset({item.gold.lower(), item.alternatives[0].lower()})


def make_row(
    data: str,
    evidence: str,
    kind: str,
    score_name: str,
    values: np.ndarray,
    strata: Sequence[tuple[float, np.ndarray]],
    n_left_out: int,
    seed: int,
) -> ClozeRow:
    """values (n, P) to a row: weighted means over strata, with paired bootstrap intervals, items
    drawn anew within each stratum and the same ones for all predictors."""
    rng = np.random.default_rng(seed)
    mean = np.zeros(values.shape[1])
    drawn = np.zeros((N_BOOTSTRAP, values.shape[1]))
    for weight, rows in strata:
        n = len(rows)
        counts = rng.multinomial(n, np.full(n, 1 / n), size=N_BOOTSTRAP)
        mean += weight * values[rows].mean(axis=0)
        drawn += weight * (counts @ values[rows].astype(np.float64)) / n
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    pairs = drawn[:, :, None] - drawn[:, None, :]
    pair_low, pair_high = np.percentile(pairs, (2.5, 97.5), axis=0)
    return ClozeRow(
        data=data,
        evidence=evidence,
        kind=kind,
        score=score_name,
        n=sum(len(rows) for _, rows in strata),
        n_left_out=n_left_out,
        values=mean,
        low=low,
        high=high,
        difference=mean[:, None] - mean[None, :],
        difference_low=pair_low,
        difference_high=pair_high,
    )


def table_rows(
    data: str, items: Sequence[Item], scores: Scores, left_out: Sequence[Item], seed: int
) -> list[ClozeRow]:
    """All rows of one source: by evidence, and by phenomenon within it."""
    rows = []
    for evidence in dict.fromkeys(item.evidence for item in items):
        kinds = dict.fromkeys(item.kind for item in items if item.evidence == evidence)
        for kind in ["all", *kinds] if len(kinds) > 1 else ["all"]:

            def chosen(item: Item, evidence: str = evidence, kind: str = kind) -> bool:
                return item.evidence == evidence and kind in ("all", item.kind)

            index = np.array([i for i, item in enumerate(items) if chosen(item)])
            part = [items[i] for i in index]
            everything = [(1.0, np.arange(len(index)))]
            measures = {"accuracy against both favourites": (scores.correct, everything)}
            if evidence != "both":
                balanced = balanced_strata(part)
                measures = {ONE_ANSWER: (scores.correct, everything)}
                if balanced:
                    measures = {"balanced accuracy": (scores.correct, balanced)}
            if evidence == "anywhere":
                measures["log-probability"] = (scores.log_probability, everything)
                measures["top-1 accuracy"] = (scores.rank <= 1, everything)
                measures["top-10 accuracy"] = (scores.rank <= 10, everything)
            n_left_out = sum(map(chosen, left_out))
            rows += [
                make_row(data, evidence, kind, name, values[index], strata, n_left_out, seed)
                for name, (values, strata) in measures.items()
            ]
    return rows


def known_items(items: Sequence[Item], words: dict[str, int]) -> tuple[list[Item], list[Item]]:
    """Items whose words are all in the vocabulary, and the others."""
    known, others = [], []
    for item in items:
        (known if {item.gold, *item.alternatives} <= words.keys() else others).append(item)
    return known, others


def tune(encoder: Encoder, items: Sequence[Item]) -> Exponents:
    """The product's exponents from validation gaps."""
    ids, batches = encoder.checkpoint.word_ids, []
    for start in range(0, len(items), ROWS):
        part = items[start : start + ROWS]
        logs = gap_log_probabilities(
            encoder, [item.tokens for item in part], [item.position for item in part]
        )
        words = torch.tensor([ids[item.gold] for item in part])
        batches.append((logs["forward"], logs["backward"], words))
    found = tune_exponents(batches, log_unigram(encoder))
    return Exponents(*(round(value, 3) for value in astuple(found)))


def write_table(table: ClozeTable, path: Path) -> None:
    def plain(value):
        return np.round(value, 5).tolist() if isinstance(value, np.ndarray) else value

    rows = [
        {field.name: plain(getattr(row, field.name)) for field in dataclasses.fields(row)}
        for row in table.rows
    ]
    value = {
        "version": 1,
        "seed": table.seed,
        "predictors": table.predictors,
        "exponents": table.exponents,
        "rows": rows,
    }
    path.write_text(json.dumps(value) + "\n", encoding="utf-8")


def read_table(path: str | Path) -> ClozeTable:
    """The table as ``run`` wrote it."""
    value = json.loads(Path(path).read_text("utf-8"))
    rows = [
        ClozeRow(**{k: np.array(v) if isinstance(v, list) else v for k, v in row.items()})
        for row in value["rows"]
    ]
    return ClozeTable(
        predictors=tuple(map(tuple, value["predictors"])),
        exponents={name: tuple(three) for name, three in value["exponents"].items()},
        rows=tuple(rows),
        seed=value["seed"],
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--probes", type=Path, metavar="FOLDER", help="labelled probe data")
    parser.add_argument("--test", type=Path, metavar="FILE", help="tokenized text, one a line")
    parser.add_argument("--valid", type=Path, metavar="FILE", help="to tune the exponents on")
    parser.add_argument("--gaps", type=Path, default=Path("assets/gaps.json"), metavar="JSON")
    parser.add_argument("--out", type=Path, default=Path("assets/cloze"), metavar="FOLDER")
    parser.add_argument("--work", type=Path, default=Path("runs/cloze"), metavar="FOLDER")
    parser.add_argument("--n-gaps", type=int, default=5_000, help="random gaps of the test file")
    parser.add_argument("--n-valid", type=int, default=1_000, help="gaps for the exponents")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only-gaps", action="store_true", help="check the gap examples, leave the table"
    )
    parser.add_argument(
        "--find", nargs="+", type=Path, metavar="JSON", help="example files to find more gaps in"
    )


def run(options: argparse.Namespace) -> None:
    from elmo.both_ways.gap_check import check_gaps, clearest, find_gaps, write_check

    encoders = [load_encoder(folder) for folder in options.models]
    vocabulary = encoders[0].checkpoint.vocabulary
    for encoder in encoders:
        if encoder.checkpoint.vocabulary != vocabulary:
            raise ValueError(f"{encoder.name} has another vocabulary than {encoders[0].name}")
    if len({encoder.name for encoder in encoders}) < len(encoders):
        names = ", ".join(encoder.name for encoder in encoders)
        raise ValueError(f"two models have one name ({names}): their cards must tell them apart")
    options.out.mkdir(parents=True, exist_ok=True)
    options.work.mkdir(parents=True, exist_ok=True)
    table_file = options.out / "table.json"
    if options.only_gaps:
        known = read_table(table_file).exponents if table_file.exists() else {}
        exponents = {name: Exponents(*three) for name, three in known.items()}
    else:
        table = _make_table(options, encoders, vocabulary)
        write_table(table, table_file)
        exponents = {name: Exponents(*three) for name, three in table.exponents.items()}
    if options.gaps.exists():
        checked = check_gaps(encoders, options.gaps, exponents)
        write_check(checked, options.out / "gaps.json")
    if options.find:
        found = find_gaps(encoders, own_sentences(options.find), exponents)
        write_check(clearest(found, N_FOUND), options.out / "found.json")


def _make_table(
    options: argparse.Namespace, encoders: list[Encoder], vocabulary: list[str]
) -> ClozeTable:
    if options.probes is None or options.test is None:
        raise ValueError("the table needs --probes and --test (--only-gaps does not)")
    valid = options.valid or options.test.with_name(options.test.name.replace("test", "valid"))
    if not valid.is_file():
        raise FileNotFoundError(f"no text to tune the exponents on: {valid}; give --valid")
    tuning = random_items(valid, vocabulary, options.n_valid, options.seed + 1)
    exponents = {e.name: tune(e, tuning) for e in encoders if e.halves}
    log.info("exponents: %s", exponents)
    sources = {
        "cloze_agreement": read_agreement(options.probes / "cloze_agreement"),
        "minpairs_blimp": read_minimal_pairs(options.probes / "minpairs_blimp"),
        "test text": random_items(options.test, vocabulary, options.n_gaps, options.seed),
    }
    if options.gaps.exists():
        sources["own examples"] = read_own_gaps(options.gaps)
    rows: list[ClozeRow] = []
    for data, items in sources.items():
        items, left_out = known_items(items, encoders[0].checkpoint.word_ids)
        scores = [score_in_parts(e, items, exponents.get(e.name), options.work) for e in encoders]
        joined = Scores(
            *(
                np.concatenate([getattr(s, field.name) for s in scores], axis=1)
                for field in dataclasses.fields(Scores)
            )
        )
        rows += table_rows(data, items, joined, left_out, options.seed)
    for row in rows:
        if row.kind == "all":
            log.info(
                "%s, %s, %s: %s (n = %d)",
                row.data,
                row.evidence,
                row.score,
                row.values.round(3),
                row.n,
            )
    return ClozeTable(
        predictors=tuple((e.name, p) for e in encoders for p in PREDICTORS[e.kind]),
        exponents={name: astuple(three) for name, three in exponents.items()},
        rows=tuple(rows),
        seed=options.seed,
    )
