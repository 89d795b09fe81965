"""The Ray Data job on two workers of this machine; without Ray the parts that need only Arrow."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import reference

pa = pytest.importorskip("pyarrow", reason="pyarrow comes with the optional ray[data]")
pq = pytest.importorskip("pyarrow.parquet")

from elmo.__main__ import main  # noqa: E402
from elmo.encoders import load_elmo  # noqa: E402
from elmo.original.cluster import Worker, pending_files  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "a.parquet": ["The cat sat .", "", None, "x"],
    "b.parquet": ["日本 naïve", "a / b"],
    "c.parquet": ["one more sentence here ."] * 3,
}


@pytest.fixture
def job(tmp_path):
    options = reference.options_with()
    paths = reference.write_files(tmp_path / "model", options, reference.random_model(options))
    (tmp_path / "in").mkdir()
    for name, texts in FILES.items():
        table = pa.table({"text": texts, "id": list(range(len(texts)))})
        pq.write_table(table, tmp_path / "in" / name)
    (tmp_path / "in" / "notes.txt").write_text("no Parquet")
    arguments = [str(tmp_path / "in"), str(tmp_path / "out"), f"--options={paths[0]}"]
    return tmp_path, [*arguments, f"--weights={paths[1]}"], load_elmo(*paths)


def check_output(folder, encoder, names=tuple(FILES)):
    for name in names:
        table = pq.read_table(folder / "out" / name)
        assert table.column_names == ["text", "id", "layer_0", "layer_1", "layer_2"]
        assert table["text"].to_pylist() == FILES[name]
        sentences = [(text or "").split() for text in FILES[name]]
        for row, encoding in enumerate(encoder.encode(sentences)):
            for k in range(3):
                vectors = table[f"layer_{k}"][row].as_py()
                assert len(vectors) == len(sentences[row])
                if vectors:
                    found = np.array(vectors, dtype=np.float32)
                    np.testing.assert_allclose(found, encoding.hidden[k], atol=1e-6)


def worker(arguments, **changes):
    import argparse

    from elmo.original.cluster import add_arguments

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(arguments)
    Path(args.output).mkdir(exist_ok=True)
    return Worker({**vars(args), "threads": 1, **changes})


def test_one_worker_without_ray(job):
    folder, arguments, encoder = job
    work = worker(arguments)
    for name in FILES:
        n_tokens = sum(len((text or "").split()) for text in FILES[name])
        assert work({"file": name}) == {"file": name, "n_tokens": n_tokens}
    check_output(folder, encoder)


def test_lists_of_tokens_and_one_layer(job):
    folder, arguments, encoder = job
    pq.write_table(pa.table({"words": [["New York", "is"], []]}), folder / "in" / "d.parquet")
    with pytest.warns(UserWarning, match="white space"):
        worker(arguments, column="words", layers="top")({"file": "d.parquet"})
        expected = encoder.encode([["New York", "is"]], "top")[0].hidden
    found = pq.read_table(folder / "out" / "d.parquet")["top"].to_pylist()
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert found[1] == []


def test_a_column_that_is_not_there(job):
    _, arguments, _ = job
    with pytest.raises(ValueError, match="a.parquet has no column 'body', only text, id"):
        worker(arguments, column="body")({"file": "a.parquet"})


def test_files_that_are_done_are_left_alone(job):
    folder, arguments, _ = job
    work = worker(arguments)
    work({"file": "b.parquet"})
    (folder / "out" / "a.parquet.unfinished").write_bytes(b"torn")
    assert pending_files(arguments[0], arguments[1]) == (["a.parquet", "c.parquet"], 1)
    with pytest.raises(ValueError, match="no .parquet files"):
        pending_files(str(folder / "model"), arguments[1])


def test_without_ray_it_says_what_to_install(job, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["cluster", *job[1]]) == 2
    assert 'pip install "ray[data]"' in capsys.readouterr().err


def test_two_workers_equal_one_process_and_continue(job):
    pytest.importorskip("ray.data", reason="Ray is optional")
    folder, arguments, encoder = job
    command = [sys.executable, "-m", "elmo", "cluster", *arguments, "--workers=2"]

    def run() -> str:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stderr

    assert "3 files to embed, 0 are done" in run()
    check_output(folder, encoder)
    before = (folder / "out" / "a.parquet").stat().st_mtime_ns
    (folder / "out" / "b.parquet").unlink()
    assert "1 files to embed, 2 are done" in run()
    check_output(folder, encoder)
    assert (folder / "out" / "a.parquet").stat().st_mtime_ns == before
    assert "0 files to embed, 3 are done" in run()
