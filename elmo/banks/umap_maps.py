"""Maps by UMAP (McInnes et al. 2018): neighborhoods are kept where they can be, distances are not.

Nothing here is linear: the map of a mix does not follow from the maps of the layers, vectors that
are equal come apart, and one more token may move all others. ``umap`` takes seconds to import and
compiles itself on the first fit, so it is imported by the function that fits; a program that must
not wait runs ``umap_worker`` beside it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from elmo.banks.layer_maps import turn_layers

MIN_TOKENS = 5  # of fewer, AlignedUMAP cannot make three axes
N_NEIGHBORS = 15


def fit_umap(
    vectors: np.ndarray,
    n_axes: int = 2,
    seed: int = 0,
    aligned: bool = False,
    report: Callable[[int], None] = lambda done: None,
) -> np.ndarray:
    """(N, L, D) -> (N, L, n_axes) float32, each layer about its mean. Equal input and seed give an
    equal map on one machine.

    aligned: all layers are laid out together, a token held near to itself one layer below
    (AlignedUMAP); else each by itself, then turned onto the one before. report: is told how many
    layers are done. Raises ``ValueError`` for fewer than five tokens.
    """
    n, n_layers, _ = vectors.shape
    if n < MIN_TOKENS:
        raise ValueError(f"UMAP needs {MIN_TOKENS} tokens or more, got {n}")
    import umap

    options = {
        "n_components": n_axes,
        "n_neighbors": min(N_NEIGHBORS, n - 1),
        "random_state": seed,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed means one thread, among others
        if aligned and n_layers > 1:
            same = [{i: i for i in range(n)}] * (n_layers - 1)
            layers = [np.ascontiguousarray(vectors[:, k]) for k in range(n_layers)]
            found = umap.AlignedUMAP(**options).fit(layers, relations=same).embeddings_
            report(n_layers)
            layered = np.stack(list(found), axis=1)
            return (layered - layered.mean(axis=0)).astype(np.float32)
        maps = []
        for k in range(n_layers):
            # Principal components to start from: other starts fail on very few points.
            maps.append(umap.UMAP(init="pca", n_jobs=1, **options).fit_transform(vectors[:, k]))
            report(k + 1)
    return turn_layers(np.stack(maps, axis=1)).astype(np.float32)
