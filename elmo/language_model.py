"""A whole model: characters, a stack that reads both ways, and a softmax over words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from elmo.bilm import BiLM
from elmo.char_cnn import CharCNN
from elmo.config import BiLMConfig, ModelConfig
from elmo.self_attention import ConcatenatedAttention, SelfAttention


class SoftmaxHead(nn.Module):
    """Logits over the vocabulary: ``W x + b``, shared by both directions of a language model."""

    def __init__(self, n_vocabulary: int, d_head: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_vocabulary, d_head))
        self.bias = nn.Parameter(torch.zeros(n_vocabulary))
        nn.init.normal_(self.weight, std=d_head**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """(..., P) -> (..., V)"""
        return F.linear(x, self.weight, self.bias)


class MaskedTransform(nn.Module):
    """What a masked language model does before the softmax: dense, GELU, norm (BERT)."""

    def __init__(self, d_stack: int, d_head: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_stack)
        self.dense = nn.Linear(d_stack, d_head)
        self.output_norm = nn.LayerNorm(d_head)

    def forward(self, x: Tensor) -> Tensor:
        return self.output_norm(F.gelu(self.dense(self.norm(x))))


READOUTS = {"forward": "from_left", "backward": "from_right", "joint": "joint"}


class LanguageModel(nn.Module):
    """Token encoder, stack and head, by name: what is trained, saved and loaded.

    ``readout`` turns the top layer into the softmax's input: nothing for LSTMs, a norm for each
    causal attention stack (``from_left``, ``from_right``: torch keeps the name ``forward`` for
    itself), a transform for the masked language model (``joint``). It belongs to the head and is
    not part of any returned layer.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.token_encoder = CharCNN(config.char)
        self.readout = nn.ModuleDict()
        if isinstance(config.stack, BiLMConfig):
            self.stack = BiLM(config.stack)
        elif config.stack.concatenate:
            self.stack = ConcatenatedAttention(config.stack)
        else:
            self.stack = SelfAttention(config.stack)
        self.head = None
        if config.n_vocabulary:
            if config.kind == "attention_concat":
                for direction in ("forward", "backward"):
                    self.readout[READOUTS[direction]] = nn.LayerNorm(config.stack.d_stack)
            elif config.kind == "attention":
                self.readout["joint"] = MaskedTransform(config.stack.d_stack, config.d_head)
            d_head = config.d_head if config.kind == "attention" else config.stack.d_input
            self.head = SoftmaxHead(config.n_vocabulary, d_head)

    def layers(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor | None]:
        """(B, T, P) token vectors -> (L, B, T, D), and attention where the stack has any."""
        result = self.stack(x, lengths)
        return (result, None) if isinstance(result, Tensor) else result

    def read(self, x: Tensor, direction: str) -> Tensor:
        """The softmax's input from one direction's top layer (``forward``, ``backward``) or the
        joint one (``joint``)."""
        name = READOUTS[direction]
        return self.readout[name](x) if name in self.readout else x


class _NoInitialization(TorchFunctionMode):
    """Skips ``torch.nn.init``, which on the meta device costs a second of imports for nothing."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


def empty_model(config: ModelConfig) -> LanguageModel:
    """A model without weights, on the meta device, for weights that are to be loaded."""
    with torch.device("meta"), _NoInitialization():
        return LanguageModel(config)


def build(config: ModelConfig, seed: int | None = None) -> LanguageModel:
    """A model with fresh weights; with a seed they are the same on every call."""
    if seed is None:
        return LanguageModel(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LanguageModel(config)
