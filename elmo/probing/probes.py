"""A probe that learns in front of one's eyes: a linear classifier on ELMo's mix of layers.

The mix is learned as in the table (``mix_training``), step by step, so that s_k can be watched
as they move; accuracies here are of the classifier that learns with it, not of a probe solved
to its optimum. Nothing is shared between two calls: both may run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import nn

from elmo.probing.linear_probe import Scaling, center_of_gravity, fit_probe
from elmo.probing.mix_training import training_steps
from elmo.results import ProbeRun, ProbeStep

HELD_OUT_SHARE = 0.2
BATCH = 128
LIVE_ALPHA = 3e-3  # L2 of the probes on single layers
POINTS = 50  # reports over a run
MAX_TOKENS = 5_000
MAX_LABELS = 100
MIN_TOKENS = 10


def split_groups(
    groups: Sequence, seed: int, share: float = HELD_OUT_SHARE
) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows held out, whole groups at a time.

    groups: one key a row: its sentence, so that no sentence is on both sides, or its word, so that
        what is held out are words that were never trained on. Groups are drawn at random until
        ``share`` of the rows is held out.
    Raises ``ValueError`` for fewer than two groups.
    """
    names, index = np.unique(np.array([str(g) for g in groups]), return_inverse=True)
    if len(names) < 2:
        raise ValueError("held-out accuracy needs at least two groups (sentences, or words)")
    size = np.bincount(index)
    order = np.random.default_rng([seed, 3]).permutation(len(names))
    before = np.cumsum(size[order]) - size[order]
    chosen = order[before < share * len(index)][: len(names) - 1]
    held_out = np.isin(index, chosen)
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def word_groups(tokens: Sequence[str]) -> list[str]:
    """Groups under which no word form is on both sides: the word, lower-cased."""
    return [token.lower() for token in tokens]


