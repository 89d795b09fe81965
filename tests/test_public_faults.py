"""Faults that users of earlier ELMo software reported in public, each shown to be absent here.

Named by the thread: A allenai/allennlp, B allenai/bilm-tf, H HIT-SCIR/ELMoForManyLangs,
T tensorflow/hub, U UKPLab/elmo-bilstm-cnn-crf; others in full. A test that stands elsewhere is
named in ``ELSEWHERE``, what does not apply in ``DOES_NOT_APPLY``; the README repeats the latter.
"""

import ast
import copy
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import reference
import torch

import elmo.encoders
from elmo.banks.bank import build_bank
from elmo.bilm import State
from elmo.encoders import Encoder, load_elmo
from elmo.original.hdf5 import write_model
from elmo.pooling import pool
from elmo.start_states import Carried
from elmo.task_input import TaskInput
from elmo.text import char_ids
from elmo.token_cache import TokenCache

ROOT = Path(__file__).resolve().parents[1]

ELSEWHERE = {
    "A#1396, A#1440 sentences as HDF5 keys": "test_embed::test_hdf5_in_the_layout_of_the_"
    "original_command",
    "A#2643 bulk command carries state": "test_embed::test_results_do_not_depend_on_how_the_"
    "lines_are_cut",
    "A#2688 ids beside a cached vocabulary": "test_encoders::test_cached_and_uncached_vectors_"
    "are_equal",
    "A#1644 fine-tuning with a cache": "test_task_input::test_fine_tuning_changes_vectors_and_"
    "survives_repeated_words",
    "A#1574 frozen, yet outputs need gradients": "test_task_input::test_the_switches_are_apart",
    "A#3250 fine-tuning diverges": "test_task_input::test_the_switches_are_apart",
    "A#2101, A#2403, A#2398 saving in the HDF5 format": "test_hdf5::test_written_twice_the_"
    "datasets_are_byte_equal",
    "A#2343, A#2245, A#1050 which layer is which": "test_encoders::test_selected_layers",
    "A#2700, A#2085, B#48 are the weights normalized": "test_scalar_mix::test_trained_weights_"
    "still_sum_to_one",
    "A#2909 fixed mix, nothing trainable": "test_scalar_mix::test_training_is_independent_of_"
    "the_initial_values",
    "A#2128 another number of characters": "test_hdf5::test_equals_the_reference",
    "B#64, B#145 261 or 262 characters": "test_hdf5::test_the_number_of_characters_in_the_"
    "options_changes_nothing",
    "A#2062, B#79 cell as wide as the output": "test_hdf5::test_equals_the_reference",
    "A#1521, A#2132, A#3133, B#212 word-level models": "test_hdf5::test_a_word_level_model_is_"
    "named",
    "B#218, B#181 keys not found": "test_hdf5::test_everything_wrong_with_the_names_and_shapes_"
    "is_in_one_error",
    "H#1, H#3, H#14 foreign format": "test_hdf5::test_an_elmoformanylangs_model_is_named",
    "mheinzinger/SeqVec#1 swapped paths": "test_hdf5::test_swapped_paths_are_named",
    "A PR#1695 boundary vectors": "test_encoders::test_boundaries_are_kept_on_request",
    "A#1725, A#1111 probabilities of sentences": "test_sentence_scores::test_probabilities_"
    "equal_the_reference",
    "H#34 boundaries by hand": "test_encoders::test_shapes_types_and_labels",
    "B#36, B#234 training never ends": "test_train::test_training_lowers_perplexity_and_exports_"
    "a_loadable_model",
    "H#73, H#25 long texts in memory": "test_corpus::test_prepare_keeps_every_token_in_order",
    "n_layers, activation, n_characters unchecked": "test_hdf5::test_everything_wrong_with_the_"
    "options_is_in_one_error",
    "a bare string taken for a list": "test_encoders::test_anything_but_lists_of_tokens_is_refused",
    "dropout in a fresh module": "test_task_input::test_a_fresh_module_drops_nothing",
    "layer norm over the batch": "test_scalar_mix::test_norm_by_batch_is_the_originals_one_mean_"
    "and_variance_a_layer",
    "layer 0 not zero at padding": "test_bilm::test_padding_is_exactly_zero_in_every_layer",
    "A#1968, A#1530, A#2912 slow on processors": "bench_encode::main",
}

