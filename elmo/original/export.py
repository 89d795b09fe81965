"""``python -m elmo export``: a biLM of ours in the original format, for any ELMo software."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from elmo.checkpoint import load_model
from elmo.original.hdf5 import write_model

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a model folder of ours")
    parser.add_argument("output", type=Path, help="folder for options.json and weights.hdf5")


def run(args: argparse.Namespace) -> int:
    if args.output.exists() and any(args.output.iterdir()):
        raise ValueError(f"{args.output} is not empty")
    checkpoint = load_model(args.model)
    write_model(args.output, checkpoint.model, checkpoint.vocabulary)
    log.info("wrote %s", ", ".join(sorted(str(path) for path in args.output.iterdir())))
    return 0
