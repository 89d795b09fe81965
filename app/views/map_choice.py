"""Every encoder's maps in the projection that the visitor chose."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict
from typing import Any

import numpy as np

from app.services import Services, Tokens
from app.state import Selection
from app.umap_service import Fit, Progress
from app.views.maps import (
    MIN_OCCURRENCES,
    behind_view,
    drawn_rows,
    free_row,
    map_row,
    word_basis,
)
from elmo.banks.bank import TokenBank
from elmo.banks.projection import Basis
from elmo.banks.umap_maps import MIN_TOKENS

UMAPS = ("umap", "aligned")


def maps_view(services: Services, sentences: Tokens, selection: Selection) -> dict[str, Any]:
    """wanted: the chosen axes; waits: whether those are being fitted, and others are shown until
    then; text: which text this is about; notice: why others are shown; encoders: rows of maps."""
    view: dict[str, Any] = {
        "notice": None,
        "wanted": selection.basis,
        "waits": False,
        "dims": selection.dims,
        "seed": selection.seed,
        "behind": selection.behind,
        "text": text_id(sentences),
        "encoders": {},
    }
    found = None
    if selection.basis in UMAPS:
        fits = umap_fits(services, sentences, selection)
        found = services.umap.found(list(fits))
        view["waits"] = found is None
        if not fits:
            view["notice"] = f"UMAP needs {MIN_TOKENS} tokens or more: the axes stay those of all."
    for kind in services.models:
        row = _umap_row(services, kind, sentences, selection, found or {})
        if row is None:
            row, notice = _linear_row(services, kind, sentences, selection)
            view["notice"] = notice or view["notice"]
        view["encoders"][kind] = row
    return view


def text_id(sentences: Tokens) -> str:
    return f"{hash(sentences):x}"


def _linear_row(
    services: Services, kind: str, sentences: Tokens, selection: Selection
) -> tuple[dict[str, Any], str | None]:
    """The row, and why it is not what was wanted."""
    word = sentences[selection.sentence][selection.token]
    limit, dims = services.settings.max_map_tokens, selection.dims
    model, text = services.model(kind), services.encode(kind, sentences)
    basis, used, notice = model.basis, "all", None
    if selection.basis == "word":
        fitted = word_basis(word, text, model.bank, model.basis.scale)
        basis, used = (model.basis, "all") if fitted is None else (fitted, "word")
        if fitted is None:
            notice = (
                f"\u201c{word}\u201d occurs less than {MIN_OCCURRENCES} times in the text and"
                " the examples: the axes stay those of all words."
            )
    if selection.basis == "layers":
        basis = services.layer_basis(kind)
        rows = drawn_rows(text, word, limit)
        coordinates = basis.project(text.vectors[rows])[..., :dims]
        row = free_row(text, rows, _standardized(text, rows, basis), coordinates, word, "layers")
    else:
        row = map_row(text, basis, model.spread, word, limit, used, dims)
    if selection.behind:
        row["behind"] = behind_view(model.bank, basis, dims)
    return row, notice


def _standardized(text: TokenBank, rows: np.ndarray, basis: Basis) -> np.ndarray:
    return basis.standardize(text.vectors[rows])


# ---- UMAP ----------------------------------------------------------------------------------------


def umap_fits(services: Services, sentences: Tokens, selection: Selection) -> dict[Hashable, Fit]:
    """What has to be fitted for the chosen UMAP, by encoder; none for very few tokens."""
    fits = {}
    for kind in services.models:
        rows = _umap_rows(services, kind, sentences, selection)
        if len(rows) < MIN_TOKENS:
            continue
        model, text = services.model(kind), services.encode(kind, sentences)
        fits[_umap_key(services, kind, sentences, selection)] = Fit(
            lambda text=text, rows=rows, basis=model.basis: _standardized(text, rows, basis),
            text.n_layers,
            selection.dims,
            selection.seed,
            selection.basis == "aligned",
        )
    return fits


def _umap_rows(
    services: Services, kind: str, sentences: Tokens, selection: Selection
) -> np.ndarray:
    word = sentences[selection.sentence][selection.token]
    return drawn_rows(services.encode(kind, sentences), word, services.settings.max_map_tokens)


def _umap_key(services: Services, kind: str, sentences: Tokens, selection: Selection) -> Hashable:
    """All that a map follows from."""
    rows = _umap_rows(services, kind, sentences, selection)
    name = (kind, services.model(kind).label, services.model(kind).trained)
    return name, sentences, rows.tobytes(), selection.basis, selection.dims, selection.seed


def _umap_row(
    services: Services,
    kind: str,
    sentences: Tokens,
    selection: Selection,
    found: dict[Hashable, np.ndarray],
) -> dict[str, Any] | None:
    coordinates = found.get(_umap_key(services, kind, sentences, selection)) if found else None
    if coordinates is None:
        return None
    text, word = services.encode(kind, sentences), sentences[selection.sentence][selection.token]
    rows = _umap_rows(services, kind, sentences, selection)
    vectors = _standardized(text, rows, services.model(kind).basis)
    return free_row(text, rows, vectors, coordinates, word, selection.basis)


def fitting_view(progress: Progress) -> dict[str, Any]:
    return asdict(progress) | {"seconds": round(progress.seconds)}
