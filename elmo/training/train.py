"""``python -m elmo train``: a language model from plain text, resumable to the bit.

Everything random is drawn from (seed, epoch) or (seed, step), so a checkpoint needs no generator
state: it holds weights, optimizer moments and the number of the next batch.

Under ``torchrun`` every process takes its share of each batch's rows; the first one writes.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from elmo.checkpoint import UNIGRAM, load_model, save_model
from elmo.config import KINDS, ModelConfig, shipped_config
from elmo.language_model import build
from elmo.training import kernels
from elmo.training.batches import Batcher
from elmo.training.corpus import (
    Corpus,
    build_vocabulary,
    load,
    plan_batches,
    prepare,
    read_sentences,
)
from elmo.training.evaluate import perplexity, unigram
from elmo.training.gaps import SOFT_PRODUCT, joint_score, one_sided_scores, random_gaps
from elmo.training.optim import Schedule
from elmo.training.run_folder import CheckpointFolder, Journal, Progress, Window
from elmo.training.trainer import TrainConfig, Trainer

log = logging.getLogger(__name__)
MAX_SENTENCE = 64  # longer ones are cut into pieces: the attention encoders' trained length
VALID_GAPS = 2_000
VOCABULARY = 50_000
STEPS_PER_LINE = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", choices=KINDS, default="bilm")
    add("--config", type=Path, help="JSON of another architecture than the shipped one")
    add("--corpus", nargs="+", type=Path, required=True, help="text, .txt or .txt.xz")
    add("--valid", type=Path, required=True, help="held-out text")
    add("--out", type=Path, required=True, help="folder of the run")
    add("--cache", type=Path, help="folder for the prepared corpus (default: corpus in --out)")
    add("--tokens", type=int, required=True, help="tokens to train on in all")
    add("--decay", type=float, default=0.25, help="last share of the tokens, to decay over")
    add("--vocabulary", type=int, default=VOCABULARY, help="words in the softmax")
    add(
        "--resume",
        nargs="?",
        const="",
        metavar="CHECKPOINT",
        help="go on from the newest checkpoint in --out, if there is one; or branch off the"
        " CHECKPOINT of another run, the decay beginning right there",
    )
    add(
        "--start",
        type=Path,
        metavar="FOLDER",
        help="begin with a model's weights and its count of"
        " tokens, as if it had been trained so far; a run that has a checkpoint ignores it",
    )
    add("--sources", type=Path, help="JSON on the text's sources, for the model card")
    add("--threads", type=int, default=os.cpu_count())
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--checkpoint-minutes", type=float, default=5.0)
    add("--valid-minutes", type=float, default=5.0)
    add("--valid-sentences", type=int, default=600)
    for field in dataclasses.fields(TrainConfig):
        name = "--" + field.name.replace("_", "-")
        add(name, type=type(field.default), default=field.default, help="(default: %(default)s)")


@dataclass(frozen=True)
class Processes:
    """This process among those that torchrun started; alone otherwise."""

    rank: int = 0
    world: int = 1

    @classmethod
    def join(cls) -> Processes:
        if int(os.environ.get("WORLD_SIZE", 1)) == 1:
            return cls()
        distributed.init_process_group("gloo")
        return cls(distributed.get_rank(), distributed.get_world_size())

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any process: all of them stop at the same step."""
        if self.world == 1:
            return flag
        flags = torch.tensor([float(flag)])
        distributed.all_reduce(flags)
        return bool(flags > 0)

    def wait(self) -> None:
        if self.world > 1:
            distributed.barrier()

    def leave(self) -> None:
        """All together: a process that just ends may tear the connection from under another."""
        if self.world > 1:
            distributed.barrier()
            distributed.destroy_process_group()


class StopSignal:
    """Up once SIGTERM or SIGINT has come: the step in hand is finished, a checkpoint written."""

    def __init__(self) -> None:
        self.up = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._raise)

    def _raise(self, number: int, frame: Any) -> None:
        self.up = True


