"""Sharing: the view as a link with a QR code, and a view opened from a link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

from app.handlers.events import data_of, message, shows_errors
from app.handlers.page import Handlers
from app.link import CHOSEN, MAX_LINK, View, decode, encode, options_of, shortened, weights_of
from app.qr import qr_view
from app.services import Services, Tokens
from app.state import Selection
from app.views.page import bank_view
from elmo.text import sentences as split_sentences

MAX_ADDRESS = 300


class ShareHandlers:
    """Bound to the page's handlers; holds nothing of any visitor. tabs: ids of those there are."""

    def __init__(self, page: Handlers, tabs: Sequence[str]) -> None:
        self.page, self.services, self.tabs = page, page.services, tuple(tabs)

    @shows_errors
    def link(self, selection: Selection, sent: str) -> str:
        """The link to what the visitor sees, its QR code, and what the link leaves out."""
        data = data_of(sent)
        address = _address(data.get("address"))
        view = self._view(selection, data)
        code, held = shortened(view)
        link = f"{address}#view={code}"
        share = {"link": link, "qr": qr_view(link), "notes": _notes(selection, view, held)}
        return message({"share": share | {"view": encode(view)}})

    @shows_errors
    def open(self, selection: Selection, sent: str) -> tuple:
        """Shows what a link holds. Where it cannot be shown, the page stays as it is and says
        why."""
        view = decode(str(data_of(sent).get("code")))
        if view.tab and view.tab not in self.tabs:
            raise ValueError(f"tab must be one of {', '.join(self.tabs)}, got {view.tab!r:.40}")
        services, sentences, chosen = opened(self.services, view)
        first = {
            **({"bank": bank_view(services)} if chosen.elmo != selection.elmo else {}),
            "opened": {
                "tab": view.tab,
                "weights": view.weights,
                "options": view.options,
                "choice": asdict(chosen.choice),
            },
        }
        shown = self.page.show(chosen, sentences, (chosen.sentence, chosen.token), first)
        example = services.example_of(sentences)
        picked = example.id if example else None
        return chosen.text, chosen.pretokenized, picked, chosen.elmo, *shown

    def _view(self, selection: Selection, data: dict[str, Any]) -> View:
        """What the server knows of the view, and what only the page knows."""
        lines = selection.text.splitlines()
        text = "\n".join(x for x in lines if split_sentences(x, selection.pretokenized))
        example = self.services.example_of(self.services.parse(text, selection.pretokenized))
        is_example = example is not None and example.text == text and not selection.pretokenized
        tab = str(data.get("tab") or "")
        return View(
            **{name: getattr(selection, name) for name in CHOSEN},
            text="" if is_example else text,
            example=example.id if is_example else "",
            tab=tab if tab in self.tabs else "",
            weights=weights_of(data.get("weights", {})),
            options=options_of(data.get("options", {})),
        )


def opened(services: Services, view: View) -> tuple[Services, Tokens, Selection]:
    """The services, sentences and choices of a view. Raises ``ValueError`` where it does not fit
    this page: an example, a biLM, a token or a layer that is not here."""
    services = services.using(view.elmo)
    text = view.text
    if view.example:
        found = [e for e in services.examples if e.id == view.example]
        if not found:
            raise ValueError(f"The link's example {view.example!r:.40} is not on this page.")
        text = found[0].text
    place = (view.sentence, view.token)
    if not text:  # it was too long for the link
        text, place = services.examples[0].text, services.examples[0].focus
    pretokenized = view.pretokenized and bool(view.text)
    sentences = services.parse(text, pretokenized)
    if place[0] >= len(sentences) or place[1] >= len(sentences[place[0]]):
        raise ValueError(f"The link's text has no token {place[1]} in sentence {place[0]}.")
    for kind, (raw, _) in view.weights.items():
        n_layers = services.model(kind).encoder.n_layers
        if len(raw) != n_layers:
            raise ValueError(f"{kind} has {n_layers} layers here; the link mixes {len(raw)}.")
    selection = replace(
        view.selection(text),
        pretokenized=pretokenized,
        sentence=place[0],
        token=place[1],
        choice=replace(view.choice, upload=None),
    )
    return services, sentences, selection


def _address(sent: Any) -> str:
    """The page's address as the link shall have it. Raises ``ValueError``."""
    if isinstance(sent, str) and len(sent) <= MAX_ADDRESS:
        parts = urlsplit(sent)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.fragment:
            return sent
    raise ValueError(f"the page's address must begin with http, got {sent!r:.60}")


def _notes(selection: Selection, view: View, held: View) -> list[str]:
    """What the link does not hold, in sentences."""
    notes = []
    if view.text and not held.text:
        notes.append(
            f"The text is too long for a link of {MAX_LINK} characters, and so is the chosen"
            " sentence: the link keeps mixes, tab and choices, and opens the first example."
        )
    elif held.text != view.text:
        n, first = len(view.text.splitlines()), view.sentence - held.sentence + 1
        last = first + len(held.text.splitlines()) - 1
        kept = f"sentence {first}" if first == last else f"sentences {first} to {last}"
        notes.append(
            f"The text is too long for a link of {MAX_LINK} characters: of its {n} sentences the"
            f" link holds {kept}, with everything else of the view."
        )
    if selection.choice.upload:
        notes.append("Your file is not in the link: it is kept in memory for you alone.")
    return notes