def probe_steps(
    features: np.ndarray,
    labels: Sequence[str],
    groups: Sequence,
    seed: int = 0,
    steps: int = 400,
    strength: float = 0.001,
    equalize: bool = True,
) -> Iterator[ProbeStep]:
    """Trains, and yields the state before the first step, then some fifty times until the last.

    features: (n, L, D) of n tokens; labels: n strings; groups: n keys, see ``split_groups``.
    strength: lambda, the paper's penalty on the raw weights. equalize: scale the layers to equal
        size first; otherwise weights also follow the layers' norms.
    To cancel, stop iterating. Raises ``ValueError`` for data that cannot be learned from, saying
    what is allowed.
    """
    features = np.asarray(features)
    names = _check(features, labels, groups, steps)
    train, held_out = split_groups(groups, seed)
    index = {name: i for i, name in enumerate(names)}
    gold = torch.tensor([index[label] for label in labels])
    layers = torch.from_numpy(features.astype(np.float32).transpose(1, 0, 2).copy())  # (L, n, D)
    layers -= layers[:, train].mean(dim=1, keepdim=True)
    size = layers[:, train].square().mean(dim=(1, 2), keepdim=True).sqrt().clamp(min=1e-12)
    layers /= size if equalize else size.square().mean().sqrt()

    layers = layers.transpose(0, 1).contiguous()  # (n, L, D)
    train_rows, held_out_rows = torch.from_numpy(train), torch.from_numpy(held_out)
    checked = train_rows[torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))]
    checked = checked[: max(len(held_out), 500)]
    report_every = max(1, steps // POINTS)
    models = training_steps(
        layers[train_rows],
        gold[train_rows],
        len(names),
        seed=seed,
        steps=steps,
        strength=strength,
        batch=BATCH,
    )
    for step, model in enumerate(models):
        if step % report_every == 0 or step == steps:
            with torch.no_grad():
                on_train = model.logits(layers[checked])
                on_held_out = model.logits(layers[held_out_rows])
            yield ProbeStep(
                step=step,
                scalar_weights=tuple(model.mix.weights.tolist()),
                gamma=model.mix.gamma.item(),
                loss=nn.functional.cross_entropy(on_train, gold[checked]).item(),
                train_accuracy=_accuracy(on_train, gold[checked]),
                held_out_accuracy=_accuracy(on_held_out, gold[held_out_rows]),
            )


def _accuracy(logits: torch.Tensor, gold: torch.Tensor) -> float:
    return float((logits.argmax(dim=1) == gold).float().mean())


def train_probe(
    features: np.ndarray,
    labels: Sequence[str],
    groups: Sequence,
    seed: int = 0,
    steps: int = 400,
    on_step: Callable[[ProbeStep], bool | None] | None = None,
    strength: float = 0.001,
    equalize: bool = True,
) -> ProbeRun:
    """``probe_steps`` to the end. ``on_step`` sees every report; if it returns True, training
    stops and the run so far is returned as cancelled."""
    reports, cancelled = [], False
    for report in probe_steps(features, labels, groups, seed, steps, strength, equalize):
        reports.append(report)
        if on_step is not None and on_step(report):
            cancelled = report.step < steps
            break
    return summarize(reports, labels, groups, seed, cancelled)


def summarize(
    reports: Sequence[ProbeStep],
    labels: Sequence[str],
    groups: Sequence,
    seed: int,
    cancelled: bool = False,
) -> ProbeRun:
    """Reports of ``probe_steps`` on these labels, with what to compare the last one with."""
    train, held_out = split_groups(groups, seed)
    gold = np.array([str(label) for label in labels])
    values, counts = np.unique(gold[train], return_counts=True)
    return ProbeRun(
        steps=tuple(reports),
        labels=tuple(np.unique(gold).tolist()),
        n_train=len(train),
        n_held_out=len(held_out),
        majority_accuracy=float((gold[held_out] == values[counts.argmax()]).mean()),
        center_of_gravity=center_of_gravity(reports[-1].scalar_weights),
        seed=seed,
        cancelled=cancelled,
    )


def layer_accuracies(
    features: np.ndarray, labels: Sequence[str], groups: Sequence, seed: int = 0
) -> dict[str, float]:
    """Held-out accuracy (0 to 1) of a probe on every layer alone and on the plain mean of layers
    of equal size, on the same split as ``train_probe``: ``layer_0``, ..., ``mean_equal``."""
    features = np.asarray(features)
    names = _check(features, labels, groups, steps=1)
    train, held_out = split_groups(groups, seed)
    index = {name: i for i, name in enumerate(names)}
    gold = torch.tensor([index[label] for label in labels])
    layers = torch.from_numpy(features.astype(np.float32).transpose(1, 2, 0).copy())  # (L, D, n)
    on_train, on_held_out = layers[:, :, train], layers[:, :, held_out]
    scaling = Scaling.fit(on_train)
    scaling.apply(on_train)
    scaling.apply(on_held_out)
    n_layers = len(layers)
    mixes = {f"layer_{k}": torch.eye(n_layers)[k] for k in range(n_layers)}
    mixes["mean_equal"] = torch.full((n_layers,), 1 / n_layers)
    return {
        name: _accuracy(
            fit_probe(on_train, gold[train], len(names), c, LIVE_ALPHA).logits(on_held_out),
            gold[held_out],
        )
        for name, c in mixes.items()
    }


def _check(features: np.ndarray, labels: Sequence, groups: Sequence, steps: int) -> list[str]:
    """The labels in order, if everything fits together."""
    if features.ndim != 3:
        raise ValueError(f"features must be (tokens, layers, width), got {features.shape}")
    n = len(features)
    if not n == len(labels) == len(groups):
        raise ValueError(f"{n} tokens have {len(labels)} labels and {len(groups)} groups")
    if not MIN_TOKENS <= n <= MAX_TOKENS:
        raise ValueError(f"a probe takes {MIN_TOKENS} to {MAX_TOKENS:,} tokens, got {n:,}")
    names = sorted(set(labels))
    if not 2 <= len(names) <= MAX_LABELS:
        raise ValueError(f"a probe tells 2 to {MAX_LABELS} labels apart, got {len(names)}")
    if not 1 <= steps <= 2_000:
        raise ValueError(f"steps must be 1 to 2,000, got {steps}")
    if not np.isfinite(features).all():
        raise ValueError("features hold values that are not finite")
    return names
