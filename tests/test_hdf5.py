"""The original file format: right numbers from every kind of file, one clear error from others."""

import copy
import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import reference
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmo.__main__ import main
from elmo.checkpoint import save_model
from elmo.config import BiLMConfig, CharConfig, ModelConfig
from elmo.encoders import Encoder, load_elmo, load_encoder
from elmo.language_model import build
from elmo.original.hdf5 import read_softmax, write_model

FIXTURE = Path(__file__).parents[2] / "shared" / "elmo" / "fixture"
needs_fixture = pytest.mark.skipif(
    not FIXTURE.is_dir(), reason=f"the original software's stored vectors are not at {FIXTURE}"
)
SENTENCES = [
    ["The", "cat", "sat", "on", "the", "mat", "."],
    ["Hi"],
    [],
    ["", "日本語の単語です長い長い長い", "a" * 60, "naïve"],
]

VARIANTS = {
    "as published": reference.options_with(),
    "no skip connections": reference.options_with({"use_skip_connections": False}),
    "one layer": reference.options_with({"n_layers": 1}),
    "three layers": reference.options_with({"n_layers": 3}),
    "tanh": reference.options_with(char_cnn={"activation": "tanh"}),
    "no highway": reference.options_with(char_cnn={"n_highway": 0}),
    "highway not named": reference.options_with(char_cnn={"n_highway": None}),
    "three highways": reference.options_with(char_cnn={"n_highway": 3}),
    "cell as wide as the output": reference.options_with({"dim": 8}),
    "filters as wide as the output": reference.options_with({"projection_dim": 24, "dim": 30}),
    "both": reference.options_with({"projection_dim": 24, "dim": 24}),
    "10 characters": reference.options_with(char_cnn={"max_characters_per_token": 10}),
    "7 characters": reference.options_with(char_cnn={"max_characters_per_token": 7}),
    "261 characters": reference.options_with(char_cnn={"n_characters": 261}),
    "no clips": reference.options_with({"cell_clip": None, "proj_clip": None}),
    "clips of 0": reference.options_with({"cell_clip": 0, "proj_clip": 0}),
    "tight clips": reference.options_with({"cell_clip": 0.5, "proj_clip": 0.25}),
    "layers not named": reference.options_with({"n_layers": None}),
}


def model_files(folder, options, seed=0, wrapped=True):
    filled = copy.deepcopy(options)
    filled["lstm"].setdefault("n_layers", 1)
    arrays = reference.random_model(filled, seed, wrapped)
    return filled, arrays, reference.write_files(folder, options, arrays)


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_reference(variant, tmp_path):
    options, arrays, (options_path, weights_path) = model_files(tmp_path, VARIANTS[variant])
    encoder = load_elmo(options=options_path, weights=weights_path)
    assert encoder.n_layers == options["lstm"]["n_layers"] + 1
    assert encoder.d_model == 2 * options["lstm"]["projection_dim"]
    for encoding, tokens in zip(
        encoder.encode(SENTENCES, keep_boundaries=True), SENTENCES, strict=True
    ):
        expected = reference.encode(options, arrays, tokens)
        assert encoding.hidden.dtype == np.float32
        np.testing.assert_allclose(encoding.hidden, expected, atol=1e-5, rtol=1e-5)


def test_both_clips_bite_in_the_random_models():
    """Otherwise the agreement above would say nothing about clipping."""
    options = VARIANTS["as published"]
    loose = VARIANTS["no clips"]
    arrays = reference.random_model(options)
    for name in ("cell_clip", "proj_clip"):
        one = reference.options_with({name: None})
        clipped, free = (reference.encode(o, arrays, SENTENCES[0]) for o in (options, one))
        assert np.abs(clipped - free).max() > 1e-3, name
    assert loose["lstm"].get("cell_clip") is None


def test_one_layer_without_its_wrapper(tmp_path):
    options, _, paths = model_files(tmp_path / "a", VARIANTS["one layer"], wrapped=True)
    _, arrays, bare = model_files(tmp_path / "b", VARIANTS["one layer"], wrapped=False)
    assert any(name.startswith("RNN_0/RNN/LSTMCell") for name in arrays)
    first, second = (load_elmo(*p).encode(SENTENCES) for p in (paths, bare))
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a.hidden, b.hidden)


def test_the_number_of_characters_in_the_options_changes_nothing(tmp_path):
    _, _, a = model_files(tmp_path / "a", VARIANTS["as published"])
    _, _, b = model_files(tmp_path / "b", VARIANTS["261 characters"])
    for x, y in zip(load_elmo(*a).encode(SENTENCES), load_elmo(*b).encode(SENTENCES), strict=True):
        assert np.array_equal(x.hidden, y.hidden)


