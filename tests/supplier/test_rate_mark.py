"""A worker shares the rate of a night if it sees the night's mark in its own rate store."""

from __future__ import annotations

import threading

import pytest

from pipeline.supplier import rate_mark, store_away
from pipeline.supplier.rate_mark import marked
from pipeline.supplier.store_away import Patience, RateStoreAway

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def other_process(monkeypatch):
    """A worker that has seen no mark before, where marks are renewed quickly."""
    monkeypatch.setattr(rate_mark, "_seen", set())
    monkeypatch.setattr(rate_mark, "_RENEWED_SECONDS", 0.2)


@pytest.fixture
def names(monkeypatch):
    """What a worker names as its rate store."""
    for name, value in {"BASE_URL": "https://supplier.test", "CLIENT_ID": "shop", "CLIENT_SECRET": "x"}.items():
        monkeypatch.setenv(f"NIGHTAUDIT_{name}", value)
    monkeypatch.setenv("NIGHTAUDIT_RATE_STORE_CLEAR_TEXT", "true")

    def name(address: str) -> None:
        monkeypatch.setenv("NIGHTAUDIT_RATE_STORE", address)

    return name


def test_a_worker_with_the_same_store_passes(redis, names):
    names(redis)
    with marked(redis) as probe:
        assert probe() == ""


def test_a_worker_that_has_seen_the_mark_waits_for_a_store_that_is_restarted(redis, names, monkeypatch):
    monkeypatch.setattr(store_away, "_ANSWERED", set())
    names(redis)
    with marked(redis) as probe:
        assert probe() == ""
    assert Patience(redis).seconds(RateStoreAway("away")) > 0


def test_a_worker_with_another_database_of_that_server_does_not(redis, names):
    names(redis.removesuffix("/0") + "/1")
    with marked(redis) as probe:
        assert "names another Redis server or database in NIGHTAUDIT_RATE_STORE" in probe()
        assert "names another Redis server or database" in probe.patiently()


def test_a_worker_whose_store_cannot_be_reached_says_so_and_shows_no_password(redis, names):
    names("redis://:s3cret@127.0.0.1:1/0")
    with marked(redis) as probe:
        assert probe().startswith("cannot share the rate: The Redis server of NIGHTAUDIT_RATE_STORE could not be")
        assert "s3cret" not in probe()


def test_a_worker_without_a_store_passes_as_it_sends_nothing(redis, names):
    names("")
    with marked(redis) as probe:
        assert probe() == ""


def test_a_store_that_was_restarted_empty_is_marked_again_while_a_late_worker_waits(redis_machine, names):
    names(redis_machine.address)
    with marked(redis_machine.address) as probe:
        redis_machine.restart(0)
        assert probe.patiently() == ""


def test_a_worker_that_has_seen_the_mark_does_not_look_again(redis_machine, names):
    names(redis_machine.address)
    with marked(redis_machine.address) as probe:
        assert probe() == ""
        redis_machine.end()
        assert probe() == ""


def test_a_night_without_its_store_does_not_begin():
    with pytest.raises(RateStoreAway), marked("redis://127.0.0.1:1/0"):
        pass


def test_no_thread_is_left(redis):
    with marked(redis):
        assert any(thread.name == "rate mark" for thread in threading.enumerate())
    assert not any(thread.name == "rate mark" for thread in threading.enumerate())
