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


@pytest.mark.parametrize("measure", ["gap", "random", "word", "gradient"])
def test_influence_is_the_pages_grid_and_exactly_zero_where_none_can_be(client, measure):
    found = client.predict(
        text=TEXT, sentence=1, layer=2, measure=measure, word="x", api_name="/influence"
    )
    assert found["tokens"] == ["She", "wrote", "a", "play", "."]
    influence, reachable = (np.array(found[name]) for name in ("influence", "reachable"))
    assert influence.shape == reachable.shape == (5, 5) and reachable.all()
    assert (influence > 0).all()
    found = client.predict(
        text=TEXT, sentence=1, layer=0, measure=measure, word="x", api_name="/influence"
    )
    assert (np.array(found["reachable"]) == np.eye(5)).all()
    assert (np.array(found["influence"])[~np.eye(5, dtype=bool)] == 0).all()


def test_cloze_leaves_out_what_has_no_softmax(client):
    assert client.predict(text=TEXT, position=1, api_name="/cloze") == []  # no trained weights


@pytest.mark.parametrize(
    ("endpoint", "arguments", "message"),
    [
        ("/influence", {"sentence": 2}, "sentence must be 0 to 1, got 2"),
        ("/influence", {"layer": 3}, "layer must be 0 to 2, got 3"),
        ("/influence", {"measure": "luck"}, "measure must be one of gap, random"),
        ("/cloze", {"position": 9}, "position must be 0 to 6, got 9"),
        ("/cloze", {"position": 1, "n": 0}, "n must be 1 to 100, got 0"),
        ("/mix", {"weights": [1.0]}, "3 layers need as many weights, got 1"),
    ],
)
def test_every_endpoint_says_what_is_allowed(client, endpoint, arguments, message):
    with pytest.raises(AppError, match=message):
        client.predict(text=TEXT, **arguments, api_name=endpoint)


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
    assert set(names) == {"/encode", "/mix", "/neighbors", "/influence", "/cloze"}


def test_only_our_own_files_are_served(server):
    def get(path):
        return httpx.get(f"{server}gradio_api/file={path}")

    assert get(STATIC / "maps.js").status_code == 200
    assert "javascript" in get(PLOTLY_JS).headers["content-type"]
    assert get(STATIC.parent / "services.py").status_code == 403
    assert get("/etc/passwd").status_code == 403


def test_a_visitor_who_sends_too_much_is_told_so_and_others_are_not_kept(server):
    from app.sessions import MAX_WAITING

    client = httpx.Client(base_url=server, timeout=60)
    config = client.get("/config").json()
    (fn,) = (d["id"] for d in config["dependencies"] if d["api_name"] == "mix")

    def join(session):
        data = ["A play .", [0, 0, 0], 1, "bilm", False]
        body = {"data": data, "fn_index": fn, "session_hash": session}
        return client.post("/gradio_api/queue/join", json=body)

    for _ in range(MAX_WAITING):
        assert join("greedy").status_code == 200
    refused = join("greedy")
    assert refused.status_code == 400
    assert refused.json()["detail"].startswith(f"{MAX_WAITING} requests of yours are waiting")
    assert join("modest").status_code == 200
    stream = client.get("/gradio_api/queue/data", params={"session_hash": "greedy"}).text
    assert stream.count('"success":true') == MAX_WAITING
    assert join("greedy").status_code == 200
