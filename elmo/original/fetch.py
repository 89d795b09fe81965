"""``python -m elmo fetch``: the published English models, downloaded once, checked, kept as files.

Nothing else in this package opens a connection. The files can as well be copied by hand: every
other command takes local paths only.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import logging
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from elmo.original.embed import duration

log = logging.getLogger(__name__)
BASE_URL = "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo"
BLOCK = 1 << 20
TIMEOUT_S = 30
SECONDS_PER_REPORT = 5.0


@dataclass(frozen=True)
class Published:
    """One model: its name there, its parameters, and the bytes of its files where known.

    The publisher gave no checksums. What is recorded here are the sizes seen in public logs of
    downloads; a file must also hold exactly the model that its options describe.
    """

    stem: str
    n_parameters: int
    training: str
    options_bytes: int | None = None
    weights_bytes: int | None = None

    def files(self) -> dict[str, int | None]:
        """File name -> size, of the options and the weights."""
        return {
            f"elmo_{self.stem}_options.json": self.options_bytes,
            f"elmo_{self.stem}_weights.hdf5": self.weights_bytes,
        }


MODELS = {
    "small": Published("2x1024_128_2048cnn_1xhighway", 13_593_296, "1 billion words of news"),
    "medium": Published("2x2048_256_2048cnn_1xhighway", 28_027_728, "1 billion words of news"),
    "original": Published(
        "2x4096_512_2048cnn_2xhighway", 93_600_848, "1 billion words of news", 336, 374_434_792
    ),
    "5.5B": Published(
        "2x4096_512_2048cnn_2xhighway_5.5B", 93_600_848, "5.5 billion words, Wikipedia and news"
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", choices=MODELS, help="which of the published models")
    parser.add_argument(
        "--to", type=Path, default=Path("models"), help="folder; the model gets its own inside"
    )
    parser.add_argument("--base-url", default=BASE_URL, help="a mirror with the same file names")


def run(args: argparse.Namespace) -> int:
    folder = args.to / args.model
    fetch(MODELS[args.model], folder, args.base_url)
    log.info("use it: python -m elmo embed INPUT.txt OUTPUT.h5 --options %s", folder)
    return 0


def fetch(model: Published, folder: Path, base_url: str = BASE_URL) -> None:
    """Both files of a model into ``folder``, with a ``sha256.txt`` of what came.

    A file that is there is not fetched again; half of one is continued. Raises ``ValueError``
    with what to do when the server cannot be reached, refuses, or sends something else.
    """
    urls = {name: f"{base_url.rstrip('/')}/{model.stem}/{name}" for name in model.files()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, n_bytes in model.files().items():
        path = folder / name
        if path.is_file():
            log.info("%s is there already", path)
            continue
        try:
            _download(urls[name], path, n_bytes)
        except (OSError, http.client.HTTPException) as error:
            by_hand = "\n".join(f"  {url}" for url in urls.values())
            raise ValueError(
                f"{urls[name]} cannot be fetched: {_reason(error)}.\nOn a machine that reaches it,"
                f" download\n{by_hand}\nand put them into {folder}; or name a mirror with"
                " --base-url. An interrupted download continues."
            ) from error
    _verify(model, folder)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return f"no connection ({error.reason})"
    return str(error) or type(error).__name__


def _download(url: str, path: Path, n_bytes: int | None) -> None:
    """Continues ``NAME.part``, and gives the file its name when it is complete."""
    part = path.with_name(path.name + ".part")
    done = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code != 416:  # nothing left of the range: the part is complete, or wrong
            raise
        part.unlink()
        return _download(url, path, n_bytes)
    with response:
        if response.status != 206:
            done = 0  # the server sends the whole file
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else n_bytes
        with part.open("ab" if done else "wb") as file:
            _copy(response, file, path.name, done, total)
    size = part.stat().st_size
    if total is not None and size < total:
        raise OSError(f"the connection ended after {size} of {total} bytes")
    if n_bytes is not None and size != n_bytes:
        part.unlink()
        raise OSError(f"it has {size} bytes instead of {n_bytes}: not the published file")
    part.replace(path)
    return None


def _copy(response, file, name: str, done: int, total: int | None) -> None:
    start = last = time.monotonic()
    first = done
    while block := response.read(BLOCK):
        file.write(block)
        done += len(block)
        now = time.monotonic()
        if now - last >= SECONDS_PER_REPORT:
            last = now
            rate = (done - first) / (now - start)
            left = f", {duration((total - done) / rate)} left" if total else ""
            log.info("%s: %.0f MB at %.1f MB/s%s", name, done / 1e6, rate / 1e6, left)


def _verify(model: Published, folder: Path) -> None:
    """The two files hold this model; their checksums are written beside them, or compared."""
    from elmo.encoders import load_elmo

    try:
        encoder = load_elmo(*(folder / name for name in model.files()))
    except ValueError as error:
        raise ValueError(
            f"what came into {folder} is not this model; delete it and fetch again. {error}"
        ) from error
    n_parameters = sum(p.numel() for p in encoder.model.parameters())
    n_parameters -= encoder.config.char.d_char  # the row for "no token" is not in the file
    if n_parameters != model.n_parameters:
        raise ValueError(
            f"{folder} holds a model of {n_parameters:,} parameters instead of"
            f" {model.n_parameters:,}: not the published one"
        )
    sums = ""
    for name in model.files():
        with (folder / name).open("rb") as file:
            sums += f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n"
    recorded = folder / "sha256.txt"
    if recorded.is_file() and recorded.read_text(encoding="utf-8") != sums:
        raise ValueError(f"the files in {folder} are not those that {recorded} was written for")
    recorded.write_text(sums, encoding="utf-8")
    log.info("%s: %s parameters, trained on %s", folder, f"{n_parameters:,}", model.training)
