"""``python -m elmo probe``: which layers tasks want, measured on labeled text.

Every task under every encoder with every seed is one *cell*. Encodings and cells are kept in a
cache outside of the project, each written whole or not at all, so that an interrupted run goes on
where it was; the table follows from the cells alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import logging
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from elmo.probing.probe_features import UNTRAINED, EncoderSource, cached_spans, default_cache
from elmo.probing.probe_tasks import (
    DATASETS,
    SPLITS,
    TASKS,
    LabeledText,
    has_split,
    read_dataset,
    split_file,
)

log = logging.getLogger(__name__)

PROTOCOL = 1  # raise it whenever the same settings would give other numbers
NO_ENCODER = "none"
SENSE_TASK = "word_sense"
POOL = {"pos_dep_ewt": 4_000, "senses_semcor": 4_000}  # training lines to draw from; others: all
DEV_LINES = 800


@dataclass(frozen=True)
class Settings:
    """What numbers depend on, besides the weights. ``limit`` cuts every file, for a quick look."""

    n_train: int = 12_000
    mix_steps: int = 600
    limit: int | None = None
    protocol: int = PROTOCOL

    @property
    def digest(self) -> str:
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    def lines(self, dataset: str, split: str) -> int | None:
        """How many lines of a file are read; ``None`` for all."""
        most = {"train": POOL.get(dataset), "dev": DEV_LINES}.get(split)
        limits = [n for n in (most, self.limit) if n is not None]
        return min(limits, default=None)


@dataclass(frozen=True)
class Plan:
    """Where things are. ``vocabulary``: a file of the words that encoders were trained on."""

    tasks: Path
    cache: Path
    settings: Settings
    seeds: tuple[int, ...]
    vocabulary: Path | None

    def text(self, dataset: str, split: str) -> LabeledText:
        return read_dataset(self.tasks, dataset, split, self.settings.lines(dataset, split))

    def table_name(self, dataset: str, split: str) -> str:
        """Of its encodings: another one wherever the file differs."""
        lines = self.settings.lines(dataset, split) or "all"
        return f"{dataset}-{split}-{lines}-{_digest(split_file(self.tasks, dataset, split))}"

    def folder(self, task: str, encoder_key: str) -> Path:
        """Of its cells: another one wherever settings, weights, data or vocabulary differ."""
        dataset = TASKS[task][0]
        files = [split_file(self.tasks, dataset, split) for split in SPLITS]
        data = _digest(*(file for file in files if file.is_file()), self.vocabulary)
        return self.cache / "cells" / self.settings.digest / f"{task}-{data}" / encoder_key


def encode_job(plan: Plan, dataset: str, source: EncoderSource) -> str:
    """Makes sure that a data set's encodings are in the cache."""
    for split in SPLITS:
        if has_split(plan.tasks, dataset, split):
            text = plan.text(dataset, split)
            cached_spans(source, text, plan.table_name(dataset, split), plan.cache)
    return f"encoded {dataset} with {source.name}"


def probe_job(plan: Plan, task: str, source: EncoderSource | None) -> str:
    """All seeds of one task under one encoder; without one, its baselines."""
    from elmo.probing.probe_cells import Split, choose_alphas, run_baselines, run_cell
    from elmo.probing.probe_report import save_cell
    from elmo.probing.sense_neighbors import run_sense_cell

    dataset, n_train = TASKS[task][0], plan.settings.n_train
    folder = plan.folder(task, source.key if source else NO_ENCODER)
    missing = [seed for seed in plan.seeds if not (folder / f"{seed}.npz").is_file()]
    vocabulary = _words(plan.vocabulary)

    def split(name: str) -> Split:
        text = plan.text(dataset, name)
        return Split(text, cached_spans(source, text, plan.table_name(dataset, name), plan.cache))

    if missing and source is None:
        texts = plan.text(dataset, "train"), plan.text(dataset, "test")
        run: Callable = partial(run_baselines, task, *texts, n_train=n_train, vocabulary=vocabulary)
    elif missing:
        train, test = split("train"), split("test")
        if task == SENSE_TASK:
            run = partial(run_sense_cell, task, train, test, n_train=n_train)
        else:
            alphas = _kept(
                folder / "alphas.json", lambda: choose_alphas(task, train, split("dev"), n_train)
            )
            run = partial(
                run_cell,
                *(task, train, test, alphas),
                n_train=n_train,
                vocabulary=vocabulary,
                mix_steps=plan.settings.mix_steps,
            )
    for seed in missing:
        save_cell(folder / f"{seed}.npz", run(seed=seed))
    return f"probed {task} with {source.name if source else 'no encoder'}, {len(missing)} seeds"


@functools.cache
def _digest(*files: Path | None) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for file in files:
        content = b"" if file is None else file.read_bytes()
        digest.update(b"%d:" % len(content) + content)
    return digest.hexdigest()


def _words(path: Path | None) -> frozenset[str] | None:
    return None if path is None else frozenset(path.read_text(encoding="utf-8").split("\n"))


