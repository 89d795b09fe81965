"""What a visitor takes home: the view as one page that works without a server, and the vectors of
the text as files. Pure functions; nothing is written to disk."""

from __future__ import annotations

import base64
import io
import json
import time
import zipfile
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from app.encoders import LEAD
from app.link import Mix, View
from app.packing import to_json, unpack
from app.parts import PLOTLY_JS, SCRIPTS, STATIC
from app.services import Services, Tokens
from app.state import Selection
from app.views.map_choice import UMAPS, maps_view
from app.views.nearby import near_view
from app.views.page import bank_view, run_view, token_views
from app.views.paint import COLORS, paint_view
from elmo.scalar_mix import mix_layers, softmax

MAX_PAGE = 8_000_000  # bytes; the page has fewer
MAX_SECONDS = 3.0  # to look for the neighbors of further tokens
MAX_TEXT = 200  # characters around a token in the Embedding Projector's table
OFFLINE = ("offline.css", "offline.js")  # only in the page that is taken home
README = (
    "Vectors of one text. data = numpy.load('both-ways-vectors.npz', allow_pickle=False);"
    " tokens = json.loads(str(data['tokens']));"
    " tokens[i], data['sentence'][i] and data['position'][i] (both from 0) belong to"
    " data['ENCODER'][data['ENCODER_rows'] == i], layers by width, layer 0 first;"
    " data['ENCODER_mix'] is gamma * sum_k s_k h_k, s = softmax(data['ENCODER_weights'])."
)

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Both Ways</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{styles}</style></head>
<body class="gradio-container"><script type="application/json" id="told">{told}</script>
{scripts}
</body></html>
"""


# ---- the page ------------------------------------------------------------------------------------


def page(
    services: Services, sentences: Tokens, selection: Selection, view: View, styles: str
) -> bytes:
    """One HTML file with everything in it, below ``MAX_PAGE`` bytes: what is left of them goes to
    the neighbors of further tokens. Raises ``ValueError`` where the view alone is larger."""
    files = [STATIC / name for name in SCRIPTS] + [PLOTLY_JS, STATIC / "offline.js"]
    scripts = "\n".join(
        f"<script>{_script(file.read_text(encoding='utf-8'))}</script>" for file in files
    )
    offline = (STATIC / "offline.css").read_text(encoding="utf-8")

    def filled(told: dict[str, Any]) -> bytes:
        page = _PAGE.format(styles=f"{styles}\n{offline}", told=to_json(told), scripts=scripts)
        return page.encode("utf-8")

    known = told(services, sentences, selection, view)
    further = [basis for basis in known["maps"] if basis != known["basis"]]
    while (room := MAX_PAGE - len(filled(known))) <= 0:
        if not further:
            raise ValueError("This view is too large for one page.")
        del known["maps"][further.pop()]
    return filled(known | {"tokens": _more_tokens(services, sentences, selection, room)})


def told(services: Services, sentences: Tokens, selection: Selection, view: View) -> dict[str, Any]:
    """What the page needs to know: messages as the server sends them, the maps on all axes that
    need no fit, basis: which of them are shown first, what colors need, and no further tokens
    yet. Examples are behind the maps on one basis only: every other would have its own 5,000."""
    if maps_view(services, sentences, selection)["waits"]:
        selection = replace(selection, basis="all")
    bases = {}
    for basis in dict.fromkeys((selection.basis, "all", "word", "layers")):
        is_behind = basis == selection.basis or basis == "all" and selection.basis in UMAPS
        chosen = replace(selection, basis=basis, behind=selection.behind and is_behind)
        bases[basis] = _narrowed(maps_view(services, sentences, chosen))
    shown = {
        "opened": {
            "tab": view.tab if view.tab == "neighbors" else "maps",
            "weights": view.weights,
            "options": view.options,
            "choice": asdict(selection.choice),
        },
        "run": run_view(services, sentences, 0) | {"milliseconds": None},
        **_token(services, sentences, selection),
    }
    return {
        "messages": [{"bank": bank_view(services)}, shown],
        "maps": bases,
        "basis": selection.basis,
        "paints": {c: paint_view(services, sentences, selection, c) for c in COLORS},
        "tokens": {},
    }


def _narrowed(maps: dict[str, Any]) -> dict[str, Any]:
    """Maps with 16 bits a coordinate of the examples behind them, [step, base64]: these are
    thousands, and small dots. ``offline.js`` widens them."""
    encoders = {}
    for kind, row in maps["encoders"].items():
        if behind := row.get("behind"):
            packed = {name: behind[name] for name in ("coordinates", "depth") if behind[name]}
            row = row | {"behind": behind | {name: _narrow(x) for name, x in packed.items()}}
        encoders[kind] = row
    return maps | {"encoders": encoders}


def _narrow(packed: str) -> list:
    numbers = unpack(packed, -1)
    step = float(np.abs(numbers).max(initial=0)) / np.iinfo("<i2").max or 1.0
    whole = np.rint(numbers / step).astype("<i2")
    return [step, base64.b64encode(whole.tobytes()).decode("ascii")]


def _token(services: Services, sentences: Tokens, selection: Selection) -> dict[str, Any]:
    """The chosen token, its neighbors out of all banks that are chosen."""
    views = token_views(services, sentences, selection)
    return views | {"near": near_view(services, sentences, selection, selection.choice)}


def _more_tokens(
    services: Services, sentences: Tokens, selection: Selection, room: int
) -> dict[str, Any]:
    """By "sentence token", in less than ``room`` bytes and not for too long: other copies of the
    chosen word first, then its sentence, then others."""
    word = sentences[selection.sentence][selection.token].casefold()
    places = [(s, t) for s, tokens in enumerate(sentences) for t in range(len(tokens))]
    places.remove((selection.sentence, selection.token))
    places.sort(
        key=lambda p: (sentences[p[0]][p[1]].casefold() != word, p[0] != selection.sentence)
    )
    found: dict[str, Any] = {}
    start = time.monotonic()
    for s, t in places:
        view = {f"{s} {t}": _token(services, sentences, replace(selection, sentence=s, token=t))}
        room -= len(to_json(view))  # with braces, of which a comma takes the place
        if room <= 0 or time.monotonic() - start > MAX_SECONDS:
            break
        found |= view
    return found


def _script(text: str) -> str:
    """A script inside HTML must not seem to end, or to hold a comment."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


