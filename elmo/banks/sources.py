"""Where the sentences of a bank come from, and what their bank is filed under."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo.banks import uploads, wordnet
from elmo.banks.tagged import TaggedSentence

READERS_VERSION = 1  # raised when the same text is read into other tokens or tags


@dataclass(frozen=True)
class Source:
    """A text that can be read more than once, always the same.

    digest: changes with the text; total: its sentences, about, where that is known.
    """

    name: str
    digest: str
    read: Callable[[], Iterator[TaggedSentence]]
    total: int | None = None

    def __iter__(self) -> Iterator[TaggedSentence]:
        return self.read()


def _digest(parts: Iterator[bytes] | Sequence[bytes], *kind: object) -> str:
    digest = hashlib.blake2b(repr((READERS_VERSION, *kind)).encode(), digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _blocks(paths: Sequence[Path]) -> Iterator[bytes]:
    for path in paths:
        yield f"{path.name} {path.stat().st_size}\n".encode()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                yield block


def wordnet_source(folder: str | Path | None = None) -> Source:
    """WordNet's example sentences. Raises ``FileNotFoundError`` where it is not installed."""
    place = wordnet.find_wordnet(folder)
    digest = _digest(_blocks([place / name for name in wordnet.NEEDED]), "wordnet")
    return Source("wordnet", digest, lambda: iter(wordnet.read_examples(place)), wordnet.N_EXAMPLES)


def files_source(paths: Sequence[str | Path], pretokenized: bool = False) -> Source:
    """One or more files that ``uploads`` reads, of any size, as one text.

    Raises ``FileNotFoundError`` naming a file that is not there.
    """
    paths = [Path(path) for path in paths]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")

    def read() -> Iterator[TaggedSentence]:
        for path in paths:
            yield from uploads.stream_file(path, pretokenized)

    return Source(paths[0].stem, _digest(_blocks(paths), "files", pretokenized), read)


def sentences_source(name: str, sentences: Sequence[TaggedSentence]) -> Source:
    """Sentences that are in memory already."""
    parts = (repr(sentence).encode("utf-8", "replace") for sentence in sentences)
    return Source(name, _digest(parts, "sentences"), lambda: iter(sentences), len(sentences))
