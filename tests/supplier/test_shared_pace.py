"""One rate for several processes: whichever takes them, no second has more slots than are allowed."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Iterator
from itertools import cycle, pairwise
from random import Random

import pytest
from busiest_second import most_in_any_second
from hypothesis import given, settings
from hypothesis import strategies as some

from pipeline.supplier.pacer import Slot
from pipeline.supplier.rate_store import RedisLeases
from pipeline.supplier.shared_pace import SharedPacer, Terms, Used
from pipeline.supplier.store_away import Patience, RateStoreAway, RateStoreRefused

# For a store that is never waited for.
NONE = Patience("a store of the tests", seconds=0)


class Schedule:
    """The one schedule that all processes share, as the store keeps it, behind a network that takes time."""

    def __init__(self, now, trips: list[float]) -> None:
        self._now, self._trips, self._next = now, cycle(trips), 0.0
        self._written: dict[str, float] = {}
        self.asked = 0

    async def take(self, lease, slots, terms, used):
        self.asked += 1
        await asyncio.sleep(next(self._trips))
        now = self._now()
        for each in used:
            if each.seconds_ago is None:
                self._written.pop(each.slot, None)
            elif each.slot in self._written:
                self._written[each.slot] = now - each.seconds_ago
        self._written = {name: at for name, at in self._written.items() if at > now - terms.window}
        following, wait, begin = max(now - terms.catch_up, self._next), 0.0, []
        for number in range(slots):
            latest = sorted(self._written.values(), reverse=True)
            full = latest[terms.most - 1] + terms.window if len(latest) >= terms.most else 0.0
            first = max(now, following, full)
            if first - now > terms.ahead:
                wait = 0.0 if begin else first - now - terms.ahead / 2
                break
            self._written[f"{lease}:{number}"] = first + terms.lasts
            following += terms.interval
            begin.append(first - now)
        self._next = following
        await asyncio.sleep(next(self._trips))
        return wait, begin

    async def pause(self, seconds: float) -> None:
        self._next = max(self._next, self._now() + seconds)

    async def close(self) -> None:
        pass


async def sent_by(pacers: list[SharedPacer], senders: int, requests: int, delays: Iterator[float]) -> list[float]:
    """When the senders of each process wrote their requests, each some time after its turn had come."""
    now, written = asyncio.get_running_loop().time, []

    async def sender(pacer: SharedPacer) -> None:
        for _ in range(requests):
            slot = await pacer.slot()
            await asyncio.sleep(next(delays))
            await slot.opens()
            written.append(now())
            slot.sent()

    await asyncio.gather(*(sender(pacer) for pacer in pacers for _ in range(senders)))
    for pacer in pacers:
        await pacer.close()
    return sorted(written)


@given(
    rate=some.sampled_from([0.5, 1, 1.5, 2.5, 4.5, 5, 20, 60]),
    delays=some.lists(some.floats(0, 0.5), min_size=1, max_size=40),
    trips=some.lists(some.floats(0, 0.3), min_size=1, max_size=10),
    processes=some.integers(1, 6),
)
@settings(max_examples=40, deadline=None)
def test_no_second_has_more_requests_than_the_rate_however_late_they_are_written_and_the_store_answers(
    virtual_time, rate, delays, trips, processes
):
    async def send() -> list[float]:
        now = asyncio.get_running_loop().time
        schedule = Schedule(now, trips)
        pacers = [SharedPacer(rate, schedule, NONE, now=now) for _ in range(processes)]
        return await sent_by(pacers, 4, max(int(rate) // 4, 4), cycle(delays))

    sent = virtual_time(send())
    most = math.ceil(rate)
    assert all(later - earlier >= most / rate for earlier, later in zip(sent, sent[most:], strict=False))


@given(
    rate=some.sampled_from([5, 20, 60, 200]),
    slowest=some.sampled_from([0.001, 0.004, 0.008]),
    farthest=some.sampled_from([0.0005, 0.002]),
    processes=some.integers(1, 8),
    seed=some.integers(0, 1000),
)
@settings(max_examples=30, deadline=None)
def test_several_processes_use_97_of_100_allowed_requests_with_four_in_flight_each(
    virtual_time, rate, slowest, farthest, processes, seed
):
    # Every delay differs, as real ones do: equal ones keep processes in step, and then four in flight bound the rate.
    any_of = Random(seed)  # noqa: S311 - delays, not secrets
    delays, trips = ([any_of.uniform(0, most) for _ in range(997)] for most in (slowest, farthest))

    async def send() -> list[float]:
        now = asyncio.get_running_loop().time
        schedule = Schedule(now, trips)
        pacers = [SharedPacer(rate, schedule, NONE, now=now) for _ in range(processes)]
        return await sent_by(pacers, 4, max(8 * rate // processes // 4, 4), cycle(delays))

    sent = virtual_time(send())
    # What the processes begin with, and what the last of them have left to do, is not what they do together.
    inner = sent[rate:-rate]
    assert len(inner) / (inner[-1] - inner[0]) >= 0.97 * rate
    assert most_in_any_second(sent) <= rate


def test_a_process_that_has_nothing_to_send_keeps_nothing_from_the_others(virtual_time):
    async def send() -> tuple[list[float], int]:
        now = asyncio.get_running_loop().time
        schedule = Schedule(now, [0.001])
        idle = SharedPacer(10, schedule, NONE, now=now)
        (await idle.slot()).sent()
        sent = await sent_by([SharedPacer(10, schedule, NONE, now=now)], 4, 25, cycle([0.0]))
        await idle.close()
        return sent, schedule.asked

    sent, asked = virtual_time(send())
    assert 9.7 < 99 / (sent[-1] - sent[0]) <= 10
    # One lease and one report a request, and as many times again where it was too early.
    assert asked < 4 * len(sent)


def test_a_request_that_finds_its_slot_lapsed_leaves_it_to_others_and_takes_another(virtual_time):
    async def send() -> tuple[float, float]:
        now = asyncio.get_running_loop().time
        schedule = Schedule(now, [0.0])
        slow, quick = (SharedPacer(1, schedule, NONE, now=now) for _ in range(2))
        lapsed = await slow.slot()
        await asyncio.sleep(0.6)

        async def used_at(slot: Slot) -> float:
            await slot.opens()
            slot.sent()
            return now()

        async def next_used_at() -> float:
            return await used_at(await quick.slot())

        opened_at, taken_at = await asyncio.gather(used_at(lapsed), next_used_at())
        for pacer in (slow, quick):
            await pacer.close()
        return taken_at, opened_at

    taken_at, opened_at = virtual_time(send())
    assert min(opened_at, taken_at) > 0.6
    assert abs(opened_at - taken_at) >= 1


def test_a_pause_holds_this_process_at_once_and_the_others_from_their_next_lease_on(virtual_time):
    async def send() -> list[float]:
        now = asyncio.get_running_loop().time
        schedule = Schedule(now, [0.0])
        ours, theirs = (SharedPacer(10, schedule, NONE, now=now) for _ in range(2))
        slots = []
        (await ours.slot()).sent()
        ours.pause(60)
        for pacer in (ours, theirs):
            (await pacer.slot()).sent()
            slots.append(now())
        for pacer in (ours, theirs):
            await pacer.close()
        return slots

    assert all(60 <= at < 61 for at in virtual_time(send()))


@pytest.mark.cluster
def test_the_schedule_in_the_store_lets_no_second_have_more_than_the_rate(redis):
    async def send() -> list[float]:
        pacers = [SharedPacer(50, RedisLeases(redis, "supplier"), NONE) for _ in range(3)]
        return await sent_by(pacers, 4, 10, cycle([0.0, 0.001, 0.03, 0.0, 0.3]))

    sent = asyncio.run(send())
    assert len(sent) == 120
    assert most_in_any_second(sent) <= 50


@pytest.mark.cluster
def test_a_lease_belongs_to_one_process_until_it_is_returned_and_a_pause_applies_to_all(redis):
    from redis import Redis

    terms = Terms(interval=100, most=1, window=150, ahead=400)

    async def lease() -> list[tuple[float, list[float]]]:
        ours, theirs = RedisLeases(redis, "supplier"), RedisLeases(redis, "supplier")
        other = RedisLeases(redis, "another")
        for leases, name in ((ours, "supplier"), (other, "another")):
            # It has held back what a server before it might have leased.
            assert await leases.take("first", 1, terms, []) == (pytest.approx(350.25, abs=1), [])
            Redis.from_url(redis).set(f"nightaudit:pace:{name}", 1)
        begun = [await ours.take("a", 2, terms, []), await theirs.take("b", 1, terms, [])]
        begun.append(await theirs.take("c", 1, terms, [Used("a:0", 10.0), Used("a:1", None), Used("b:0", None)]))
        await theirs.pause(500)
        begun += [await ours.take("d", 1, terms, []), await other.take("a", 1, terms, [])]
        for leases in (ours, theirs, other):
            await leases.close()
        return begun

    (_, first), (_, second), (_, third), (wait, none), (_, another) = asyncio.run(lease())
    assert (first[0], another) == (0, [0])
    # A window after the instant until which the one before it may be used.
    assert first[1] == pytest.approx(150.25, abs=1)
    assert second == pytest.approx([300.5], abs=1)
    # Of the three before it, one was used ten seconds ago, and the schedule is three slots on.
    assert third == pytest.approx([300], abs=1)
    assert none == []
    assert wait == pytest.approx(300, abs=2)


@pytest.mark.cluster
@pytest.mark.parametrize("seconds_away", [0, 3])
def test_a_store_that_is_restarted_empty_costs_seconds_and_lets_no_second_have_more_than_the_rate(
    redis_machine, seconds_away, caplog
):
    async def send() -> list[float]:
        pacers = [
            SharedPacer(50, RedisLeases(redis_machine.address, "supplier"), Patience(redis_machine.address))
            for _ in range(3)
        ]
        sending = asyncio.create_task(sent_by(pacers, 4, 20, cycle([0.0, 0.001, 0.03, 0.0, 0.1])))
        await asyncio.sleep(3)
        await asyncio.to_thread(redis_machine.restart, seconds_away)
        return await sending

    sent = asyncio.run(send())
    assert len(sent) == 240
    assert most_in_any_second(sent) <= 50
    assert 1 < max(later - earlier for earlier, later in pairwise(sent)) < seconds_away + 4
    assert "Nothing is sent until it answers." in caplog.text


class SetClock:
    """The clock of a store, as it looks once it was set: all that the store holds is older or younger by as much."""

    def __init__(self, monkeypatch, redis: str) -> None:
        self._redis, self._micros = redis, 0
        call = RedisLeases._call

        async def call_later(leases: RedisLeases, script, *arguments):
            found = await call(leases, script, *arguments)
            return found if script is leases._hold else [found[0] + self._micros, *found[1:]]

        monkeypatch.setattr(RedisLeases, "_call", call_later)

    def set(self, seconds: float) -> None:
        from redis import Redis

        self._micros = round(seconds * 1e6)
        slots = "nightaudit:pace:supplier:slots"
        with Redis.from_url(self._redis) as store:
            store.incrby("nightaudit:pace:supplier", -self._micros)
            for name, score in store.zrange(slots, 0, -1, withscores=True):
                if score:
                    store.zadd(slots, {name: score - self._micros})


@pytest.mark.cluster
@pytest.mark.parametrize("seconds", [0.5, 5, 3600, -0.5, -5, -300, -3600])
def test_a_store_whose_clock_is_set_costs_seconds_and_lets_no_second_have_more_than_the_rate(
    redis, monkeypatch, seconds, caplog
):
    async def send() -> list[float]:
        clock = SetClock(monkeypatch, redis)
        pacers = [SharedPacer(50, RedisLeases(redis, "supplier"), NONE) for _ in range(3)]
        sending = asyncio.create_task(sent_by(pacers, 4, 15, cycle([0.0, 0.001, 0.03, 0.0, 0.1])))
        await asyncio.sleep(3)
        clock.set(seconds)
        return await sending

    sent = asyncio.run(asyncio.wait_for(send(), 30))
    assert len(sent) == 180
    assert most_in_any_second(sent) <= 50
    assert 1 < max(later - earlier for earlier, later in pairwise(sent)) < 4
    assert "clock of the Redis server" in caplog.text


@pytest.mark.cluster
@pytest.mark.parametrize("seconds", [5, -3600])
def test_a_pause_outlasts_a_clock_that_is_set(redis, monkeypatch, seconds):
    async def wait() -> float:
        clock = SetClock(monkeypatch, redis)
        ours, theirs = (RedisLeases(redis, "supplier") for _ in range(2))
        await ours.take("before", 0, Terms.of(50), [])
        await ours.pause(60)
        clock.set(seconds)
        await ours.take("noticed", 0, Terms.of(50), [])
        waited = (await theirs.take("after", 1, Terms.of(50), []))[0]
        for leases in (ours, theirs):
            await leases.close()
        return waited

    assert 55 < asyncio.run(wait()) < 61


@pytest.mark.cluster
def test_a_store_that_evicts_the_slots_lets_no_second_have_more_than_the_rate(redis):
    from redis import Redis

    async def send() -> list[float]:
        pacers = [SharedPacer(50, RedisLeases(redis, "supplier"), NONE) for _ in range(3)]
        # Each request is late by as much as a slot lasts, so the next slots depend on when it was written.
        sending = asyncio.create_task(sent_by(pacers, 8, 10, cycle([0.0, 0.24])))
        with Redis.from_url(redis) as store:
            for _ in range(2):
                await asyncio.sleep(2.6)
                store.delete("nightaudit:pace:supplier:slots")
        return await sending

    sent = asyncio.run(send())
    assert most_in_any_second(sent) <= 50
    assert max(later - earlier for earlier, later in pairwise(sent)) > 1


@pytest.mark.cluster
def test_a_store_that_refuses_is_not_waited_for(redis):
    from redis import Redis

    async def send() -> None:
        pacer = SharedPacer(50, RedisLeases(redis, "supplier"), Patience(redis))
        try:
            await pacer.slot()
            with Redis.from_url(redis) as store:
                store.config_set("requirepass", "s3cret")
                store.execute_command("AUTH", "s3cret")
                store.client_kill_filter(_type="normal", skipme=True)
            while True:
                await pacer.slot()
        finally:
            await pacer.close()

    with pytest.raises(RateStoreRefused, match="refuses"):
        asyncio.run(asyncio.wait_for(send(), 30))


@pytest.mark.cluster
def test_a_store_that_fails_over_is_waited_for(redis):
    from redis import Redis

    async def send() -> float:
        pacer = SharedPacer(50, RedisLeases(redis, "supplier"), Patience(redis))
        with Redis.from_url(redis) as store:
            (await pacer.slot()).sent()
            store.replicaof("127.0.0.1", "1")
            asking = asyncio.create_task(sent_by([pacer], 4, 20, cycle([0.0])))
            await asyncio.sleep(2)
            began = asyncio.get_running_loop().time()
            assert not asking.done()
            store.replicaof("NO", "ONE")
            return (await asking)[-1] - began

    assert asyncio.run(asyncio.wait_for(send(), 60)) > 0


@pytest.mark.cluster
def test_a_pause_that_the_store_did_not_get_ends_the_sending_however_many_follow_it(redis, caplog):
    from redis import Redis

    async def send() -> None:
        pacer = SharedPacer(100, RedisLeases(redis, "supplier"), NONE)
        try:
            await pacer.slot()
            Redis.from_url(redis).shutdown(nosave=True)
            for _ in range(3):
                pacer.pause(0)
                await asyncio.wait(list(pacer._saying))
            for _ in range(100):
                await pacer.slot()
        finally:
            await pacer.close()

    with pytest.raises(RateStoreAway):
        asyncio.run(send())
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_failed_pause_is_heard_with_the_next_slot_though_others_were_paused_for_since(virtual_time):
    class Forgetful(Schedule):
        pauses = 0

        async def pause(self, seconds: float) -> None:
            self.pauses += 1
            if self.pauses == 1:
                raise RateStoreAway("away")
            await super().pause(seconds)

    async def send() -> Forgetful:
        now = asyncio.get_running_loop().time
        schedule = Forgetful(now, [0.0])
        pacer = SharedPacer(100, schedule, NONE, now=now)
        await pacer.slot()
        for _ in range(2):
            pacer.pause(0)
        for _ in range(3):
            await asyncio.sleep(0)
        with pytest.raises(RateStoreAway):
            await pacer.slot()
        await pacer.close()
        return schedule

    assert virtual_time(send()).pauses == 2


class Away(Schedule):
    """A schedule that cannot be reached for a while, and has forgotten all that it held when it comes back."""

    def __init__(self, now, begins_at: float, ends_at: float) -> None:
        super().__init__(now, [0.001])
        self._begins_at, self._ends_at = begins_at, ends_at
        self.paused_for: list[float] = []

    def _reach(self) -> None:
        if self._begins_at <= self._now() < self._ends_at:
            raise RateStoreAway("away")

    async def take(self, lease, slots, terms, used):
        self._reach()
        return await super().take(lease, slots, terms, used)

    async def pause(self, seconds: float) -> None:
        self._reach()
        self.paused_for.append(seconds)
        await super().pause(seconds)


def test_a_store_that_is_away_for_a_minute_costs_a_minute(virtual_time):
    async def send() -> list[float]:
        now = asyncio.get_running_loop().time
        pacer = SharedPacer(10, Away(now, 1, 61), Patience("a minute", now=now), now=now)
        return await sent_by([pacer], 4, 10, cycle([0.0]))

    sent = virtual_time(send())
    assert len(sent) == 40
    (gap,) = (later - earlier for earlier, later in pairwise(sent) if later - earlier > 1)
    # It costs no more than its time, and the slots after it last no longer than those before.
    assert 59 < gap < 62
    assert sent[-1] < 60 + 40 / 9.7 + 1


def test_a_store_that_stays_away_ends_the_sending_after_three_minutes(virtual_time):
    async def send() -> float:
        now = asyncio.get_running_loop().time
        pacer = SharedPacer(10, Away(now, 1, 1e9), Patience("gone", now=now), now=now)
        with pytest.raises(RateStoreAway):
            await sent_by([pacer], 1, 100, cycle([0.0]))
        await pacer.close()
        return now()

    assert 180 < virtual_time(send()) < 185


def test_a_store_that_has_never_answered_is_not_waited_for(virtual_time):
    async def send() -> float:
        now = asyncio.get_running_loop().time
        pacer = SharedPacer(10, Away(now, 0, 60), Patience("misspelt", now=now), now=now)
        with pytest.raises(RateStoreAway):
            await pacer.slot()
        await pacer.close()
        return now()

    assert virtual_time(send()) < 1


def test_a_store_that_comes_back_is_told_again_how_long_to_pause(virtual_time):
    async def send() -> list[float]:
        now = asyncio.get_running_loop().time
        schedule = Away(now, 1, 20)
        pacer = SharedPacer(10, schedule, Patience("paused", now=now), now=now)
        (await pacer.slot()).sent()
        await asyncio.sleep(0.5)
        pacer.pause(60)
        await asyncio.sleep(0.1)
        # It is asked while it cannot be reached.
        asking = asyncio.create_task(pacer.slot())
        await asyncio.sleep(1)
        pacer.pause(60)
        await asking
        await pacer.close()
        return schedule.paused_for

    first, *again = virtual_time(send())
    assert first == 60
    assert again
    assert all(40 < each < 43 for each in again)


def test_without_its_store_nothing_is_sent():
    async def ask() -> None:
        leases = RedisLeases("redis://user:s3cret@127.0.0.1:1/0", "supplier")
        try:
            await leases.take("a", 1, Terms.of(1), [])
        finally:
            await leases.close()

    with pytest.raises(RateStoreAway) as refused:
        asyncio.run(ask())
    assert "s3cret" not in str(refused.value)
