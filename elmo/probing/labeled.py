"""A visitor's labeled text: ``token<TAB>label`` lines, or CoNLL-U."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elmo.banks.bank import TokenBank
from elmo.encoders import Encoder
from elmo.probing.probe_tasks import plain_token

MAX_CHARACTERS = 1_000_000
MAX_SENTENCE_TOKENS = 64
MAX_TOKENS = 5_000
CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
LABEL_COLUMNS = ("upos", "xpos", "deprel")
BANK_TASKS = ("pos", "supersense")


@dataclass(frozen=True)
class LabeledTokens:
    """Sentences with a label a token; an empty label leaves the token out of the probe, but not
    out of the other tokens' context.

    what: the format it was read as, in words. n_dropped: sentences that were too long.
    """

    sentences: tuple[tuple[str, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    what: str
    n_dropped: int = 0

    @property
    def n_labeled(self) -> int:
        return sum(bool(label) for labels in self.labels for label in labels)


def parse_labeled(text: str, column: str = "upos") -> LabeledTokens:
    """Reads either format; which one is seen from the number of tabs in the first line of data.

    ``token<TAB>label``: one token a line, an empty line between sentences; a token without a tab
    has no label. CoNLL-U: ten columns, ``column`` says which holds the labels (``upos``, ``xpos``
    or ``deprel``); ranges (``1-2``) and empty nodes (``1.1``) are skipped, ``_`` is no label.
    Lines that start with ``# `` are comments. Sentences longer than 64 tokens are dropped and
    counted. Raises ``ValueError`` naming the line and what is wrong with it.
    """
    if column not in LABEL_COLUMNS:
        raise ValueError(f"column must be one of {', '.join(LABEL_COLUMNS)}, got {column!r}")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"at most {MAX_CHARACTERS:,} characters of labeled text are read, got {len(text):,}"
        )
    lines = text.removeprefix("\ufeff").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("# ")), "")
    conllu = first.count("\t") == len(CONLLU_COLUMNS) - 1
    if first and "\t" not in first:
        raise ValueError(
            f"no tab in {first[:40]!r}: write one token a line as token<TAB>label, with an empty"
            " line between sentences, or CoNLL-U"
        )
    sentences: list[tuple[str, ...]] = []
    labels: list[tuple[str, ...]] = []
    current: list[tuple[str, str]] = []
    n_dropped = n_tokens = 0
    for number, line in enumerate([*lines, ""], start=1):
        if line.startswith("# ") or line == "#":
            continue
        if line.strip():
            pair = _conllu_line(line, number, column) if conllu else _pair_line(line, number)
            if pair is not None:
                current.append(pair)
            continue
        if len(current) > MAX_SENTENCE_TOKENS:
            n_dropped += 1
        elif current:
            sentences.append(tuple(token for token, _ in current))
            labels.append(tuple(label for _, label in current))
            n_tokens += len(current)
        if n_tokens > MAX_TOKENS:
            raise ValueError(f"at most {MAX_TOKENS:,} tokens are read; line {number} is past that")
        current = []
    what = f"CoNLL-U, column {column}" if conllu else "token<TAB>label lines"
    result = LabeledTokens(tuple(sentences), tuple(labels), what, n_dropped)
    if not result.n_labeled:
        dropped = f"; {n_dropped} sentences are longer than {MAX_SENTENCE_TOKENS} tokens"
        raise ValueError(f"no labeled token found, read as {what}{dropped if n_dropped else ''}")
    return result


def _pair_line(line: str, number: int) -> tuple[str, str]:
    fields = line.split("\t")
    if len(fields) > 2:
        raise ValueError(
            f"line {number} has {len(fields)} columns: expected token<TAB>label, or CoNLL-U's ten"
            " columns from the first line on"
        )
    token = fields[0].strip()
    if not token or " " in token:
        raise ValueError(f"line {number}: the token must be one word, got {fields[0]!r}")
    return plain_token(token), fields[1].strip() if len(fields) == 2 else ""


def _conllu_line(line: str, number: int, column: str) -> tuple[str, str] | None:
    fields = line.split("\t")
    if len(fields) != len(CONLLU_COLUMNS):
        raise ValueError(f"line {number} has {len(fields)} columns instead of CoNLL-U's ten")
    identifier = fields[0]
    if "-" in identifier or "." in identifier:
        return None
    if not identifier.isdigit():
        raise ValueError(f"line {number}: the first column must be a number, got {identifier!r}")
    label = fields[CONLLU_COLUMNS.index(column)].strip()
    token = fields[1].strip().replace(" ", "\u00a0") or "_"
    return plain_token(token), "" if label == "_" else label


def labeled_features(
    encoder: Encoder, tokens: LabeledTokens
) -> tuple[np.ndarray, list[str], list[str], list[int]]:
    """What a probe needs, one row a labeled token: features (n, L, D) float32, labels, words, and
    the sentence of each."""
    encodings = encoder.encode(tokens.sentences)
    rows: list[np.ndarray] = []
    labels: list[str] = []
    words: list[str] = []
    sentences: list[int] = []
    for i, (encoding, own) in enumerate(zip(encodings, tokens.labels, strict=True)):
        kept = [k for k, label in enumerate(own) if label]
        rows.append(encoding.hidden[:, kept].swapaxes(0, 1))
        labels += [own[k] for k in kept]
        words += [encoding.tokens[k] for k in kept]
        sentences += [i] * len(kept)
    return np.concatenate(rows), labels, words, sentences


def bank_features(
    bank: TokenBank, what: str = "pos", n_tokens: int = 3_000, seed: int = 0
) -> tuple[np.ndarray, list[str], list[str], list[int]]:
    """The same of tokens of a bank whose source says something about them.

    what: ``pos``, or ``supersense`` (nouns and verbs alone: adjectives and adverbs have hardly
    more than one each). Of more than ``n_tokens`` so many are drawn at random. Raises
    ``ValueError`` for another ``what``, and where the bank knows nothing of the kind.
    """
    if what not in BANK_TASKS:
        raise ValueError(f"what must be one of {', '.join(BANK_TASKS)}, got {what!r}")
    known = []
    for row in np.flatnonzero(bank.tag >= 0).tolist():
        tag = bank.tags[bank.tag[row]]
        label = getattr(tag, what)
        if label and (what == "pos" or tag.pos in ("NOUN", "VERB")):
            known.append((row, label))
    if not known:
        raise ValueError(f"no token of this bank has a known {what}")
    if len(known) > n_tokens:
        chosen = np.random.default_rng([seed, 4]).choice(len(known), n_tokens, replace=False)
        known = [known[i] for i in np.sort(chosen)]
    rows = np.array([row for row, _ in known])
    return (
        np.asarray(bank.vectors[rows], dtype=np.float32),
        [label for _, label in known],
        [bank.token(row) for row in rows],
        bank.sentence[rows].tolist(),
    )
