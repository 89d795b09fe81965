"""What a visitor chose neighbors to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from elmo.banks.bank import SAME_WORD
from elmo.banks.mixing import METRICS

POOLS = ("examples", "wordnet", "upload", "text")
PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ", "ADV")


@dataclass(frozen=True)
class Choice:
    """What may be a neighbor, and what near means.

    pools: some of ``POOLS``; words: ``any``, ``only`` (copies of the chosen word) or ``exclude``;
    pos: rows known to have this part of speech, or ``None``; metric, centered, unit: see
    ``elmo.banks.bank``. upload: digest of the visitor's file. Raises ``ValueError``.
    """

    pools: tuple[str, ...] = ("examples", "text")
    words: str = "any"
    pos: str | None = None
    metric: str = "cosine"
    centered: bool = True
    unit: bool = False
    upload: str | None = None

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("words", self.words, SAME_WORD),
            ("part of speech", self.pos, (None, *PARTS_OF_SPEECH)),
            ("metric", self.metric, METRICS),
            *(("bank", pool, POOLS) for pool in self.pools),
        ):
            if value not in allowed:
                names = ", ".join(map(str, allowed))
                raise ValueError(f"{name} must be one of {names}, got {value!r:.40}")

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Choice:
        """What the page sent; anything may arrive here."""
        pools, upload = sent.get("pools"), sent.get("upload")
        if not isinstance(pools, list) or not (upload is None or isinstance(upload, str)):
            raise ValueError("which banks? The page sent no list of names.")
        return cls(
            tuple(str(name) for name in pools),
            str(sent.get("words")),
            None if sent.get("pos") is None else str(sent["pos"]),
            str(sent.get("metric")),
            sent.get("centered") is True,
            sent.get("unit") is True,
            upload,
        )

    @property
    def quick(self) -> Choice:
        """The same among small banks only: an answer at once, while the large one is read."""
        return replace(self, pools=tuple(name for name in self.pools if name != "wordnet"))
