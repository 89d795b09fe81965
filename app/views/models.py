"""What the models are: their cards, as the page shows them behind "Models"."""

from __future__ import annotations

from typing import Any

from app.encoders import ABOUT, LEAD
from app.services import Model, Services

CARD_FACTS = ("date", "seed", "command", "history")  # shown as they stand on the card


def cards_view(services: Services) -> list[dict[str, Any]]:
    """One card an encoder: a name and [label, value] pairs, text only."""
    given = [services.using(elmo).model(LEAD) for elmo in services.elmos]
    return [_card(model.kind, model) for model in (*services.models.values(), *given)]


def _card(kind: str, model: Model) -> dict[str, Any]:
    encoder = model.encoder
    facts = [
        ["layers", f"{encoder.n_layers}, each {encoder.d_model} wide"],
        [
            "reads",
            f"at most {encoder.max_tokens} tokens" if encoder.max_tokens else "any length",
        ],
    ]
    if not model.trained:
        facts.append(["weights", "random: no trained model was found"])
        return {
            "kind": kind,
            "name": model.label or ABOUT[kind].name,
            "facts": facts,
            "sources": [],
        }
    card = encoder.checkpoint.card if encoder.checkpoint else {}
    if n := card.get("n_parameters"):
        facts.append(["parameters", f"{n / 1e6:.1f} million"])
    if n := card.get("tokens_seen"):
        facts.append(["trained on", f"{n / 1e6:.1f} million tokens"])
    if n := card.get("minutes"):
        facts.append(["training time", f"{n:.0f} minutes"])
    for label, key in [("perplexity, test text", "test_perplexity"), ("gaps, test", "gap_logprob")]:
        if isinstance(values := card.get(key), dict):
            facts.append([label, ", ".join(f"{k} {_number(v)}" for k, v in values.items())])
    facts += [[key, str(card[key])] for key in CARD_FACTS if key in card]
    corpus = card.get("corpus")
    sources = corpus.get("sources", []) if isinstance(corpus, dict) else []
    return {
        "kind": kind,
        "name": model.label or ABOUT[kind].name,
        "facts": facts,
        "sources": [
            [str(s.get("name", "")), str(s.get("licence", "")), _share(s.get("share"))]
            for s in sources
        ],
    }


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | int) else str(value)


def _share(value: Any) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, float | int) else str(value or "")
