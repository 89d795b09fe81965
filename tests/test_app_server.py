"""The running server seen by a program: named endpoints, errors, static files."""

import threading

import httpx
import numpy as np
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from app.parts import PLOTLY_JS, STATIC
from elmo.scalar_mix import softmax

TEXT = "The children play in the yard .\nShe wrote a play ."


@pytest.fixture(scope="module")
def client(server):
    return Client(server, verbose=False)


def test_encode_gives_every_tokens_vector(client, services):
    found = client.predict(text=TEXT, encoder="bilm", layer=2, api_name="/encode")
    tokens = services.parse(TEXT, False)
    assert [tuple(s["tokens"]) for s in found["sentences"]] == list(tokens)
    expected = services.encode("bilm", tokens).vectors[:, 2]
    vectors = np.concatenate([s["vectors"] for s in found["sentences"]])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_mix_is_the_weighted_sum(client, services):
    w = [0.5, -1.0, 2.0]
    found = client.predict(text=TEXT, weights=w, gamma=2.0, encoder="bilm", api_name="/mix")
    vectors = services.encode("bilm", services.parse(TEXT, False)).vectors
    expected = 2 * np.tensordot(vectors, softmax(w), axes=([1], [0]))
    np.testing.assert_allclose(found["shares"], softmax(w))
    np.testing.assert_allclose(
        np.concatenate([s["vectors"] for s in found["sentences"]]), expected, atol=1e-5
    )


def test_neighbors_agree_with_brute_force(client, services):
    w = [-6.0, 6.0, -6.0]
    found = client.predict(
        text=TEXT, sentence=1, token=3, weights=w, n=5, mean_removed=False, api_name="/neighbors"
    )
    sentences = services.parse(TEXT, False)
    own, bank = services.encode("bilm", sentences), services.model("bilm").bank
    query = own.vectors[own.row(1, 3), 1]
    rows = np.concatenate([bank.vectors[:, 1], own.vectors[:, 1]])
    cosines = rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    best = np.sort(cosines)[::-1][1:6]  # the first is the token itself
    np.testing.assert_allclose([hit["score"] for hit in found], best, atol=1e-3)
    assert set(found[0]) == {"token", "sentence", "position", "source", "score"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": "  "}, "There is no word in the text"),
        ({"text": "a", "encoder": "gpt"}, "encoder must be one of bilm, attention"),
        ({"text": "a", "layer": 7}, "layer must be 0 to 2, got 7"),
    ],
)
def test_errors_say_what_is_allowed(client, arguments, message):
    with pytest.raises(AppError, match=message):
        client.predict(**arguments, api_name="/encode")


def test_slow_jobs_do_not_keep_others_waiting(client, services, monkeypatch):
    release, parse = threading.Event(), services.parse

    def slow_parse(text, pretokenized):
        if text.startswith("slow"):
            assert release.wait(30)
        return parse(text, pretokenized)

    monkeypatch.setattr(services, "parse", slow_parse)
    slow = [client.submit(text=f"slow {i}", api_name="/encode") for i in range(3)]
    try:
        quick = client.submit(text="quick", api_name="/encode").result(timeout=20)
        assert quick["sentences"][0]["tokens"] == ["quick"]
        assert not any(job.done() for job in slow)
    finally:
        release.set()
    assert [job.result(timeout=20)["sentences"][0]["tokens"][1] for job in slow] == ["0", "1", "2"]


def test_private_events_are_not_endpoints(client):
    names = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(names) == {"/encode", "/mix", "/neighbors"}


def test_only_our_own_files_are_served(server):
    def get(path):
        return httpx.get(f"{server}gradio_api/file={path}")

    assert get(STATIC / "maps.js").status_code == 200
    assert "javascript" in get(PLOTLY_JS).headers["content-type"]
    assert get(STATIC.parent / "services.py").status_code == 403
    assert get("/etc/passwd").status_code == 403
