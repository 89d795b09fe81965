"""Word senses by nearest neighbor, as in the ELMo paper (section 5.3, after Melamud et al. 2016).

Every sense of a lemma is the average of its training usages; a test usage gets the sense whose
average is nearest by cosine. There is nothing to train but the mix of layers, which is learned by
letting each training usage find its own sense among averages that leave it out. Everything needed
for any mix is closed-form (see ``elmo.banks.mixing``): inner products of pairs of layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from elmo.probing.linear_probe import center_of_gravity
from elmo.probing.probe_cells import STRENGTHS, Cell, Grader, Split, draw
from elmo.probing.probe_tasks import Example

TIE = 1e-6  # cosines closer than this are equal: layer 0 gives one vector to every usage
START_GAMMA = float(np.log(10.0))


@dataclass(frozen=True)
class Usages:
    """n usages: vectors (n, L, D), and the lemma and the sense of each."""

    vectors: np.ndarray
    lemmas: tuple[str, ...]
    senses: tuple[str, ...]

    @classmethod
    def of(cls, split: Split, examples: Sequence[Example]) -> Usages:
        rows = [e.spans[0] for e in examples]
        return cls(
            np.asarray(split.rows[rows], dtype=np.float32),
            tuple(e.lemma for e in examples),
            tuple(e.label for e in examples),
        )

    def shuffled(self, seed: int) -> Usages:
        """Senses dealt anew among the usages of each lemma: the control."""
        rng = np.random.default_rng([seed, 2])
        senses = np.array(self.senses)
        for lemma in sorted(set(self.lemmas)):
            rows = np.flatnonzero(np.array(self.lemmas) == lemma)
            senses[rows] = senses[rng.permutation(rows)]
        return Usages(self.vectors, self.lemmas, tuple(senses.tolist()))


@dataclass(frozen=True)
class SensePairs:
    """Every usage with every candidate of its lemma: a sense's average, or a single usage.

    usage: (P,) index of the usage; is_gold: (P,) whether the candidate has the usage's sense.
    products: (P, L, L) inner products <usage's layer k, candidate's layer l>.
    usage_norms, candidate_norms: (P, L, L) of each with itself.
    """

    n_usages: int
    usage: np.ndarray
    is_gold: np.ndarray
    products: np.ndarray
    usage_norms: np.ndarray
    candidate_norms: np.ndarray

    def cosines(self, c: np.ndarray) -> np.ndarray:
        """(P,) cosine of usage and candidate where layers count ``c`` (L,)."""
        outer = np.outer(c, c).ravel()
        dot, usage, candidate = (
            x.reshape(len(x), -1) @ outer
            for x in (self.products, self.usage_norms, self.candidate_norms)
        )
        return dot / np.sqrt(np.maximum(usage * candidate, 1e-30))

    def correct(self, c: np.ndarray) -> np.ndarray:
        """(n_usages,) 1 where the gold sense is nearest, a share of it where several tie."""
        cosine = self.cosines(c)
        best = np.full(self.n_usages, -np.inf)
        np.maximum.at(best, self.usage, cosine)
        tied = cosine >= best[self.usage] - TIE
        n_tied = np.bincount(self.usage, tied, minlength=self.n_usages)
        hits = np.bincount(self.usage, tied & self.is_gold, minlength=self.n_usages)
        return hits / np.maximum(n_tied, 1)


def pair_usages(
    usages: Usages, train: Usages, single: bool = False, leave_out: bool = False
) -> SensePairs:
    """Pairs of usages with what the training usages offer for their lemma.

    single: every training usage is a candidate by itself, instead of the average of its sense.
    leave_out: ``usages`` are the training usages, each left out of its own average; a usage that
        is its sense's only one is dropped.
    A lemma without training usages has no pairs: its usages count as wrong.
    """
    keys = list(zip(train.lemmas, train.senses, strict=True))
    if single:
        names, index = keys, np.arange(len(keys))
    else:
        names = sorted(set(keys))
        position = {name: i for i, name in enumerate(names)}
        index = np.array([position[key] for key in keys])
    size = np.bincount(index, minlength=len(names))
    averages = np.zeros((len(names), *train.vectors.shape[1:]), dtype=np.float64)
    np.add.at(averages, index, train.vectors)
    averages /= size[:, None, None]
    of_lemma: dict[str, list[int]] = {}
    for i, (lemma, _) in enumerate(names):
        of_lemma.setdefault(lemma, []).append(i)

    pairs = [
        (i, candidate, names[candidate][1] == usages.senses[i])
        for i, lemma in enumerate(usages.lemmas)
        if not (leave_out and size[index[i]] < 2)
        for candidate in of_lemma.get(lemma, [])
    ]
    table = np.array(pairs, dtype=np.int64).reshape(-1, 3)
    usage, candidate, gold = table[:, 0], table[:, 1], table[:, 2].astype(bool)
    n_layers = train.vectors.shape[1]
    products = [np.zeros((0, n_layers, n_layers))]
    candidate_norms = list(products)
    for start in range(0, len(usage), 2_048):
        part = slice(start, start + 2_048)
        x, average = usages.vectors[usage[part]].astype(np.float64), averages[candidate[part]]
        if leave_out:
            n = size[candidate[part], None, None]
            without = (average * n - x) / np.maximum(n - 1, 1)
            average = np.where(gold[part, None, None], without, average)
        products.append(np.matmul(x, average.transpose(0, 2, 1)))
        candidate_norms.append(np.matmul(average, average.transpose(0, 2, 1)))
    own = np.matmul(usages.vectors, usages.vectors.transpose(0, 2, 1)).astype(np.float64)
    return SensePairs(
        len(usages.lemmas),
        usage,
        gold,
        np.concatenate(products),
        own[usage],
        np.concatenate(candidate_norms),
    )


def learn_mix(
    pairs: SensePairs, factors: np.ndarray, strength: float
) -> tuple[np.ndarray, float, float]:
    """Raw weights w (L,), gamma and loss of the mix under which usages find their senses best.

    Minimizes the mean of -log softmax over a lemma's senses of gamma * cosine, plus
    ``strength * |w|^2``. Gamma, which a cosine does not feel, is the sharpness of that softmax; a
    weak pull towards 10 keeps it finite where all senses are told apart.
    factors: (L,) what each layer is multiplied by before mixing. Raises ``ValueError`` without
    pairs, that is where no sense has two usages.
    """
    if not len(pairs.usage):
        raise ValueError("a mix for word senses needs senses with two training usages or more")
    usage = torch.from_numpy(np.unique(pairs.usage, return_inverse=True)[1])
    n = int(usage.max()) + 1
    gold = torch.from_numpy(pairs.is_gold)
    tensors = [
        torch.from_numpy(x.reshape(len(x), -1))
        for x in (pairs.products, pairs.usage_norms, pairs.candidate_norms)
    ]
    base = torch.from_numpy(np.asarray(factors, dtype=np.float64))
    zeros = torch.zeros(n, dtype=torch.float64)
    w = torch.zeros(len(base), dtype=torch.float64, requires_grad=True)
    log_gamma = torch.tensor(START_GAMMA, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w, log_gamma], max_iter=60, line_search_fn="strong_wolfe")

    def objective() -> torch.Tensor:
        optimizer.zero_grad()
        c = base * torch.softmax(w, 0)
        dot, left, right = (x @ torch.outer(c, c).flatten() for x in tensors)
        cosine = dot / (left * right).clamp(min=1e-30).sqrt()
        scores = log_gamma.exp() * (cosine - 1)  # at most 0, so that nothing overflows
        total = zeros.index_add(0, usage, scores.exp())
        loss = (total.log() - zeros.index_add(0, usage, scores * gold)).mean()
        loss = loss + strength * w.square().sum() + 1e-3 * (log_gamma - START_GAMMA).square()
        loss.backward()
        return loss

    with torch.enable_grad():
        optimizer.step(objective)
        loss = objective().item()
    return w.detach().numpy(), float(log_gamma.detach().exp()), loss


def run_sense_cell(task: str, train: Split, test: Split, seed: int, n_train: int) -> Cell:
    """``probe_cells.run_cell`` by nearest neighbor: the same representations.

    The metric ``nearest_usage`` takes the nearest single usage instead of the nearest average;
    ``control`` shuffles the senses of each lemma among its training usages.
    """
    examples = draw(train.text.examples[task], n_train, seed)
    grader = Grader(task, test.text, examples)
    usages, tested = Usages.of(train, examples), Usages.of(test, grader.examples)
    candidates = {
        "score": pair_usages(tested, usages),
        "nearest_usage": pair_usages(tested, usages, single=True),
        "control": pair_usages(tested, usages.shuffled(seed)),
    }
    own = pair_usages(usages, usages, leave_out=True)
    cell = Cell(len(examples), len(grader.examples), len(set(usages.senses)))

    def record(name: str, c: np.ndarray, facts: dict) -> None:
        for metric, pairs in candidates.items():
            cell.counts[f"{name}/{metric}"] = grader.accuracy(pairs.correct(c))
        cell.facts[name] = facts

    n_layers = usages.vectors.shape[1]
    raw = np.ones(n_layers)
    equal = 1 / np.sqrt(np.square(usages.vectors, dtype=np.float64).sum(axis=2).mean(axis=0))
    for k in range(n_layers):
        record(f"layer_{k}", np.eye(n_layers)[k], {})
    record("mean", raw / n_layers, {})
    record("mean_equal", equal / n_layers, {})
    for prefix, factors in (("mix", raw), ("mix_equal", equal)):
        for strength in STRENGTHS:
            w, gamma, loss = learn_mix(own, factors, strength)
            weights = np.exp(w - w.max()) / np.exp(w - w.max()).sum()
            facts = {
                "objective": loss,
                "w": w.tolist(),
                "scalar_weights": weights.tolist(),
                "gamma": gamma,
                "center_of_gravity": center_of_gravity(weights),
                "layer_size": (1 / equal).tolist(),
            }
            record(f"{prefix}_{strength:g}", factors * weights, facts)
    return cell
