"""The options by which every command names its encoder."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from elmo import start_states
from elmo.encoders import PRECISIONS, Encoder, load_elmo, load_encoder

SHIPPED = Path(__file__).resolve().parents[1] / "assets" / "models" / "bilm"


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Which encoder, and how it runs; ``encoder_from`` reads them back."""
    add = parser.add_argument
    add("--options", type=Path, help="options.json of an original-format model (or a folder, zip)")
    add("--weights", type=Path, help="its HDF5 weights")
    add("--model", type=Path, help="a model folder of ours (default: the shipped biLM)")
    add("--state", choices=start_states.MODES, default="zero", help="where LSTMs start a sentence")
    add("--precision", choices=PRECISIONS, default="float32", help="of matrix products")
    add("--threads", type=int, help="processor threads (default: torch's choice)")


def encoder_from(args: argparse.Namespace) -> Encoder:
    """The encoder that the arguments name. Raises ``ValueError`` for contradictory ones."""
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.options is not None:
        if args.model is not None:
            raise ValueError("give --model, or --options and --weights, not both")
        return load_elmo(args.options, args.weights, args.state, args.precision)
    if args.weights is not None:
        raise ValueError("--weights needs the --options that belong to it")
    folder = args.model or SHIPPED
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not there: give --model, or --options and --weights")
    return load_encoder(folder, args.state, args.precision)
