"""ELMo's two stacks of LSTMs, one reading left to right, one right to left.

Peters et al. 2018, section 3.1: "a forward LM and a backward LM", trained side by side on shared
characters and a shared softmax, yet neither stack ever sees the other. The cell is TensorFlow's
``LSTMCell`` with projection and clipping (Sak et al. 2014), which ``torch.nn.LSTM`` cannot
express because it does not clip.

Nothing is remembered between calls: a start state is an argument, the end state a result.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmo.config import BiLMConfig

FORGET_BIAS = 1.0  # added to the forget gate, not part of the stored bias


@dataclass(frozen=True)
class State:
    """What one stack carries from token to token: a layer's output (B, P) and cell (B, C)."""

    hidden: tuple[Tensor, ...]
    cell: tuple[Tensor, ...]


class Packing:
    """Sentences of several lengths as one run of tokens, step by step, without padding.

    Rows are sorted by falling length, so that the sentences still running at a step are the
    first ones; ``sizes[t]`` counts them. A backward packing reads each sentence from its own
    end.
    """

    def __init__(self, lengths: Tensor, backward: bool = False) -> None:
        if lengths.dim() != 1 or (len(lengths) and int(lengths.min()) < 1):
            raise ValueError(f"lengths must be positive and one a sentence, got {lengths}")
        ordered, self.rows = torch.sort(lengths, descending=True, stable=True)
        steps = torch.arange(int(ordered[0]) if len(ordered) else 0, device=lengths.device)
        alive = steps[:, None] < ordered[None, :]  # (T, B)
        self.sizes: list[int] = alive.sum(dim=1).tolist()
        step, row = alive.nonzero(as_tuple=True)
        self.row = self.rows[row]
        self.position = ordered[row] - 1 - step if backward else step

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, P) -> (tokens, P) in the order of reading."""
        return x[self.row, self.position]

    def unpack(self, x: Tensor, n_positions: int) -> Tensor:
        """(tokens, P) -> (B, T, P); padded positions are exactly 0."""
        padded = x.new_zeros(len(self.rows), n_positions, x.shape[-1])
        return padded.index_put((self.row, self.position), x)


class ProjectedLSTM(nn.Module):
    """One layer in one direction.

    ``weight`` is (4 C, P + P): rows are the gates i (input), j (candidate), f (forget),
    o (output), columns first the input, then the layer's own last output.
    """

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        d_in, d_cell = config.d_projection, config.d_cell
        self.weight = nn.Parameter(torch.empty(4 * d_cell, 2 * d_in))
        self.bias = nn.Parameter(torch.empty(4 * d_cell))
        self.projection = nn.Parameter(torch.empty(d_in, d_cell)) if config.project else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """TensorFlow's default for the cell: Glorot uniform, bias 0."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            nn.init.xavier_uniform_(self.projection)

    def start(self, n_sentences: int) -> tuple[Tensor, Tensor]:
        """The zero state."""
        config, like = self.config, self.weight
        return (
            like.new_zeros(n_sentences, config.d_projection),
            like.new_zeros(n_sentences, config.d_cell),
        )

    def forward(
        self, x: Tensor, sizes: list[int], hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(tokens, P) in reading order -> outputs (tokens, P), last hidden and cell of each row."""
        config = self.config
        d_in = config.d_projection
        weight_x, weight_h = self.weight[:, :d_in].t(), self.weight[:, d_in:].t()
        bias = self.bias.clone()
        bias[2 * config.d_cell : 3 * config.d_cell] += FORGET_BIAS
        gates_x = torch.addmm(bias, x, weight_x)  # all steps at once

        outputs, ended_hidden, ended_cell = [], [], []
        start = 0
        for size in sizes:
            if size < len(hidden):  # shorter sentences have ended
                ended_hidden.append(hidden[size:])
                ended_cell.append(cell[size:])
                hidden, cell = hidden[:size], cell[:size]
            gates = torch.addmm(gates_x[start : start + size], hidden, weight_h)
            i, j, f, o = gates.chunk(4, dim=1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(j)
            if config.cell_clip is not None:
                cell = cell.clamp(-config.cell_clip, config.cell_clip)
            hidden = torch.sigmoid(o) * torch.tanh(cell)
            if self.projection is not None:
                hidden = hidden @ self.projection.t()
                if config.projection_clip is not None:
                    hidden = hidden.clamp(-config.projection_clip, config.projection_clip)
            outputs.append(hidden)
            start += size
        last_hidden = torch.cat([hidden, *reversed(ended_hidden)])
        last_cell = torch.cat([cell, *reversed(ended_cell)])
        return (torch.cat(outputs) if outputs else x), last_hidden, last_cell


class BiLM(nn.Module):
    """Both stacks over one sequence of token vectors; layers are concatenated, never mixed."""

    def __init__(self, config: BiLMConfig) -> None:
        super().__init__()
        self.config = config
        self.forward_layers = nn.ModuleList(ProjectedLSTM(config) for _ in range(config.n_layers))
        self.backward_layers = nn.ModuleList(ProjectedLSTM(config) for _ in range(config.n_layers))

    def run_direction(
        self, x: Tensor, lengths: Tensor, backward: bool, state: State | None = None
    ) -> tuple[list[Tensor], State]:
        """One stack over (B, T, P): each layer's output (B, T, P), and the end state.

        The skip connection adds a layer's input to its output from the second layer on; the sum
        goes up and out, never into the recurrence.
        """
        packing = Packing(lengths, backward)
        packed = packing.pack(x)
        original = torch.argsort(packing.rows)
        outputs, hidden_states, cell_states = [], [], []
        layers = self.backward_layers if backward else self.forward_layers
        for k, layer in enumerate(layers):
            if state is None:
                hidden, cell = layer.start(len(lengths))
            else:
                hidden, cell = state.hidden[k][packing.rows], state.cell[k][packing.rows]
            output, hidden, cell = layer(packed, packing.sizes, hidden, cell)
            hidden_states.append(hidden[original])
            cell_states.append(cell[original])
            packed = output + packed if k > 0 and self.config.skip_connections else output
            outputs.append(packing.unpack(packed, x.shape[1]))
        return outputs, State(tuple(hidden_states), tuple(cell_states))

    def run(
        self, x: Tensor, lengths: Tensor, start: tuple[State | None, State | None] = (None, None)
    ) -> tuple[Tensor, tuple[State, State]]:
        """All layers, and both stacks' end states, from given start states (``None``: zeros).

        x: (B, T, P) token vectors, boundaries included; lengths: (B,) real positions.
        Returns (L, B, T, 2 P): layer 0 is [x ; x], layer k is [forward_k ; backward_k]; padded
        positions are exactly 0 in every layer.
        """
        forward, forward_end = self.run_direction(x, lengths, False, start[0])
        backward, backward_end = self.run_direction(x, lengths, True, start[1])
        real = torch.arange(x.shape[1], device=x.device)[None, :] < lengths[:, None]
        x = x * real[:, :, None]
        layers = [torch.cat([x, x], dim=-1)]
        layers += [torch.cat(pair, dim=-1) for pair in zip(forward, backward, strict=True)]
        return torch.stack(layers), (forward_end, backward_end)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """All layers (L, B, T, 2 P) from the zero state; see ``run``."""
        return self.run(x, lengths)[0]
