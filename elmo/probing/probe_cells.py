"""One task under one encoder with one seed: every representation probed, counts a test sentence.

A *representation* is what a probe reads: ``layer_0`` (the static baseline), ``layer_1``, ...,
``mean`` and ``mean_equal``, the plain mean of the layers as they are and scaled to equal size, and
``mix_LAMBDA`` and ``mix_equal_LAMBDA``, mixes whose weights were learned (``mix_training``)
and then kept. All are scored by the same probe (``linear_probe``). The metric ``control`` is a
second probe on the control task of Hewitt and Liang (2019): every word is given a random label,
which only memory can get right; accuracy minus control is the probe's selectivity.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from elmo.probing.linear_probe import (
    ALPHAS,
    LinearProbe,
    Preconditioner,
    Scaling,
    arrange,
    center_of_gravity,
    combine,
    fit_probe,
    with_product,
)
from elmo.probing.mix_training import STEPS, train_mix
from elmo.probing.probe_scores import entity_counts, per_sentence, ratio
from elmo.probing.probe_tasks import Example, LabeledText

STRENGTHS = (0.0, 0.001, 1.0)  # lambda
TRAIN_SHARE = 0.9  # of the pool, where it is smaller than what a probe is trained on
ENTITY_TASKS = ("ner_wikigold", "ner_wnut17")
PRODUCT_TASKS = ("coreference",)  # whether two spans are alike is not linear in either
WORD_TASKS = ("upos", "xpos")  # also scored on new words alone


@dataclass(frozen=True)
class Split:
    """One part of a data set, and the vectors (spans, L, D) of its spans under one encoder."""

    text: LabeledText
    rows: np.ndarray


@dataclass(frozen=True)
class Cell:
    """What one task, encoder and seed gave.

    counts: ``representation/metric`` to (test sentences, 2), see ``probe_scores``.
    facts: a representation's alpha, objective, and for mixes w, scalar_weights, gamma and
        center_of_gravity.
    """

    n_train: int
    n_test: int
    n_labels: int
    counts: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, dict] = field(default_factory=dict)


def fixed_mixes(n_layers: int, scaling_factors: dict[bool, Tensor]) -> dict[str, Tensor]:
    """What each scaled layer counts, of every representation that is not learned."""
    fixed = {f"layer_{k}": torch.eye(n_layers)[k] for k in range(n_layers)}
    fixed["mean"] = scaling_factors[False] / n_layers
    fixed["mean_equal"] = scaling_factors[True] / n_layers
    return fixed


def draw(examples: Sequence[Example], n: int, seed: int) -> list[Example]:
    """About n training examples, whole sentences at a time, in a random order of sentences."""
    n = min(n, int(TRAIN_SHARE * len(examples)))
    by_sentence: dict[int, list[Example]] = {}
    for example in examples:
        by_sentence.setdefault(example.sentence, []).append(example)
    drawn: list[Example] = []
    for sentence in np.random.default_rng([seed, 1]).permutation(sorted(by_sentence)):
        if len(drawn) >= n:
            break
        drawn += by_sentence[sentence]
    return drawn


def control_labels(examples: Sequence[Example], pool: Sequence[str], seed: int) -> list[str]:
    """A random label a word, the same wherever the word stands, as frequent as in ``pool``."""
    return [pool[zlib.crc32(f"{seed} {e.word}".encode()) % len(pool)] for e in examples]


class Grader:
    """Turns predicted labels of the test examples into counts a sentence."""

    def __init__(
        self,
        task: str,
        text: LabeledText,
        train: Sequence[Example],
        vocabulary: frozenset[str] | None = None,
    ) -> None:
        self.task = task
        self.examples = text.examples[task]
        self.gold = np.array([e.label for e in self.examples])
        self.sentence = np.array([e.sentence for e in self.examples])
        self.n_sentences = len(text.sentences)
        self.subsets: dict[str, np.ndarray] = {}
        if task in WORD_TASKS:
            seen = {e.word for e in train}
            self.subsets["unseen"] = np.array([e.word not in seen for e in self.examples])
            if vocabulary is not None:
                tokens = [text.sentences[s][p[0]] for s, p in text.spans]
                outside = [tokens[e.spans[0]] not in vocabulary for e in self.examples]
                self.subsets["outside_vocabulary"] = np.array(outside)

    def accuracy(self, correct: np.ndarray, subset: np.ndarray | None = None) -> np.ndarray:
        all_ = np.ones(len(correct)) if subset is None else subset.astype(float)
        return per_sentence(correct * all_, all_, self.sentence, self.n_sentences)

    def grade(self, predicted: np.ndarray) -> dict[str, np.ndarray]:
        """``score``: F1 of exact entities for entity tasks, else accuracy; and the others."""
        correct = (predicted == self.gold).astype(float)
        counts = {"score": self.accuracy(correct)}
        if self.task in ENTITY_TASKS:
            counts["accuracy"] = counts["score"]
            counts["score"] = entity_counts(self.gold, predicted, self.sentence, self.n_sentences)
        for name, subset in self.subsets.items():
            counts[name] = self.accuracy(correct, subset)
        return counts


class Features:
    """A task's examples under one encoder, scaled on the training ones."""

    def __init__(self, task: str, train: Split, examples: Sequence[Example]) -> None:
        self.task = task
        self.product = task in PRODUCT_TASKS
        self.names = sorted({e.label for e in examples})
        self.layers = arrange(train.rows, _spans(examples))
        self.scaling = Scaling.fit(self.layers)
        self.scaling.apply(self.layers)
        self.factors = {equal: self.scaling.factors(equal) for equal in (False, True)}
        self.n_layers = len(self.layers)

    def indices(self, labels: Sequence[str]) -> Tensor:
        index = {name: i for i, name in enumerate(self.names)}
        return torch.tensor([index[label] for label in labels])

    def preconditioner(self, c: Tensor) -> Preconditioner:
        return Preconditioner.fit(with_product(combine(self.layers, c), self.product))

    def other(self, split: Split, examples: Sequence[Example]) -> Tensor:
        return self.scaling.apply(arrange(split.rows, _spans(examples)))

    def predict(self, probe: LinearProbe, layers: Tensor) -> np.ndarray:
        return np.array(self.names)[probe.logits(layers).argmax(dim=1).numpy()]


