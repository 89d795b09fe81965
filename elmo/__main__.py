"""``python -m elmo train``, ``evaluate``, ``embed``, ...: the command line of this package."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys

# Before torch is loaded: threads that wait sleep instead of spinning, so that a busy neighbor
# on the same cores does not slow every product several times.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

COMMANDS = {  # name: (module, what it does)
    "embed": ("original.embed", "vectors of every line of a text file: HDF5, npz or TSV"),
    "fetch": ("original.fetch", "download one of the published English models"),
    "export": ("original.export", "write a biLM of ours in the original format"),
    "cluster": (
        "original.cluster",
        "vectors of Parquet files by many workers (Ray Data)",
    ),
    "train": ("training.train", "train a language model on plain text"),
    "evaluate": ("training.evaluate", "held-out perplexity and gap scores of a trained model"),
    "curves": ("training.curves", "held-out scores while models learned, at equal cost"),
    "probe": (
        "probing.probe",
        "which layers tasks want: probes, learned mixes, senses",
    ),
    "cloze": ("both_ways.cloze", "gap guesses of every predictor by where the evidence lies"),
    "interaction": (
        "both_ways.interaction",
        "how far two edits interact, over examples",
    ),
    "bank": ("banks.bank_command", "banks of tokens on disk: build, check, search"),
    "senses": ("banks.senses", "are the nearest copies of a word of its own sense?"),
    "reach": ("both_ways.reach", "how far a token's influence reaches, by layer, over examples"),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; its module is imported only when it is named."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser("python -m elmo", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (path, line) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=line, description=line)
        if arguments[:1] == [name]:
            module = importlib.import_module(f"elmo.{path}")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        return options.run(options) or 0
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
