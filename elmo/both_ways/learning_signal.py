"""How each encoder learns: what it must predict, from which words, and what its loss teaches.

ELMo's two directions have separate LSTMs but one character CNN and one softmax, and one loss that
is the sum of both (Peters et al. 2018, section 3.1). "Trained separately" is half true, and the
gradient test shows which half.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmo.language_model import READOUTS, LanguageModel
from elmo.results import GradientTest, Objective
from elmo.text import BOS, EOS, MASK, UNK, char_ids

MASK_SHARE = 0.35  # of the tokens, as in training


def objective(
    kind: str, tokens: Sequence[str], mask_share: float = MASK_SHARE, seed: int = 0
) -> Objective:
    """The targets of one sentence and the context of each.

    A language model predicts every token and the boundary that it reads towards, each from the
    tokens before (forward) or after it (backward). The joint encoder predicts a random share of
    the tokens, from all that are left on both sides.

    Raises ``ValueError`` for an unknown kind and for an empty sentence.
    """
    if not tokens:
        raise ValueError("an empty sentence has nothing to predict")
    framed = (BOS, *tokens, EOS)
    n = len(framed)
    positions = np.arange(n)
    if kind in ("bilm", "attention_concat"):
        forward, backward = positions[1:], positions[:-1]
        context = np.concatenate(
            [positions[None, :] < forward[:, None], positions[None, :] > backward[:, None]]
        )
        directions = ("forward",) * (n - 1) + ("backward",) * (n - 1)
        return Objective(
            kind, framed, framed, directions, np.concatenate([forward, backward]), context
        )
    if kind != "attention":
        raise ValueError(f"no objective is known for kind {kind!r}")
    n_gaps = max(1, round(mask_share * len(tokens)))
    order = np.random.default_rng(seed).permutation(len(tokens))
    targets = np.sort(order[:n_gaps]) + 1
    seen = np.ones(n, dtype=bool)
    seen[targets] = False
    read = tuple(token if seen[i] else MASK for i, token in enumerate(framed))
    context = np.broadcast_to(seen, (n_gaps, n)).copy()
    return Objective(kind, framed, read, ("joint",) * n_gaps, targets, context)


def gradient_test(
    model: LanguageModel,
    word_ids: Mapping[str, int],
    tokens: Sequence[str],
    seed: int = 0,
) -> GradientTest:
    """Each loss's gradient on each part of the model, from one sentence.

    The losses are those of ``objective``, over the full softmax. The whole model is run and the
    loss taken from its concatenated top layer, so a zero is one that came through the backward
    pass and not a path that was left out. The model itself is not touched.

    word_ids: the vocabulary's numbers, ``<UNK>`` among them. Raises ``ValueError`` for a model
    without a softmax.
    """
    if model.head is None:
        raise ValueError("a model without a softmax has no loss to take gradients of")
    with torch.inference_mode(False), torch.enable_grad():  # wherever this is called from
        model = copy.deepcopy(model).requires_grad_(True)
        task = objective(model.config.kind, tokens, seed=seed)
        groups = _groups(model)
        unknown = word_ids[UNK]
        words = torch.tensor([word_ids.get(token, unknown) for token in task.tokens])
        losses = tuple(dict.fromkeys(task.directions))
        values, norms, zeros = [], [], []
        for direction in losses:
            model.zero_grad(set_to_none=True)
            targets = torch.from_numpy(task.targets[[d == direction for d in task.directions]])
            hidden = _top(model, task.read, targets, direction)
            loss = F.cross_entropy(model.head(model.read(hidden, direction)), words[targets])
            loss.backward()
            values.append(loss.item())
            gradients = [
                torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
                for parameters in groups.values()
            ]
            norms.append([float(g.double().norm()) for g in gradients])
            zeros.append([bool((g == 0).all()) for g in gradients])
    return GradientTest(
        losses=losses,
        values=np.array(values),
        groups=tuple(groups),
        n_weights=np.array([sum(p.numel() for p in group) for group in groups.values()]),
        norm=np.array(norms),
        exactly_zero=np.array(zeros),
    )


def _top(model: LanguageModel, read: Sequence[str], targets: Tensor, direction: str) -> Tensor:
    """(M, P) the top layer where each target is predicted: left of it, right of it, or there."""
    width = model.config.char.max_characters
    ids = torch.from_numpy(np.stack([char_ids(token, width) for token in read]))
    layers, _ = model.layers(model.token_encoder(ids)[None], torch.tensor([len(read)]))
    top = layers[-1, 0]
    if direction == "joint":
        return top[targets]
    forward, backward = top.chunk(2, dim=-1)
    return forward[targets - 1] if direction == "forward" else backward[targets + 1]


def _groups(model: LanguageModel) -> dict[str, list[torch.nn.Parameter]]:
    """Named parts of a model; a stack's own readout belongs to the stack."""
    stack = model.stack
    if model.config.kind == "attention":
        stacks = {"joint stack": [stack, model.readout["joint"]]}
    elif model.config.kind == "bilm":
        stacks = {
            "forward LSTMs": [stack.forward_layers],
            "backward LSTMs": [stack.backward_layers],
        }
    else:
        stacks = {
            f"{direction} attention": [
                getattr(stack, f"{direction}_stack"),
                model.readout[READOUTS[direction]],
            ]
            for direction in ("forward", "backward")
        }
    modules = {"character CNN": [model.token_encoder], **stacks, "softmax": [model.head]}
    return {
        name: [p for module in parts for p in module.parameters()]
        for name, parts in modules.items()
    }