def _spans(examples: Sequence[Example]) -> np.ndarray:
    return np.array([e.spans for e in examples], dtype=np.int64)


def choose_alphas(task: str, train: Split, dev: Split, n_train: int) -> dict[str, float]:
    """The L2 strength of each fixed representation that scores best on dev, with seed 0's draw.

    From strong to weak, each fit starting from the one before; of equal scores the stronger.
    A path is left once two steps in a row have been worse than the best. Learned mixes take the
    strength of the plain mean that they start from.
    """
    examples = draw(train.text.examples[task], n_train, seed=0)
    features = Features(task, train, examples)
    labels = features.indices([e.label for e in examples])
    grader = Grader(task, dev.text, examples)
    held_out = features.other(dev, grader.examples)
    chosen = {}
    for name, c in fixed_mixes(features.n_layers, features.factors).items():
        preconditioner = features.preconditioner(c)
        probe, scores = None, []
        for alpha in ALPHAS:
            probe = fit_probe(
                features.layers,
                labels,
                len(features.names),
                c,
                alpha,
                product=features.product,
                preconditioner=preconditioner,
                start=probe,
            )
            scores.append(ratio(grader.grade(features.predict(probe, held_out))["score"]))
            if len(scores) - 1 - int(np.argmax(scores)) >= 2:
                break
        chosen[name] = ALPHAS[int(np.argmax(scores))]
    return chosen