def run(args: argparse.Namespace) -> int:
    torch.set_num_threads(args.threads)
    kernels.keep_freed_memory()
    processes = Processes.join()
    if processes.world > 1 and args.device == "cuda":
        args.device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(args.device)
    args.out.mkdir(parents=True, exist_ok=True)
    checkpoints = CheckpointFolder(args.out)
    if args.resume is None and checkpoints.paths():
        raise ValueError(f"{args.out} holds a run already: --resume it or choose another folder")
    if args.resume and checkpoints.paths():
        raise ValueError(
            f"{args.out} holds a run already: --resume without a name goes on with it, and a"
            f" branch of {args.resume} needs a folder of its own"
        )
    newest = checkpoints.paths()[-1:] if not args.resume else [Path(args.resume)]
    state = torch.load(newest[0], map_location="cpu", weights_only=True) if newest else None
    stop = StopSignal()

    if processes.rank > 0:
        processes.wait()  # the first process prepares the corpus
    corpus = prepare(args.corpus, args.cache or args.out / "corpus", MAX_SENTENCE)
    if processes.rank == 0:
        processes.wait()
    vocabulary = build_vocabulary(corpus, args.vocabulary)

    config = TrainConfig(**{f.name: getattr(args, f.name) for f in dataclasses.fields(TrainConfig)})
    model_config = shipped_config(args.model, len(vocabulary))
    if args.config:
        values = {**json.loads(args.config.read_text("utf-8")), "n_vocabulary": len(vocabulary)}
        model_config = ModelConfig.from_dict(values)
        longest = getattr(model_config.stack, "max_tokens", MAX_SENTENCE)
        if longest != MAX_SENTENCE:
            raise ValueError(
                f"{args.config}: max_tokens must be {MAX_SENTENCE}, since training text is cut"
                f" into pieces of that length; got {longest}"
            )
    progress, decay_from = Progress(), round(args.tokens * (1 - args.decay))
    started_at, begun = 0, None
    if args.start and not state:
        begun = load_model(args.start)
        if begun.config.kind != args.model or begun.vocabulary != vocabulary:
            raise ValueError(f"{args.start} holds another kind of model or another vocabulary")
        model_config = begun.config
        progress = earlier_progress(args.start, begun.card, corpus, config)
        started_at = progress.tokens
    if state:
        _check_text(newest[0], state, corpus, vocabulary)
        started_at = state["schedule"].get("start", 0)
        config = dataclasses.replace(config, **state["config"])
        model_config = ModelConfig.from_dict(json.loads(state["model_config"]))
        progress = Progress(**state["progress"])
        if args.resume:
            decay_from = progress.tokens
        elif args.tokens == state["schedule"]["total"]:
            decay_from = state["schedule"]["decay_from"]
    schedule = Schedule(config.warmup_tokens, decay_from, args.tokens, started_at)
    model = build(model_config, config.seed)
    if begun:
        model.load_state_dict(begun.model.state_dict())
    trainer = Trainer(model.to(args.device), config)
    if state:
        trainer.load_state_dict(state["trainer"])
        state = None
    plan = {"model": model_config.kind, **dataclasses.asdict(config), **vars(schedule)}
    log.info("%s\nkernels: %s", plan, "compiled" if kernels.compiled() else "plain torch")
    Run(args, corpus, vocabulary, trainer, schedule, progress, processes).train(stop)
    processes.leave()
    return 0


def _check_text(path: Path, state: dict[str, Any], corpus: Corpus, vocabulary: list[str]) -> None:
    """Raises ``ValueError`` unless a checkpoint was trained on this corpus and vocabulary: the
    rows of its softmax and its place in the text would be others."""
    if state["vocabulary"] != vocabulary:
        raise ValueError(
            f"{path} was trained with another vocabulary ({len(state['vocabulary']):,} words) than"
            f" this --corpus and --vocabulary give ({len(vocabulary):,}): name those it began with"
        )
    if not np.allclose(state[UNIGRAM].numpy(), unigram(corpus, vocabulary), atol=1e-4):
        raise ValueError(f"{path} was trained on another corpus: name the files it began with")


