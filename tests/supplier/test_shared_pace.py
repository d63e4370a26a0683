"""One rate for several processes: whoever owns them, no second has more slots than are allowed."""

from __future__ import annotations

import asyncio
import gc
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from pipeline.supplier.shared_pace import RateStoreAway, RedisLeases, SharedPacer


class World:
    """A clock that sleepers move on, each waking up late, and the one schedule that all processes share."""

    def __init__(self, late: list[float]) -> None:
        self.now, self._late, self._next = 0.0, late, 0.0
        self.woken = 0

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds + self._late[self.woken % len(self._late)]
        self.woken += 1
        self.now = max(self.now, until)

    async def take(self, seconds: float) -> float:
        first = max(self._next, self.now)
        self._next = first + seconds
        return first - self.now

    async def pause(self, seconds: float) -> None:
        self._next = max(self._next, self.now + seconds)

    async def close(self) -> None:
        pass


@given(
    rate=some.sampled_from([5, 50, 200]),
    turns=some.lists(some.integers(0, 2), min_size=100, max_size=300),
    late=some.lists(some.floats(0, 0.3), min_size=1, max_size=5),
)
def test_no_second_has_more_slots_than_the_rate_whichever_process_takes_them_and_however_late(rate, turns, late):
    async def send() -> list[float]:
        world = World(late)
        pacers = [SharedPacer(rate, world, now=lambda: world.now, sleep=world.sleep) for _ in range(3)]
        sent = []
        for turn in turns:
            await pacers[turn].slot()
            sent.append(world.now)
        for pacer in pacers:
            await pacer.close()
        return sorted(sent)

    sent = asyncio.run(send())
    assert all(later - earlier >= 1 for earlier, later in zip(sent, sent[rate:], strict=False))


class Schedule:
    """The one schedule that all processes share, behind a network that takes its time on both ways."""

    def __init__(self, now, trips: list[float]) -> None:
        self._now, self._trips, self._next = now, cycle(trips), 0.0

    async def take(self, seconds: float) -> float:
        await asyncio.sleep(next(self._trips))
        first = max(self._next, self._now())
        self._next = first + seconds
        ahead = first - self._now()
        await asyncio.sleep(next(self._trips))
        return ahead

    async def pause(self, seconds: float) -> None:
        self._next = max(self._next, self._now() + seconds)

    async def close(self) -> None:
        pass


@given(
    rate=some.sampled_from([5, 20, 60]),
    delays=some.lists(some.floats(0, 0.3), min_size=1, max_size=40),
    trips=some.lists(some.floats(0, 0.3), min_size=1, max_size=10),
)
@settings(max_examples=40, deadline=None)
def test_no_second_has_more_requests_than_the_rate_however_late_they_are_written_and_the_store_answers(
    virtual_time, rate, delays, trips
):
    delayed = cycle(delays)

    async def send() -> list[float]:
        now = asyncio.get_running_loop().time
        schedule, written = Schedule(now, trips), []

        async def sender(pacer: SharedPacer) -> None:
            for _ in range(max(rate // 4, 4)):
                slot = await pacer.slot()
                await asyncio.sleep(next(delayed))
                await slot.opens()
                written.append(now())
                slot.sent()

        pacers = [SharedPacer(rate, schedule, now=now) for _ in range(3)]
        await asyncio.gather(*(sender(pacer) for pacer in pacers for _ in range(4)))
        for pacer in pacers:
            await pacer.close()
        return sorted(written)

    sent = virtual_time(send())
    assert all(later - earlier >= 1 for earlier, later in zip(sent, sent[rate:], strict=False))


@pytest.mark.cluster
def test_a_stretch_that_one_process_leases_is_no_others_and_a_pause_holds_for_all(redis):
    async def lease() -> list[float]:
        ours, theirs = RedisLeases(redis, "supplier"), RedisLeases(redis, "supplier")
        other = RedisLeases(redis, "another")
        begun = [await ours.take(100), await theirs.take(100), await ours.take(100)]
        await theirs.pause(1000)
        begun += [await ours.take(100), await other.take(100)]
        for leases in (ours, theirs, other):
            await leases.close()
        return begun

    first, second, third, paused, another = asyncio.run(lease())
    assert (first, another) == (0, 0)
    assert 50 < second <= 100
    assert 150 < third <= 200
    assert 900 < paused <= 1000


@pytest.mark.cluster
def test_a_pause_that_the_store_did_not_get_ends_the_sending_however_many_follow_it(redis, caplog):
    from redis import Redis

    async def send() -> None:
        pacer = SharedPacer(100, RedisLeases(redis, "supplier"))
        try:
            await pacer.slot()
            Redis.from_url(redis).shutdown(nosave=True)
            for _ in range(3):
                pacer.pause(0)
                await asyncio.sleep(0.2)
            for _ in range(100):
                await pacer.slot()
        finally:
            await pacer.close()

    with pytest.raises(RateStoreAway):
        asyncio.run(send())
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_failed_pause_is_heard_with_the_next_slot_though_slots_are_left_and_others_were_paused_for_since():
    class Forgetful(World):
        pauses = 0

        async def pause(self, seconds: float) -> None:
            self.pauses += 1
            if self.pauses == 1:
                raise RateStoreAway("away")
            await super().pause(seconds)

    async def send() -> Forgetful:
        world = Forgetful([0.0])
        pacer = SharedPacer(100, world, now=lambda: world.now, sleep=world.sleep)
        await pacer.slot()
        for _ in range(2):
            pacer.pause(0)
        for _ in range(3):
            await asyncio.sleep(0)
        with pytest.raises(RateStoreAway):
            await pacer.slot()
        await pacer.close()
        return world

    assert asyncio.run(send()).pauses == 2


def test_without_its_store_nothing_is_sent():
    async def ask() -> None:
        leases = RedisLeases("redis://user:s3cret@127.0.0.1:1/0", "supplier")
        try:
            await leases.take(1)
        finally:
            await leases.close()

    with pytest.raises(RateStoreAway) as refused:
        asyncio.run(ask())
    assert "s3cret" not in str(refused.value)
