"""The pacer, on a clock of its own: waiting takes as long as the test says, and never real time."""

from __future__ import annotations

import asyncio
import math
from itertools import chain, cycle, pairwise

import pytest
from busiest_second import most_in_any_second
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.supplier.pacer import Pacer, Unlimited


class Clock:
    """A clock that moves when a task sleeps, by a little more than was requested."""

    def __init__(self, lateness=(0.0,)) -> None:
        self.seconds = 1000.0
        self._lateness = cycle(lateness)

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds + next(self._lateness)
        await asyncio.sleep(0)


def slots(pacer: Pacer, clock: Clock, count: int) -> list[float]:
    async def take():
        times = []
        for _ in range(count):
            slot = await pacer.slot()
            times.append(clock.now())
            slot.sent()
        return times

    return asyncio.run(take())


rates = st.integers(1, 400)
lateness = st.lists(st.floats(0, 2), min_size=1, max_size=20)


@given(rates, lateness)
@settings(max_examples=60, deadline=None)
def test_no_second_sees_more_slots_than_the_rate_however_late_waiters_wake_up(rate, late):
    clock = Clock(late)
    times = slots(Pacer(rate, now=clock.now, sleep=clock.sleep), clock, min(4 * rate, 600) + 10)
    assert most_in_any_second(times) <= rate


