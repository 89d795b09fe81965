"""Held-out scores: perplexity with the full softmax, every sentence alone from the zero state."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmo.batches import GAP_TYPE, char_table
from elmo.corpus import Corpus
from elmo.language_model import LanguageModel

ROWS = 2_048  # rows of logits at a time


@dataclass(frozen=True)
class Perplexity:
    """exp of the mean negative log-probability over n + 1 predictions a sentence: the words and
    the end (backward: the beginning); unknown words are one class. ``mean`` is geometric."""

    forward: float
    backward: float
    mean: float


def batches(corpus: Corpus, tokens_per_batch: int = 4_096):
    """Sentence numbers in groups of equal length, shortest first."""
    order = np.argsort(corpus.lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(corpus.lengths[order])) + 1
    for group in np.split(order, cuts):
        rows = max(1, tokens_per_batch // int(corpus.lengths[group[0]]))
        for start in range(0, len(group), rows):
            yield group[start : start + rows]


def type_vectors(model: LanguageModel, corpus: Corpus) -> Tensor:
    """(n_types, P) context-free vectors of all types of a corpus."""
    ids = torch.from_numpy(char_table(corpus.types, model.config.char.max_characters)).long()
    order = (ids != ids.max()).sum(1).argsort()  # words of like length together
    vectors = torch.empty(len(ids), model.config.stack.d_input)
    for part in order.split(1024):
        vectors[part] = model.token_encoder(ids[part]).float()
    return vectors


def unigram(corpus: Corpus, vocabulary: list[str]) -> np.ndarray:
    """(V,) float32 log-probabilities of words in a text, boundaries not counted; what never
    occurs counts as half an occurrence."""
    counts = np.bincount(corpus.word_ids(vocabulary), corpus.counts, len(vocabulary))
    return np.log(np.maximum(counts, 0.5) / corpus.n_tokens).astype(np.float32)


@dataclass(frozen=True)
class GapScore:
    """Mean natural log-probability of held-out gaps, and the share where the word comes first."""

    log_probability: float
    accuracy: float


def random_gaps(corpus: Corpus, n_gaps: int, seed: int = 0) -> np.ndarray:
    """(n, 2) sentence numbers and positions of distinct random tokens, in order; all tokens if
    there are fewer."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(corpus.n_tokens)[:n_gaps])
    sentence = np.searchsorted(corpus.offsets, chosen, side="right") - 1
    return np.stack([sentence, chosen - corpus.offsets[sentence]], axis=1)


@torch.inference_mode()
def joint_gap_score(
    model: LanguageModel,
    vocabulary: list[str],
    corpus: Corpus,
    gaps: np.ndarray,
    dtype: torch.dtype = torch.float32,
) -> GapScore:
    """A masked language model's score of ``gaps`` from ``random_gaps``, each gap alone in its
    sentence."""
    words = torch.from_numpy(corpus.word_ids(vocabulary))
    log_probability, correct = 0.0, 0
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        vectors = type_vectors(model, corpus)
        order = np.argsort(corpus.lengths[gaps[:, 0]], kind="stable")
        lengths = corpus.lengths[gaps[order, 0]]
        for group in np.split(order, np.flatnonzero(np.diff(lengths)) + 1):
            for start in range(0, len(group), 128):
                part = gaps[group[start : start + 128]]
                framed = torch.from_numpy(corpus.framed(part[:, 0])).long()
                row, position = torch.arange(len(part)), torch.from_numpy(part[:, 1] + 1)
                target = words[framed[row, position]]
                framed[row, position] = GAP_TYPE
                full = torch.full((len(part),), framed.shape[1])
                layers, _ = model.layers(vectors[framed], full)
                logits = model.head(model.read(layers[-1][row, position], "joint")).float()
                log_probability -= float(F.cross_entropy(logits, target, reduction="sum"))
                correct += int((logits.argmax(1) == target).sum())
    return GapScore(log_probability / len(gaps), correct / len(gaps))


@torch.inference_mode()
def perplexity(
    model: LanguageModel, vocabulary: list[str], corpus: Corpus, dtype: torch.dtype = torch.float32
) -> Perplexity:
    """Perplexity in both directions; ``dtype`` bfloat16 runs the products in it (a quick look)."""
    if "joint" in model.readout:
        raise ValueError("a masked language model has no perplexity: score its gaps instead")
    words = torch.from_numpy(corpus.word_ids(vocabulary))
    total, n_predictions = torch.zeros(2, dtype=torch.float64), 0
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        vectors = type_vectors(model, corpus)
        for sentences in batches(corpus):
            framed = torch.from_numpy(corpus.framed(sentences)).long()
            lengths = torch.full((len(framed),), framed.shape[1])
            layers, _ = model.layers(vectors[framed], lengths)
            halves = layers[-1].chunk(2, dim=-1)
            # the forward half at position k predicts word k + 1, the backward half word k - 1
            states = {"forward": halves[0][:, :-1], "backward": halves[1][:, 1:]}
            targets = {"forward": framed[:, 1:], "backward": framed[:, :-1]}
            for d, direction in enumerate(states):
                hidden = model.read(states[direction], direction).flatten(0, 1)
                target = words[targets[direction]].flatten()
                for h, t in zip(hidden.split(ROWS), target.split(ROWS), strict=True):
                    logits = model.head(h).float()
                    total[d] += F.cross_entropy(logits, t, reduction="sum").double()
            n_predictions += framed[:, 1:].numel()
    forward, backward = (total / n_predictions).tolist()
    return Perplexity(math.exp(forward), math.exp(backward), math.exp((forward + backward) / 2))