def test_a_projection_in_the_file_is_used_even_where_it_changes_no_width(tmp_path):
    options = VARIANTS["both"]
    arrays = reference.random_model(options)
    rng = np.random.default_rng(1)
    arrays["CNN_proj/W_proj"] = rng.normal(size=(24, 24)).astype(np.float32)
    arrays["CNN_proj/b_proj"] = rng.normal(size=24).astype(np.float32)
    for direction in range(2):
        for layer in range(2):
            name = f"{reference.cell_name(options, direction, layer)}/W_P_0"
            arrays[name] = rng.normal(size=(24, 24)).astype(np.float32)
    encoder = load_elmo(*reference.write_files(tmp_path, options, arrays))
    expected = reference.encode(options, arrays, SENTENCES[0])[:, 1:-1]
    actual = encoder.encode([SENTENCES[0]])[0].hidden
    np.testing.assert_allclose(actual, expected, atol=1e-4, rtol=1e-5)


def test_carried_state_equals_the_reference(tmp_path):
    """Batches of changing size: new rows start at zero, unused rows keep their state."""
    options, arrays, paths = model_files(tmp_path, VARIANTS["as published"])
    batches = [SENTENCES[:2], SENTENCES, SENTENCES[:1], [["a", "b"], ["c"], [], ["d"] * 5, ["e"]]]
    encoder = load_elmo(*paths, state="carry")
    for batch, expected in zip(
        batches, reference.encode_batches(options, arrays, batches), strict=True
    ):
        for encoding, layers in zip(encoder.encode(batch), expected, strict=True):
            np.testing.assert_allclose(encoding.hidden, layers[:, 1:-1], atol=1e-5, rtol=1e-5)
    encoder.reset()
    fresh = encoder.encode(batches[0])[0].hidden
    np.testing.assert_array_equal(fresh, load_elmo(*paths).encode(batches[0])[0].hidden)


@needs_fixture
def test_fixture_top_layer_carried_over_ten_batches():
    encoder = load_elmo(FIXTURE / "options.json", FIXTURE / "lm_weights.hdf5", state="carry")
    sentences = json.loads((FIXTURE / "sentences.json").read_text(encoding="utf-8"))
    with h5py.File(FIXTURE / "lm_embeddings_0.hdf5") as a:
        files = [a, *(h5py.File(FIXTURE / f"lm_embeddings_{k}.hdf5") for k in (1, 2))]
        for i in range(10):
            batch = [row[i].split() for row in sentences]
            for encoding, file in zip(encoder.encode(batch, layers="top"), files, strict=True):
                expected = np.concatenate(list(file[str(i)]), axis=-1)
                np.testing.assert_allclose(encoding.hidden, expected, atol=1e-5, rtol=1e-5)


