"""A second, slower ELMo to test against: NumPy, float64, one token and one step at a time.

It reads the arrays of the original file layout directly, by their names there, and shares no
code with the package. ``random_model`` invents models in that layout.
"""

from __future__ import annotations

import copy
import json

import h5py
import numpy as np

SMALL = {
    "lstm": {
        "cell_clip": 3,
        "proj_clip": 3,
        "n_layers": 2,
        "dim": 24,
        "projection_dim": 8,
        "use_skip_connections": True,
    },
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 4},
        "filters": [[1, 4], [2, 6], [3, 8], [5, 6]],
        "n_highway": 2,
        "n_characters": 262,
        "max_characters_per_token": 50,
    },
}


def options_with(lstm: dict | None = None, char_cnn: dict | None = None) -> dict:
    """SMALL with some entries replaced; ``None`` as a value removes the entry."""
    options = copy.deepcopy(SMALL)
    for part, changes in (("lstm", lstm), ("char_cnn", char_cnn)):
        for key, value in (changes or {}).items():
            if value is None:
                options[part].pop(key, None)
            else:
                options[part][key] = value
    return options


def cell_name(options: dict, direction: int, layer: int, wrapped: bool = True) -> str:
    level = f"MultiRNNCell/Cell{layer}/" if wrapped else ""
    return f"RNN_{direction}/RNN/{level}LSTMCell"


