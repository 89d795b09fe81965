"""Downloads from a server on this machine, well- and ill-behaved."""

import http.server
import math
import threading

import h5py
import pytest
import reference

import elmo.original.fetch as fetch_module
from elmo.__main__ import main
from elmo.original.fetch import BASE_URL, MODELS, Published, fetch

STEM = "tiny"


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ``server.files``; can refuse, break off, and ignore ranges."""

    def do_GET(self):
        server = self.server
        server.requests.append((self.path, self.headers.get("Range")))
        data = server.files.get(self.path)
        if data is None:
            self.send_error(403)
            return
        start = 0
        wanted = self.headers.get("Range")
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                self.send_error(416)
                return
            self.send_response(206)
        else:
            self.send_response(200)
        body = data[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.break_after is not None:
            body, server.break_after = body[: server.break_after], None
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    options = reference.options_with()
    paths = reference.write_files(tmp_path / "source", options, reference.random_model(options))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files = {
        f"/elmo/{STEM}/{name}": path.read_bytes()
        for name, path in zip(model().files(), paths, strict=True)
    }
    server.requests, server.ranges, server.break_after = [], True, None
    server.url = f"http://127.0.0.1:{server.server_port}/elmo"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def model(**sizes) -> Published:
    arrays = reference.random_model(reference.options_with())
    return Published(STEM, sum(a.size for a in arrays.values()), "nothing", **sizes)


def test_both_files_come_and_are_checked(server, tmp_path):
    fetch(model(), tmp_path / "to", server.url)
    names = sorted(p.name for p in (tmp_path / "to").iterdir())
    assert names == ["elmo_tiny_options.json", "elmo_tiny_weights.hdf5", "sha256.txt"]
    for path, data in server.files.items():
        assert (tmp_path / "to" / path.rpartition("/")[2]).read_bytes() == data
    n_requests = len(server.requests)
    fetch(model(), tmp_path / "to", server.url)
    assert len(server.requests) == n_requests  # nothing is fetched twice


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_download_continues(server, tmp_path, ranges):
    server.break_after, server.ranges = 100, ranges
    small = {**server.files}
    with pytest.raises(ValueError, match=r"ended after 100 of \d+ bytes"):
        fetch(model(), tmp_path / "to", server.url)
    assert not (tmp_path / "to" / "elmo_tiny_options.json").exists()
    fetch(model(), tmp_path / "to", server.url)
    assert server.requests[1][1] == "bytes=100-"
    assert (tmp_path / "to" / "elmo_tiny_options.json").read_bytes() == small[
        f"/elmo/{STEM}/elmo_tiny_options.json"
    ]


def test_a_part_that_is_already_whole(server, tmp_path):
    name = "elmo_tiny_options.json"
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / f"{name}.part").write_bytes(server.files[f"/elmo/{STEM}/{name}"])
    fetch(model(), tmp_path / "to", server.url)


def test_a_refusal_says_what_to_do(server, tmp_path):
    server.files.clear()
    with pytest.raises(ValueError) as error:
        fetch(model(), tmp_path / "to", server.url)
    message = str(error.value)
    assert "the server answers 403" in message
    assert f"{server.url}/tiny/elmo_tiny_weights.hdf5" in message and "--base-url" in message


def test_without_a_network(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(fetch_module, "TIMEOUT_S", 2)
    arguments = ["fetch", "small", "--to", str(tmp_path), "--base-url", "http://127.0.0.1:9"]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "no connection" in error and "On a machine that reaches it, download" in error
    assert f"put them into {tmp_path / 'small'}" in error and "Traceback" not in error


def test_a_file_of_another_size_is_refused(server, tmp_path):
    with pytest.raises(ValueError, match=r"bytes instead of 336: not the published file"):
        fetch(model(options_bytes=336), tmp_path / "to", server.url)
    assert not list((tmp_path / "to").iterdir())


def test_something_else_under_the_right_name_is_refused(server, tmp_path):
    path = f"/elmo/{STEM}/elmo_tiny_weights.hdf5"
    good, server.files[path] = server.files[path], b"<html>please log in</html>"
    with pytest.raises(ValueError, match="not this model.*a web page"):
        fetch(model(), tmp_path / "to", server.url)
    server.files[path] = good
    (tmp_path / "to" / "elmo_tiny_weights.hdf5").unlink()
    fetch(model(), tmp_path / "to", server.url)
    with h5py.File(tmp_path / "to" / "elmo_tiny_weights.hdf5", "r+") as file:
        file["CNN_proj/b_proj"][0] += 1
    with pytest.raises(ValueError, match="are not those that .*sha256.txt was written for"):
        fetch(model(), tmp_path / "to", server.url)


def test_a_model_of_another_size_is_refused(server, tmp_path):
    with pytest.raises(ValueError, match="parameters instead of 5"):
        fetch(Published(STEM, 5, "nothing"), tmp_path / "to", server.url)


def test_the_published_models():
    assert list(MODELS) == ["small", "medium", "original", "5.5B"]
    assert BASE_URL.startswith("https://")
    for published in MODELS.values():
        options, weights = published.files()
        assert options.endswith("_options.json") and weights.endswith("_weights.hdf5")
        n_bytes = published.files()[weights]
        assert n_bytes is None or 0 < n_bytes - 4 * published.n_parameters < 1 << 16


def test_the_recorded_parameters_are_those_of_the_architectures():
    from bench_encode import official_config

    from elmo.original.hdf5 import layout

    for size in ("small", "medium", "original"):
        shapes = [dataset.shape for dataset in layout(official_config(size))]
        n_parameters = sum(math.prod(shape) for shape in shapes)
        assert n_parameters == MODELS[size].n_parameters
