"""One daily cap for several processes on several machines: the store counts, and no call too many is handed out."""

from __future__ import annotations

import multiprocessing
import threading
import time
from datetime import UTC, datetime

import pytest

from pipeline.domain.errors import CallsUsedUp
from pipeline.lake import Lake
from pipeline.lake.allowance import DailyCalls
from pipeline.night.supplier import allowance_of
from pipeline.settings import read_settings
from pipeline.supplier.shared_calls import RedisCount, SharedCalls
from pipeline.supplier.store_away import RateStoreAway

DAY = datetime(2030, 1, 1, 12, tzinfo=UTC)
DAY_SECONDS = 86_400


class World:
    """A store's count of a day, and the clock of the processes that ask it."""

    def __init__(self) -> None:
        self.now, self.used = 0.0, {}

    def grant(self, calls, cap):
        day, second = divmod(self.now, DAY_SECONDS)
        granted = max(0, min(calls, cap - self.used.get(day, 0)))
        self.used[day] = self.used.get(day, 0) + granted
        return granted, DAY_SECONDS - second


class Unbounded:
    def __init__(self) -> None:
        self.taken = 0

    def take(self) -> None:
        self.taken += 1

    def covers(self, _) -> bool:
        return True


def sharing(world, cap, own=None):
    return SharedCalls(cap, world, own or Unbounded(), now=lambda: world.now)


def take_all(calls):
    taken = 0
    with pytest.raises(CallsUsedUp):  # noqa: PT012 - how many go well is the question
        while True:
            calls.take()
            taken += 1
    return taken


@pytest.mark.parametrize("cap", [1, 7, 100, 1234])
def test_three_that_share_a_count_are_handed_out_exactly_the_cap(cap):
    world = World()
    assert sum(take_all(sharing(world, cap)) for _ in range(3)) == cap


def test_covered_calls_can_be_taken_only_by_this_process():
    world = World()
    one, other = sharing(world, 250), sharing(world, 250)
    assert one.covers(200)
    assert other.covers(50)
    assert not other.covers(51)
    for _ in range(200):
        one.take()
    assert take_all(other) == 50


def test_calls_that_were_leased_yesterday_are_not_sent_today():
    world = World()
    calls = sharing(world, 1000)
    for _ in range(5):
        calls.take()
    world.now = DAY_SECONDS
    assert take_all(calls) == 1000
    assert world.used == {0: 10, 1: 1000}


def test_a_lease_that_meets_the_next_day_ends_those_before_it():
    """The clocks of two machines differ: the store's day may end while this process holds calls of it."""
    world = World()
    world.now = DAY_SECONDS - 10
    calls = SharedCalls(1000, world, Unbounded(), now=lambda: 0.0)
    calls.take()
    world.now = DAY_SECONDS
    assert calls.covers(1000)
    assert not calls.covers(1001)


def test_the_lake_counts_too_and_whichever_is_less_holds(lake):
    world = World()
    before = sharing(world, 100, DailyCalls(lake, 100, lambda: DAY))
    for _ in range(60):
        before.take()
    # The store was emptied.
    world.used.clear()
    after = sharing(world, 100, DailyCalls(lake, 100, lambda: DAY))
    assert not after.covers(41)
    assert take_all(after) == 40


def _take(address, lake, cap, taken):
    settings = read_settings(
        _env_file=None,
        rate_store=address,
        daily_calls=cap,
        base_url="https://supplier.example",
        client_id="a",
        client_secret="b",
    )
    calls = allowance_of(settings, Lake(lake), lambda: DAY)
    count = 0
    try:
        while True:
            calls.take()
            count += 1
    except CallsUsedUp:
        taken.put(count)


@pytest.mark.cluster
def test_three_processes_with_lakes_of_their_own_never_exceed_the_cap(redis, tmp_path):
    context = multiprocessing.get_context("spawn")
    taken = context.Queue()
    given = [(redis, str(tmp_path / f"lake-{number}"), 900, taken) for number in range(3)]
    processes = [context.Process(target=_take, args=each) for each in given]
    for process in processes:
        process.start()
    counts = [taken.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert sum(counts) == 900
    # Another supplier has a cap of its own, and a higher cap hands out the difference.
    assert RedisCount(redis, "another.example").grant(900, 900)[0] == 900
    assert RedisCount(redis, "supplier.example").grant(900, 1000)[0] == 100


@pytest.mark.cluster
def test_a_store_that_is_restarted_empty_costs_seconds_and_the_lake_keeps_the_cap(redis_machine, lake):
    def calls() -> SharedCalls:
        return SharedCalls(100, RedisCount(redis_machine.address, "supplier"), DailyCalls(lake, 100, lambda: DAY))

    before = calls()
    for _ in range(60):
        before.take()
    restarting = threading.Thread(target=redis_machine.restart, args=[2])
    restarting.start()
    time.sleep(0.5)
    with pytest.raises(RateStoreAway) as away:
        before.take()
    # The caller waits, while other tasks of its process run.
    assert away.value.again_after_seconds
    assert before.covers(30)
    restarting.join()
    assert take_all(before) + take_all(calls()) == 40


@pytest.mark.cluster
def test_the_stores_day_ends_at_midnight_utc(redis):
    from redis import Redis

    with Redis.from_url(redis) as store:
        now = datetime.fromtimestamp(store.time()[0], UTC)
        _, seconds = RedisCount(redis, "supplier").grant(10, 100)
        assert 0 < seconds <= DAY_SECONDS
        midnight = now.timestamp() + seconds
        assert abs(midnight - round(midnight / DAY_SECONDS) * DAY_SECONDS) < 60
        # What was counted yesterday is no longer counted.
        store.hset("nightaudit:calls:supplier", mapping={"day": "1", "used": 100})
    assert RedisCount(redis, "supplier").grant(100, 100)[0] == 100


def test_without_its_store_nothing_is_sent():
    calls = SharedCalls(100, RedisCount("redis://user:s3cret@127.0.0.1:1/0", "supplier"), Unbounded())
    with pytest.raises(RateStoreAway) as refused:
        calls.take()
    assert "s3cret" not in str(refused.value)