@needs_fixture
def test_fixture_token_vectors():
    encoder = load_elmo(FIXTURE / "options.json", FIXTURE / "lm_weights.hdf5")
    words = (FIXTURE / "vocab_test.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    with h5py.File(FIXTURE / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][...]
    assert len(words) == len(expected) == 458
    vectors = encoder.token_vectors(words).numpy()
    np.testing.assert_allclose(vectors, expected, atol=1e-5, rtol=1e-5)


# ---------------------------------------------------------------- our models in this format


def small_config(n_vocabulary=12):
    char = CharConfig(d_output=16, d_char=5, filters=((1, 8), (3, 16)))
    return ModelConfig("bilm", char, BiLMConfig(d_projection=16, d_cell=20), n_vocabulary)


def test_a_model_of_ours_goes_there_and_back(tmp_path):
    vocabulary = ["<S>", "</S>", "<UNK>", *"abcdefghi"]
    save_model(tmp_path / "ours", build(small_config(), seed=1), vocabulary, {})
    ours = load_encoder(tmp_path / "ours")
    write_model(tmp_path / "theirs", ours.model, vocabulary)
    theirs = load_elmo(tmp_path / "theirs")
    sentences = [*SENTENCES, ["<MASK>", "gap"]]
    for a, b in zip(ours.encode(sentences), theirs.encode(sentences), strict=True):
        assert np.array_equal(a.hidden, b.hidden)
    weight, _ = read_softmax(tmp_path / "theirs" / "softmax_weights.hdf5", 16)
    assert torch.equal(weight, ours.model.head.weight)
    assert (tmp_path / "theirs" / "vocabulary.txt").read_text().split() == vocabulary


def test_the_export_command(tmp_path, capsys):
    vocabulary = ["<S>", "</S>", "<UNK>", *"abcdefghi"]
    save_model(tmp_path / "ours", build(small_config(), seed=1), vocabulary, {})
    arguments = ["export", str(tmp_path / "ours"), str(tmp_path / "theirs")]
    assert main(arguments) == 0
    names = sorted(path.name for path in (tmp_path / "theirs").iterdir())
    assert names == ["options.json", "softmax_weights.hdf5", "vocabulary.txt", "weights.hdf5"]
    assert isinstance(load_elmo(tmp_path / "theirs"), Encoder)
    assert main(arguments) == 2
    assert "is not empty" in capsys.readouterr().err


def test_written_twice_the_datasets_are_byte_equal(tmp_path):
    options, arrays, paths = model_files(tmp_path / "a", VARIANTS["three highways"])
    write_model(tmp_path / "b", load_elmo(*paths).model)
    with h5py.File(tmp_path / "b" / "weights.hdf5") as file:
        names = []
        file.visititems(lambda n, d: names.append(n) if isinstance(d, h5py.Dataset) else None)
        assert sorted(names) == sorted(arrays)
        for name in names:
            assert file[name].dtype == np.float32 and not file[name].attrs
            assert file[name][...].tobytes() == arrays[name].tobytes()


SHIPPED = Path(__file__).parents[1] / "assets" / "models" / "bilm"


def test_the_shipped_bilm_goes_there_and_back(tmp_path):
    ours = load_encoder(SHIPPED)
    write_model(tmp_path, ours.model)
    theirs = load_elmo(tmp_path)
    for a, b in zip(ours.encode(SENTENCES), theirs.encode(SENTENCES), strict=True):
        assert np.array_equal(a.hidden, b.hidden)


def test_only_a_bilm_can_be_written(tmp_path):
    from elmo.config import AttentionConfig

    char = CharConfig(d_output=16, filters=((1, 8),))
    stack = AttentionConfig(d_stack=16, n_heads=2, n_blocks=1, d_feedforward=16)
    with pytest.raises(ValueError, match="only a biLM"):
        write_model(tmp_path, build(ModelConfig("attention", char, stack), seed=0))


# ---------------------------------------------------------------- wrong files


@pytest.fixture
def good(tmp_path):
    return model_files(tmp_path / "good", VARIANTS["as published"])[2]


def test_everything_wrong_with_the_names_and_shapes_is_in_one_error(good):
    with h5py.File(good[1], "r+") as file:
        del file["CNN_proj/W_proj"], file["RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/B"]
        file["lm/extra"] = np.zeros(3, np.float32)
        del file["char_embed"]
        file["char_embed"] = np.zeros((262, 4), np.float32)
        del file["CNN/b_cnn_0"]
        file["CNN/b_cnn_0"] = np.zeros(4, np.int32)
    with pytest.raises(ValueError) as error:
        load_elmo(*good)
    message = str(error.value)
    for part in (
        "missing CNN_proj/W_proj (24, 8)",
        "missing RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/B (96,)",
        "unexpected lm/extra (3,)",
        "char_embed has shape (262, 4) instead of (261, 4)",
        "CNN/b_cnn_0 holds int32 instead of float32",
    ):
        assert part in message


@pytest.mark.parametrize("n_layers", [1, 3])
def test_another_number_of_layers_than_the_options_say(good, n_layers):
    options = json.loads(good[0].read_text())
    options["lstm"]["n_layers"] = n_layers
    good[0].write_text(json.dumps(options))
    with pytest.raises(
        ValueError, match="unexpected .*Cell1" if n_layers == 1 else "missing .*Cell2"
    ):
        load_elmo(*good)


def test_everything_wrong_with_the_options_is_in_one_error(good):
    options = reference.options_with(
        {"dim": None, "n_layers": 0, "cell_clip": -1, "use_skip_connections": "yes"},
        {
            "activation": "swish",
            "n_characters": 300,
            "filters": [[1, 0]],
            "embedding": {"dim": 4.5},
        },
    )
    good[0].write_text(json.dumps(options))
    with pytest.raises(ValueError) as error:
        load_elmo(*good)
    for part in (
        "lstm.dim is missing",
        "lstm.n_layers must be an integer from 1 to 100, got 0",
        "lstm.cell_clip must be a number of 0 or more, or null, got -1",
        "lstm.use_skip_connections must be true or false, got 'yes'",
        "char_cnn.activation must be one of relu, tanh, got 'swish'",
        "char_cnn.n_characters must be 261 or 262",
        "char_cnn.filters must be a list of [width, count] pairs",
        "char_cnn.embedding.dim must be a positive integer, got 4.5",
    ):
        assert part in str(error.value)


def test_fewer_filters_than_the_output_is_wide(good):
    good[0].write_text(json.dumps(reference.options_with({"projection_dim": 100})))
    with pytest.raises(ValueError, match="24 filters, fewer than lstm.projection_dim"):
        load_elmo(*good)


@pytest.mark.parametrize(
    "options",
    ["", "[]", "null", "{", '{"lstm": 3}', '{"lstm": {}, "char_cnn": []}', "[" * 100_000, "\ud7ff"],
)
def test_options_that_are_none(good, options):
    good[0].write_text(options)
    with pytest.raises(ValueError):
        load_elmo(*good)


@pytest.mark.parametrize("value", [1e400, 1e18, -1, True, "8", None, [8], float("nan"), 2**70])
@pytest.mark.parametrize("key", ["dim", "projection_dim", "n_layers"])
def test_hostile_numbers_are_refused_before_anything_is_allocated(good, key, value):
    if key == "n_layers" and value is None:
        pytest.skip("null means the default of one layer")
    options = reference.options_with()
    options["lstm"][key] = value
    good[0].write_text(json.dumps(options))
    with pytest.raises(ValueError, match="options cannot be used|does not hold this model"):
        load_elmo(*good)


def test_swapped_paths_are_named(good):
    with pytest.raises(ValueError, match="swapped"):
        load_elmo(options=good[1], weights=good[0])


def test_a_path_that_is_not_there(good, tmp_path):
    with pytest.raises(FileNotFoundError, match="never downloaded"):
        load_elmo(tmp_path / "no.json", good[1])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "a web page or an XML"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"\x80\x02}q\x00", "a Python pickle"),
        (b"\x1f\x8b\x08\x00", "a gzip archive"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b"\x10\x00\x00\x00\x00\x00\x00\x00{}", "no file of a known kind"),
        (b"\x10\x00\x00\x00\x00\x00\x00\x00" + b'{"a":1}', "a safetensors file"),
        (b"random text", "no file of a known kind"),
    ],
)
def test_other_files_in_place_of_the_weights_are_named(good, content, said):
    good[1].write_bytes(content)
    with pytest.raises(ValueError, match=said):
        load_elmo(*good)


