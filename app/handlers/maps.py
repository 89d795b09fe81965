"""The maps: which axes, how far a fit is, what the colors need."""

from __future__ import annotations

from dataclasses import replace

from app.handlers.events import data_of, message, shows_errors
from app.services import Services
from app.state import Selection
from app.views.map_choice import UMAPS, fitting_view, maps_view, umap_fits
from app.views.paint import paint_view

CHOICES = ("basis", "dims", "seed", "behind")  # of a ``Selection``, as the page sends them
MAX_NAME = 40


class MapHandlers:
    """Bound to the services; holds nothing of any visitor."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @shows_errors
    def set_basis(self, selection: Selection, sent: str) -> tuple[Selection, str]:
        """Draws the maps on other axes; a fit that was waited for is no longer."""
        data = data_of(sent)
        if data.get("basis") not in UMAPS:
            self.services.umap.cancel(_visitor(data))
        chosen = replace(selection, **{name: data[name] for name in CHOICES if name in data})
        services, sentences = self._text(chosen)
        return chosen, message({"maps": maps_view(services, sentences, chosen)})

    def warm(self, sent: str) -> None:
        """Somebody looks at the menu of axes: what fits UMAP takes long to start."""
        self.services.umap.start()

    @shows_errors
    def fit(self, selection: Selection, sent: str) -> str:
        """How far the chosen UMAP is; the maps when they are there."""
        services, sentences = self._text(selection)
        fits = umap_fits(services, sentences, selection) if selection.basis in UMAPS else {}
        if services.umap.found(list(fits)) is None:
            progress = services.umap.ask(_visitor(data_of(sent)), fits)
            return message({"fitting": fitting_view(progress)})
        return message({"maps": maps_view(services, sentences, selection), "fitting": None})

    @shows_errors
    def paint(self, selection: Selection, sent: str) -> str:
        """What one way to color the maps needs."""
        services, sentences = self._text(selection)
        color = str(data_of(sent).get("color"))
        return message({"paint": paint_view(services, sentences, selection, color)})

    def _text(self, selection: Selection):
        services = self.services.using(selection.elmo)
        return services, services.parse(selection.text, selection.pretokenized)


def _visitor(data: dict) -> str:
    """The name that a page gave itself."""
    return str(data.get("visitor", ""))[:MAX_NAME]