@given(st.integers(10, 400), st.lists(st.floats(0, 0.0199), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_the_server_never_sees_more_than_the_rate_in_a_second_even_if_some_requests_arrive_20_ms_late(rate, held_up):
    clock = Clock()
    times = slots(Pacer(rate, now=clock.now, sleep=clock.sleep), clock, 4 * rate)
    sent = sorted(at + late for at, late in zip(times, cycle(held_up), strict=False))
    assert most_in_any_second(sent) <= rate


@given(st.floats(1, 60), lateness)
@settings(max_examples=60, deadline=None)
def test_no_second_sees_more_than_a_fractional_rate_rounded_up(rate, late):
    clock = Clock(late)
    times = slots(Pacer(rate, now=clock.now, sleep=clock.sleep), clock, int(4 * rate) + 10)
    assert most_in_any_second(times) <= math.ceil(rate)


@given(st.floats(0.05, 300), st.lists(st.floats(0, 0.005), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_at_least_97_of_100_allowed_slots_are_used_in_spite_of_late_wake_ups(rate, late):
    clock = Clock(late)
    # Ten seconds, or ten slots of a slow pacer.
    count = max(int(10 * rate), 10) + 1
    times = slots(Pacer(rate, now=clock.now, sleep=clock.sleep), clock, count)
    assert 0.97 * rate <= (count - 1) / (times[-1] - times[0]) <= rate


@given(
    st.integers(1, 60),
    st.lists(st.floats(0, 0.9), min_size=1, max_size=40),
    st.lists(st.floats(0, 0.0199), min_size=1, max_size=40),
)
@settings(max_examples=60, deadline=None)
def test_no_second_of_the_server_sees_more_than_the_rate_however_long_requests_take_from_slot_to_write(
    virtual_time, rate, delays, travels
):
    delayed, travelling = cycle(delays), cycle(travels)

    async def send():
        now = asyncio.get_running_loop().time
        pacer = Pacer(rate, now=now)
        arrived = []

        async def sender():
            for _ in range(max(rate // 2, 4)):
                slot = await pacer.slot()
                await asyncio.sleep(next(delayed))
                arrived.append(now() + next(travelling))
                slot.sent()

        await asyncio.gather(*(sender() for _ in range(8)))
        return sorted(arrived)

    assert most_in_any_second(virtual_time(send())) <= rate


def of_many_waiters(rate, lateness, count, before=None):
    """When `count` slots were taken by eight senders that wait for them, on a clock that wakes them up late."""
    clock = Clock(lateness)
    pacer = Pacer(rate, now=clock.now, sleep=clock.sleep)
    times = []

    async def sender():
        while len(times) < count:
            slot = await pacer.slot()
            slot.sent()
            times.append(clock.now())
            if before and len(times) == before[0]:
                before[1](pacer)
            await asyncio.sleep(0)

    async def send():
        await asyncio.gather(*(sender() for _ in range(8)))

    asyncio.run(send())
    return times[:count]


@given(st.integers(5, 50), st.floats(0.3, 0.9))
@settings(max_examples=30, deadline=None)
def test_what_was_late_is_not_sent_in_a_burst(rate, stall):
    """Transit times could put all of a burst into one second of the supplier's."""
    times = of_many_waiters(rate, [0.0] * 2 * rate + [stall] + [0.0] * 6 * rate, 6 * rate)
    assert min(later - earlier for earlier, later in pairwise(times)) >= 0.25 / rate


@given(st.integers(5, 100), st.floats(0.3, 0.9))
@settings(max_examples=30, deadline=None)
def test_a_stall_through_which_requests_waited_is_made_good(rate, stall):
    times = of_many_waiters(rate, [0.0] * 2 * rate + [stall] + [0.0] * 6 * rate, 6 * rate)
    assert most_in_any_second(times) <= rate
    undisturbed = of_many_waiters(rate, [0.0], 6 * rate)
    # Those that were late leave no room for others a second later; those between them come as if nothing had been.
    assert min(late - at for late, at in zip(times[-rate:], undisturbed[-rate:], strict=True)) < 1 / rate


@given(rates, lateness)
@settings(max_examples=30, deadline=None)
def test_catching_up_never_puts_more_than_the_rate_into_a_second(rate, late):
    assert most_in_any_second(of_many_waiters(rate, late, min(4 * rate, 600) + 10)) <= rate


def test_a_pause_is_no_lateness_that_is_made_good():
    times = of_many_waiters(20, [0.0], 60, before=(20, lambda pacer: pacer.pause(60)))
    after = [at for at in times if at >= times[0] + 60]
    assert all(0.05 < then - before < 0.053 for before, then in pairwise(after))


def test_a_request_that_ended_without_being_written_counts_until_it_ended():
    clock = Clock()
    pacer = Pacer(1, now=clock.now, sleep=clock.sleep)

    async def scenario():
        slot = await pacer.slot()
        following = asyncio.ensure_future(pacer.slot())
        await asyncio.sleep(0)
        clock.seconds += 30
        slot.sent()
        clock.seconds += 1
        slot.sent()
        await following
        return clock.now()

    assert 1031 < asyncio.run(scenario()) < 1031.1


def test_slots_are_even():
    clock = Clock()
    times = slots(Pacer(10, now=clock.now, sleep=clock.sleep), clock, 30)
    assert all(0.1 < after - before < 0.103 for before, after in pairwise(times))


def test_the_first_slot_is_free_and_idle_time_is_not_saved_up():
    clock = Clock()
    pacer = Pacer(10, now=clock.now, sleep=clock.sleep)
    assert slots(pacer, clock, 1) == [1000.0]
    clock.seconds += 3600
    times = slots(pacer, clock, 20)
    assert times[0] == 4600.0
    assert times[-1] - times[0] > 1.7


def test_a_pause_holds_everybody_back_and_then_the_rate_holds_again():
    clock = Clock()
    pacer = Pacer(100, now=clock.now, sleep=clock.sleep)
    slots(pacer, clock, 50)
    began = clock.now()
    pacer.pause(60)
    times = slots(pacer, clock, 200)
    assert times[0] == began + 60
    assert most_in_any_second(times) <= 100


def test_a_shorter_pause_does_not_end_a_longer_one():
    clock = Clock()
    pacer = Pacer(100, now=clock.now, sleep=clock.sleep)
    pacer.pause(60)
    pacer.pause(1)
    assert slots(pacer, clock, 1) == [1060.0]


def test_a_pause_that_comes_while_a_request_waits_holds_it_back_too():
    async def scenario():
        clock = Clock()
        sleeps = []

        async def sleep(seconds):
            if not sleeps:
                pacer.pause(30)
            sleeps.append(seconds)
            await clock.sleep(seconds)

        pacer = Pacer(1, now=clock.now, sleep=sleep)
        for _ in range(2):
            (await pacer.slot()).sent()
        return clock.now(), sleeps

    at, sleeps = asyncio.run(scenario())
    assert at == pytest.approx(1030)
    assert len(sleeps) == 2


def test_a_waiter_that_is_cancelled_leaves_his_slot_to_the_next():
    async def scenario():
        gate = asyncio.Event()
        clock = Clock()

        async def sleep(seconds):
            await gate.wait()
            await clock.sleep(seconds)

        pacer = Pacer(1, now=clock.now, sleep=sleep)
        (await pacer.slot()).sent()
        first, second = (asyncio.ensure_future(pacer.slot()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        gate.set()
        await second
        return clock.now()

    assert 1001 < asyncio.run(scenario()) < 1001.1


def test_slots_go_out_in_the_order_in_which_they_were_asked_for():
    async def scenario():
        clock = Clock()
        pacer = Pacer(5, now=clock.now, sleep=clock.sleep)
        order = []

        async def take(number):
            (await pacer.slot()).sent()
            order.append(number)

        await asyncio.gather(*(take(number) for number in range(20)))
        return order

    assert asyncio.run(scenario()) == list(range(20))


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_that_sends_nothing_is_refused(rate):
    with pytest.raises(ValueError, match="sends nothing"):
        Pacer(rate)


def test_without_a_cap_there_is_always_another_call():
    assert [call.take() for call in chain([Unlimited()] * 3)] == [None] * 3
