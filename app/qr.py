"""A link as a QR code: drawn here, as the outline that the page puts into an SVG."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import segno

BORDER = 4  # modules of white around the code, which readers need


def qr_view(link: str) -> dict[str, Any]:
    """size: of the square's side in modules, the border included; path: its dark modules, as the
    ``d`` of an SVG path."""
    code = segno.make_qr(link, error="l")
    runs = []
    for y, row in enumerate(code.matrix_iter(border=BORDER)):
        x = 0
        for is_dark, modules in groupby(row, bool):
            n = len(list(modules))
            runs += [f"M{x} {y}h{n}v1h-{n}z"] * is_dark
            x += n
    return {"size": code.symbol_size(border=BORDER)[0], "path": "".join(runs)}
