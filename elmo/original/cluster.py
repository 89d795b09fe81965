"""``python -m elmo cluster``: Parquet files of sentences embedded by many workers (Ray Data).

Needs ``pip install "ray[data]"``, which nothing else here does. Every worker loads the model once
and takes one file after another; a file's output has the same name and appears when it is whole,
so a job that was stopped continues with the files that are missing. Paths may be those of any
file system that Arrow opens (``s3://``, ``gs://``, ``hdfs://``); the model must lie where every
worker can read it.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elmo.model_arguments import add_model_arguments, encoder_from
from elmo.original.embed import duration

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)
ROWS_PER_BATCH = 512


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("input", help="folder of .parquet files")
    add("output", help="folder for as many .parquet files with vectors")
    add("--column", default="text", help="sentences: strings with blanks, or lists of tokens")
    add("--layers", choices=("all", "top", "average"), default="all")
    add("--workers", type=int, default=2, help="processes, each with a model of its own")
    add("--address", help="a running Ray cluster (default: start one on this machine)")
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would send them somewhere
    try:
        import ray
    except ImportError as error:
        raise ValueError('this command needs Ray: pip install "ray[data]"') from error
    if args.workers < 1:
        raise ValueError(f"--workers must be positive, got {args.workers}")
    if args.state == "carry":
        raise ValueError("files are embedded in any order: --state zero or warm")
    args.threads = args.threads or 1
    _make_folder(args.output)
    files, n_done = pending_files(args.input, args.output)
    log.info("%d files to embed, %d are done", len(files), n_done)
    if not files:
        return 0
    encoder_from(args)  # a wrong path or model is found here, not in the workers
    if not ray.is_initialized():
        try:
            ray.init(log_to_driver=False, **_where(args))
        except ConnectionError as error:
            raise ValueError(f"no Ray cluster at {args.address}: {error}") from error
    ray.data.DataContext.get_current().enable_progress_bars = False
    start, n_tokens = time.monotonic(), 0
    results = ray.data.from_items(
        [{"file": file} for file in files], override_num_blocks=len(files)
    )
    results = results.map(
        Worker,
        fn_constructor_args=(vars(args),),
        concurrency=min(args.workers, len(files)),
        num_cpus=args.threads,
    )
    for n, row in enumerate(results.iter_rows(), 1):
        n_tokens += row["n_tokens"]
        seconds = time.monotonic() - start
        left = seconds / n * (len(files) - n)
        log.info(
            "%s: %d of %d files, %.0f tokens/s, %s left",
            *(row["file"], n, len(files), n_tokens / seconds, duration(left)),
        )
    return 0


def _where(args: argparse.Namespace) -> dict[str, Any]:
    """A cluster that runs, to which this package is sent along, or one of our own here."""
    if args.address:
        package = str(Path(__file__).parents[1])
        return {"address": args.address, "runtime_env": {"py_modules": [package]}}
    return {"num_cpus": args.workers * args.threads, "include_dashboard": False}


def _filesystem(path: str) -> tuple[Any, str]:
    from pyarrow import fs

    if "://" in path:
        return fs.FileSystem.from_uri(path)
    return fs.LocalFileSystem(), str(Path(path).absolute())


def _make_folder(path: str) -> None:
    system, inside = _filesystem(path)
    system.create_dir(inside, recursive=True)


def _parquet_names(path: str) -> list[str]:
    from pyarrow import fs

    system, inside = _filesystem(path)
    found = system.get_file_info(fs.FileSelector(inside))
    return sorted(info.base_name for info in found if info.extension == "parquet")


def pending_files(source: str, output: str) -> tuple[list[str], int]:
    """Names of input files without an output, and how many have one."""
    names = _parquet_names(source)
    if not names:
        raise ValueError(f"{source} holds no .parquet files")
    done = set(_parquet_names(output))
    pending = [name for name in names if name not in done]
    return pending, len(names) - len(pending)


class Worker:
    """One process of the job: a model, and one file a call."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.args = argparse.Namespace(**arguments)
        self.encoder = encoder_from(self.args)
        self.layers = "mean" if self.args.layers == "average" else self.args.layers

    def __call__(self, row: dict[str, str]) -> dict[str, Any]:
        import pyarrow.parquet as pq

        name, n_tokens = row["file"], 0
        source_fs, source = _filesystem(self.args.input)
        output_fs, output = _filesystem(self.args.output)
        unfinished = f"{output}/{name}.unfinished"
        with source_fs.open_input_file(f"{source}/{name}") as stream:
            file = pq.ParquetFile(stream)
            if self.args.column not in file.schema_arrow.names:
                columns = ", ".join(file.schema_arrow.names)
                raise ValueError(f"{name} has no column {self.args.column!r}, only {columns}")
            schema = self._schema(file.schema_arrow)
            with pq.ParquetWriter(unfinished, schema, filesystem=output_fs) as writer:
                for table, n in self._tables(file, schema):
                    writer.write_table(table)
                    n_tokens += n
        output_fs.move(unfinished, f"{output}/{name}")
        return {"file": name, "n_tokens": n_tokens}

    def _names(self) -> list[str]:
        """The columns that are added: one a layer, each a list of T vectors."""
        if self.args.layers == "all":
            return [f"layer_{k}" for k in range(self.encoder.n_layers)]
        return [self.args.layers]

    def _schema(self, schema: pa.Schema) -> pa.Schema:
        import pyarrow as pa

        vectors = pa.list_(pa.list_(pa.float32(), self.encoder.d_model))
        schema = schema.remove_metadata()
        for name in self._names():
            schema = schema.append(pa.field(name, vectors))
        return schema

    def _tables(self, file: Any, schema: pa.Schema) -> Iterator[tuple[pa.Table, int]]:
        import pyarrow as pa

        for batch in file.iter_batches(ROWS_PER_BATCH):
            sentences = [
                (value or "").split() if isinstance(value, str | None) else list(value)
                for value in batch.column(self.args.column).to_pylist()
            ]
            hidden = [e.hidden for e in self.encoder.encode(sentences, self.layers)]
            if self.args.layers != "all":
                hidden = [h[None] for h in hidden]
            columns = list(batch.columns)
            offsets = np.cumsum([0, *map(len, sentences)], dtype=np.int32)
            for k in range(len(self._names())):
                values = np.concatenate([h[k] for h in hidden]).ravel()
                vectors = pa.FixedSizeListArray.from_arrays(values, self.encoder.d_model)
                columns.append(pa.ListArray.from_arrays(pa.array(offsets), vectors))
            yield pa.Table.from_arrays(columns, schema=schema), int(offsets[-1])
