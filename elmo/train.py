"""``python -m elmo train``: a language model from plain text, resumable to the bit.

Everything random is drawn from (seed, epoch) or (seed, step), so a checkpoint needs no generator
state: it holds weights, optimizer moments and the number of the next batch.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

from elmo import kernels
from elmo.batches import Batch, Batcher
from elmo.config import KINDS, BiLMConfig, ModelConfig, shipped_config
from elmo.corpus import build_vocabulary, load, plan_batches, prepare, read_sentences
from elmo.evaluate import joint_gap_score, perplexity, random_gaps
from elmo.language_model import LanguageModel, build
from elmo.objectives import StepResult, bilm_step, concatenated_step, masked_step
from elmo.optim import MatrixBlocks, Muon, RowAdam, Schedule

log = logging.getLogger(__name__)
MAX_SENTENCE = 64  # longer ones are cut into pieces: the attention encoders' trained length


@dataclass(frozen=True)
class TrainConfig:
    """What a run depends on besides the model and the text."""

    seed: int = 1
    tokens_per_batch: int = 5_120
    n_draws: int = 4_096
    muon_lr: float = 0.02
    muon_momentum: float = 0.95
    weight_decay: float = 0.01
    adam_lr: float = 3e-3
    softmax_lr: float = 3e-3
    clip_norm: float = 1.0
    warmup_tokens: int = 500_000
    n_masks: int = 2  # masked LM only: masks of one batch, and the share of tokens in each
    mask_share: float = 0.35


class Trainer:
    """Weights and optimizers, and one step over a batch."""

    def __init__(self, model: LanguageModel, config: TrainConfig) -> None:
        self.model, self.config = model, config
        matrices, rest = _split_parameters(model)
        self.parameters = [*(b.parameter for b in matrices), *rest]
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.muon = Muon(matrices, config.muon_lr, config.muon_momentum, config.weight_decay)
        self.adam = torch.optim.AdamW(
            rest, config.adam_lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        self.rows = RowAdam(model.head.weight.data, model.head.bias.data, config.softmax_lr)

    def step(self, batch: Batch, step: int, factor: float) -> tuple[StepResult, float]:
        """One update at ``factor`` times the learning rates; returns the loss and gradient norm."""
        for parameter in self.parameters:
            parameter.grad.zero_()
        result = self._gradients(batch, [self.config.seed, step])
        if distributed.is_initialized():
            flat = torch.cat([p.grad.flatten() for p in self.parameters])
            distributed.all_reduce(flat)
            sizes = [p.numel() for p in self.parameters]
            for p, part in zip(self.parameters, flat.split(sizes), strict=True):
                p.grad.copy_(part.view_as(p))
        norm = float(nn.utils.clip_grad_norm_(self.parameters, self.config.clip_norm))
        self.muon.step(factor)
        for group in self.adam.param_groups:
            group["lr"] = self.config.adam_lr * factor
        self.adam.step()
        self.rows.step(result.head.rows, result.head.weight, result.head.bias, factor)
        return result, norm

    def _gradients(self, batch: Batch, seed: list[int]) -> StepResult:
        args = (self.model, batch, self.config.n_draws, seed, torch.bfloat16)
        if self.model.config.kind == "bilm":
            return bilm_step(*args)
        if self.model.config.kind == "attention_concat":
            return concatenated_step(*args)
        return masked_step(*args, self.config.n_masks, self.config.mask_share)

    def state_dict(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "rows": self.rows.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.rows.load_state_dict(state["rows"])


def _split_parameters(model: LanguageModel) -> tuple[list[MatrixBlocks], list[nn.Parameter]]:
    """Muon's matrices, and what AdamW takes. The softmax belongs to neither."""
    matrices, rest = [], []
    lstm = isinstance(model.config.stack, BiLMConfig)
    for name, parameter in model.named_parameters():
        if name.startswith("head."):
            continue
        if name.startswith("stack.") and parameter.dim() == 2 and "positions" not in name:
            gates = lstm and name.endswith("weight")
            matrices.append(MatrixBlocks(parameter, 4, 2) if gates else MatrixBlocks(parameter))
        else:
            rest.append(parameter)
    return matrices, rest


