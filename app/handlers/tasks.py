"""Tasks and Claims: the shipped table of probes, and a probe that learns in the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from app.handlers.events import data_of, index_of, message, request_of, shows_errors
from app.services import Services
from app.state import Selection
from app.views.tasks import claims_view, run_end_view, step_view, tasks_view
from elmo.probing.claim_evidence import shipped_differences
from elmo.probing.claim_list import CLAIMS
from elmo.probing.claims import judge
from elmo.probing.labeled import (
    BANK_TASKS,
    LABEL_COLUMNS,
    bank_features,
    labeled_features,
    parse_labeled,
)
from elmo.probing.probes import layer_accuracies, probe_steps, summarize, word_groups

MAX_SEED = 1_000
N_TOKENS = 3_000  # of WordNet's, for one probe
STEPS = 400
OWN = "own"  # labels that the visitor brought

Features = tuple[np.ndarray, list[str], list]  # (n, L, D), labels, groups


class TasksHandlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services

    def opening(self) -> dict[str, Any]:
        """What the tab Tasks knows before anyone trains."""
        limits = {"seeds": MAX_SEED, "tokens": N_TOKENS, "steps": STEPS}
        return {"table": tasks_view(self.services.probes), "columns": LABEL_COLUMNS} | limits

    def claims(self) -> list[dict[str, Any]]:
        """What the tab Claims shows."""
        settings = self.services.settings
        return claims_view(judge(CLAIMS, shipped_differences(settings.probes, settings.cloze)))

    @shows_errors
    def train(self, selection: Selection, sent: str) -> Iterator[str]:
        """A probe in training: a message a report, at the end one with what the layers can do."""
        request = request_of(sent)
        seed = index_of(sent, "seed", MAX_SEED)
        data = data_of(sent)
        services = self.services.using(selection.elmo)
        features, labels, groups = self._features(services, data, seed)
        reports = []
        for report in probe_steps(features, labels, groups, seed, STEPS):
            reports.append(report)
            yield _told(request, {"report": step_view(report)})
        run = summarize(reports, labels, groups, seed)
        layers = layer_accuracies(features, labels, groups, seed)
        yield _told(request, {"end": run_end_view(run, layers)})

    def _features(self, services: Services, data: dict[str, Any], seed: int) -> Features:
        """Where words are grouped, those held out were never trained on; own labels are held out by
        sentence."""
        kind, source = str(data.get("encoder")), data.get("source")
        model = services.model(kind)
        if source == OWN:
            column = str(data.get("column", LABEL_COLUMNS[0]))
            parsed = parse_labeled(str(data.get("text", "")), column)
            features, labels, _, sentences = labeled_features(model.encoder, parsed)
            return features, labels, sentences
        if source not in BANK_TASKS:
            allowed = ", ".join((*BANK_TASKS, OWN))
            raise ValueError(f"source must be one of {allowed}, got {source!r:.40}")
        bank = services.wordnet.banks.get(kind)
        if bank is None or model.label:
            raise ValueError(
                "WordNet's sentences are not there"
                + (
                    " for a model that you brought: paste labels of your own."
                    if model.label
                    else f" yet ({services.wordnet.status.state}): wait a little, or paste labels."
                )
            )
        features, labels, words, _ = bank_features(bank, source, N_TOKENS, seed)
        return features, labels, word_groups(words)


def _told(request: int, view: dict[str, Any]) -> str:
    return message({"probe": {"request": request, **view}})
