"""How contextual every layer is and how far it looks, measured on labeled text's sentences.

Part of ``python -m elmo probe``: ``metrics`` over a few thousand sentences for each encoder,
the reach of influence over some of them, and the differences between layers that claims rest on.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elmo.probing.metrics import layer_geometry, one_per_sentence, unit
from elmo.probing.probe_features import EncoderSource, cached_spans
from elmo.results import Difference, LayerGeometry

if TYPE_CHECKING:
    from elmo.probing.probe import Plan

DATASET = "pos_dep_ewt"  # whose spans are all single tokens, one for every token
N_REACH = 60
REACH_TOKENS = range(12, 21)
N_RESAMPLES = 1_000


def geometry_job(plan: Plan, source: EncoderSource) -> str:
    """Measures one encoder, unless its numbers are in the cache already."""
    path = _path(plan, source)
    if not path.is_file():
        text = plan.text(DATASET, "train")
        name = plan.table_name(DATASET, "train")
        table = cached_spans(source, text, name, plan.cache)
        words = [text.sentences[s][positions[0]] for s, positions in text.spans]
        sentence = np.array([s for s, _ in text.spans])
        geometry = layer_geometry(table, words, sentence, source.name)
        differences = self_similarity_differences(geometry, table, sentence)
        distances = reach_distances(source, text.sentences)
        differences += reach_differences(source.name, distances)
        value = {
            "geometry": {
                field.name: _plain(getattr(geometry, field.name))
                for field in dataclasses.fields(geometry)
            },
            "mean_distance": _plain(distances.mean(axis=0)) if len(distances) else None,
            "differences": [dataclasses.asdict(d) for d in differences],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(value), encoding="utf-8")
        temporary.replace(path)
    return f"measured the layers of {source.name}"


def write_geometry(path: Path, plan: Plan, sources: Sequence[EncoderSource], command: str) -> None:
    encoders = {s.name: json.loads(_path(plan, s).read_text("utf-8")) for s in sources}
    value = {"command": command, "data": DATASET, "encoders": encoders}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value) + "\n", encoding="utf-8")


def read_geometry(path: str | Path) -> tuple[dict[str, LayerGeometry], list[Difference]]:
    """By encoder's name, and all differences. Raises ``ValueError`` for any other file."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        geometries, differences = {}, []
        for name, value in data["encoders"].items():
            fields = {
                key: np.array(x, dtype=float) if isinstance(x, list) and key != "words" else x
                for key, x in value["geometry"].items()
            }
            fields["words"] = tuple(fields["words"])
            geometries[name] = LayerGeometry(**fields)
            differences += [Difference(**d) for d in value["differences"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a file of layer measures: {error}") from error
    return geometries, differences


def self_similarity_differences(
    geometry: LayerGeometry, vectors: np.ndarray, sentence: np.ndarray
) -> list[Difference]:
    """Self-similarity of each layer minus that of the next, raw and adjusted; words and the random
    tokens behind the baseline are both resampled."""
    rng = np.random.default_rng(0)
    n_words, n_layers = geometry.by_word.shape
    units = unit(vectors[one_per_sentence(sentence)[:5_000]]).astype(np.float32)
    n = len(units)
    draws = rng.multinomial(n, np.full(n, 1 / n), N_RESAMPLES).astype(np.float32)
    # a token drawn twice is no pair with itself: take away all equal pairs
    equal = np.square(draws).sum(axis=1)
    pairs = n * n - equal
    baselines = np.stack(
        [
            (np.square(draws @ units[:, k]).sum(axis=1, dtype=np.float64) - equal) / pairs
            for k in range(n_layers)
        ],
        axis=1,
    )
    of_words = rng.multinomial(n_words, np.full(n_words, 1 / n_words), N_RESAMPLES) / n_words
    raw = of_words @ geometry.by_word  # (R, L)
    measures = {
        "self_similarity": (geometry.adjusted_self_similarity[0], raw - baselines),
        "self_similarity_raw": (geometry.self_similarity[0], raw),
    }
    return [
        _difference(
            f"{name}.{geometry.encoder}.{k}-{k + 1}",
            plain[k] - plain[k + 1],
            resampled[:, k] - resampled[:, k + 1],
            "cosine",
            f"{n_words:,} words" + (f", {n:,} random tokens" if resampled is not raw else ""),
        )
        for name, (plain, resampled) in measures.items()
        for k in range(n_layers - 1)
    ]


def reach_distances(
    source: EncoderSource, sentences: Sequence[tuple[str, ...]], n_sentences: int = N_REACH
) -> np.ndarray:
    """(n, L) mean distance from which a vector is influenced, a sentence a row (see
    ``elmo.both_ways.reach``); every word replaced by two random frequent ones."""
    from elmo.both_ways.influence import random_replacements, replacement_grid
    from elmo.both_ways.reach import reach

    encoder = source.load()
    chosen = [s for s in sentences if len(s) in REACH_TOKENS]
    chosen = chosen[:: max(1, len(chosen) // n_sentences)][:n_sentences]
    counts: dict[str, int] = {}
    for s in sentences:
        for token in s:
            if token.isalpha() and token.islower():
                counts[token] = counts.get(token, 0) + 1
    words = sorted(counts, key=lambda word: (-counts[word], word))[:2_000]
    rows = []
    for i, sentence in enumerate(chosen):
        grid = replacement_grid(encoder, sentence, random_replacements(sentence, words, 2, seed=i))
        rows.append(reach([grid]).mean_distance[0])
    return np.array(rows)


def reach_differences(name: str, distances: np.ndarray) -> list[Difference]:
    """Mean distance of each contextual layer minus that of the one below; sentences resampled."""
    if not len(distances):
        return []
    n, n_layers = distances.shape
    draws = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), N_RESAMPLES) / n
    return [
        _difference(
            f"reach.{name}.{k + 1}-{k}",
            gap.mean(),
            draws @ gap,
            "tokens",
            f"{n} sentences of {REACH_TOKENS.start} to {REACH_TOKENS.stop - 1} tokens",
        )
        for k in range(1, n_layers - 1)
        for gap in [distances[:, k + 1] - distances[:, k]]
    ]


def _difference(key: str, mean: float, draws: np.ndarray, unit: str, n: str) -> Difference:
    low, high = np.percentile(draws, [2.5, 97.5])
    return Difference(key, float(mean), float(low), float(high), unit, n)


def _path(plan: Plan, source: EncoderSource) -> Path:
    name = f"{source.key}-{plan.table_name(DATASET, 'train')}.json"
    return plan.cache / "geometry" / plan.settings.digest / name


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return None if np.isnan(value) else round(value, 5)
    return value
