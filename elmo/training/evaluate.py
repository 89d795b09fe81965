"""``python -m elmo evaluate``: held-out perplexity with the full softmax, every sentence alone from
the zero state, and the scores of held-out gaps (``gaps``)."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import logging
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmo.checkpoint import UNIGRAM, load_model
from elmo.config import ModelConfig
from elmo.language_model import LanguageModel, build
from elmo.sentence_scores import Perplexity
from elmo.training.batches import char_table
from elmo.training.corpus import Corpus, load, read_sentences

log = logging.getLogger(__name__)
ROWS = 1_024  # rows of logits at a time


def unigram(corpus: Corpus, vocabulary: list[str]) -> np.ndarray:
    """(V,) float32 log-probabilities of words in a text, boundaries not counted; what never
    occurs counts as half an occurrence."""
    counts = np.bincount(corpus.word_ids(vocabulary), corpus.counts, len(vocabulary))
    return np.log(np.maximum(counts, 0.5) / corpus.n_tokens).astype(np.float32)


def equal_lengths(corpus: Corpus, tokens_per_batch: int = 4_096) -> Iterator[np.ndarray]:
    """Sentence numbers in groups of equal length, shortest first."""
    order = np.argsort(corpus.lengths, kind="stable")
    cuts = np.flatnonzero(np.diff(corpus.lengths[order])) + 1
    for group in np.split(order, cuts):
        rows = max(1, tokens_per_batch // int(corpus.lengths[group[0]]))
        for start in range(0, len(group), rows):
            yield group[start : start + rows]


def type_vectors(model: LanguageModel, corpus: Corpus) -> Tensor:
    """(n_types, P) context-free vectors of all types of a corpus."""
    device = model.head.weight.device
    ids = torch.from_numpy(char_table(corpus.types, model.config.char.max_characters)).long()
    order = (ids != ids.max()).sum(1).argsort()  # words of like length together
    vectors = torch.empty(len(ids), model.config.stack.d_input, device=device)
    for part in order.split(1024):
        vectors[part.to(device)] = model.token_encoder(ids[part].to(device)).float()
    return vectors


def products_in(dtype: torch.dtype, device: torch.device) -> torch.autocast:
    return torch.autocast(device.type, dtype, enabled=dtype != torch.float32)


def read_both_ways(
    model: LanguageModel, corpus: Corpus
) -> Iterator[tuple[np.ndarray, Tensor, Tensor, Tensor]]:
    """Groups of sentences: their numbers, their types (B, T + 2) with boundaries, and what the
    softmax reads at every position: forward states, which predict the token to the right, and
    backward states, which predict the one to the left, each (B, T + 2, P)."""
    vectors = type_vectors(model, corpus)
    for sentences in equal_lengths(corpus):
        framed = torch.from_numpy(corpus.framed(sentences)).long().to(vectors.device)
        lengths = torch.full((len(framed),), framed.shape[1], device=vectors.device)
        layers, _ = model.layers(vectors[framed], lengths)
        forward, backward = layers[-1].chunk(2, dim=-1)
        yield (
            *(sentences, framed),
            *(model.read(forward, "forward"), model.read(backward, "backward")),
        )


@torch.inference_mode()
def perplexity(
    model: LanguageModel, vocabulary: list[str], corpus: Corpus, dtype: torch.dtype = torch.float32
) -> Perplexity:
    """Perplexity in both directions; ``dtype`` bfloat16 runs the products in it (a quick look).

    Raises ``ValueError`` for a masked language model, which has none.
    """
    if "joint" in model.readout:
        raise ValueError("a masked language model has no perplexity: score its gaps instead")
    device = model.head.weight.device
    words = torch.from_numpy(corpus.word_ids(vocabulary)).to(device)
    total, n_predictions = torch.zeros(2, dtype=torch.float64), 0
    with products_in(dtype, device):
        for _, framed, forward, backward in read_both_ways(model, corpus):
            pairs = (forward[:, :-1], framed[:, 1:]), (backward[:, 1:], framed[:, :-1])
            for d, (states, types) in enumerate(pairs):
                hidden, target = states.flatten(0, 1), words[types].flatten()
                for h, t in zip(hidden.split(ROWS), target.split(ROWS), strict=True):
                    logits = model.head(h).float()
                    total[d] += F.cross_entropy(logits, t, reduction="sum").double().cpu()
            n_predictions += framed[:, 1:].numel()
    forward, backward = (total / n_predictions).tolist()
    return Perplexity(math.exp(forward), math.exp(backward), math.exp((forward + backward) / 2))


# ------------------------------------------------------------------------------ command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", type=Path, required=True, help="model folder, or a checkpoint of a run")
    add("--text", type=Path, required=True, help="held-out text, .txt or .txt.xz")
    add("--gaps", type=int, default=20_000, help="random gaps to score (0: none)")
    add("--tune", type=Path, help="other held-out text, to tune the product's exponents on")
    add("--sentences", type=int, help="only so many, from the beginning of each text")
    add("--threads", type=int, default=os.cpu_count())
    add("--write", action="store_true", help="put the scores on the folder's card.json")


def run(args: argparse.Namespace) -> int:
    from elmo.training import gaps

    torch.set_num_threads(args.threads)
    if args.write and not args.model.is_dir():
        raise ValueError(f"--write needs a model folder, and {args.model} is none")
    model, vocabulary, log_p = _load(args.model)
    if args.write and args.gaps and not args.tune and model.config.kind != "attention":
        raise ValueError("--write needs --tune: a language model's card holds the tuned product")
    longest = getattr(model.config.stack, "max_tokens", None)
    corpus = _held_out(args.text, args.sentences, longest)
    results: dict[str, Any] = {}
    if model.config.kind != "attention":
        results["test_perplexity"] = _rounded(perplexity(model, vocabulary, corpus))
        log.info("perplexity %s", results["test_perplexity"])
    if args.gaps:
        chosen = gaps.random_gaps(corpus, args.gaps)
        if model.config.kind == "attention":
            scores = {"joint": gaps.joint_score(model, vocabulary, corpus, chosen)}
        else:
            exponents = gaps.PLAIN_PRODUCT
            if args.tune:
                other = _held_out(args.tune, args.sentences, longest)
                exponents = gaps.tune_exponents(
                    model, vocabulary, log_p, other, gaps.random_gaps(other, gaps.N_TUNING)
                )
            scores = gaps.one_sided_scores(model, vocabulary, log_p, corpus, chosen, exponents)
            if args.tune:
                results["gap_exponents"] = dataclasses.asdict(exponents)
            else:
                del scores["tuned_product"]
        results["n_gaps"] = len(chosen)
        results["gap_logprob"] = {k: round(s.log_probability, 4) for k, s in scores.items()}
        results["gap_accuracy"] = {k: round(s.accuracy, 4) for k, s in scores.items()}
    if args.write:
        card = args.model / "card.json"
        values = {**json.loads(card.read_text("utf-8")), **results}
        card.write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(json.dumps(results))
    return 0


def _load(path: Path) -> tuple[LanguageModel, list[str], np.ndarray]:
    """Model, vocabulary and unigram log-probabilities of a model folder, or of a run's checkpoint
    in float32 as it was trained."""
    if path.is_dir():
        loaded = load_model(path)
        return loaded.model, loaded.vocabulary, loaded.unigram
    state = torch.load(path, map_location="cpu", weights_only=True)
    model = build(ModelConfig.from_dict(json.loads(state["model_config"])))
    model.load_state_dict(state["trainer"]["model"])
    return model.eval(), state["vocabulary"], state[UNIGRAM].numpy()


def _held_out(path: Path, n_sentences: int | None, longest: int | None) -> Corpus:
    """Raises ``ValueError`` for a sentence that the model cannot read."""
    corpus = load(itertools.islice(read_sentences([path]), n_sentences))
    if longest is not None and corpus.n_sentences and (n := int(corpus.lengths.max())) > longest:
        line = int(corpus.lengths.argmax()) + 1
        raise ValueError(
            f"{path}: sentence {line} has {n} tokens, and this model reads {longest} at most"
        )
    return corpus


def _rounded(scores: Any) -> dict[str, float]:
    return {name: round(value, 3) for name, value in dataclasses.asdict(scores).items()}