DOES_NOT_APPLY = {
    "an id outside the cached vocabulary; a row of zeros inside a sentence": "tokens are strings;"
    " there are no ids to hand over",
    "state cloned at every step when fine-tuning": "nothing is kept between calls; the graph of a"
    " call holds what its own gradients need",
    "fewer sentences than the batch size refused": "sentences are split into batches inside",
}


@pytest.mark.parametrize("place", sorted(set(ELSEWHERE.values())))
def test_the_tests_named_above_exist(place):
    file, _, name = place.partition("::")
    tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8"))
    assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """A model in the original format, 32 wide in each layer."""
    options = reference.options_with({"projection_dim": 16, "dim": 40})
    folder = tmp_path_factory.mktemp("tiny")
    return reference.write_files(folder, options, reference.random_model(options))


@pytest.fixture
def encoder(paths):
    return load_elmo(*paths)


def embed(encoder, *sentences, **options):
    return [e.hidden for e in encoder.encode([list(s) for s in sentences], **options)]


# ---------------------------------------------------------------- state, batches, determinism


def test_a1169_the_same_sentence_twice_is_bit_equal(encoder):
    first, second = (embed(encoder, ["hello", "my", "name"])[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_a2722_earlier_sentences_leave_nothing_behind(paths, encoder):
    embed(encoder, ["a", "b", "c"])
    assert np.array_equal(embed(encoder, ["d", "e"])[0], embed(load_elmo(*paths), ["d", "e"])[0])


def test_bio_embeddings76_no_cold_start(encoder):
    calls = [embed(encoder, ["a", "b"])[0] for _ in range(5)]
    assert all(np.array_equal(call, calls[0]) for call in calls)


def test_u8_a_reproducible_warm_start_in_two_processes(paths):
    code = (
        "import sys; from elmo.encoders import load_elmo;"
        f"e = load_elmo({str(paths[0])!r}, {str(paths[1])!r}, state='warm');"
        "print(e.encode([['a', 'b']])[0].hidden.tobytes().hex())"
    )
    found = {run(code) for _ in range(2)}
    assert len(found) == 1
    warm = load_elmo(*paths, state="warm").encode([["a", "b"]])[0].hidden
    assert np.abs(warm - load_elmo(*paths).encode([["a", "b"]])[0].hidden).max() > 1e-3


def run(code: str, **environment: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", "import torch; torch.set_num_threads(1);" + code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_t369_another_sentence_in_the_batch_changes_nothing(encoder):
    alone = embed(encoder, ["word"])[0]
    beside = embed(encoder, ["word"], ["one", "two", "three", "four", "five", "six"])[0]
    np.testing.assert_allclose(beside, alone, atol=1e-6, rtol=0)


def test_keras_elmo13_batches_of_35_and_36(encoder):
    sentences = [["a", f"w{i}"] * (i % 5 + 1) for i in range(36)]
    for a, b in zip(embed(encoder, *sentences[:35]), embed(encoder, *sentences), strict=False):
        np.testing.assert_allclose(a, b, atol=1e-6, rtol=0)


def test_h_order_of_batches_is_never_random(encoder):
    sentences = [["a"] * (i % 7) for i in range(130)]
    first = embed(encoder, *sentences)
    for a, b in zip(first, embed(encoder, *sentences), strict=True):
        assert np.array_equal(a, b)


def test_a_used_row_whose_state_sums_to_zero_is_carried_all_the_same(encoder):
    """The original took such a row for an unused one."""
    stack = encoder.model.stack
    one = torch.ones(1, 40)
    one[:, ::2] = -1.0
    state = State((torch.zeros(1, 16),) * 2, (one,) * 2)
    carried = Carried()
    carried.keep((state, state))
    assert torch.equal(carried.start(stack, 1)[0].cell[0], one)
    carried.keep(tuple(State(s.hidden, s.cell) for s in carried.start(stack, 3)))
    assert torch.equal(carried.start(stack, 1)[1].cell[1], one)


@pytest.mark.parametrize("state", ["zero", "warm", "carry"])
def test_double_after_a_first_call(paths, state):
    encoder = load_elmo(*paths, state=state)
    before = embed(encoder, ["a", "b"])[0]
    encoder.model.double()
    encoder.reset()
    after = embed(encoder, ["a", "b"])[0]
    embed(encoder, ["a", "b"])
    assert after.dtype == np.float32
    np.testing.assert_allclose(after, before, atol=1e-6)


# ---------------------------------------------------------------- empty and odd input


@pytest.mark.parametrize("sentences", [[[]], [[], []], [["a"], []], []])
def test_a837_a842_empty_sentences_have_the_models_own_shape(encoder, sentences):
    found = embed(encoder, *sentences)
    assert [f.shape for f in found] == [(3, len(s), 32) for s in sentences]
    assert all(f.dtype == np.float32 for f in found)


def test_t240_h70_a1765_a_mean_over_real_tokens_only(encoder):
    sentences = [["a"], list("abcdefghij")]
    alone, beside = encoder.encode(sentences[:1])[0], encoder.encode(sentences)[0]
    np.testing.assert_allclose(pool(beside), alone.hidden[:, 0], atol=2e-6, rtol=1e-6)


def test_simple_elmo_layers_and_words_are_not_scrambled_in_averages(encoder):
    encoding = encoder.encode([["a", "b"]])[0]
    for k in range(3):
        expected = (encoding.hidden[k, 0] + encoding.hidden[k, 1]) / 2
        np.testing.assert_allclose(pool(encoding)[k], expected, atol=1e-6)


def test_a2216_a1810_no_magic_first_word(encoder):
    assert encoder.token_vectors(["the", "a"])[0].any()


def test_words_with_no_positive_component_are_not_masked_out(encoder, tmp_path):
    model = copy.deepcopy(encoder.model)
    with torch.no_grad():
        model.token_encoder.projection.bias -= 100
    hidden = embed(Encoder(model), ["a", "b", "c"])[0]
    assert (hidden[0] < 0).all() and hidden[1:].any(axis=-1).all()
    assert hidden.shape == (3, 3, 32)


def test_a1933_t215_b_case_and_boundaries(encoder):
    assert not np.array_equal(*encoder.token_vectors(["Hi", "hi"]).numpy())
    with pytest.warns(UserWarning, match="boundary tokens are added by the encoder"):
        embed(encoder, ["<S>", "Hi", "</S>"])
    with pytest.warns(UserWarning, match="white space"):
        embed(encoder, ["Hi there"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embed(encoder, ["Hi", "<s>", "<UNK>"])


def test_elmo_chinese3_bytes_are_cut_and_reported(encoder):
    tokens = ["a" * 48, "a" * 49, "日" * 16, "日" * 17]
    encoding = encoder.encode([tokens])[0]
    assert encoding.truncated == (1, 3)
    first, second, third, fourth = encoding.hidden[0]
    assert np.array_equal(first, second) and np.array_equal(third, fourth)


def test_document_qa19_b120_no_vocabulary_is_needed(encoder):
    assert embed(encoder, ["zxqv", "<UNK>", "qqqq"])[0].shape == (3, 3, 32)


def test_h71_one_table_of_word_marks_for_training_and_inference():
    from elmo.training.batches import char_table

    expected = [259, 98, 260, *[261] * 47]
    assert char_ids("a").tolist() == expected
    assert char_table(["a"], 50)[0].tolist() == expected


def test_a1614_layer_0_is_one_vector_twice_and_widths_are_the_models_own(encoder):
    hidden = embed(encoder, ["a", "b"])[0]
    assert np.array_equal(hidden[0, :, :16], hidden[0, :, 16:])
    assert encoder.d_model == 2 * encoder.config.stack.d_projection == 32


# ---------------------------------------------------------------- memory


def resident_mb() -> float:
    statm = Path("/proc/self/statm")
    if not statm.is_file():
        pytest.skip("resident memory is read from /proc")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def test_a1190_a860_f508_a_5000_token_sentence_among_short_ones(encoder, monkeypatch):
    """Batches are bounded by tokens: the long sentence does not pad the others."""
    sizes = []
    original = Encoder._run

    def record(self, framed, attention):
        sizes.append(len(framed) * max(map(len, framed)))
        return original(self, framed, attention)

    monkeypatch.setattr(Encoder, "_run", record)
    found = embed(encoder, ["long"] * 5_000, *[["x"]] * 63)
    assert [f.shape[1] for f in found] == [5_000] + [1] * 63
    assert max(sizes) == 5_002 and sum(sizes) == 5_002 + 63 * 3


def test_a3243_12000_sentences_in_one_call(encoder):
    sentences = [["a", f"w{i % 997}"] * (i % 6) for i in range(12_000)]
    embed(encoder, *sentences[:500])
    before = resident_mb()
    found = embed(encoder, *sentences)
    kept = sum(f.nbytes for f in found) / 1e6
    assert len(found) == 12_000 and resident_mb() - before < kept + 120


def test_a4584_a2915_memory_is_flat_over_1000_calls(encoder):
    rng = np.random.default_rng(0)

    def calls(n):
        for _ in range(n):
            lengths = rng.integers(0, 9, rng.integers(1, 9))
            embed(encoder, *([f"w{rng.integers(99)}"] * n for n in lengths))

    calls(300)
    before = resident_mb()
    calls(1_000)
    assert resident_mb() - before < 8


def test_the_cache_is_bounded(encoder, monkeypatch):
    monkeypatch.setattr(encoder, "_cache", TokenCache(3))
    sentence = list("abcdefgh")
    first = embed(encoder, sentence)[0]
    assert len(encoder._cache) == 3
    for _ in range(3):
        assert np.array_equal(embed(encoder, sentence)[0], first)
        embed(encoder, list("xyzab"))
    assert len(encoder._cache) == 3


def test_a1791_a2888_a3911_the_cnn_runs_on_distinct_tokens_in_bounded_parts(encoder, monkeypatch):
    rows = []
    ready = encoder._ready()
    original = ready.token_vectors
    monkeypatch.setattr(
        ready, "token_vectors", lambda ids: (rows.append(len(ids)), original(ids))[1]
    )
    sentences = [["a", "b"]] * 99 + [[f"w{i % 1_500}" for i in range(2_000)]]
    embed(encoder, *sentences)
    assert sum(rows) == 1_500 + 4 and max(rows) <= elmo.encoders.TOKENS_PER_CHAR_BATCH


# ---------------------------------------------------------------- installing, loading, sharing


def test_a2434_a1554_nothing_asks_the_network(paths):
    code = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse\n"
        "from elmo.encoders import load_elmo\n"
        f"print(load_elmo({str(paths[0].parent)!r}).encode([['a']])[0].hidden.shape)"
    )
    assert run(code) == "(3, 1, 32)"


def test_a4384_a4086_f1729_few_dependencies(paths):
    """Embedding needs torch, NumPy, h5py and safetensors, and nothing of the page or the probes."""
    code = (
        "import sys; from elmo.encoders import load_elmo;"
        f"load_elmo({str(paths[0].parent)!r}).encode([['a']]);"
        "print(' '.join(sorted({m.partition('.')[0] for m in sys.modules})))"
    )
    loaded = set(run(code).split())
    assert {"torch", "numpy", "h5py"} <= loaded
    assert not loaded & {"gradio", "plotly", "nltk", "sklearn", "pandas", "ray", "umap", "sympy"}


def test_pytorch_fast_elmo9_no_extension_has_to_be_compiled(paths, monkeypatch):
    """Neither our compiled training kernels nor torch's oneDNN operators are needed."""
    fast = load_elmo(*paths).encode([["a", "b"], ["c"]])
    monkeypatch.setitem(sys.modules, "elmo.training.kernels", None)
    monkeypatch.setattr("elmo.products._has_onednn", lambda dtype: False)
    for a, b in zip(fast, load_elmo(*paths).encode([["a", "b"], ["c"]]), strict=True):
        np.testing.assert_allclose(a.hidden, b.hidden, atol=1e-5)


def test_a2055_a2879_replicas_and_threads(encoder):
    """A forward pass keeps nothing, so copies and threads cannot disturb each other."""
    sentences = [[f"w{i}", "x"] * (i % 4 + 1) for i in range(20)]
    expected = embed(encoder, *sentences)
    replicas = [Encoder(copy.deepcopy(encoder.model)) for _ in range(3)] + [encoder] * 3
    found: dict[int, list[np.ndarray]] = {}

    def work(i: int) -> None:
        found[i] = embed(replicas[i], *sentences)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(len(replicas)):
        assert all(np.array_equal(a, b) for a, b in zip(found[i], expected, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no second device")
def test_a2055_ids_follow_the_model_to_its_device(encoder):
    expected = embed(encoder, ["a", "b"])[0]
    encoder.model.to("cuda")
    np.testing.assert_allclose(embed(encoder, ["a", "b"])[0], expected, atol=1e-4)


def test_a2340_a1553_a1340_neighbors_of_a_word_in_context(encoder):
    sentences = [["the", "bank", "of"], ["a", "river"], ["the", "bank", "of", "x"]]
    encodings = encoder.encode(sentences)
    bank = build_bank(sentences, encodings)
    found = bank.compare(encodings[0].hidden[:, 1], centered=False).nearest([0.2, 0.3, 0.5], k=3)
    first, second = found.rows[:2]
    assert (bank.sentence[first], bank.position[first]) == (0, 1)
    assert found.scores[0] == pytest.approx(1, abs=1e-5)
    assert (bank.sentence[second], bank.position[second]) == (2, 1)


def test_b170_three_sentences_of_held_out_text(tmp_path):
    from small_models import small_config

    from elmo.language_model import build
    from elmo.training.corpus import build_vocabulary, load
    from elmo.training.evaluate import perplexity

    corpus = load([["a", "b"], ["c"], ["a", "c", "b"]])
    vocabulary = build_vocabulary(corpus, 10)
    result = perplexity(build(small_config("bilm", len(vocabulary)), 0), vocabulary, corpus)
    assert result.forward > 1 and np.isfinite(result.mean)


def test_a3250_a_trained_model_gets_a_learning_rate_of_its_own(encoder):
    groups = TaskInput(encoder, train_model=True).parameter_groups(lr=0.5)
    assert [(group["name"], group["lr"]) for group in groups] == [("mix", 0.5), ("model", 0.005)]


def test_a2101_a_reloaded_model_gives_equal_vectors(encoder, tmp_path):
    write_model(tmp_path, encoder.model)
    again = load_elmo(tmp_path)
    assert np.array_equal(embed(encoder, ["a", "b"])[0], embed(again, ["a", "b"])[0])
    write_model(tmp_path / "twice", again.model)
    with h5py.File(tmp_path / "weights.hdf5") as a, h5py.File(tmp_path / "twice/weights.hdf5") as b:
        name = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0"
        assert a[name][...].tobytes() == b[name][...].tobytes()
