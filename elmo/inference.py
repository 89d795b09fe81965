"""The same numbers without gradients, several times faster: what an encoder runs.

The input products of many time steps are one product; gates are computed in place; the windows of
all character filters at a position are one product for many words; the two directions run side by
side. A sentence's vectors do not depend on its batch, since a row of a product does not depend on
the other rows (``elmo.products``).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import torch
from torch import Tensor

from elmo.attention_inference import FastAttention
from elmo.bilm import FORGET_BIAS, BiLM, Packing, ProjectedLSTM, State
from elmo.char_cnn import CharCNN
from elmo.language_model import LanguageModel
from elmo.products import Product, padded_rows
from elmo.text import N_CHARACTERS

MAX_ROWS = 512  # rows of one product
SLACK = 128  # rows behind the last token that a rounded-up product may read
WORDS_PER_PASS = 256  # their filter maxima stay in the processor's cache


class FastCharCNN:
    """``CharCNN`` with all filters as one product a character position.

    Narrow filters are widened with zeros to the widest, so that one window of embedded
    characters serves them all.
    """

    def __init__(self, cnn: CharCNN, dtype: torch.dtype) -> None:
        config = self.config = cnn.config
        self.widest = max(width for width, _ in config.filters)
        self.embedding = cnn.embedding.weight.detach().float()
        device = self.embedding.device
        weights, biases, widths = [], [], []
        for (width, count), convolution in zip(config.filters, cnn.convolutions, strict=True):
            widened = torch.zeros(count, self.widest, config.d_char, device=device)
            widened[:, :width] = convolution.weight.detach().transpose(1, 2)
            weights.append(widened.flatten(1))
            biases.append(convolution.bias.detach())
            widths += [width] * count
        self.filters = Product(torch.cat(weights), torch.cat(biases), dtype)
        self.widths = torch.tensor(widths, device=device)  # of each column
        self.highways = [
            Product(
                torch.cat([h.carry.weight, h.transform.weight]),
                torch.cat([h.carry.bias, h.transform.bias]),
                dtype,
            )
            for h in cnn.highways
        ]
        projection = cnn.projection
        self.projection = projection and Product(projection.weight, projection.bias, dtype)

    def __call__(self, char_ids: Tensor) -> Tensor:
        """(N, C) ids -> (N, d_output)."""
        used = (char_ids != N_CHARACTERS - 1).sum(dim=1)
        order = torch.argsort(used, descending=True, stable=True)
        result = self.embedding.new_empty(len(char_ids), self.config.d_output)
        for part in order.split(WORDS_PER_PASS):
            result[part] = self._one_pass(char_ids[part], used[part])
        return result

    def _one_pass(self, char_ids: Tensor, used: Tensor) -> Tensor:
        x = self._filter_maxima(char_ids, used)
        x = x.relu_() if self.config.activation == "relu" else x.tanh_()
        for highway in self.highways:
            gate, transformed = highway(x).chunk(2, dim=1)
            x = torch.lerp(x, transformed.relu_(), gate.sigmoid_())
        return (x if self.projection is None else self.projection(x))[: len(char_ids)]

    def _filter_maxima(self, char_ids: Tensor, used: Tensor) -> Tensor:
        """(n, C), longest word first -> (padded n, F).

        A word's windows start at its used characters and at the first of its padding: all
        further ones are like that one. Near the end of the C characters a window too wide to
        fit counts for nothing.
        """
        n_words, n_characters = char_ids.shape
        d_char, rows = self.config.d_char, padded_rows(n_words)
        last = used.clamp(max=n_characters - min(w for w, _ in self.config.filters)).tolist()
        ids = torch.nn.functional.pad(char_ids, (0, self.widest, 0, rows - n_words))
        embedded = self.embedding[ids[:, : last[0] + self.widest]].flatten(1)
        maxima = embedded.new_full((rows, len(self.widths)), -torch.inf)
        n = n_words
        for p in range(last[0] + 1):
            while last[n - 1] < p:
                n -= 1
            block = padded_rows(n)
            window = embedded[:block, p * d_char : (p + self.widest) * d_char].contiguous()
            found = self.filters(window)
            if p + self.widest > n_characters:
                found.masked_fill_(self.widths > n_characters - p, -torch.inf)
            torch.maximum(maxima[:n], found[:n], out=maxima[:n])
        maxima[n_words:] = 0
        return maxima


class FastLSTM:
    """``ProjectedLSTM`` over a packed run of tokens."""

    def __init__(self, layer: ProjectedLSTM, dtype: torch.dtype) -> None:
        config = self.config = layer.config
        d_in = config.d_projection
        i, j, f, o = layer.weight.detach().chunk(4)
        weight = torch.cat([i, f, o, j])  # the three sigmoids side by side
        i, j, f, o = layer.bias.detach().chunk(4)
        bias = torch.cat([i, f + FORGET_BIAS, o, j])
        self.from_input = Product(weight[:, :d_in], bias, dtype)
        self.from_hidden = Product(weight[:, d_in:], None, dtype)
        self.projection = layer.projection is not None and Product(layer.projection, None, dtype)

    def __call__(
        self, x: Tensor, sizes: list[int], hidden: Tensor, cell: Tensor
    ) -> tuple[Tensor, Tensor]:
        """x: (tokens + slack, P) in reading order, ``sizes`` the sentences at each step; hidden
        (B, P) and cell (B, C) at the start. Returns outputs (tokens + slack, P), cells (B, C).
        """
        c, cell_clip = self.config.d_cell, self.config.cell_clip
        outputs = torch.zeros_like(x)
        cell = cell.clone()
        squashed = x.new_zeros(padded_rows(len(cell)), c)
        previous = x.new_zeros(padded_rows(len(hidden)), x.shape[1])
        previous[: len(hidden)] = hidden
        start, n_alive, rows = 0, 0, 0
        for group in _groups(sizes):
            gates_x = self.from_input(x[start : start + _rows_read(group)])
            offset = 0
            for size in group:
                if size != n_alive:
                    n_alive, rows = size, padded_rows(size)
                    now, m, m_rows = cell[:size], squashed[:size], squashed[:rows]
                gates = self.from_hidden.plus(previous[:rows], gates_x[offset : offset + rows])
                if rows > size:
                    gates = gates[:size]
                gates[:, : 3 * c].sigmoid_()
                i, f, o, j = gates.chunk(4, dim=1)
                now.mul_(f).addcmul_(i, j.tanh_())
                if cell_clip is not None:
                    now.clamp_(-cell_clip, cell_clip)
                previous = outputs[start:]
                if self.projection:
                    torch.tanh(now, out=m).mul_(o)
                    self._clipped(self.projection(m_rows)[:size], previous[:size])
                else:
                    torch.tanh(now, out=previous[:size]).mul_(o)
                start, offset = start + size, offset + size
        return outputs, cell

    def _clipped(self, output: Tensor, to: Tensor) -> None:
        bound = self.config.projection_clip
        if bound is None:
            to.copy_(output)
        else:
            torch.clamp(output, -bound, bound, out=to)


def _rows_read(group: list[int]) -> int:
    """Rows of input products that the steps of a group touch, rounded up ones included."""
    n_rows, offset = 0, 0
    for size in group:
        n_rows, offset = max(n_rows, offset + padded_rows(size)), offset + size
    return padded_rows(n_rows)


def _groups(sizes: list[int]) -> list[list[int]]:
    """Time steps whose input products are made together: at most ``MAX_ROWS`` rows."""
    groups: list[list[int]] = []
    n_rows = MAX_ROWS
    for size in sizes:
        if n_rows + size > MAX_ROWS - 64:  # room for rounding up
            groups.append([])
            n_rows = 0
        groups[-1].append(size)
        n_rows += size
    return groups


def _use_threads(n: int) -> None:
    """For the calling thread, for good: torch takes the default over at the first question."""
    torch.set_num_threads(n)
    torch.get_num_threads()


@cache
def _workers(n_threads: int) -> ThreadPoolExecutor:
    """Two threads, each with half of torch's."""
    pool = ThreadPoolExecutor(2, "direction", _use_threads, (n_threads // 2,))
    started = Barrier(3)
    for _ in range(2):
        pool.submit(started.wait)
    started.wait()
    torch.set_num_threads(n_threads)  # what the workers set is also the default of new threads
    return pool


def _both(work: Callable[[int], State]) -> tuple[State, State]:
    """``work(0)`` and ``work(1)``, side by side where torch has two threads or more.

    The two directions need nothing from each other, so this costs one meeting a call instead of
    one a product.
    """
    n_threads = torch.get_num_threads()
    if n_threads == 1:
        return work(0), work(1)

    def without_gradients(direction: int) -> State:
        with torch.inference_mode():
            return work(direction)

    forward, backward = (_workers(n_threads).submit(without_gradients, d) for d in range(2))
    return forward.result(), backward.result()


class FastBiLM:
    """``BiLM.run`` without gradients."""

    def __init__(self, stack: BiLM, dtype: torch.dtype) -> None:
        self.config = stack.config
        self.directions = [
            [FastLSTM(layer, dtype) for layer in layers]
            for layers in (stack.forward_layers, stack.backward_layers)
        ]

    def run(
        self, x: Tensor, lengths: Tensor, start: tuple[State | None, State | None] = (None, None)
    ) -> tuple[Tensor, tuple[State, State]]:
        """See ``BiLM.run``."""
        n_layers, d_half = self.config.n_layers, x.shape[2]
        result = x.new_zeros(1 + n_layers, *x.shape[:2], 2 * d_half)

        def work(direction: int) -> State:
            half = slice(direction * d_half, (direction + 1) * d_half)
            packing = Packing(lengths, backward=bool(direction))
            return self._run_direction(
                packing, self.directions[direction], x, start[direction], result[..., half]
            )

        return result, _both(work)

    def _run_direction(
        self,
        packing: Packing,
        layers: list[FastLSTM],
        x: Tensor,
        state: State | None,
        result: Tensor,
    ) -> State:
        n_tokens, n_sentences = len(packing.row), len(packing.rows)
        packed = x.new_zeros(n_tokens + SLACK, x.shape[2])
        packed[:n_tokens] = packing.pack(x)
        result[0, packing.row, packing.position] = packed[:n_tokens]
        original = torch.argsort(packing.rows)
        tokens = torch.arange(n_tokens, device=packed.device)
        last = torch.zeros_like(packing.rows).scatter_reduce(0, packing.row, tokens, "amax")
        hidden_states, cell_states = [], []
        for k, layer in enumerate(layers):
            if state is None:
                hidden = packed.new_zeros(n_sentences, self.config.d_projection)
                cell = packed.new_zeros(n_sentences, self.config.d_cell)
            else:
                hidden, cell = state.hidden[k][packing.rows], state.cell[k][packing.rows]
            outputs, cell = layer(packed, packing.sizes, hidden, cell)
            hidden_states.append(outputs[last])
            cell_states.append(cell[original])
            packed = outputs.add_(packed) if k and self.config.skip_connections else outputs
            result[k + 1, packing.row, packing.position] = packed[:n_tokens]
        return State(tuple(hidden_states), tuple(cell_states))


class Inference:
    """A language model ready to encode; made anew when its weights change."""

    def __init__(self, model: LanguageModel, dtype: torch.dtype = torch.float32) -> None:
        with torch.inference_mode(False), torch.no_grad():
            self.token_encoder = FastCharCNN(model.token_encoder, dtype)
            lstms = isinstance(model.stack, BiLM)
            self.stack = (FastBiLM if lstms else FastAttention)(model.stack, dtype)

    def token_vectors(self, char_ids: Tensor) -> Tensor:
        """Context-free vectors of N tokens: (N, C) ids -> (N, P)."""
        return self.token_encoder(char_ids)

    def layers(
        self,
        x: Tensor,
        lengths: Tensor,
        start: tuple[State | None, State | None] = (None, None),
        attention: bool = False,
    ) -> tuple[Tensor, Tensor | None, tuple[State, State] | None]:
        """(B, T, P) token vectors -> (L, B, T, D); attention if asked for and end states, or
        ``None``."""
        if isinstance(self.stack, FastBiLM):
            hidden, end = self.stack.run(x, lengths, start)
            return hidden, None, end
        return *self.stack(x, lengths, attention), None
