"""Our own models on disk: config, weights, vocabulary and model card in one folder.

Stacks and the character CNN are stored in float16. The softmax matrix is stored in 8 bits with a
float16 scale a row, since it is by far the largest part and the least sensitive one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmo.config import ModelConfig
from elmo.language_model import LanguageModel, empty_model

HEAD = "head.weight"
N_SPECIAL = 3  # rows of the vocabulary before its words: <S>, </S>, <UNK>
UNIGRAM = "unigram"  # beside the weights, not one of them: log-probability of each word in training


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(V, D) -> int8 values (V, D) and float16 scales (V,): weight ~ values * scale a row."""
    scale = (weight.abs().amax(dim=1) / 127).clamp(min=1e-7).to(torch.float16)
    values = torch.round(weight / scale.to(weight.dtype)[:, None]).clamp(-127, 127)
    return values.to(torch.int8), scale


@dataclass(frozen=True)
class Checkpoint:
    """A loaded folder.

    unigram: (V,) float32 natural log-probabilities of the vocabulary's words in the training
        text, ``<UNK>`` standing for all others; ``None`` where the folder holds none.
    """

    folder: Path
    config: ModelConfig
    model: LanguageModel
    card: dict[str, Any]
    unigram: np.ndarray | None = None
    vocabulary_file: str = "vocabulary.txt"

    @cached_property
    def vocabulary(self) -> list[str]:
        """V words, most frequent first after the three special ones."""
        text = (self.folder / self.vocabulary_file).read_text(encoding="utf-8")
        return text.removesuffix("\n").split("\n")

    @cached_property
    def word_ids(self) -> dict[str, int]:
        """Each word's row in the vocabulary."""
        return {word: i for i, word in enumerate(self.vocabulary)}

    def rank(self, word: str) -> int | None:
        """How frequent a word was in the training text, 1 the most frequent; ``None`` for a word
        that is not in the vocabulary, which training never asked for."""
        row = self.word_ids.get(word, -1)
        return row - N_SPECIAL + 1 if row >= N_SPECIAL else None


def save_model(
    folder: str | Path,
    model: LanguageModel,
    vocabulary: list[str],
    card: dict[str, Any],
    unigram: np.ndarray | None = None,
) -> None:
    """Writes ``config.json``, ``weights.safetensors``, ``vocabulary.txt`` and ``card.json``.

    unigram: see ``Checkpoint``; stored with the weights.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if model.head is not None and len(vocabulary) != model.config.n_vocabulary:
        raise ValueError(
            f"the head has {model.config.n_vocabulary} words, the vocabulary {len(vocabulary)}"
        )
    tensors = {}
    if unigram is not None:
        if len(unigram) != len(vocabulary):
            raise ValueError(f"{len(unigram)} unigrams do not fit {len(vocabulary)} words")
        tensors[UNIGRAM] = torch.as_tensor(np.asarray(unigram, dtype=np.float32))
    for name, value in model.state_dict().items():
        if name == HEAD:
            tensors[HEAD], tensors["head.scale"] = quantize_rows(value.float())
        else:
            tensors[name] = value.to(torch.float16).contiguous()
    save_file(tensors, str(folder / "weights.safetensors"))
    _write_json(folder / "config.json", model.config.to_dict())
    _write_json(folder / "card.json", card)
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load_model(folder: str | Path) -> Checkpoint:
    """Reads a folder that ``save_model`` wrote, in float32, frozen and in evaluation mode.

    Raises ``ValueError`` naming what is missing, extra or misshapen.
    """
    folder = Path(folder)
    missing = [
        name
        for name in ("config.json", "weights.safetensors", "vocabulary.txt", "card.json")
        if not (folder / name).is_file()
    ]
    if missing:
        raise ValueError(f"{folder} is not a model folder: it lacks {', '.join(missing)}")
    config = ModelConfig.from_dict(json.loads((folder / "config.json").read_text("utf-8")))
    model = empty_model(config)
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    tensors: dict[str, Tensor] = {}
    try:
        with safe_open(str(folder / "weights.safetensors"), framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - not a dict
                tensors[name] = file.get_tensor(name)
    except SafetensorError as error:
        raise ValueError(f"{folder / 'weights.safetensors'} cannot be read: {error}") from error
    unigram = tensors.pop(UNIGRAM, None)
    scale = tensors.pop("head.scale", None)
    if scale is not None and HEAD in tensors:
        tensors[HEAD] = tensors[HEAD].float() * scale.float()[:, None]
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    if found != expected:
        lines = [f"missing {name}" for name in expected.keys() - found.keys()]
        lines += [f"unexpected {name}" for name in found.keys() - expected.keys()]
        lines += [
            f"{name} has shape {found[name]} instead of {expected[name]}"
            for name in expected.keys() & found.keys()
            if found[name] != expected[name]
        ]
        raise ValueError(f"{folder} does not hold this model: {'; '.join(sorted(lines))}")
    model.load_state_dict({k: v.float() for k, v in tensors.items()}, assign=True)
    model.requires_grad_(False).eval()
    card = json.loads((folder / "card.json").read_text("utf-8"))
    return Checkpoint(folder, config, model, card, None if unigram is None else unigram.numpy())


def file_digest(folder: str | Path) -> str:
    """A short name for the weights in a folder, to key caches by."""
    import hashlib

    digest = hashlib.blake2b(digest_size=8)
    with (Path(folder) / "weights.safetensors").open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