# ---- vectors -------------------------------------------------------------------------------------


def _mix_of(services: Services, view: View, kind: str) -> Mix:
    n_layers = services.model(kind).encoder.n_layers
    return view.weights.get(kind, ((0.0,) * n_layers, 1.0))


def npz(services: Services, sentences: Tokens, view: View) -> bytes:
    """All layers and the mix of every encoder, float32, with tokens and places; see ``README``."""
    places = [(s, t) for s, tokens in enumerate(sentences) for t in range(len(tokens))]
    number = {place: i for i, place in enumerate(places)}
    arrays: dict[str, np.ndarray] = {
        "README": np.array(README),
        # One string: in an array of strings each takes the room of the longest.
        "tokens": np.array(json.dumps([sentences[s][t] for s, t in places])),
        "sentence": np.array([s for s, _ in places]),
        "position": np.array([t for _, t in places]),
    }
    for kind in services.models:
        bank = services.encode(kind, sentences)
        weights, gamma = _mix_of(services, view, kind)
        rows = zip(bank.sentence.tolist(), bank.position.tolist(), strict=True)
        arrays[kind] = bank.vectors
        arrays[f"{kind}_rows"] = np.array([number[place] for place in rows], dtype=np.int64)
        arrays[f"{kind}_mix"] = mix_layers(bank.vectors.transpose(1, 0, 2), weights, gamma)
        arrays[f"{kind}_weights"], arrays[f"{kind}_gamma"] = np.array(weights), np.array(gamma)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays, allow_pickle=False)
    return file.getvalue()


def projector(services: Services, sentences: Tokens, view: View) -> bytes:
    """The Embedding Projector's pair, zipped: every layer and the mix of one encoder, the one that
    the sliders drive, a row each."""
    asked = view.options.get("mixing")
    kind = asked if asked in services.models else LEAD
    bank = services.encode(kind, sentences)
    weights, gamma = _mix_of(services, view, kind)
    layers = [bank.vectors[:, k] for k in range(bank.n_layers)]
    layers.append(mix_layers(bank.vectors.transpose(1, 0, 2), weights, gamma))
    names = [*map(str, range(bank.n_layers)), "mix"]
    shares = [*np.eye(bank.n_layers), softmax(weights)]
    places = list(zip(bank.sentence.tolist(), bank.position.tolist(), strict=True))
    around = {place: _around(sentences[place[0]], place[1]) for place in places}
    vectors, metadata = io.StringIO(), io.StringIO()
    metadata.write("token\tsentence\tposition\tencoder\tlayer\tweights\tgamma\ttext\n")
    for name, share, rows in zip(names, shares, layers, strict=True):
        np.savetxt(vectors, rows, fmt="%.6g", delimiter="\t")
        scale = gamma if name == "mix" else 1
        mix = " ".join(f"{x:.4f}" for x in share)
        for s, t in places:
            metadata.write(
                f"{sentences[s][t]}\t{s}\t{t}\t{kind}\t{name}\t{mix}\t{scale:g}\t{around[s, t]}\n"
            )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("vectors.tsv", vectors), ("metadata.tsv", metadata)):
            archive.writestr(name, text.getvalue().encode("utf-8", "replace"))
    return file.getvalue()


def _around(tokens: tuple[str, ...], position: int) -> str:
    """The sentence, of a long one ``MAX_TEXT`` characters around a token."""
    text = " ".join(tokens)
    start = sum(map(len, tokens[:position])) + position
    middle = start + (len(tokens[position]) - MAX_TEXT) // 2
    low = max(0, min(middle, start, len(text) - MAX_TEXT))
    high = low + MAX_TEXT
    before, after = "\u2026" * (low > 0), "\u2026" * (high < len(text))
    return before + text[low:high] + after
