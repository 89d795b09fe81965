"""Which character filters fire on a word, and on which of its letters (Kim et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from elmo.char_cnn import CharCNN
from elmo.text import char_ids

_MARKS = {258: "\u2039", 259: "\u203a", 260: "\u00b7"}  # begin and end of a word, padding


@dataclass(frozen=True)
class Firing:
    """A filter of so many characters, the letters it fires on and how strongly.

    above: its activated maximum in standard deviations above its mean over common words.
    """

    width: int
    index: int
    letters: str
    start: int
    above: float


@torch.no_grad()
def usual_maxima(cnn: CharCNN, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every filter's maximum over words, (F,) each."""
    maxima = cnn.filter_maxima(_ids(cnn, words)).numpy()
    return maxima.mean(axis=0), np.maximum(maxima.std(axis=0), 1e-6)


@torch.no_grad()
def firing(
    cnn: CharCNN, word: str, usual: tuple[np.ndarray, np.ndarray], count: int = 12
) -> list[Firing]:
    """The ``count`` filters that fire most above their usual maximum, strongest first.

    Windows that hold nothing but padding do not count: they are the same for every word.
    """
    ids = _ids(cnn, [word])
    above = (cnn.filter_maxima(ids)[0].numpy() - usual[0]) / usual[1]
    x = cnn.embedding(ids[:, : cnn.n_positions(ids)]).transpose(1, 2)
    starts = torch.cat([c(x).argmax(dim=2)[0] for c in cnn.convolutions]).tolist()
    names = [(width, i) for width, n in cnn.config.filters for i in range(n)]
    found = []
    for f in np.argsort(-above, kind="stable").tolist():
        width, index = names[f]
        window = ids[0, starts[f] : starts[f] + width].tolist()
        if all(c == 261 for c in window):
            continue
        found.append(Firing(width, index, _letters(window), starts[f], float(above[f])))
        if len(found) == count:
            break
    return found


def spellings(word: str) -> list[tuple[str, str]]:
    """Inflections and misspellings of a word, each with what was done to it."""
    made = [(word + ending, f"-{ending}") for ending in ("s", "ed", "ing", "ness")]
    made.append(("un" + word, "un-"))
    middle = len(word) // 2
    if len(word) > 2:
        swapped = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
        made.append((swapped, "two letters swapped"))
        made.append((word[:middle] + word[middle + 1 :], "a letter left out"))
    made.append((word[: middle + 1] + word[middle:], "a letter doubled"))
    made.append((word.capitalize() if word.islower() else word.lower(), "other case"))
    return [(text, how) for text, how in made if text != word]


def _ids(cnn: CharCNN, words: Sequence[str]) -> torch.Tensor:
    rows = np.stack([char_ids(word, cnn.config.max_characters) for word in words])
    return torch.from_numpy(rows.astype(np.int64)).to(cnn.embedding.weight.device)


def _letters(window: Sequence[int]) -> str:
    """Shifted ids as text; bytes that are part of a letter only show as U+FFFD."""
    text, held = "", bytearray()
    for c in [*(i - 1 for i in window), None]:
        if c is not None and c < 256:
            held.append(c)
            continue
        text += held.decode("utf-8", "replace")
        held.clear()
        text += "" if c is None else _MARKS.get(c, "\u00b7")
    return text