@dataclass
class Progress:
    """Where a run stands; all of it is in a checkpoint."""

    step: int = 0
    epoch: int = 0
    next_batch: int = 0
    tokens: int = 0
    targets: int = 0
    minutes: float = 0.0  # processor time of all threads over the number of threads


class CheckpointFolder:
    """The newest two checkpoints of a run, each written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self) -> list[Path]:
        return sorted(self.folder.glob("checkpoint-*.pt"))

    def save(self, step: int, state: dict[str, Any]) -> None:
        final = self.folder / f"checkpoint-{step:08d}.pt"
        partial = final.with_suffix(".partial")
        with open(partial, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, final)
        for old in self.paths()[:-2]:
            old.unlink()


class Log:
    """Records of a run, one JSON object a line."""

    def __init__(self, path: Path, step: int) -> None:
        """Drops what an interrupted run wrote after the checkpoint of ``step``."""
        kept = []
        if path.exists():
            lines = path.read_text("utf-8").splitlines()
            kept = [line for line in lines if json.loads(line)["step"] <= step]
        path.write_text("".join(f"{line}\n" for line in kept), "utf-8")
        self.file = path.open("a", encoding="utf-8")

    def write(self, **record: Any) -> None:
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    defaults = TrainConfig()
    parser.add_argument("--model", choices=KINDS, default="bilm")
    parser.add_argument("--corpus", nargs="+", type=Path, required=True, help=".txt or .txt.xz")
    parser.add_argument("--valid", type=Path, required=True, help="held-out text")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--cache", type=Path, help="folder for the prepared corpus (out/corpus)")
    parser.add_argument("--tokens", type=int, required=True, help="tokens to train on in all")
    parser.add_argument(
        "--decay", type=float, default=0.25, help="last share of tokens to decay over"
    )
    parser.add_argument("--vocabulary", type=int, default=50_000, help="words in the softmax")
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="CHECKPOINT",
        help="go on from the newest checkpoint in --out; or branch off CHECKPOINT of another run"
        " and let the decay begin right there",
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--checkpoint-minutes", type=float, default=5.0)
    parser.add_argument("--valid-minutes", type=float, default=5.0)
    parser.add_argument("--valid-sentences", type=int, default=600)
    for field in dataclasses.fields(TrainConfig):
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=type(field.default), default=getattr(defaults, field.name))


def run(args: argparse.Namespace) -> int:
    torch.set_num_threads(args.threads)
    kernels.keep_freed_memory()
    args.out.mkdir(parents=True, exist_ok=True)
    corpus = prepare(args.corpus, args.cache or args.out / "corpus", MAX_SENTENCE)
    vocabulary = build_vocabulary(corpus, args.vocabulary)
    valid = load(_first(args.valid, args.valid_sentences))
    gaps = random_gaps(valid, 2_000)
    config = TrainConfig(**{f.name: getattr(args, f.name) for f in dataclasses.fields(TrainConfig)})
    model_config = shipped_config(args.model, len(vocabulary))

    checkpoints = CheckpointFolder(args.out)
    progress, decay_from, source = Progress(), round(args.tokens * (1 - args.decay)), None
    if args.resume is not None:
        found = [Path(args.resume)] if args.resume else checkpoints.paths()[-1:]
        source = found[0] if found else None
    elif checkpoints.paths():
        raise ValueError(f"{args.out} holds a run already: --resume it or choose another folder")
    state = torch.load(source, weights_only=True) if source else None
    if state:
        config = TrainConfig(**{**dataclasses.asdict(config), **state["config"]})
        model_config = ModelConfig.from_dict(json.loads(state["model_config"]))
        progress = Progress(**state["progress"])
        if args.resume:
            decay_from = progress.tokens
        elif args.tokens == state["schedule"]["total"]:
            decay_from = state["schedule"]["decay_from"]
    schedule = Schedule(config.warmup_tokens, decay_from, args.tokens)
    trainer = Trainer(build(model_config, config.seed), config)
    if state:
        trainer.load_state_dict(state["trainer"])
    del state
    (args.out / "vocabulary.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    log.info(
        "%s", json.dumps({"model": args.model, **dataclasses.asdict(config), **vars(schedule)})
    )
    log.info("kernels: %s", "compiled" if kernels.compiled() else "plain torch")

    batcher = Batcher(corpus, vocabulary, model_config.char.max_characters)
    journal = Log(args.out / "log.jsonl", progress.step)
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stopping.append(received))

    def save() -> None:
        checkpoints.save(
            progress.step,
            {
                "config": dataclasses.asdict(config),
                "model_config": json.dumps(model_config.to_dict()),
                "schedule": dataclasses.asdict(schedule),
                "progress": dataclasses.asdict(progress),
                "trainer": trainer.state_dict(),
            },
        )

    def held_out() -> None:
        if args.model == "attention":
            scores = joint_gap_score(trainer.model, vocabulary, valid, gaps, torch.bfloat16)
        else:
            scores = perplexity(trainer.model, vocabulary, valid, torch.bfloat16)
        record = {key: round(value, 3) for key, value in dataclasses.asdict(scores).items()}
        journal.write(**_position(progress), **{f"valid_{k}": v for k, v in record.items()})
        log.info(
            "step %d, %.2f M tokens: held out %s", progress.step, progress.tokens / 1e6, record
        )

    threads = torch.get_num_threads()
    last_saved = last_valid = progress.minutes
    clock, recent = time.process_time(), Window()
    plan = plan_batches(corpus, config.tokens_per_batch, config.seed, progress.epoch)
    while progress.tokens < args.tokens and not stopping:
        if progress.next_batch == len(plan):
            progress.epoch, progress.next_batch = progress.epoch + 1, 0
            plan = plan_batches(corpus, config.tokens_per_batch, config.seed, progress.epoch)
        batch = batcher.batch(plan.sentences(progress.next_batch), 0, 1, "cpu")
        factor = schedule.factor(progress.tokens)
        result, norm = trainer.step(batch, progress.step, factor)
        n_tokens = batch.n_rows * (batch.words.shape[1] - 2)
        progress.step += 1
        progress.next_batch += 1
        progress.tokens += n_tokens
        progress.targets += result.n_targets
        now = time.process_time()
        seconds, clock = (now - clock) / threads, now
        progress.minutes += seconds / 60
        recent.add(n_tokens, result, norm, seconds)
        if progress.step % 50 == 0:
            record = recent.summary()
            journal.write(**_position(progress), lr=round(factor, 5), **record)
            eta = (args.tokens - progress.tokens) / max(1, recent.wall_speed()) / 3600
            log.info(
                "step %d  %.2f/%.1f M tokens  loss %s  norm %.2f  lr %.3f  %d tokens/s  ETA %.2f h",
                *(progress.step, progress.tokens / 1e6, args.tokens / 1e6, record["loss"]),
                *(record["norm"], factor, recent.wall_speed(), eta),
            )
            recent = Window()
        if progress.minutes - last_valid >= args.valid_minutes:
            held_out()
            last_valid, clock = progress.minutes, time.process_time()
        if progress.minutes - last_saved >= args.checkpoint_minutes:
            save()
            last_saved = progress.minutes
    save()
    if not stopping:
        held_out()
    return 0


class Window:
    """Sums over the steps since the last progress line."""

    def __init__(self) -> None:
        self.tokens, self.seconds, self.norm, self.n_steps = 0, 0.0, 0.0, 0
        self.loss: torch.Tensor | float = 0.0
        self.targets, self.started = 0, time.monotonic()

    def add(self, n_tokens: int, result: StepResult, norm: float, seconds: float) -> None:
        self.tokens += n_tokens
        self.seconds += seconds
        self.loss = self.loss + result.loss
        self.targets += result.n_targets
        self.norm += norm
        self.n_steps += 1

    def wall_speed(self) -> float:
        return self.tokens / max(1e-9, time.monotonic() - self.started)

    def summary(self) -> dict[str, Any]:
        loss = self.loss / (self.targets / len(self.loss))
        return {
            "loss": [round(float(x), 4) for x in loss],
            "norm": round(self.norm / self.n_steps, 3),
            "tokens_per_s": round(self.tokens / max(1e-9, self.seconds)),
            "wall_tokens_per_s": round(self.wall_speed()),
        }


def _position(progress: Progress) -> dict[str, Any]:
    return {**dataclasses.asdict(progress), "minutes": round(progress.minutes, 3)}


def _first(file: Path, n_sentences: int) -> list[list[str]]:
    sentences = []
    for sentence in read_sentences([file]):
        if len(sentences) == n_sentences:
            break
        sentences.append(sentence[:MAX_SENTENCE])
    return sentences