def earlier_progress(
    folder: Path, card: dict[str, Any], corpus: Corpus, config: TrainConfig
) -> Progress:
    """Where the run that made a shipped model stood: its card's counts, its curve's last step,
    and the first batch of the corpus that it had not seen."""
    curve = (folder / "curve.jsonl").read_text("utf-8").splitlines()
    progress = Progress(
        step=json.loads(curve[-1])["step"],
        tokens=card["tokens_seen"],
        targets=card["targets_seen"],
        minutes=card["minutes"],
    )
    left = progress.tokens
    while left > 0:
        plan = plan_batches(corpus, config.tokens_per_batch, config.seed, progress.epoch)
        for number in range(len(plan)):
            left -= int(corpus.lengths[plan.sentences(number)].sum())
            if left <= 0:
                progress.next_batch = number + 1
                break
        else:
            progress.epoch += 1
    return progress


class Run:
    """The loop over batches, with everything that is done now and then."""

    def __init__(
        self,
        args: argparse.Namespace,
        corpus: Corpus,
        vocabulary: list[str],
        trainer: Trainer,
        schedule: Schedule,
        progress: Progress,
        processes: Processes,
    ) -> None:
        self.args, self.corpus, self.vocabulary = args, corpus, vocabulary
        self.trainer, self.schedule, self.progress = trainer, schedule, progress
        self.processes = processes
        self.writes = processes.rank == 0
        self.batcher = Batcher(corpus, vocabulary, trainer.model.config.char.max_characters)
        if self.writes:
            self.valid = load(_first(args.valid, args.valid_sentences))
            self.checkpoints = CheckpointFolder(args.out)
            trunk = Path(args.resume).parent / "log.jsonl" if args.resume else None
            if args.start and not (args.out / "log.jsonl").exists():
                trunk = args.start / "curve.jsonl"
            self.journal = Journal(args.out / "log.jsonl", progress.step, trunk)

    def train(self, stop: StopSignal) -> None:
        progress, config, args = self.progress, self.trainer.config, self.args
        tested_at, saved_at = progress.minutes, time.monotonic()
        clock, window = time.process_time(), Window()
        plan = plan_batches(self.corpus, config.tokens_per_batch, config.seed, progress.epoch)
        stopped = False
        while progress.tokens < args.tokens:
            if progress.next_batch == len(plan):
                progress.epoch, progress.next_batch = progress.epoch + 1, 0
                plan = plan_batches(
                    self.corpus, config.tokens_per_batch, config.seed, progress.epoch
                )
            batch = self.batcher.batch(
                plan.sentences(progress.next_batch),
                *(self.processes.rank, self.processes.world, args.device),
            )
            factor = self.schedule.factor(progress.tokens)
            result, norm = self.trainer.step(batch, progress.step, factor)
            n_tokens = batch.n_rows * (batch.words.shape[1] - 2)
            progress.step += 1
            progress.next_batch += 1
            progress.tokens += n_tokens
            progress.targets += result.n_targets
            now = time.process_time()
            seconds, clock = now - clock, now
            progress.minutes += seconds / 60
            window.add(n_tokens, result, norm, seconds)
            if progress.step % STEPS_PER_LINE == 0:
                self.report(window, factor)
                kernels.return_freed_memory()
                window = Window()
            if progress.minutes - tested_at >= args.valid_minutes:
                self.test()
                tested_at, clock = progress.minutes, time.process_time()
            if time.monotonic() - saved_at >= 60 * args.checkpoint_minutes:
                self.save()
                saved_at = time.monotonic()
            if self.processes.any(stop.up):
                stopped = True
                break
        self.save()
        if not stopped:
            self.test()
            self.export()

    def report(self, window: Window, factor: float) -> None:
        if not self.writes:
            return
        progress, total = self.progress, self.args.tokens
        summary = window.summary()
        self.journal.write(**progress.record(), lr=round(factor, 5), **summary)
        seconds = (total - progress.tokens) / max(1, window.wall_speed())
        log.info(
            "step %d  %.2f of %.1f M tokens  loss %s  norm %.2f  lr %.3f  %d tokens/s  ETA %s",
            *(progress.step, progress.tokens / 1e6, total / 1e6),
            *(" ".join(f"{x:.3f}" for x in summary["loss"]), summary["norm"], factor),
            *(window.wall_speed(), datetime.timedelta(seconds=round(seconds))),
        )

    def test(self) -> None:
        """Held-out scores on a fixed part of the valid text, by products in bfloat16: perplexity
        of language models, and of all kinds the same hidden words."""
        if not self.writes:
            return
        model, progress = self.trainer.model, self.progress
        held_out = (self.vocabulary, self.valid)
        gaps = random_gaps(self.valid, VALID_GAPS)
        if model.config.kind == "attention":
            scores = [joint_score(model, *held_out, gaps, torch.bfloat16)]
        else:
            log_p = unigram(self.corpus, self.vocabulary)
            products = one_sided_scores(
                *(model, self.vocabulary, log_p, self.valid),
                *(gaps, SOFT_PRODUCT, torch.bfloat16),
            )
            scores = [perplexity(model, *held_out, torch.bfloat16), products["tuned_product"]]
        record = {
            f"valid_{name}": round(value, 4)
            for score in scores
            for name, value in dataclasses.asdict(score).items()
        }
        self.journal.write(**progress.record(), **record)
        log.info("step %d  %.2f M tokens  %s", progress.step, progress.tokens / 1e6, record)

    def save(self) -> None:
        if not self.writes:
            return
        self.checkpoints.save(
            self.progress.step,
            {
                "config": dataclasses.asdict(self.trainer.config),
                "model_config": json.dumps(self.trainer.model.config.to_dict()),
                "schedule": dataclasses.asdict(self.schedule),
                "progress": dataclasses.asdict(self.progress),
                "vocabulary": self.vocabulary,
                UNIGRAM: torch.from_numpy(unigram(self.corpus, self.vocabulary)),
                "trainer": self.trainer.state_dict(),
            },
        )

    def command(self) -> str:
        """What trains the same weights from nothing, breaks and a branch at the decay left out."""
        schedule, config = self.schedule, self.trainer.config
        words = [
            *("python -m elmo train --model", self.trainer.model.config.kind),
            *("--corpus TEXT... --valid TEXT --out FOLDER --tokens", schedule.total),
            *("--decay", 1 - schedule.decay_from / schedule.total),
        ]
        if schedule.start:
            words += [f"--start MODEL_OF_{schedule.start}_TOKENS"]
        if self.args.config:
            words += ["--config JSON"]
        if self.args.vocabulary != VOCABULARY:
            words += ["--vocabulary", self.args.vocabulary]
        for field in dataclasses.fields(TrainConfig):
            value = getattr(config, field.name)
            if value != field.default:
                words += [f"--{field.name.replace('_', '-')}", value]
        return " ".join(map(str, words))

    def export(self) -> None:
        """The shipped form, in the folder ``model`` of the run, and its learning curve."""
        if not self.writes:
            return
        model, progress = self.trainer.model, self.progress
        card = {
            "name": model.config.kind,
            "kind": model.config.kind,
            "command": self.command(),
            "seed": self.trainer.config.seed,
            "tokens_seen": progress.tokens,
            "targets_seen": progress.targets,
            "minutes": round(progress.minutes, 1),
            "n_parameters": sum(p.numel() for p in model.stack.parameters()),
            "n_parameters_with_characters_and_head": sum(p.numel() for p in model.parameters()),
            "date": datetime.date.today().isoformat(),
        }
        if self.args.sources:
            card["corpus"] = json.loads(self.args.sources.read_text("utf-8"))
        log_p = unigram(self.corpus, self.vocabulary)
        folder = self.args.out / "model"
        save_model(folder, model, self.vocabulary, card, log_p)
        curve = "".join(json.dumps(record) + "\n" for record in self.journal.held_out())
        (folder / "curve.jsonl").write_text(curve, "utf-8")


def _first(file: Path, n_sentences: int) -> list[list[str]]:
    sentences: list[list[str]] = []
    for sentence in read_sentences([file]):
        if len(sentences) == n_sentences:
            break
        sentences.append(sentence[:MAX_SENTENCE])
    return sentences
