"""UMAP beside the page: equal seeds give equal maps, and who waits is served in turn."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest

from app.umap_service import Fit, UmapService
from elmo.banks.umap_maps import MIN_TOKENS, fit_umap

STAND_IN = (sys.executable, str(Path(__file__).with_name("umap_stand_in.py")))
VECTORS = np.random.default_rng(0).normal(size=(6, 2, 8)).astype(np.float32)


def fit(seed=0, vectors=VECTORS):
    return Fit(lambda: vectors, vectors.shape[1], seed=seed)


def wait_for(service, visitor, fits, seconds=20.0):
    end = time.monotonic() + seconds
    while service.found(list(fits)) is None:
        progress = service.ask(visitor, fits)
        assert not progress.failed, progress.failed
        assert time.monotonic() < end, progress
        time.sleep(0.02)
    return service.found(list(fits))


@pytest.fixture
def service():
    service = UmapService(STAND_IN)
    yield service
    service.stop()


def test_a_map_is_made_once_and_kept(service):
    first = wait_for(service, "a", {"key": fit()})
    again = wait_for(service, "b", {"key": fit()})
    np.testing.assert_array_equal(first["key"], again["key"])
    assert first["key"].shape == (6, 2, 2)
    assert service.found(["key", "other"]) is None


def test_visitors_are_served_in_turn(service):
    """One who wants much does not keep another waiting for all of it."""
    much = {f"much {i}": fit(seed=8) for i in range(12)}
    service.ask("greedy", much)
    wait_for(service, "modest", {"one": fit(seed=1)})
    assert sum(service.found([key]) is not None for key in much) < 6
    progress = service.ask("greedy", much)
    assert progress.total == 24 and progress.ready


def test_a_cancelled_fit_ends_at_once_and_the_next_one_is_made(service):
    slow = {"slow": fit(seed=2_000)}
    while not service.ask("a", slow).ready:
        time.sleep(0.02)
    service.cancel("a")
    assert wait_for(service, "a", {"quick": fit()})
    assert service.found(["slow"]) is None


def test_what_two_wait_for_goes_on_when_one_leaves(service):
    shared = {"shared": fit(seed=30)}
    service.ask("a", shared)
    service.ask("b", shared)
    service.cancel("a")
    assert wait_for(service, "b", shared)


def test_who_asks_no_more_has_left():
    service = UmapService(STAND_IN, seconds_to_leave=0.2)
    try:
        service.ask("gone", {"slow": fit(seed=2_000)})
        time.sleep(0.4)
        assert wait_for(service, "here", {"quick": fit()})
    finally:
        service.stop()


def test_a_process_that_ends_is_told_and_replaced(service):
    end = time.monotonic() + 20
    while not (progress := service.ask("a", {"key": fit(seed=13)})).failed:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert progress.failed == "the process that fits it ended"
    assert wait_for(service, "a", {"other": fit()})


def test_too_few_tokens_are_refused():
    with pytest.raises(ValueError, match=f"{MIN_TOKENS} tokens or more, got 4"):
        fit_umap(VECTORS[:4])


def test_equal_text_and_seed_give_equal_maps_and_no_home_is_needed(monkeypatch, tmp_path):
    """The real thing, in a process whose home cannot be written to; equal vectors come apart."""
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))
    vectors = np.random.default_rng(1).normal(size=(40, 2, 16)).astype(np.float32)
    vectors[1, 0] = vectors[0, 0]
    service = UmapService()
    try:
        fits = {"one": fit(3, vectors), "two": fit(3, vectors), "few": fit(0, vectors[:5])}
        found = wait_for(service, "a", fits, seconds=300)
    finally:
        service.stop()
    np.testing.assert_array_equal(found["one"], found["two"])
    assert np.isfinite(found["few"]).all() and found["few"].shape == (5, 2, 2)
    np.testing.assert_allclose(found["one"].mean(axis=0), 0, atol=1e-4)
    assert np.linalg.norm(found["one"][0, 0] - found["one"][1, 0]) > 0