def run_cell(
    task: str,
    train: Split,
    test: Split,
    alphas: dict[str, float],
    seed: int,
    n_train: int,
    vocabulary: frozenset[str] | None = None,
    mix_steps: int = STEPS,
) -> Cell:
    """Every representation of one encoder on one task. The seed draws the training sentences, the
    control task's labels, and the batches and dropout with which mixes are learned."""
    examples = draw(train.text.examples[task], n_train, seed)
    features = Features(task, train, examples)
    grader = Grader(task, test.text, examples, vocabulary)
    tested = features.other(test, grader.examples)
    cell = Cell(len(examples), len(grader.examples), len(features.names))
    gold = [e.label for e in examples]
    labels = features.indices(gold)
    random = features.indices(control_labels(examples, gold, seed))
    test_random = np.array(control_labels(grader.examples, gold, seed))

    def fit(target: Tensor, c: Tensor, alpha: float, **options) -> LinearProbe:
        product, n_labels = features.product, len(features.names)
        return fit_probe(features.layers, target, n_labels, c, alpha, product=product, **options)

    def record(name: str, probe: LinearProbe, facts: dict) -> None:
        for metric, counts in grader.grade(features.predict(probe, tested)).items():
            cell.counts[f"{name}/{metric}"] = counts
        cell.facts[name] = {"alpha": probe.alpha, "objective": probe.loss, **facts}

    for name, c in fixed_mixes(features.n_layers, features.factors).items():
        preconditioner = features.preconditioner(c)
        record(name, fit(labels, c, alphas[name], preconditioner=preconditioner), {})
        if name != "mean_equal":
            control = fit(random, c, alphas[name], preconditioner=preconditioner)
            correct = features.predict(control, tested) == test_random
            cell.counts[f"{name}/control"] = grader.accuracy(correct.astype(float))

    rows = features.layers.permute(2, 0, 1).contiguous()  # (n, L, F)
    for prefix, plain, equal in (("mix", "mean", False), ("mix_equal", "mean_equal", True)):
        factors = features.factors[equal]
        scaled = rows * factors[None, :, None]
        for strength in STRENGTHS:
            model = train_mix(
                scaled,
                labels,
                len(features.names),
                seed=seed,
                steps=mix_steps,
                strength=strength,
                product=features.product,
            )
            weights = model.mix.weights.detach()
            facts = {
                "w": model.mix.w.tolist(),
                "scalar_weights": weights.tolist(),
                "gamma": model.mix.gamma.item(),
                "center_of_gravity": center_of_gravity(weights),
                "layer_size": features.scaling.size.tolist(),
            }
            record(f"{prefix}_{strength:g}", fit(labels, factors * weights, alphas[plain]), facts)
    return cell


def run_baselines(
    task: str,
    train: LabeledText,
    test: LabeledText,
    seed: int,
    n_train: int,
    vocabulary: frozenset[str] | None = None,
) -> Cell:
    """Without any vectors: the most frequent label, and the most frequent label of
    each lemma or, where lemmas are not given, of each word."""
    examples = draw(train.examples[task], n_train, seed)
    grader = Grader(task, test, examples, vocabulary)
    cell = Cell(len(examples), len(grader.examples), len({e.label for e in examples}))
    majority = _most_frequent([e.label for e in examples])
    by_word: dict[str, list[str]] = {}
    for e in examples:
        by_word.setdefault(e.lemma or e.word, []).append(e.label)
    word_majority = {word: _most_frequent(labels) for word, labels in by_word.items()}
    predictions = {
        "majority": [majority] * len(grader.examples),
        "word_majority": [word_majority.get(e.lemma or e.word, majority) for e in grader.examples],
    }
    for name, predicted in predictions.items():
        for metric, counts in grader.grade(np.array(predicted)).items():
            cell.counts[f"{name}/{metric}"] = counts
        cell.facts[name] = {}
    return cell


def _most_frequent(labels: Sequence[str]) -> str:
    """Of equally frequent ones the first in the alphabet."""
    counts = Counter(labels)
    return min(counts, key=lambda label: (-counts[label], label))