def test_an_elmoformanylangs_model_is_named(good, tmp_path):
    folder = tmp_path / "foreign"
    (folder / "configs").mkdir(parents=True)
    for name in ("char.dic", "word.dic", "encoder.pkl", "token_embedder.pkl"):
        (folder / name).write_bytes(b"\x80\x02")
    config = folder / "configs" / "cnn_50_100_512_4096_sample.json"
    config.write_text(json.dumps({"encoder": {"name": "elmo"}, "token_embedder": {}}))
    for arguments in ([folder], [good[0], folder / "encoder.pkl"], [config, good[1]]):
        with pytest.raises(ValueError, match="ELMoForManyLangs"):
            load_elmo(*arguments)
    archive = tmp_path / "foreign.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.write(folder / "char.dic", "161/char.dic")
    with pytest.raises(ValueError, match="ELMoForManyLangs"):
        load_elmo(archive)


def test_a_word_level_model_is_named(good):
    options = json.loads(good[0].read_text())
    del options["char_cnn"]
    good[0].write_text(json.dumps(options))
    with pytest.raises(ValueError, match="word-level model"):
        load_elmo(*good)
    with h5py.File(good[1], "w") as file:
        file["embedding"] = np.zeros((10, 8), np.float32)
    with pytest.raises(ValueError, match="word-level model"):
        load_elmo(*good)


def test_a_folder_and_a_zip_archive(good, tmp_path):
    expected = load_elmo(*good).encode(SENTENCES)
    archive = shutil.make_archive(tmp_path / "model", "zip", good[0].parent)
    for source in (good[0].parent, archive):
        encoder = load_elmo(source)
        for a, b in zip(encoder.encode(SENTENCES), expected, strict=True):
            assert np.array_equal(a.hidden, b.hidden)
    (good[0].parent / "other.hdf5").write_bytes(b"")
    with pytest.raises(ValueError, match="one \\*options.json and one \\*.hdf5"):
        load_elmo(good[0].parent)


def test_links_out_of_the_file_are_refused(good, tmp_path):
    with h5py.File(tmp_path / "secret.hdf5", "w") as file:
        file["values"] = np.zeros((24, 8), np.float32)
    for link in (
        h5py.ExternalLink(str(tmp_path / "secret.hdf5"), "values"),
        h5py.SoftLink("/CNN_high_0/W_carry"),
    ):
        with h5py.File(good[1], "r+") as file:
            del file["CNN_proj/W_proj"]
            file["CNN_proj/W_proj"] = link
        with pytest.raises(ValueError, match="a link instead of data at CNN_proj/W_proj"):
            load_elmo(*good)


