"""The file command: the original's layout, one result a line, the same after an interruption."""

import json

import h5py
import numpy as np
import pytest
import reference
from small_models import small_model

import elmo.original.embed as embed
from elmo.__main__ import main
from elmo.checkpoint import save_model
from elmo.encoders import Encoder, load_elmo
from elmo.original.embed import duration
from elmo.original.vector_files import metadata_path

LINES = [
    "The cat sat .",
    "",
    "a / a .",
    "a / a .",
    "  tabs\tand   blanks ",
    "日本語 \u2028 naïve",
    "x" * 100,
    "\x00 nul",
    "<script> & \"quoted\" 'text'",
    "last line without an end",
]


@pytest.fixture
def files(tmp_path):
    options = reference.options_with()
    paths = reference.write_files(tmp_path / "model", options, reference.random_model(options))
    text = tmp_path / "input.txt"
    text.write_bytes("\n".join(LINES).encode())
    return tmp_path, text, [f"--options={paths[0]}", f"--weights={paths[1]}"]


def embedded(files, output, *more):
    folder, text, model = files
    assert main(["embed", str(text), str(folder / output), *model, *more]) == 0
    return folder / output


def expected(files, layers="all"):
    encoder = load_elmo(*(argument.partition("=")[2] for argument in files[2]))
    return [e.hidden for e in encoder.encode([line.split() for line in LINES], layers)]


@pytest.mark.parametrize(
    ("option", "layers"), [("all", "all"), ("top", "top"), ("average", "mean"), ("1", 1)]
)
def test_hdf5_in_the_layout_of_the_original_command(files, option, layers):
    output = embedded(files, "out.h5", "--layers", option)
    with h5py.File(output) as file:
        assert set(file) == {*map(str, range(len(LINES))), "sentence_to_index"}
        for i, vectors in enumerate(expected(files, layers)):
            assert file[str(i)].dtype == np.float32
            np.testing.assert_allclose(file[str(i)][...], vectors, atol=1e-6)
        index = file["sentence_to_index"]
        assert index.shape == (1,) and h5py.check_string_dtype(index.dtype).length is None
        index = json.loads(index[0])
    assert index == {line.strip(): str(i) for i, line in enumerate(LINES)}
    assert index["a / a ."] == "3"
    assert not list(output.parent.glob("*.partial")) + list(output.parent.glob("*.unfinished"))


def test_npz(files):
    with np.load(embedded(files, "out.npz")) as arrays:
        assert sorted(arrays, key=int) == [str(i) for i in range(len(LINES))]
        for i, vectors in enumerate(expected(files)):
            np.testing.assert_allclose(arrays[str(i)], vectors, atol=1e-6)
        assert arrays["1"].shape == (3, 0, 16)


def test_tsv_pair_for_the_embedding_projector(files):
    output = embedded(files, "out.tsv")
    vectors = np.loadtxt(output, delimiter="\t", dtype=np.float32, comments=None)
    np.testing.assert_allclose(vectors, np.concatenate(expected(files, "mean")), rtol=1e-6)
    rows = metadata_path(output).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    header, *labels = (row.split("\t") for row in rows)
    assert header == ["token", "line", "position", "sentence"]
    tokens = [
        (token, str(i), str(k), " ".join(line.split()))
        for i, line in enumerate(LINES)
        for k, token in enumerate(line.split())
    ]
    assert [tuple(label) for label in labels] == tokens and len(tokens) == len(vectors)


def test_results_do_not_depend_on_how_the_lines_are_cut(files, monkeypatch):
    folder, text, _ = files
    words = ["the", "cat", "sat", "on", "a", "mat", ".", "yes", "no"]
    rng = np.random.default_rng(0)
    text.write_text(
        "".join(" ".join(rng.choice(words, n)) + "\n" for n in rng.integers(0, 30, 130))
    )
    found = []
    for i, n_bytes in enumerate((1, 100_000, 64 << 20)):
        monkeypatch.setattr(embed, "BYTES_PER_PART", n_bytes)
        monkeypatch.setattr("elmo.encoders.TOKENS_PER_BATCH", (64, 7 * 32, 4096)[i])
        with h5py.File(embedded(files, f"out{i}.h5")) as file:
            found.append([file[str(k)][...] for k in range(130)])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6, rtol=0)


class Interrupted(Encoder):
    """Stops in the middle of the third part, as Ctrl+C would."""

    n_calls = 0

    def encode(self, *args, **kwargs):
        Interrupted.n_calls += 1
        if Interrupted.n_calls == 3:
            raise KeyboardInterrupt
        return super().encode(*args, **kwargs)


