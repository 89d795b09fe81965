"""Encoders small enough for tests, one of every kind, with weights that do something."""

from __future__ import annotations

import torch

from elmo.config import AttentionConfig, BiLMConfig, CharConfig, ModelConfig
from elmo.encoders import Encoder
from elmo.language_model import LanguageModel, build

KINDS = ("bilm", "attention", "attention_concat")


def small_config(kind: str, n_vocabulary: int = 0) -> ModelConfig:
    stacks = {
        "bilm": BiLMConfig(d_projection=16, d_cell=24),
        "attention": AttentionConfig(d_stack=16, n_heads=4, d_feedforward=24, max_tokens=20),
        "attention_concat": AttentionConfig(
            d_stack=16, n_heads=2, d_feedforward=24, max_tokens=20, concatenate=True
        ),
    }
    char = CharConfig(d_output=16, d_char=6, filters=((1, 8), (2, 8), (3, 16)))
    return ModelConfig(kind, char, stacks[kind], n_vocabulary, d_head=16)


def small_model(kind: str, n_vocabulary: int = 0, seed: int = 0) -> LanguageModel:
    """Larger weights than training starts from, so that every layer matters."""
    model = build(small_config(kind, n_vocabulary), seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.stack.named_parameters():
            if "norm" not in name:
                parameter.normal_(std=0.25, generator=generator)
    return model


def small_encoder(kind: str, seed: int = 0, **options) -> Encoder:
    return Encoder(small_model(kind, seed=seed), **options)
