"""A process that fits UMAP maps, one after the other: ``python -m elmo.banks.umap_worker``.

It reads jobs from its standard input (``messages``: "fit" with [n_axes, seed, aligned] and the
vectors) and writes: "ready" once, then for each job "layers" with how many are done, and at last
"map" with the coordinates or "failed" with the reason. It ends with its input, and so with the
program that started it.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import BinaryIO

import numpy as np

from elmo.banks.messages import receive, send
from elmo.banks.umap_maps import fit_umap

NICENESS = 5  # whoever clicks on the page goes first


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    tell = partial(send, answers)
    warm_up = np.random.default_rng(0).normal(size=(20, 1, 8)).astype(np.float32)
    fit_umap(warm_up)  # compiles what every fit needs
    tell("ready")
    while True:
        try:
            _, (n_axes, seed, aligned), vectors = receive(jobs)
        except EOFError:
            return
        try:
            found = fit_umap(vectors, n_axes, seed, aligned, lambda done: tell("layers", done))
        except Exception as error:  # the next job may do better
            tell("failed", f"{type(error).__name__}: {error}")
        else:
            tell("map", array=found)


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    serve(sys.stdin.buffer, answers)