def test_an_interrupted_run_continues(files, monkeypatch, capsys):
    folder, text, model = files
    text.write_text("".join(f"line number {i} .\n" for i in range(2_000)))
    monkeypatch.setattr(embed, "BYTES_PER_PART", 1)  # the smallest part: 1,024 tokens
    whole = embedded(files, "whole.h5")
    monkeypatch.setattr("elmo.encoders.Encoder", Interrupted)
    arguments = ["embed", str(text), str(folder / "out.h5"), *model]
    assert main(arguments) == 130
    assert "interrupted at line" in capsys.readouterr().err
    assert not (folder / "out.h5").exists()
    partial = folder / "out.h5.partial"
    assert len(list(partial.glob("*.h5"))) == 2
    (partial / "000000000999.unfinished").write_bytes(b"torn")
    Interrupted.n_calls = 10
    assert main(arguments) == 0
    n_parts = Interrupted.n_calls - 10
    assert 0 < n_parts < 12  # the first two were not made again
    with h5py.File(folder / "out.h5") as a, h5py.File(whole) as b:
        assert set(a) == set(b)
        for name in a:
            assert np.array_equal(a[name][...], b[name][...])
    assert not partial.exists()


def test_parts_of_another_job_are_never_continued(files, monkeypatch):
    folder, text, model = files
    arguments = ["embed", str(text), str(folder / "out.h5"), *model]
    monkeypatch.setattr(embed, "write_output", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(arguments)
    monkeypatch.undo()
    assert main([*arguments, "--layers", "top"]) == 2
    text.write_text("other\n")
    assert main(arguments) == 2
    assert (folder / "out.h5.partial").is_dir()


def test_progress_with_the_time_left(files, monkeypatch, caplog):
    monkeypatch.setattr(embed, "SECONDS_PER_REPORT", 0.0)
    with caplog.at_level("INFO"):
        embedded(files, "out.h5")
    assert "10 lines, 100 %" in caplog.text and "0 s left" in caplog.text
    assert "1 tokens have more than 48 bytes" in caplog.text


def test_durations():
    assert [duration(s) for s in (0.2, 75, 60, 3_700, 90_000)] == [
        *("0 s", "1 min 15 s", "1 min", "1 h 1 min", "25 h"),
    ]


def test_carried_state_by_batches_as_the_original_command(files):
    folder, text, model = files
    encoder = load_elmo(*(argument.partition("=")[2] for argument in model), state="carry")
    sentences = [line.split() for line in LINES]
    with h5py.File(embedded(files, "out.h5", "--state=carry", "--batch-size=3")) as file:
        for start in range(0, len(LINES), 3):
            for k, encoding in enumerate(encoder.encode(sentences[start : start + 3])):
                assert np.array_equal(file[str(start + k)][...], encoding.hidden)


@pytest.mark.parametrize(
    ("output", "more", "message"),
    [
        ("out.txt", [], "must end in .h5"),
        ("out.tsv", ["--layers=all"], "one vector a token"),
        ("out.h5", ["--layers=first"], "must be all, top, average or a number"),
        ("out.h5", ["--layers=7"], "0 to 2"),
        ("out.h5", ["--model=x"], "not both"),
        ("there.h5", [], "exists; --overwrite"),
        ("out.h5", ["--batch-size=0"], "--batch-size must be positive"),
    ],
)
def test_mistakes_are_one_line(files, capsys, output, more, message):
    folder, text, model = files
    (folder / "there.h5").touch()
    assert main(["embed", str(text), str(folder / output), *model, *more]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error and error.startswith("error: ") and "\n" not in error


def test_other_mistakes(files, capsys):
    folder, text, model = files
    for arguments, message in (
        ([str(folder / "none.txt"), str(folder / "out.h5"), *model], "none.txt is not a file"),
        ([str(text), str(folder / "out.h5"), model[1]], "--weights needs the --options"),
        ([str(text), str(folder / "out.h5"), f"--model={folder / 'no'}"], "is not there"),
    ):
        assert main(["embed", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_our_own_models_and_their_longest_sentence(files, capsys):
    folder, text, _ = files
    vocabulary = [f"w{i}" for i in range(7)]
    save_model(folder / "ours", small_model("attention", 7), vocabulary, {"name": "ours"})
    text.write_text("fine\n" + "a " * 21 + "\n")
    arguments = ["embed", str(text), str(folder / "out.h5"), f"--model={folder / 'ours'}"]
    assert main(arguments) == 2
    assert "line 2 has 21 tokens; the ours encoder reads 20 at most" in capsys.readouterr().err
    text.write_text("fine\n")
    assert main([*arguments, "--overwrite"]) == 2  # the parts of the other text are still there
    assert main([*arguments[:2], str(folder / "new.h5"), arguments[3]]) == 0


def test_an_empty_file_and_bytes_that_are_no_text(files):
    folder, text, _ = files
    text.write_bytes(b"")
    with h5py.File(embedded(files, "empty.h5")) as file:
        assert (
            list(file) == ["sentence_to_index"] and json.loads(file["sentence_to_index"][0]) == {}
        )
    text.write_bytes(b"a \xff\xfe b\r\nc\rd\n\n")
    with h5py.File(embedded(files, "bytes.h5")) as file:
        assert [file[str(i)].shape[1] for i in range(len(file) - 1)] == [3, 1, 1, 0]
