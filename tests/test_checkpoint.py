import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_models import KINDS, small_config, small_model

from elmo.checkpoint import file_digest, load_model, quantize_rows, save_model
from elmo.config import AttentionConfig, BiLMConfig, CharConfig, ModelConfig, shipped_config

VOCABULARY = ["<S>", "</S>", "<UNK>", "the", "\u2028", " ", "cat"]


@pytest.fixture(params=KINDS)
def folder(request, tmp_path):
    save_model(tmp_path, small_model(request.param, 7), VOCABULARY, {"name": "small", "seed": 0})
    return tmp_path


def test_a_model_comes_back_as_it_was_saved(folder):
    checkpoint = load_model(folder)
    original = small_model(checkpoint.config.kind, 7)
    assert checkpoint.config == original.config
    assert checkpoint.card == {"name": "small", "seed": 0}
    for name, value in original.state_dict().items():
        loaded = checkpoint.model.state_dict()[name]
        assert loaded.dtype == torch.float32
        if name == "head.weight":
            step = value.abs().amax(dim=1, keepdim=True) / 127
            assert ((loaded - value).abs() <= 0.51 * step + 1e-6).all()
        else:
            assert torch.equal(loaded, value.half().float())
    assert not checkpoint.model.training
    assert not any(p.requires_grad for p in checkpoint.model.parameters())


def test_the_vocabulary_is_read_line_by_line_whatever_it_holds(folder):
    assert load_model(folder).vocabulary == VOCABULARY


def test_8_bit_rows_by_eye():
    values, scale = quantize_rows(torch.tensor([[0.0, 127.0, -63.5], [0.0, 0.0, 0.0]]))
    assert values.tolist() == [[0, 127, -64], [0, 0, 0]] and scale[0] == 1.0
    assert values.dtype == torch.int8 and scale.dtype == torch.float16


def test_everything_wrong_is_in_one_error(folder):
    path = folder / "weights.safetensors"
    tensors = load_file(path)
    del tensors["token_encoder.projection.bias"]
    tensors["extra"] = torch.zeros(2)
    tensors["token_encoder.embedding.weight"] = torch.zeros(3, 3)
    save_file(tensors, path)
    with pytest.raises(ValueError) as error:
        load_model(folder)
    for part in (
        "missing token_encoder.projection.bias",
        "unexpected extra",
        "token_encoder.embedding.weight has shape (3, 3) instead of (262, 6)",
    ):
        assert part in str(error.value)


def test_missing_damaged_and_foreign_files(folder):
    weights = folder / "weights.safetensors"
    whole = weights.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"\x89HDF\r\n\x1a\n" + whole):
        weights.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"weights.safetensors cannot be read"):
            load_model(folder)
    weights.unlink()
    (folder / "card.json").unlink()
    with pytest.raises(ValueError, match=r"it lacks weights.safetensors, card.json"):
        load_model(folder)


def test_a_vocabulary_of_another_size_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the head has 7 words, the vocabulary 6"):
        save_model(tmp_path, small_model("bilm", 7), VOCABULARY[:6], {})


def test_the_digest_names_the_weights(folder):
    first = file_digest(folder)
    assert first == file_digest(folder) and len(first) == 16
    path = folder / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert file_digest(folder) != first


@pytest.mark.parametrize("kind", KINDS)
def test_configs_survive_json(kind):
    for config in (small_config(kind, 7), shipped_config(kind)):
        assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_the_shipped_stacks_are_of_one_size():
    from elmo.language_model import build

    sizes = [
        sum(p.numel() for p in build(shipped_config(kind, 0)).stack.parameters()) for kind in KINDS
    ]
    assert np.ptp(sizes) / min(sizes) < 0.02


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CharConfig(d_output=0), "d_output must be positive"),
        (lambda: CharConfig(d_output=4, filters=()), "at least one"),
        (lambda: CharConfig(d_output=4, filters=((51, 4),)), "width of 1 to 50"),
        (lambda: CharConfig(d_output=4, n_highway=-1), "n_highway must be 0 or more"),
        (lambda: CharConfig(d_output=4, activation="gelu"), "activation must be one of relu, tanh"),
        (lambda: CharConfig(d_output=4, project=False), "must equal d_output"),
        (lambda: BiLMConfig(d_cell=0), "d_cell must be positive"),
        (lambda: BiLMConfig(project=False), "must equal d_projection"),
        (lambda: AttentionConfig(d_stack=10, n_heads=4), "must be a multiple of n_heads"),
        (lambda: ModelConfig("cnn", CharConfig(4), BiLMConfig()), "kind must be one of"),
        (lambda: ModelConfig("bilm", CharConfig(4), BiLMConfig()), "must be as wide as"),
        (lambda: ModelConfig("attention", CharConfig(256), BiLMConfig()), "does not fit"),
        (lambda: ModelConfig.from_dict({"kind": "bilm"}), "not a model config"),
        (lambda: shipped_config("gpt"), "kind must be one of"),
    ],
)
def test_configs_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()
