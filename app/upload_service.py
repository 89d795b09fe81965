"""Banks of files that visitors upload: encoded once, kept in memory for a while, never on disk.

A bank is found by the digest of the file's name and content alone, which only who holds the same
file can know.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from app.encoding import encode_what_fits
from elmo.banks.bank import TokenBank, build_bank
from elmo.banks.bank_tables import Means
from elmo.banks.uploads import MAX_BYTES, Upload, read_upload
from elmo.encoders import Encoder

SENTENCES_PER_STEP = 64
MAX_READ = 32  # files whose sentences are kept for others of a class who upload the same


class Places:
    """Where each sentence of a file is; one that is repeated is in several places."""

    def __init__(self, sentences: Sequence[tuple[str, ...]]) -> None:
        self._n = len(sentences)
        self._of: dict[tuple[str, ...], list[int]] = {}
        for place, sentence in enumerate(sentences):
            self._of.setdefault(sentence, []).append(place)

    def __len__(self) -> int:
        """Sentences of the file, repeated ones counted each time."""
        return self._n

    def of(self, sentences: Iterable[tuple[str, ...]]) -> list[int]:
        """All places of these sentences."""
        return [place for s in dict.fromkeys(sentences) for place in self._of.get(s, ())]


@dataclass(frozen=True)
class UploadedBank:
    """One file under the encoders that have read it, by their kinds."""

    digest: str
    name: str
    banks: dict[str, TokenBank]
    notices: tuple[str, ...]
    places: Places


@dataclass(frozen=True)
class _File:
    """One file under every encoder that has read it, also those in ELMo's place."""

    name: str
    notices: tuple[str, ...]
    places: Places
    banks: dict[Encoder, TokenBank]

    @property
    def n_bytes(self) -> int:
        return sum(
            array.nbytes
            for bank in self.banks.values()
            for array in (bank.vectors, bank.norms, bank.mean_products, bank.unit_mean_products)
        )


class _Kept:
    """What services share: the files, the latest used last, and what was read of uploads."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.files: OrderedDict[str, _File] = OrderedDict()
        self.lock = threading.Lock()
        self.read: OrderedDict[Path, Upload | str] = OrderedDict()
        self.reading = threading.Lock()


class UploadService:
    """Safe to share between threads."""

    def __init__(
        self,
        encoders: Mapping[str, Encoder],
        means: Mapping[str, Means],
        max_tokens: int,
        max_bytes: int,
        max_file_bytes: int = MAX_BYTES,
    ) -> None:
        """max_tokens, max_file_bytes: of one file; max_bytes: of all that is kept."""
        self._encoders, self._means = dict(encoders), dict(means)
        self.max_tokens, self.max_file_bytes = max_tokens, max_file_bytes
        self._kept = _Kept(max_bytes)

    def share(self, other: UploadService) -> None:
        """Keeps files together with a service that has another model in ELMo's place."""
        self._kept = other._kept

    def get(self, digest: str | None) -> UploadedBank | None:
        """``None`` where there is none, or no longer."""
        kept = self._kept
        with kept.lock:
            file = kept.files.get(digest)
            if file is None:
                return None
            kept.files.move_to_end(digest)
        return self._bank(digest, file)

    def read(self, path: Path) -> Upload:
        """Reads a file that was uploaded, up to ``max_tokens``, and deletes it.

        The same file of several visitors is in the same place, so that the first one's question
        deletes it for all: the others get what was read then. Raises ``ValueError`` as
        ``read_upload`` does, and where the file is gone and so is what was read.
        """
        kept = self._kept
        with kept.reading:
            try:
                if path not in kept.read:
                    kept.read[path] = self._outcome(path)
                kept.read.move_to_end(path)
                found = kept.read[path]
                while len(kept.read) > MAX_READ:
                    kept.read.popitem(last=False)
            finally:
                with suppress(OSError):
                    path.unlink()
        if isinstance(found, str):
            raise ValueError(found)
        return found

    def _outcome(self, path: Path) -> Upload | str:
        """What was read, or what is wrong with the file."""
        try:
            return read_upload(path, self.max_file_bytes, max_tokens=self.max_tokens)
        except ValueError as error:
            return str(error)
        except OSError as error:
            raise ValueError(
                f"{path.name} was read and deleted in the meantime: choose it again."
            ) from error

    def encode(self, upload: Upload) -> Iterator[tuple[int, int] | UploadedBank]:
        """Yields (steps done, steps in all), at last the bank. Encoders that have read the file
        already do not read it again."""
        told = (upload.name, upload.notices, upload.sentences)
        digest = hashlib.blake2b(repr(told).encode("utf-8", "replace")).hexdigest()
        with self._kept.lock:
            known = self._kept.files.get(digest)
        tokens = [sentence.tokens for sentence in upload.sentences]
        left = {k: e for k, e in self._encoders.items() if not known or e not in known.banks}
        n_steps = len(left) * -(-len(tokens) // SENTENCES_PER_STEP)
        banks, done = dict(known.banks) if known else {}, 0
        for kind, encoder in left.items():
            encodings = []
            for start in range(0, len(tokens), SENTENCES_PER_STEP):
                yield done, n_steps
                encodings += encode_what_fits(encoder, tokens[start : start + SENTENCES_PER_STEP])
                done += 1
            bank = build_bank(
                tokens,
                encodings,
                means=self._means[kind],
                tags=[sentence.tags for sentence in upload.sentences],
                name=upload.name,
            )
            banks[encoder] = replace(bank, vectors=bank.vectors.astype(np.float16))
        file = _File(upload.name, upload.notices, Places(tokens), banks)
        yield self._bank(digest, self._keep(digest, file))

    def _keep(self, digest: str, file: _File) -> _File:
        kept = self._kept
        with kept.lock:
            known = kept.files.get(digest)
            if known is not None:  # from another visitor, or under another model meanwhile
                file = replace(file, banks=file.banks | known.banks)
            kept.files[digest] = file
            kept.files.move_to_end(digest)
            while len(kept.files) > 1 and self._bytes() > kept.max_bytes:
                kept.files.popitem(last=False)
        return file

    def _bytes(self) -> int:
        return sum(file.n_bytes for file in self._kept.files.values())

    def _bank(self, digest: str, file: _File) -> UploadedBank:
        """The file as this service's encoders have read it."""
        banks = {k: file.banks[e] for k, e in self._encoders.items() if e in file.banks}
        notices = file.notices
        if len(banks) < len(self._encoders):
            notice = f"{file.name} was read with another model in ELMo's place: choose it again."
            notices = (*notices, notice)
        return UploadedBank(digest, file.name, banks, notices, file.places)
