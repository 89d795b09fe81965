"""``python -m elmo embed``: a text file in, the vectors of every line out.

One line is one sentence of tokens between blanks, as the original ``elmo`` command read it, and
one result, whatever the line holds; an empty line gives zero tokens. Lines are read, embedded and
stored in parts, so memory does not grow with the file and an interrupted run continues.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from elmo.encoders import Encoder
from elmo.model_arguments import add_model_arguments, encoder_from
from elmo.original.vector_files import FORMATS, Shards, write_output

log = logging.getLogger(__name__)
BYTES_PER_PART = 64 << 20
SECONDS_PER_REPORT = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("input", type=Path, help="text, UTF-8: a sentence a line, blanks between tokens")
    add("output", type=Path, help="FILE.h5 (original layout), FILE.npz, or FILE.tsv")
    add("--layers", help="all, top, average, or a layer's number (default: all; TSV: average)")
    add("--overwrite", action="store_true", help="replace an output that exists")
    add("--batch-size", type=int, default=64, help="with --state carry: lines a batch")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layers = _check(args)
    encoder = encoder_from(args)
    job = {
        "input": _digest(args.input),
        "model": model_digest(encoder),
        "layers": layers,
        "state": args.state,
        "precision": args.precision,
        "batch_size": args.batch_size if args.state == "carry" else None,
        "format": 1,
    }
    shards = Shards(args.output, job)
    if args.state == "carry" and shards.n_lines():
        shards.remove()  # what is carried is not stored: begin again
        shards = Shards(args.output, job)
    try:
        embed_lines(encoder, args.input, shards, layers, args.batch_size)
    except KeyboardInterrupt:
        print(f"\ninterrupted at line {shards.n_lines()}; run again to continue", file=sys.stderr)
        return 130
    with open_lines(args.input) as file:
        write_output(shards, args.output, (line.strip() for line in file))
    shards.remove()
    log.info("wrote %s", args.output)
    return 0


def _check(args: argparse.Namespace) -> str | int:
    """The layers as ``encode`` names them. Raises ``ValueError`` before any work is done."""
    if not args.input.is_file():
        raise FileNotFoundError(f"{args.input} is not a file")
    if args.output.suffix not in FORMATS:
        raise ValueError(f"the output must end in {', '.join(FORMATS)}, got {args.output.name}")
    if args.output.exists() and not args.overwrite:
        raise ValueError(f"{args.output} exists; --overwrite replaces it")
    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be positive, got {args.batch_size}")
    tsv = args.output.suffix == ".tsv"
    layers = args.layers or ("average" if tsv else "all")
    if tsv and layers == "all":
        raise ValueError("a TSV pair holds one vector a token: --layers top, average or a number")
    if layers in ("all", "top"):
        return layers
    if layers == "average":
        return "mean"
    if not layers.isdecimal():
        raise ValueError(f"--layers must be all, top, average or a number, got {layers!r}")
    return int(layers)


def open_lines(path: Path) -> IO[str]:
    """Lines end as in any text file (LF, CR LF or CR); bytes that are not UTF-8 become U+FFFD."""
    return path.open(encoding="utf-8", errors="replace")


def embed_lines(
    encoder: Encoder, path: Path, shards: Shards, layers: str | int, batch_size: int
) -> None:
    """Adds a shard for every part of the file that none holds yet."""
    done = shards.n_lines()
    progress = _Progress(path.stat().st_size, done)
    bytes_per_token = 4 * encoder.d_model * (encoder.n_layers if layers == "all" else 1)
    tokens_per_part = max(1_024, BYTES_PER_PART // bytes_per_token)
    n_truncated = 0
    with open_lines(path) as file:
        skipped = sum(len(line.encode()) for line in itertools.islice(file, done))
        progress.skip(skipped)
        batch = batch_size if encoder.state == "carry" else None
        for sentences, n_bytes in _parts(file, tokens_per_part, batch):
            _check_lengths(encoder, sentences, done)
            encodings = encoder.encode(sentences, layers)
            n_truncated += sum(len(encoding.truncated) for encoding in encodings)
            shards.add(done, encodings)
            done += len(sentences)
            progress.report(done, sum(map(len, sentences)), n_bytes)
    progress.end(done)
    if n_truncated:
        n_bytes = encoder.config.char.max_characters - 2
        log.info("%d tokens have more than %d bytes; the rest was not read", n_truncated, n_bytes)


def _parts(
    file: IO[str], n_tokens: int, n_lines: int | None
) -> Iterator[tuple[list[list[str]], int]]:
    """Sentences and their bytes, by so many tokens or, where a state is carried, lines."""
    part: list[list[str]] = []
    room, n_bytes = n_tokens, 0
    for line in file:
        part.append(line.split())
        n_bytes += len(line.encode())
        room -= len(part[-1]) + 2
        if len(part) == n_lines or (n_lines is None and room <= 0):
            yield part, n_bytes
            part, room, n_bytes = [], n_tokens, 0
    if part:
        yield part, n_bytes


def _check_lengths(encoder: Encoder, sentences: list[list[str]], first_line: int) -> None:
    longest = encoder.max_tokens
    for i, sentence in enumerate(sentences):
        if longest is not None and len(sentence) > longest:
            raise ValueError(
                f"line {first_line + i + 1} has {len(sentence)} tokens; the {encoder.name} encoder"
                f" reads {longest} at most"
            )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def model_digest(encoder: Encoder) -> str:
    """A name for the weights and everything else that vectors depend on."""
    digest = hashlib.sha256(repr((encoder.config, sorted(encoder.added_tokens.items()))).encode())
    for name, value in sorted(encoder.model.state_dict().items()):
        if not name.startswith(("head.", "readout.")):
            digest.update(name.encode())
            digest.update(value.cpu().contiguous().numpy())
    return digest.hexdigest()


class _Progress:
    """Lines, tokens a second and the time left, every few seconds."""

    def __init__(self, n_bytes: int, n_lines: int) -> None:
        self.n_bytes, self.n_done, self.n_tokens = n_bytes, 0, 0
        self.n_here = 0  # bytes of this run, for the rate
        self.start = self.last = time.monotonic()
        if n_lines:
            log.info("continuing after %d lines", n_lines)

    def skip(self, n_bytes: int) -> None:
        self.n_done += n_bytes

    def report(self, n_lines: int, n_tokens: int, n_bytes: int) -> None:
        self.n_done, self.n_here = self.n_done + n_bytes, self.n_here + n_bytes
        self.n_tokens += n_tokens
        now = time.monotonic()
        if now - self.last < SECONDS_PER_REPORT:
            return
        self.last = now
        seconds = now - self.start
        left = max(0, self.n_bytes - self.n_done) * seconds / max(self.n_here, 1)
        log.info(
            "%d lines, %.0f %%, %.0f tokens/s, %s left",
            *(n_lines, 100 * self.n_done / max(self.n_bytes, 1), self.n_tokens / seconds),
            duration(left),
        )

    def end(self, n_lines: int) -> None:
        seconds = time.monotonic() - self.start
        log.info("%d lines embedded, %d tokens in %s", n_lines, self.n_tokens, duration(seconds))


def duration(seconds: float) -> str:
    """``75`` -> ``1 min 15 s``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts: list[tuple[int, Any]] = [(hours, "h"), (minutes, "min"), (rest, "s")]
    shown = [f"{n} {unit}" for n, unit in parts if n]
    return " ".join(shown[:2]) or "0 s"
