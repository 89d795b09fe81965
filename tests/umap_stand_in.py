"""Speaks like ``elmo.banks.umap_worker`` and needs no UMAP: the map is the first coordinates, and a
layer takes as many hundredths of a second as the seed says. A seed of 13 ends the process."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from elmo.banks.messages import receive, send  # noqa: E402


def serve(jobs, answers):
    send(answers, "ready")
    while True:
        try:
            _, (n_axes, seed, _), vectors = receive(jobs)
        except EOFError:
            return
        if seed == 13:
            return
        for layer in range(vectors.shape[1]):
            time.sleep(seed / 100)
            send(answers, "layers", layer + 1)
        send(answers, "map", array=vectors[:, :, :n_axes] + 0.01 * os.getpid())


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
