"""From a line of text to tokens, and from a token to the ids of its characters.

Tokens are made as the training corpus was: Unicode NFC, typographic marks to their plain forms,
then NLTK's improved Penn Treebank tokenizer. Character ids follow the original ELMo (bytes of
UTF-8 between two end-of-word marks, shifted by one so that 0 means "no token here").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"
MASK = "<MASK>"  # the gap: a token of its own for masked language models and replacements

# Ids before the shift by one (original ELMo): bytes 0-255, then five marks.
_BOS_ID, _EOS_ID, _BEGIN_WORD, _END_WORD, _PAD_ID = 256, 257, 258, 259, 260
_BOUNDARIES = {BOS: _BOS_ID, EOS: _EOS_ID}
GAP = {MASK: 1}  # a control byte that no text contains after normalization
N_CHARACTERS = 262  # ids after the shift, 0 = no token

_REPLACEMENTS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a`\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2014\u2015", " -- "),
    **dict.fromkeys("\u2010\u2011\u2212", "-"),
    "\u2026": " ... ",
}
_TRANSLATION = str.maketrans(_REPLACEMENTS)
_EN_DASH_INSIDE = re.compile(r"(?<=\w)\u2013(?=\w)")
# Control characters, zero-width marks, byte-order mark; the joiners U+200C and U+200D stay
# where letters need them (Persian, Hindi, emoji) only between two non-space characters.
_INVISIBLE = re.compile("[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b\u200e\u200f\u2060\ufeff]")
_LOOSE_JOINER = re.compile("(?:(?<=\\s)|^)[\u200c\u200d]+|[\u200c\u200d]+(?=\\s|$)")
_CLITICS = {"'s", "'S", "'m", "'M", "'d", "'D", "'ll", "'LL", "'re", "'RE", "'ve", "'VE"}
_ELISIONS = {"'em", "'til", "'cause", "'n"}


def normalize(line: str) -> str:
    """One line of raw text with plain quotes, dashes and spaces, in Unicode NFC."""
    line = line.encode("utf-8", "ignore").decode("utf-8")  # a lone surrogate has no bytes
    line = unicodedata.normalize("NFC", line)
    line = _EN_DASH_INSIDE.sub("-", line).replace("\u2013", " -- ").translate(_TRANSLATION)
    line = _INVISIBLE.sub("", line)
    line = " ".join(line.split())
    return _LOOSE_JOINER.sub("", line)


@lru_cache(maxsize=1)
def _treebank():  # NLTK takes a second to import: not on the way to a module that only encodes
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


def _split_quotes(token: str) -> Iterable[str]:
    """Stray single quotes off a word's edges; clitics stay whole."""
    if len(token) < 2 or "'" not in token or token in _CLITICS or token in _ELISIONS:
        yield token
        return
    if token[0] == "'":
        yield "'"
        token = token[1:]
    if len(token) > 1 and token[-1] == "'":
        yield token[:-1]
        token = "'"
    yield token


def tokenize(line: str) -> list[str]:
    """Tokens of one raw sentence: ``do n't``, ``'s``, plain ``"``; an empty line has none."""
    tokens = []
    for token in _treebank().tokenize(normalize(line)):
        tokens.extend(['"'] if token in ("``", "''") else _split_quotes(token))
    return tokens


def sentences(text: str, pretokenized: bool = False) -> list[list[str]]:
    """One sentence a line; empty lines are skipped. ``pretokenized`` splits at blanks only."""
    split = str.split if pretokenized else tokenize
    return [tokens for line in text.splitlines() if (tokens := split(line))]


def char_ids(token: str, max_characters: int = 50, added: Mapping[str, int] = GAP) -> np.ndarray:
    """The (C,) int64 character ids of one token, C = ``max_characters``, all of them above 0.

    UTF-8 bytes, as many as fit between the two end-of-word marks, then word padding. ``<S>``,
    ``</S>`` and the tokens of ``added`` have one id of their own between the marks; an added
    token's is given before the shift (AllenNLP's ``tokens_to_add``). The original ELMo adds none.
    """
    special = added.get(token, _BOUNDARIES.get(token))
    if special is not None:
        inner = [special]
    else:
        inner = list(token.encode("utf-8", "ignore")[: max_characters - 2])
    ids = np.full(max_characters, _PAD_ID + 1, dtype=np.int64)
    ids[: len(inner) + 2] = [i + 1 for i in (_BEGIN_WORD, *inner, _END_WORD)]
    return ids


def is_truncated(token: str, max_characters: int = 50, added: Mapping[str, int] = GAP) -> bool:
    """Whether the token has more bytes than the character CNN reads."""
    if token in added or token in _BOUNDARIES:
        return False
    return len(token.encode("utf-8", "ignore")) > max_characters - 2
