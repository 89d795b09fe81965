"""What a training step reads: distinct tokens' characters, and who stands where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from elmo.text import char_ids
from elmo.training.corpus import Corpus
from elmo.training.sampling import PAD_TO

GAP_TYPE = 2  # type id of the gap in every corpus


def char_table(types: list[str], max_characters: int) -> np.ndarray:
    """(n_types, C) int16 character ids of all types."""
    table = np.empty((len(types), max_characters), np.int16)
    for row, token in enumerate(types):
        table[row] = char_ids(token, max_characters)
    return table


@dataclass(frozen=True)
class Batch:
    """Sentences of equal length with their boundaries.

    char_ids: (M, C) of the batch's distinct types, the gap first, M padded to a multiple of 256.
    index: (B, T) each token's row in char_ids; words: (B, T) vocabulary ids. T counts the
    boundaries here. Under torch.distributed a process holds the ``rows`` of a batch of
    ``n_rows``.
    """

    char_ids: Tensor
    index: Tensor
    words: Tensor
    n_rows: int
    rows: slice


class Batcher:
    """Looks up what a batch of sentence numbers needs."""

    def __init__(self, corpus: Corpus, vocabulary: list[str], max_characters: int) -> None:
        self.corpus = corpus
        self.words = corpus.word_ids(vocabulary)
        self.characters = char_table(corpus.types, max_characters)

    def batch(self, sentences: np.ndarray, rank: int, world: int, device: str) -> Batch:
        """The rows rank, rank + world, ... of the batch."""
        rows = slice(rank, None, world)
        framed = self.corpus.framed(np.sort(sentences))[rows]
        distinct, index = np.unique(np.append(GAP_TYPE, framed.ravel()), return_inverse=True)
        gap = int(index[0])  # move the gap's row to the front
        order = np.r_[gap, 0:gap, gap + 1 : len(distinct)]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        distinct = np.pad(distinct[order], (0, -len(distinct) % PAD_TO))
        return Batch(
            torch.from_numpy(self.characters[distinct]).to(device),
            torch.from_numpy(place[index[1:]].reshape(framed.shape)).to(device),
            torch.from_numpy(self.words[framed]).to(device),
            len(sentences),
            rows,
        )