def random_model(options: dict, seed: int = 0, wrapped: bool = True) -> dict[str, np.ndarray]:
    """Arrays of a model with these options, large enough that both clips bite."""
    rng = np.random.default_rng(seed)
    lstm, char = options["lstm"], options["char_cnn"]
    d_char, d_proj, d_cell = char["embedding"]["dim"], lstm["projection_dim"], lstm["dim"]
    n_filters = sum(n for _, n in char["filters"])

    def draw(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (rng.normal(size=shape) * scale).astype(np.float32)

    arrays = {"char_embed": draw(261, d_char)}
    for i, (width, count) in enumerate(char["filters"]):
        arrays[f"CNN/W_cnn_{i}"] = draw(1, width, d_char, count, scale=0.4)
        arrays[f"CNN/b_cnn_{i}"] = draw(count, scale=0.3)
    for k in range(char.get("n_highway", 0)):
        for gate in ("carry", "transform"):
            scale = 1 / np.sqrt(n_filters)
            arrays[f"CNN_high_{k}/W_{gate}"] = draw(n_filters, n_filters, scale=scale)
            arrays[f"CNN_high_{k}/b_{gate}"] = draw(n_filters, scale=0.5)
    if n_filters != d_proj:
        arrays["CNN_proj/W_proj"] = draw(n_filters, d_proj, scale=1 / np.sqrt(n_filters))
        arrays["CNN_proj/b_proj"] = draw(d_proj, scale=0.3)
    for direction in range(2):
        for layer in range(lstm["n_layers"]):
            name = cell_name(options, direction, layer, wrapped)
            arrays[f"{name}/W_0"] = draw(2 * d_proj, 4 * d_cell, scale=1.3 / np.sqrt(2 * d_proj))
            arrays[f"{name}/B"] = draw(4 * d_cell, scale=1.5)
            if d_cell != d_proj:
                arrays[f"{name}/W_P_0"] = draw(d_cell, d_proj, scale=4.5 / np.sqrt(d_cell))
    return arrays


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def character_ids(token: str, width: int) -> list[int]:
    """Ids before the shift: 258 begins a word, 259 ends it, 260 pads."""
    if token == "<S>":
        inner = [256]
    elif token == "</S>":
        inner = [257]
    else:
        inner = list(token.encode("utf-8", "ignore"))[: width - 2]
    ids = [258, *inner, 259]
    return ids + [260] * (width - len(ids))


def token_vector(options: dict, arrays: dict[str, np.ndarray], token: str) -> np.ndarray:
    """Layer 0 of one token, (P,); ``arrays`` in float64."""
    char = options["char_cnn"]
    ids = character_ids(token, char["max_characters_per_token"])
    embedded = arrays["char_embed"][ids]  # (C, d)
    pieces = []
    for i, (width, _) in enumerate(char["filters"]):
        kernel = arrays[f"CNN/W_cnn_{i}"][0]  # (width, d, n)
        windows = [embedded[p : p + width].ravel() for p in range(len(ids) - width + 1)]
        windows = np.array(windows) @ kernel.reshape(len(windows[0]), -1)
        pieces.append(np.max(windows, axis=0) + arrays[f"CNN/b_cnn_{i}"])
    x = np.concatenate(pieces)
    x = np.maximum(x, 0) if char["activation"] == "relu" else np.tanh(x)
    for k in range(char.get("n_highway", 0)):
        high = {name: arrays[f"CNN_high_{k}/{name}"] for name in HIGHWAY}
        gate = sigmoid(x @ high["W_carry"] + high["b_carry"])
        transformed = np.maximum(x @ high["W_transform"] + high["b_transform"], 0)
        x = gate * transformed + (1 - gate) * x
    if "CNN_proj/W_proj" in arrays:
        x = x @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    return x


HIGHWAY = ("W_carry", "b_carry", "W_transform", "b_transform")


def lstm_step(options, arrays, name, x, h, c):
    """One token through one cell: new output h (P,) and cell c (C,)."""
    lstm = options["lstm"]
    z = np.concatenate([x, h]) @ arrays[f"{name}/W_0"] + arrays[f"{name}/B"]
    i, j, f, o = np.split(z, 4)
    c = sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(j)
    if lstm.get("cell_clip"):
        c = np.clip(c, -lstm["cell_clip"], lstm["cell_clip"])
    m = sigmoid(o) * np.tanh(c)
    if f"{name}/W_P_0" not in arrays:
        return m, c
    h = m @ arrays[f"{name}/W_P_0"]
    if lstm.get("proj_clip"):
        h = np.clip(h, -lstm["proj_clip"], lstm["proj_clip"])
    return h, c


def zero_state(options: dict) -> dict:
    lstm = options["lstm"]
    return {
        (direction, layer): (np.zeros(lstm["projection_dim"]), np.zeros(lstm["dim"]))
        for direction in range(2)
        for layer in range(lstm["n_layers"])
    }


def encode(
    options: dict, arrays: dict[str, np.ndarray], tokens: list[str], state: dict | None = None
) -> np.ndarray:
    """(L, T + 2, 2 P) of one sentence with its boundaries; ``state`` is changed in place."""
    state = zero_state(options) if state is None else state
    wrapped = any("MultiRNNCell" in name for name in arrays)
    arrays = {name: values.astype(np.float64) for name, values in arrays.items()}
    x = [token_vector(options, arrays, token) for token in ["<S>", *tokens, "</S>"]]
    layers = [np.concatenate([x, x], axis=1)]
    halves: dict[int, list[np.ndarray]] = {}
    for direction in range(2):
        sequence = x if direction == 0 else x[::-1]
        for layer in range(options["lstm"]["n_layers"]):
            name = cell_name(options, direction, layer, wrapped)
            h, c = state[direction, layer]
            outputs = []
            for vector in sequence:
                h, c = lstm_step(options, arrays, name, vector, h, c)
                skip = options["lstm"]["use_skip_connections"] and layer > 0
                outputs.append(h + vector if skip else h)
            state[direction, layer] = (h, c)
            sequence = outputs
            ordered = outputs if direction == 0 else outputs[::-1]
            halves.setdefault(layer, []).append(np.array(ordered))
    layers += [np.concatenate(halves[layer], axis=1) for layer in sorted(halves)]
    return np.array(layers)


def encode_batches(options: dict, arrays: dict, batches: list[list[list[str]]]) -> list:
    """Batches in order with the state of each row carried on, as the original software does."""
    rows: list[dict] = []
    results = []
    for batch in batches:
        rows += [zero_state(options) for _ in range(len(batch) - len(rows))]
        results.append(
            [encode(options, arrays, s, state) for s, state in zip(batch, rows, strict=False)]
        )
    return results


def write_files(folder, options: dict, arrays: dict[str, np.ndarray]):
    """The two files of a model in the original layout: paths of the options and the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return folder / "options.json", folder / "weights.hdf5"
