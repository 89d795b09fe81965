"""The whole view in a link: what a visitor sees, as a short text that any page of ours can open.

Nothing is kept on the server: the link itself holds the text, the chosen token, the mixes, the
tab and the choices, as JSON, deflated against a list of common words, in URL-safe base64.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from app.choice import Choice
from app.state import BASES, Selection

MAX_LINK = 800  # characters of a view in a link
MAX_CODE = 200_000  # of a view of any length, as the page keeps it for a download
MAX_JSON = 400_000  # bytes of it when inflated
MAX_WEIGHT, MAX_GAMMA = 6.0, 3.0  # as the sliders have them
MAX_OPTIONS = 40
MAX_WORD, MAX_NUMBER = 60, 1_000_000_000  # of an option
VERSION = "1"
DAMAGED = "This link is damaged or was made by another version: the page shows its first example."

# What most links repeat; deflate refers to it. A change of these words needs a new version.
_WORDS = (
    "which there their would about could other after these first before people between because"
    " through where those while being river money water year world house light letter school"
    " children children's little great never again should every under still said into than then"
    " them some what when were will with have from this that they not but you his her she had was"
    " are for on as at by it is he be or an of to in and a the The She He It They We In A I"
    ' . \\n , , and of the , in the to the on the at the with the .\\nThe .\\nShe .\\nHe ."'
    ' {"example":" "text":" "pretokenized":true "at":[ "tab":"neighbors" "tab":"word"'
    ' "basis":"word" "choice":{"pools":["examples","text","wordnet"] "weights":{"bilm":[['
    ' "attention":[[0.0,0.0,0.0], "attention_concat":[[0,0,0],1.0] "options":{"depth":'
)
_DICTIONARY = _WORDS.encode("ascii")
_CODE = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"[a-z0-9_]{1,40}")

# Fields that a view and a selection share, besides the text.
CHOSEN = tuple(f.name for f in fields(Selection) if f.name != "text")
Mix = tuple[tuple[float, ...], float]  # raw weights, gamma


@dataclass(frozen=True)
class View:
    """What one visitor sees. Raises ``ValueError`` for what no page can show.

    example: id of an example, or empty; text: of its own, where there is no example; tab: its id;
    weights: mixes by encoder, those that are not equal with gamma 1; options: further choices of
    the views, by name. ``CHOSEN`` are as in ``Selection``.
    """

    text: str = ""
    example: str = ""
    pretokenized: bool = False
    sentence: int = 0
    token: int = 0
    tab: str = ""
    basis: str = BASES[0]
    dims: int = 2
    seed: int = 0
    behind: bool = False
    choice: Choice = field(default_factory=Choice)
    question: str = ""
    elmo: str = ""
    weights: Mapping[str, Mix] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.selection(self.text)  # which says what is wrong

    def selection(self, text: str) -> Selection:
        """The choices of a visitor who sees this with a text."""
        return Selection(text, **{name: getattr(self, name) for name in CHOSEN})


def encode(view: View) -> str:
    """The view as text of letters, digits, ``-`` and ``_``. A file of the visitor's own is left
    out: no other page has it."""
    plain = asdict(view) | {"choice": _choice_changes(view.choice)}
    plain["at"] = [plain.pop("sentence"), plain.pop("token")]
    usual = {"basis": BASES[0], "dims": 2, "at": [0, 0]}
    kept = {name: value for name, value in plain.items() if value and value != usual.get(name)}
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)
    packed = packer.compress(text.encode("utf-8", "surrogatepass")) + packer.flush()
    return VERSION + base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def decode(code: str) -> View:
    """The view that ``encode`` packed. Raises ``ValueError`` for anything else."""
    try:
        found = json.loads(_inflate(code), parse_constant=_no_number)
    except (ValueError, RecursionError, zlib.error) as error:
        raise ValueError(DAMAGED) from error
    if not isinstance(found, dict):
        raise ValueError(DAMAGED)
    sentence, token = _place(found.get("at", [0, 0]))
    return View(
        text=_typed(found, "text", str, ""),
        example=_typed(found, "example", str, ""),
        pretokenized=_typed(found, "pretokenized", bool, False),
        sentence=sentence,
        token=token,
        tab=_typed(found, "tab", str, ""),
        basis=_typed(found, "basis", str, BASES[0]),
        dims=_typed(found, "dims", int, 2),
        seed=_typed(found, "seed", int, 0),
        behind=_typed(found, "behind", bool, False),
        choice=_choice(_typed(found, "choice", dict, {})),
        question=_typed(found, "question", str, ""),
        elmo=_typed(found, "elmo", str, ""),
        weights=weights_of(found.get("weights", {})),
        options=options_of(found.get("options", {})),
    )


def weights_of(sent: Any) -> dict[str, Mix]:
    """Mixes by encoder, from {encoder: [raw weights, gamma]}; equal ones with gamma 1 left out."""
    mixes: dict[str, Mix] = {}
    for kind, mix in _entries(sent, "weights").items():
        if not isinstance(mix, list) or len(mix) != 2 or not isinstance(mix[0], list):
            raise ValueError(f"weights of {kind} must be [raw weights, gamma], got {mix!r:.60}")
        raw = tuple(_number(w, "a raw weight", -MAX_WEIGHT, MAX_WEIGHT) for w in mix[0])
        gamma = _number(mix[1], "gamma", 0, MAX_GAMMA)
        if gamma != 1 or any(raw):
            mixes[kind] = (raw, gamma)
    return mixes


def options_of(sent: Any) -> dict[str, Any]:
    """Further choices of the views: short words, numbers and switches, by name."""
    options = _entries(sent, "options")
    for name, value in options.items():
        is_number = type(value) in (int, float) and abs(value) < MAX_NUMBER
        is_word = isinstance(value, str) and len(value) <= MAX_WORD
        if not (isinstance(value, bool) or is_number or is_word):
            raise ValueError(
                f"option {name} must be a switch, a word of at most {MAX_WORD} characters or a"
                f" number below {MAX_NUMBER:,}"
            )
    return options


def shortened(view: View, limit: int = MAX_LINK) -> tuple[str, View]:
    """The view's code in ``limit`` characters, and the view that it holds.

    Where the text is too long, the chosen token's line stays with as many lines around it as fit;
    where that line alone is too long, the text is left out.
    """
    code = encode(view)
    if len(code) <= limit:
        return code, view
    lines = [line for line in view.text.splitlines() if line.strip()]
    best = replace(view, text="", sentence=0, token=0, pretokenized=False)
    if view.sentence < len(lines):
        low = high = view.sentence
        while True:
            wider = [(low, high + 1), (low - 1, high), (low, high)]
            fitting = [
                span
                for span in wider
                if span[0] >= 0 and span[1] < len(lines) and _fits(view, lines, span, limit)
            ]
            if not fitting:
                break
            if fitting[0] == (low, high):
                best = _part(view, lines, (low, high))
                break
            low, high = fitting[0]
    return encode(best), best


def _fits(view: View, lines: list[str], span: tuple[int, int], limit: int) -> bool:
    return len(encode(_part(view, lines, span))) <= limit


def _part(view: View, lines: list[str], span: tuple[int, int]) -> View:
    text = "\n".join(lines[span[0] : span[1] + 1])
    return replace(view, text=text, sentence=view.sentence - span[0])


def _inflate(code: str) -> str:
    if not isinstance(code, str) or len(code) > MAX_CODE or not _CODE.fullmatch(code):
        raise ValueError("not a view")
    if code[0] != VERSION:
        raise ValueError("another version")
    packed = base64.urlsafe_b64decode(code[1:] + "=" * (-len(code[1:]) % 4))
    reader = zlib.decompressobj(-15, _DICTIONARY)
    plain = reader.decompress(packed, MAX_JSON)
    if not reader.eof:
        raise ValueError("not whole, or too long")
    return plain.decode("utf-8", "surrogatepass")


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _typed(found: dict, name: str, kind: type, default: Any) -> Any:
    value = found.get(name, default)
    if not isinstance(value, kind):
        raise ValueError(f"{name} in the link must be {kind.__name__}, got {value!r:.40}")
    return value


def _place(sent: Any) -> tuple[int, int]:
    if isinstance(sent, list) and len(sent) == 2 and all(type(x) is int for x in sent):
        return sent[0], sent[1]
    raise ValueError(f"the link's token must be two numbers, got {sent!r:.40}")


def _entries(sent: Any, what: str) -> dict[str, Any]:
    if not isinstance(sent, dict) or len(sent) > MAX_OPTIONS:
        raise ValueError(f"{what} must be at most {MAX_OPTIONS} values by name")
    for name in sent:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{what}: {name!r:.40} is no name")
    return dict(sent)


def _number(value: Any, what: str, low: float, high: float) -> float:
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError(f"{what} must be from {low:g} to {high:g}, got {value!r:.40}")
    return round(float(value), 4)


def _choice_changes(choice: Choice) -> dict[str, Any]:
    """What differs from the usual choice."""
    pools = tuple(pool for pool in choice.pools if pool != "upload") or Choice().pools
    plain = asdict(replace(choice, pools=pools, upload=None))
    usual = asdict(Choice())
    return {name: value for name, value in plain.items() if value != usual[name]}


def _choice(sent: dict[str, Any]) -> Choice:
    usual = asdict(Choice())
    usual["pools"] = list(usual["pools"])
    return Choice.of(usual | sent | {"upload": None})