def _kept(path: Path, compute: Callable[[], dict]) -> dict:
    """A small JSON file, computed once."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(compute()), encoding="utf-8")
        temporary.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def run_jobs(jobs: Sequence[Callable[[], str]], n_workers: int) -> None:
    """Runs jobs in processes of one thread each: two threads a process would wait on each other.

    The first failure stops the rest and is raised.
    """
    started = time.monotonic()
    if n_workers <= 1:
        for i, job in enumerate(jobs, 1):
            _report(i, len(jobs), started, _timed(job))
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_workers, mp_context=context, initializer=_one_thread) as pool:
        futures = [pool.submit(_timed, job) for job in jobs]
        try:
            for i, future in enumerate(as_completed(futures), 1):
                _report(i, len(jobs), started, future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _timed(job: Callable[[], str]) -> str:
    """The job's line with the processor time it took, which other work does not lengthen."""
    before = time.process_time()
    return f"{job()}, {time.process_time() - before:.0f} s of processor"


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _report(i: int, n: int, started: float, line: str) -> None:
    minutes = (time.monotonic() - started) / 60
    log.info("%3d/%d  %5.1f min  %s", i, n, minutes, line)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tasks", type=Path, required=True, metavar="FOLDER", help="labeled probe data")
    add("--models", type=Path, nargs="*", metavar="FOLDER", help="default: all of assets/models")
    add("--out", type=Path, default=Path("assets/probes"), metavar="FOLDER")
    add("--cache", type=Path, default=default_cache(), metavar="FOLDER")
    add("--only", nargs="+", choices=tuple(TASKS), metavar="TASK", help=", ".join(TASKS))
    add("--seeds", type=int, default=5, help="how many")
    add("--n-train", type=int, default=Settings.n_train, help="training examples of a probe")
    add("--mix-steps", type=int, default=Settings.mix_steps, help="steps to learn a mix in")
    add("--limit", type=int, help="lines of each file, for a quick look")
    add("--workers", type=int, default=2)
    add("--write", action="store_true", help="put scores by layer on the models' card.json")
    add("--no-untrained", action="store_true", help="leave the untrained biLM out")
    add("--no-geometry", action="store_true", help="leave self-similarity and reach out")


def run(options: argparse.Namespace) -> int:
    import torch

    from elmo.probing.claim_list import CLAIMS
    from elmo.probing.claims import contrasts
    from elmo.probing.geometry import geometry_job, write_geometry
    from elmo.probing.probe_report import build_table, card_scores, load_cell, write_table

    torch.set_num_threads(1)
    folders = options.models
    if folders is None:
        folders = sorted(p.parent for p in Path("assets/models").glob("*/card.json"))
    sources = [EncoderSource(_card(folder).get("name", folder.name), folder) for folder in folders]
    if not options.no_untrained:
        sources.append(EncoderSource(UNTRAINED))
    if len({source.name for source in sources}) < len(sources):
        raise ValueError("two models have one name: their cards must tell them apart")
    if not sources:
        raise ValueError("no encoder: name model folders with --models")
    tasks = tuple(options.only or TASKS)
    vocabulary = next((f / "vocabulary.txt" for f in folders), None)
    settings = Settings(options.n_train, options.mix_steps, options.limit)
    plan = Plan(options.tasks, options.cache, settings, tuple(range(options.seeds)), vocabulary)
    datasets = [d for d in DATASETS if any(TASKS[task][0] == d for task in tasks)]

    started = time.monotonic()
    run_jobs(
        [partial(encode_job, plan, d, source) for d in datasets for source in sources],
        options.workers,
    )
    probes = [partial(probe_job, plan, task, source) for task in tasks for source in sources]
    probes += [partial(probe_job, plan, task, None) for task in tasks]
    run_jobs(probes, options.workers)
    keys = {source.name: source.key for source in sources} | {NO_ENCODER: NO_ENCODER}
    cells = {
        (task, name): [load_cell(plan.folder(task, key) / f"{seed}.npz") for seed in plan.seeds]
        for task in tasks
        for name, key in keys.items()
    }
    about = {
        "command": _command(options),
        "date": datetime.now(UTC).date().isoformat(),
        "settings": dataclasses.asdict(settings),
        "seeds": list(plan.seeds),
        "minutes": round((time.monotonic() - started) / 60, 1),
        "tasks": {
            t: {"data": TASKS[t][0], "what": TASKS[t][1], "kind": TASKS[t][2]} for t in tasks
        },
        "encoders": keys,
        "max_tokens": "sentences longer than 64 tokens are left out for all encoders",
    }
    table = build_table(cells, contrasts(CLAIMS), about)
    write_table(options.out / "table.json", table)
    log.info("wrote %s", options.out / "table.json")
    for source in sources if options.write else ():
        if source.folder is not None:
            values = _card(source.folder) | {"probes": card_scores(table, source.name)}
            text = json.dumps(values, indent=1, ensure_ascii=False) + "\n"
            (source.folder / "card.json").write_text(text, encoding="utf-8")
    if not options.no_geometry:
        run_jobs([partial(geometry_job, plan, source) for source in sources], options.workers)
        write_geometry(options.out / "geometry.json", plan, sources, about["command"])
        log.info("wrote %s", options.out / "geometry.json")
    return 0


def _card(folder: Path) -> dict:
    return json.loads((folder / "card.json").read_text(encoding="utf-8"))


def _command(options: argparse.Namespace) -> str:
    parts = ["python -m elmo probe --tasks FOLDER"]
    if options.models:
        parts.append("--models " + " ".join(map(str, options.models)))
    if options.only:
        parts.append("--only " + " ".join(options.only))
    usual = {
        "seeds": 5,
        "n_train": Settings.n_train,
        "mix_steps": Settings.mix_steps,
        "limit": None,
    }
    for name, default in usual.items():
        value = getattr(options, name)
        if value != default:
            parts.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(parts)