def test_data_outside_the_file_is_refused(good, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(24 * 8 * 4))
    with h5py.File(good[1], "r+") as file:
        del file["CNN_proj/W_proj"]
        external = [(str(tmp_path / "raw"), 0, h5py.h5f.UNLIMITED)]
        file["CNN_proj"].create_dataset("W_proj", (24, 8), "f4", external=external)
    with pytest.raises(ValueError, match="other files"):
        load_elmo(*good)


def test_a_group_that_contains_itself_is_refused(good):
    with h5py.File(good[1], "r+") as file:
        for key in "abc":
            file["CNN"][key] = file["CNN"]
    with pytest.raises(ValueError, match="too much"):
        load_elmo(*good)


def test_declared_but_never_written_data_is_refused(good):
    options = reference.options_with({"dim": 1 << 18})
    good[0].write_text(json.dumps(options))
    with h5py.File(good[1], "r+") as file:
        for direction in range(2):
            for layer in range(2):
                cell = file[reference.cell_name(options, direction, layer)]
                for name, shape in (
                    ("W_0", (16, 1 << 20)),
                    ("B", (1 << 20,)),
                    ("W_P_0", (1 << 18, 8)),
                ):
                    del cell[name]
                    cell.create_dataset(name, shape, "f4", chunks=True)
    with pytest.raises(ValueError, match="incomplete: .* stores 0 of"):
        load_elmo(*good)


def test_values_that_are_not_finite_are_refused(good):
    with h5py.File(good[1], "r+") as file:
        file["CNN_proj/b_proj"][3] = np.nan
        file["char_embed"][3, 2] = np.inf
    with pytest.raises(ValueError, match="not finite in char_embed, CNN_proj/b_proj"):
        load_elmo(*good)


def test_half_and_double_precision_files_load(good):
    expected = load_elmo(*good).encode(SENTENCES)
    with h5py.File(good[1], "r+") as file:
        for name in ("CNN_proj/W_proj", "char_embed"):
            values = file[name][...].astype(np.float64)
            del file[name]
            file[name] = values
    for a, b in zip(load_elmo(*good).encode(SENTENCES), expected, strict=True):
        assert np.array_equal(a.hidden, b.hidden)


def test_truncated_files_never_load(good, tmp_path):
    data = good[1].read_bytes()
    broken = tmp_path / "broken.hdf5"
    for share in (0.02, 0.2, 0.5, 0.9, 0.999):
        broken.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(ValueError, match="broken.hdf5"):
            load_elmo(good[0], broken)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.floats(0, 0.9999), st.integers(0, 255)), min_size=1, max_size=40))
def test_damaged_files_load_or_raise_one_kind_of_error(good, changes):
    """Bytes changed anywhere: data may load as other numbers, structure must fail cleanly."""
    data = bytearray(good[1].read_bytes())
    for place, value in changes:
        data[int(place**3 * len(data))] = value  # mostly in the head, where the structure is
    broken = good[1].with_name("broken.hdf5")
    broken.write_bytes(data)
    try:
        load_elmo(good[0], broken)
    except ValueError as error:
        assert "broken.hdf5" in str(error)
    finally:
        os.unlink(broken)


def test_softmax_files(tmp_path, good):
    rng = np.random.default_rng(0)
    path = tmp_path / "softmax_weights.hdf5"
    weight = rng.normal(size=(20, 8)).astype(np.float32)
    with h5py.File(path, "w") as file:
        file["softmax/W"], file["softmax/b"] = weight, np.zeros(20, np.float32)
    assert np.array_equal(read_softmax(path, 8)[0].numpy(), weight)
    with pytest.raises(ValueError, match=r"softmax/W has shape \(20, 8\) instead of \(20, 16\)"):
        read_softmax(path, 16)
    with pytest.raises(ValueError, match="missing softmax/W.*missing softmax/b"):
        read_softmax(good[1], 8)
    with h5py.File(good[1], "r+") as file:
        file["softmax/W"], file["softmax/b"] = weight, np.zeros(20, np.float32)
    assert isinstance(load_elmo(*good), Encoder)  # the head in the same file is no stranger


def test_an_archive_read_from_memory_is_named_like_a_file():
    from elmo.original.hdf5 import read_model

    with pytest.raises(ValueError, match="cannot be read as HDF5"):
        read_model(reference.options_with(), io.BytesIO(b"no"))
