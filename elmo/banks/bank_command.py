"""``python -m elmo bank``: build banks of any size on disk, check them, search in them."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from elmo.banks.bank import TokenBank
from elmo.banks.bank_build import Progress, bank_folder, build_files, default_cache
from elmo.banks.bank_files import check_vectors, open_bank
from elmo.banks.mixing import METRICS
from elmo.banks.sources import Source, files_source, wordnet_source
from elmo.model_arguments import add_model_arguments, encoder_from
from elmo.scalar_mix import softmax
from elmo.text import tokenize

SECONDS_PER_LINE = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="encode text files or WordNet's examples")
    build.add_argument("texts", nargs="*", type=Path, metavar="TEXT", help=".txt .csv .tsv .jsonl")
    build.add_argument("--wordnet", action="store_true", help="WordNet's example sentences")
    build.add_argument("--wordnet-folder", type=Path, help="where its data.noun is")
    build.add_argument("--out", type=Path, help="folder of the bank (default: in the cache)")
    build.add_argument("--pretokenized", action="store_true", help="tokens are between blanks")
    build.add_argument("--json", action="store_true", help="progress as JSON, a line each")
    add_model_arguments(build)

    info = actions.add_parser("info", help="what a bank holds")
    info.add_argument("bank", type=Path)
    check = actions.add_parser("check", help="compare every byte of a bank with its checksums")
    check.add_argument("bank", type=Path)

    search = actions.add_parser("search", help="neighbors of a token under a mix of layers")
    search.add_argument("bank", type=Path)
    search.add_argument("sentence", help="a sentence with the token in it")
    search.add_argument("token", help="the token itself, or its position from 0")
    search.add_argument("--mix", type=float, nargs="+", help="raw weights w (default: equal)")
    search.add_argument("-k", type=int, default=20)
    search.add_argument("--metric", choices=METRICS, default="cosine")
    search.add_argument("--unit", action="store_true", help="each layer scaled to length 1 first")
    search.add_argument("--keep-mean", action="store_true", help="do not remove the bank's mean")
    search.add_argument("--same-word", choices=("any", "only", "exclude"), default="any")
    add_model_arguments(search)


def run(options: argparse.Namespace) -> int:
    return {"build": _build, "info": _info, "check": _check, "search": _search}[options.action](
        options
    )


def _build(options: argparse.Namespace) -> int:
    if options.wordnet == bool(options.texts):
        raise ValueError("give text files, or --wordnet")
    source: Source = (
        wordnet_source(options.wordnet_folder)
        if options.wordnet
        else files_source(options.texts, options.pretokenized)
    )
    encoder = encoder_from(options)
    folder = options.out or bank_folder(default_cache(), encoder, source)
    report = _Report(options.json)
    build_files(folder, source, encoder, report)
    print(folder)
    return 0


class _Report:
    """Prints progress now and then, to stderr, where it does not mix with the result."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self._last < SECONDS_PER_LINE:
            return
        self._last = time.monotonic()
        left = progress.seconds_left
        if self.as_json:
            line = json.dumps(
                {
                    "sentences": progress.n_sentences,
                    "rows": progress.n_rows,
                    "total": progress.total,
                    "seconds_left": left and round(left),
                }
            )
        else:
            total = f" of about {progress.total:,}" if progress.total else ""
            eta = f", {left:.0f} s left" if left is not None else ""
            line = f"{progress.n_sentences:,}{total} sentences, {progress.n_rows:,} tokens{eta}"
        print(line, file=sys.stderr, flush=True)


def _info(options: argparse.Namespace) -> int:
    start = time.perf_counter()
    bank = open_bank(options.bank)
    seconds = time.perf_counter() - start
    about = json.loads((options.bank / "bank.json").read_text("utf-8"))
    n_tagged = int((bank.sense_ids >= 0).sum())
    print(f"text            {about['name']}, {len(bank.sentences):,} sentences")
    print(f"left out        {about['n_skipped']:,}, longer than the encoder reads")
    print(f"encoder         {about['encoder']}")
    print(f"tokens          {len(bank):,} of {len(bank.words):,} words")
    print(f"layers, width   {bank.n_layers}, {bank.vectors.shape[2]}")
    print(f"known senses    {n_tagged:,} tokens")
    print(f"opened in       {seconds:.2f} s")
    return 0


def _check(options: argparse.Namespace) -> int:
    open_bank(options.bank)
    check_vectors(options.bank)
    print("whole")
    return 0


def _search(options: argparse.Namespace) -> int:
    bank, encoder = open_bank(options.bank), encoder_from(options)
    tokens = tokenize(options.sentence)
    if options.token in tokens:
        position = tokens.index(options.token)
    elif options.token.isdigit() and int(options.token) < len(tokens):
        position = int(options.token)
    else:
        raise ValueError(f"there is no token {options.token!r} in {tokens}")
    vectors = encoder.encode([tokens])[0].hidden[:, position]
    s = softmax(options.mix or [0.0] * bank.n_layers)
    rows = bank.select(tokens[position], options.same_word)
    comparison = bank.compare(vectors, unit=options.unit, centered=not options.keep_mean, rows=rows)
    found = comparison.nearest(s, options.k, options.metric)
    for row, score in zip(found.rows.tolist(), found.scores.tolist(), strict=True):
        print(f"{score:8.4f}  {_marked(bank, row)}")
    return 0


def _marked(bank: TokenBank, row: int) -> str:
    sentence = list(bank.sentences[bank.sentence[row]])
    at = int(bank.position[row])
    sentence[at] = f"[{sentence[at]}]"
    tag = bank.tag_of(row)
    gloss = f"   ({tag.gloss or tag.sense})" if tag is not None and tag.sense else ""
    return " ".join(sentence) + gloss
