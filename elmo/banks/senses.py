"""``python -m elmo senses``: are the nearest copies of a word of its own sense?

For every word of ``assets/examples.json``, in every sense: the word's other sentences ranked by
cosine under the mix with equal weights, the sentence itself left out. A sense is found where, on
average over its sentences, at least 3 of the 5 nearest copies are of the same sense. Beside it: the
same in each single layer, and the share to expect of copies taken blindly. In layer 0 all copies
tie, and their mean share counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from elmo.banks.bank import TokenBank, build_bank
from elmo.banks.tagged import Tag, TaggedSentence
from elmo.encoders import Encoder
from elmo.model_arguments import add_model_arguments, encoder_from
from elmo.text import tokenize

K = 5
ENOUGH = 3  # of K
EXAMPLES = Path(__file__).resolve().parents[2] / "assets" / "examples.json"
VIEWS = {  # of the vectors: (unit, centered), see elmo.banks.bank
    "as they are": (False, False),
    "mean removed": (False, True),
    "unit length": (True, False),
    "unit length, mean removed": (True, True),
}


@dataclass(frozen=True)
class SenseScore:
    """One sense of a word over its n sentences.

    mix, layers, chance: of the 5 nearest copies, the number of the same sense: under the mix, in
    each layer alone (L,), and to be expected.
    """

    word: str
    sense: str
    n: int
    mix: float
    layers: tuple[float, ...]
    chance: float

    @property
    def found(self) -> bool:
        return self.mix >= ENOUGH


def read_sense_examples(path: Path = EXAMPLES) -> list[TaggedSentence]:
    """The sentences of the examples that are about a word, the word tagged with its sense."""
    found = []
    for example in json.loads(path.read_text(encoding="utf-8"))["examples"]:
        word = example["word"]
        if word is None:
            continue
        pairs = zip(example["sentences"], example["senses"], strict=True)
        more = ((entry["text"], entry["sense"]) for entry in example["more"])
        for text, sense in (*pairs, *more):
            tokens = tuple(tokenize(text))
            tag = Tag(tokens.index(word), lemma=word, sense=f"{word}: {sense}")
            found.append(TaggedSentence(tokens, (tag,)))
    return found


def sense_bank(encoder: Encoder, sentences: Sequence[TaggedSentence]) -> TokenBank:
    """All tokens of the sentences, in memory. Sentences must fit the encoder."""
    encodings = encoder.encode([s.tokens for s in sentences])
    return build_bank([s.tokens for s in sentences], encodings, tags=[s.tags for s in sentences])


def score_senses(bank: TokenBank, unit: bool = False, centered: bool = True) -> list[SenseScore]:
    """Every sense that has tagged rows, in their order."""
    tagged = bank.select(tagged=True)
    n_layers = bank.n_layers
    mixes = np.concatenate([np.full((1, n_layers), 1 / n_layers), np.eye(n_layers)])
    by_sense: dict[Tag, list[np.ndarray]] = {}
    for row in tagged.tolist():
        tag = bank.tag_of(row)
        copies = tagged[bank.word[tagged] == bank.word[row]]
        copies = copies[copies != row]
        same = np.array([bank.tag_of(r).sense == tag.sense for r in copies.tolist()])
        if not len(copies):
            continue
        comparison = bank.compare(bank.vectors[row], unit=unit, centered=centered, rows=copies)
        shares = comparison.shares(same, K, mixes)
        by_sense.setdefault(tag, []).append(np.array([*shares, same.mean()]) * K)
    scores = []
    for tag, values in by_sense.items():
        word, _, sense = tag.sense.partition(": ")
        mix, *layers, chance = np.mean(values, axis=0).tolist()
        scores.append(SenseScore(word, sense, len(values), mix, tuple(layers), chance))
    return scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--examples", type=Path, default=EXAMPLES, metavar="JSON")
    parser.add_argument("--view", choices=VIEWS, default="mean removed")
    add_model_arguments(parser)


def run(options: argparse.Namespace) -> int:
    encoder = encoder_from(options)
    bank = sense_bank(encoder, read_sense_examples(options.examples))
    scores = score_senses(bank, *VIEWS[options.view])
    layers = "".join(f" layer {k}" for k in range(bank.n_layers))
    print(f"of the {K} nearest copies, the number of the same sense; {options.view}")
    print(f"{'':2}{'word':<12}{'sense':<28}{'n':>3}{'mix':>7}{layers}  chance")
    for score in scores:
        numbers = "".join(f"{value:8.2f}" for value in (*score.layers, score.chance))
        mark = "  " if score.found else "- "
        print(f"{mark}{score.word:<12}{score.sense:<28}{score.n:>3}{score.mix:7.2f}{numbers}")
    summary = summarize(scores)
    everywhere = {
        name: round(summarize(score_senses(bank, *view))["mix"], 4) for name, view in VIEWS.items()
    }
    summary = {"encoder": encoder.name, "view": options.view, **summary, "mix_by_view": everywhere}
    print(json.dumps(summary, ensure_ascii=False))
    return 0


def summarize(scores: Sequence[SenseScore]) -> dict:
    """Shares of the nearest copies over all senses, and which senses were not found."""
    values = [(s.mix, *s.layers, s.chance) for s in scores]
    mix, *layers, chance = (np.mean(values, axis=0) / K).round(4).tolist()
    return {
        "n_senses": len(scores),
        "n_found": sum(s.found for s in scores),
        "mix": mix,
        "layers": layers,
        "chance": chance,
        "not_found": [f"{s.word}: {s.sense}" for s in scores if not s.found],
    }
