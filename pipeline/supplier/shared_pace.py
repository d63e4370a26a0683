"""One rate for several processes: send slots, leased in turn from one shared schedule.

The schedule is in Redis: when the next slot begins, and until when each slot of the last second may be written. A lease
takes the next few slots in one step, as many as requests wait, so that none is kept from a process that could use it.
Each process says when it really wrote its requests, and a slot begins no sooner than a second after as many requests
as are allowed in one: what was late lets those after it wait no longer than it must, and a slot in which nothing was
written is free again. What was not said yet counts as written at the last instant at which it may be. Why not the
windows of `limits`: a window lets all of its requests leave at once, and as many again at the start of the next one.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

from pipeline.supplier.pacer import Slot

# One lease is for the slots of so many seconds at most: what a process that dies takes with it.
_LEASE_SECONDS = 0.05
# Slots are leased no sooner than so long before they begin: by then it was said when those a second before were used.
_AHEAD_SECONDS = 0.25
# How soon that is said, and how long a slot may be used.
_SAID_SECONDS = 0.02
_LASTS_SECONDS = 0.25
# A second's worth of requests is written in this many: requests arrive a little sooner or later than they are written.
_SECONDS_OF_A_WINDOW = 1.015
# Slots are this share of the rate. The little that is left between it and the window lets late ones be made good.
_SHARE = 0.985
# As much of the time in which no slot was leased is made good, as a process may have been late to ask.
_CATCH_UP_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Used:
    """What became of a leased slot: how many seconds ago its request was written, or that none was."""

    slot: str
    seconds_ago: float | None


@dataclass(frozen=True, slots=True)
class Terms:
    """What slots are leased on, in seconds: the time between two, and how many may be written in how long a window."""

    interval: float
    most: int
    window: float
    lasts: float = _LASTS_SECONDS
    catch_up: float = _CATCH_UP_SECONDS
    ahead: float = _AHEAD_SECONDS

    @classmethod
    def of(cls, rate_per_second: float) -> Terms:
        """Return what keeps to a rate."""
        most = max(int(rate_per_second), 1)
        return cls(1 / (rate_per_second * _SHARE), most, most / rate_per_second * _SECONDS_OF_A_WINDOW)


class Leases(Protocol):
    """A schedule of send slots that processes share."""

    async def take(self, lease: str, slots: int, terms: Terms, used: Sequence[Used]) -> tuple[float, Sequence[float]]:
        """Lease at most so many slots, `lease:0` and on; return in how many seconds each begins.

        Where it is too early for any, the first number is how long to wait. `used` are earlier slots.
        """

    async def pause(self, seconds: float) -> None:
        """Let no slot begin for so many seconds from now."""

    async def close(self) -> None:
        """Let go of the store."""


@dataclass(slots=True)
class _Leased:
    """A slot of this process: when it begins, and until when it may be used."""

    name: str
    begins_at: float
    ends_at: float


class _LeasedSlot(Slot):
    """A slot that lapses: a request that would be written after its end takes another one."""

    def __init__(self, now: Callable[[], float], leased: _Leased, pacer: SharedPacer) -> None:
        super().__init__(now)
        self._leased = leased
        self._pacer = pacer

    async def opens(self) -> None:
        """Wait for another slot where this one has lapsed. Raises RateStoreAway."""
        while self._now() > self._leased.ends_at:
            self._pacer.used(self._leased, None)
            self._leased = await self._pacer.take()

    def sent(self) -> None:
        """Note that the request has just been written, for the others as well."""
        if self.sent_at is None:
            super().sent()
            self._pacer.used(self._leased, self.sent_at)


class SharedPacer:
    """Hands out leased slots, one after the other, to all who wait in this process."""

    def __init__(
        self,
        rate_per_second: float,
        leases: Leases,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._terms = Terms.of(rate_per_second)
        self._most_leased = max(1, round(_LEASE_SECONDS * rate_per_second))
        self._leases = leases
        self._names = (f"{secrets.token_hex(8)}:{number}" for number in count())
        self._slots: deque[_Leased] = deque()
        self._used: list[tuple[_Leased, float | None]] = []
        self._waiting = 0
        self._saying: set[asyncio.Task[None]] = set()
        self._paused_until = 0.0
        self._now = now
        self._sleep = sleep
        self._turn = asyncio.Lock()

    async def slot(self) -> Slot:
        """Wait for the next slot and take it. Raises RateStoreAway, also where a pause did not reach the others."""
        return _LeasedSlot(self._now, await self.take(), self)

    async def take(self) -> _Leased:
        """Wait for the next slot and take it."""
        self._waiting += 1
        try:
            async with self._turn:
                while True:
                    self._hear_of_failures()
                    while not self._slots:
                        await self._sleep(await self._lease(min(self._waiting, self._most_leased)))
                    leased = self._slots[0]
                    if (wait := leased.begins_at - self._now()) > 0:
                        await self._sleep(wait)
                    self._slots.popleft()
                    if self._paused_until <= self._now() <= leased.ends_at:
                        return leased
                    self.used(leased, None)
        finally:
            self._waiting -= 1

    def used(self, leased: _Leased, sent_at: float | None) -> None:
        """Tell the others soon what became of a slot."""
        if not self._used:
            self._say(self._say_used())
        self._used.append((leased, sent_at))

    def pause(self, seconds: float) -> None:
        """Let no process send for `seconds` from now; this one at once, the others from their next lease on."""
        self._paused_until = max(self._paused_until, self._now() + seconds)
        self._say(self._leases.pause(seconds))

    def _say(self, what: Coroutine[Any, Any, None]) -> None:
        self._saying.add(asyncio.create_task(what))

    def _hear_of_failures(self) -> None:
        for task in [task for task in self._saying if task.done()]:
            self._saying.remove(task)
            task.result()

    async def close(self) -> None:
        """Let go of the store; slots that are leased lapse."""
        for task in self._saying:
            task.cancel()
        await asyncio.gather(*self._saying, return_exceptions=True)
        await self._leases.close()

    async def _say_used(self) -> None:
        await self._sleep(_SAID_SECONDS)
        if self._used:
            await self._lease(0)

    async def _lease(self, wanted: int) -> float:
        """Lease slots, and say which were used; return how long to wait before the next lease where there are none."""
        name = next(self._names)
        used, self._used = self._used, []
        asked_at = self._now()
        said = [Used(each.name, None if at is None else asked_at - at) for each, at in used]
        terms = self._terms
        wait, begin = await self._leases.take(name, wanted, terms, said)
        # The store worked it out between the question and the answer: slots begin by the latest such instant, and end
        # by the earliest.
        heard_at = self._now()
        # A slot that ends before the store's answer is here would help no one, however often it is asked.
        lasts = max(_LASTS_SECONDS, terms.lasts / 2, 2 * (heard_at - asked_at))
        self._terms = replace(terms, lasts=lasts)
        self._slots.extend(
            _Leased(f"{name}:{number}", heard_at + begins_in, asked_at + begins_in + terms.lasts)
            for number, begins_in in enumerate(begin)
        )
        return wait
