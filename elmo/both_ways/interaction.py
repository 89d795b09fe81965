"""Do the two sides meet? Edit the left, the right, and both.

With a left context L or L' and a right context R or R',

    I_t = [h(L',R') - h(L',R)] - [h(L,R') - h(L,R)]

is what the vector at t does with both edits beyond what it does with each alone.

*Why it is 0 between the edits for concatenated directions.* Let t lie strictly between. The
forward half at t is a function of the tokens up to t alone, which hold the left edit but not the
right one: h(L',R') and h(L',R) have the same forward half, and so have h(L,R') and h(L,R). Both
brackets are 0 in that half. The backward half is a function of the tokens from t on: it does not
change with L, so the two brackets are the same vector and their difference is 0. Concatenation
puts the two halves side by side and adds nothing; a sum of layers weights zeros. In floating
point the argument holds to the last bit, because equal inputs in equally shaped runs give equal
outputs, and x - x is 0 for every x.

It is a statement about the vector. A reader of the vector that is not linear, the cosine included,
can still combine the sides. Outside the edits, and on an edited word, one half has seen both edits
and I is not 0 there.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmo.both_ways.arithmetic import Edit, Interaction, InteractionSummary
from elmo.both_ways.variants import Variants, check_sentence
from elmo.encoders import Encoder, load_encoder
from elmo.text import tokenize

log = logging.getLogger(__name__)
N_BOOTSTRAP = 2_000


def apply_edit(tokens: Sequence[str], edit: Edit) -> tuple[str, ...]:
    """The sentence with one edit made. Raises ``ValueError`` for an edit that changes nothing,
    lies outside, or is empty."""
    if not edit.words or not 0 <= edit.start <= edit.stop <= len(tokens):
        raise ValueError(
            f"an edit must replace words 0 to {len(tokens) - 1} of the sentence, got {edit}"
        )
    for word in edit.words:
        if not word or word.split() != [word]:
            raise ValueError(f"an edit replaces words by as many words, got {word!r}")
    if tuple(tokens[edit.start : edit.stop]) == edit.words:
        raise ValueError(f"the edit leaves {' '.join(edit.words)!r} as it is")
    return (*tokens[: edit.start], *edit.words, *tokens[edit.stop :])


def interaction(encoder: Encoder, tokens: Sequence[str], left: Edit, right: Edit) -> Interaction:
    """All four runs, each on its own, of one shape and with shared context-free vectors.

    Raises ``ValueError`` unless ``left`` ends before ``right`` starts with a word between.
    """
    tokens = check_sentence(tokens)
    left_only, right_only = apply_edit(tokens, left), apply_edit(tokens, right)
    if left.stop >= right.start:
        raise ValueError(
            "the left edit must end before the right one starts, with at least one word between:"
            f" words {left.start} to {left.stop - 1} and {right.start} to {right.stop - 1} do not"
        )
    both = apply_edit(left_only, right)
    runs = [tokens, right_only, left_only, both]
    hidden = Variants(encoder, runs).run_alone(runs)
    return Interaction(
        encoder=encoder.name,
        tokens=tokens,
        left=left,
        right=right,
        hidden=hidden.reshape(2, 2, *hidden.shape[1:]),
    )


def summarize(results: Sequence[Interaction], seed: int = 0) -> InteractionSummary:
    """Sizes between the edits over several sentences of one encoder."""
    if not results or len({r.encoder for r in results}) != 1:
        raise ValueError("a summary needs interactions of one encoder")
    between = [(r, slice(r.between.start, r.between.stop)) for r in results]
    size = np.stack([r.size[:, span].mean(axis=1) for r, span in between])  # (N, L)
    share = np.stack([r.share[:, span].mean(axis=1) for r, span in between])  # NaN if unchanged
    rows = np.random.default_rng(seed).integers(len(size), size=(N_BOOTSTRAP, len(size)))
    low, high = np.percentile(size[rows].mean(axis=1), (2.5, 97.5), axis=0)
    return InteractionSummary(
        encoder=results[0].encoder,
        size=size,
        mean=size.mean(axis=0),
        low=low,
        high=high,
        share=share.mean(axis=0),
        n_vectors=sum(len(r.between) for r in results),
        n_zero=sum(r.exactly_zero[:, span].sum(axis=1) for r, span in between),
        n_unchanged=sum(r.unchanged[:, span].sum(axis=1) for r, span in between),
    )


def read_examples(path: str | Path) -> list[tuple[tuple[str, ...], Edit, Edit]]:
    """Sentences with a ``left`` and a ``right`` edit, each a pair [word, replacement].

    Raises ``ValueError`` where a word does not stand in its sentence exactly once.
    """
    examples = []
    for entry in json.loads(Path(path).read_text("utf-8"))["examples"]:
        tokens = tuple(tokenize(entry["text"]))
        edits = []
        for word, replacement in (entry["left"], entry["right"]):
            if tokens.count(word) != 1:
                raise ValueError(f"{word!r} must stand once in {entry['text']!r}")
            edits.append(Edit(tokens.index(word), (replacement,)))
        examples.append((tokens, *edits))
    return examples


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", required=True, metavar="FOLDER")
    parser.add_argument("--examples", default="assets/edits.json", metavar="JSON")
    parser.add_argument("--out", default="assets/interaction.json", metavar="JSON")


def run(options: argparse.Namespace) -> None:
    """Average size of the interaction over the examples, by layer and encoder, as JSON."""
    examples = read_examples(options.examples)
    encoders = []
    for folder in options.models:
        encoder = load_encoder(folder)
        summary = summarize([interaction(encoder, *example) for example in examples])
        encoders.append(
            {
                "encoder": summary.encoder,
                "n_examples": len(examples),
                "n_vectors": summary.n_vectors,
                "n_zero": summary.n_zero.tolist(),
                "n_unchanged": summary.n_unchanged.tolist(),
                "mean": summary.mean.round(5).tolist(),
                "low": summary.low.round(5).tolist(),
                "high": summary.high.round(5).tolist(),
                "share": [None if np.isnan(x) else round(float(x), 5) for x in summary.share],
            }
        )
        log.info("%s: %s", summary.encoder, summary.mean.round(3))
    text = json.dumps({"version": 1, "encoders": encoders}, indent=1)
    Path(options.out).write_text(text + "\n", encoding="utf-8")
