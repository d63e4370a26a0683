"""One rate for several processes: send slots, leased in turn from a shared schedule.

The schedule is in Redis: when the next slot begins, and until when each slot of the last second may be used. A lease
takes the next few slots in one step, only as many as requests wait, so that none is withheld from other processes.
Each process reports when it wrote its requests, and a slot begins no sooner than a second after as many requests as are
allowed in one: late requests delay later ones no longer than needed, and an unused slot is free again. A slot that was
not reported yet counts as used at the last possible instant. If the store is restarted, or its clock is changed, no
slot begins before those that it may have forgotten are a second old. The windows of `limits` are no alternative: a
window lets all of its requests leave at once, and as many again at the start of the next one.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol, TypeVar

from pipeline.supplier.pacer import Slot
from pipeline.supplier.store_away import Patience, RateStoreAway

T = TypeVar("T")

# A lease covers the slots of at most this many seconds, which are lost if the process dies.
_LEASE_SECONDS = 0.05
# Slots are leased at most this long ahead: by then, the use of slots a second earlier has been reported.
_AHEAD_SECONDS = 0.25
# How soon use is reported, and how long a slot may be used.
_SAID_SECONDS = 0.02
_LASTS_SECONDS = 0.25
# A second's worth of requests is written in this many seconds, as transit times vary.
_SECONDS_OF_A_WINDOW = 1.015
# Slots are spaced for this share of the rate. The difference to the window leaves room to catch up.
_SHARE = 0.985
# Up to this much time without a lease is caught up, as a process may have been late to ask.
_CATCH_UP_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Used:
    """How many seconds ago the request of a leased slot was written; None: the slot was not used."""

    slot: str
    seconds_ago: float | None


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of leases, in seconds: the time between two slots, and how many may be used per window."""

    interval: float
    most: int
    window: float
    lasts: float = _LASTS_SECONDS
    catch_up: float = _CATCH_UP_SECONDS
    ahead: float = _AHEAD_SECONDS

    @classmethod
    def of(cls, rate_per_second: float) -> Terms:
        """Return the terms for a rate."""
        most = math.ceil(rate_per_second)
        return cls(1 / (rate_per_second * _SHARE), most, most / rate_per_second * _SECONDS_OF_A_WINDOW)


class Leases(Protocol):
    """A schedule of send slots that processes share."""

    async def take(self, lease: str, slots: int, terms: Terms, used: Sequence[Used]) -> tuple[float, Sequence[float]]:
        """Lease at most `slots` slots, named `lease:0` and on; return in how many seconds each begins.

        If it is too early for any, the first number is how long to wait. `used` are earlier slots.
        """

    async def pause(self, seconds: float) -> None:
        """Let no slot begin for `seconds` from now."""

    async def close(self) -> None:
        """Close the connection to the store."""


@dataclass(slots=True)
class _Leased:
    """A slot of this process: when it begins, and until when it may be used."""

    name: str
    begins_at: float
    ends_at: float


class _LeasedSlot(Slot):
    """A slot that lapses: a request that is ready after its end takes another one."""

    def __init__(self, now: Callable[[], float], leased: _Leased, pacer: SharedPacer) -> None:
        super().__init__(now)
        self._leased = leased
        self._pacer = pacer

    async def opens(self) -> None:
        """Wait for another slot if this one has lapsed. Raises RateStoreAway."""
        while self._now() > self._leased.ends_at:
            self._pacer.used(self._leased, None)
            self._leased = await self._pacer.take()

    def sent(self) -> None:
        """Record that the request has just been written, and report it."""
        if self.sent_at is None:
            super().sent()
            self._pacer.used(self._leased, self.sent_at)


class SharedPacer:
    """Hands out leased slots, one after the other, to the waiting requests of this process."""

    def __init__(
        self,
        rate_per_second: float,
        leases: Leases,
        patience: Patience,
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
        self._patience = patience
        self._turn = asyncio.Lock()

    async def slot(self) -> Slot:
        """Wait for the next slot and take it. Raises RateStoreAway, also if a pause did not reach the others."""
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
        """Report the use of a slot soon; None: it was not used."""
        if not self._used:
            self._say(self._say_used())
        self._used.append((leased, sent_at))

    def pause(self, seconds: float) -> None:
        """Hold back all requests for `seconds` from now; other processes follow with their next lease."""
        self._paused_until = max(self._paused_until, self._now() + seconds)
        self._say(self._pause_others())

    def _say(self, what: Coroutine[Any, Any, None]) -> None:
        self._saying.add(asyncio.create_task(what))

    def _hear_of_failures(self) -> None:
        for task in [task for task in self._saying if task.done()]:
            self._saying.remove(task)
            task.result()

    async def close(self) -> None:
        """Close the connection to the store; leased slots lapse."""
        for task in self._saying:
            task.cancel()
        await asyncio.gather(*self._saying, return_exceptions=True)
        await self._leases.close()

    async def _say_used(self) -> None:
        await self._sleep(_SAID_SECONDS)
        if self._used:
            await self._lease(0)

    async def _pause_others(self) -> None:
        await self._patiently(lambda: self._leases.pause(max(self._paused_until - self._now(), 0)))

    async def _lease(self, wanted: int) -> float:
        """Lease slots and report used ones; return how long to wait if it was too early for any."""
        name = next(self._names)
        used, self._used = self._used, []
        terms = self._terms

        async def take() -> tuple[float, float, Sequence[float]]:
            asked_at = self._now()
            said = [Used(each.name, None if at is None else asked_at - at) for each, at in used]
            return asked_at, *await self._leases.take(name, wanted, terms, said)

        asked_at, wait, begin = await self._patiently(take)
        # The store answered at an unknown instant in between: slots begin by the latest possible one, and end by the
        # earliest.
        heard_at = self._now()
        # A slot must not end before the store's answer arrives.
        lasts = max(_LASTS_SECONDS, terms.lasts / 2, 2 * (heard_at - asked_at))
        self._terms = replace(terms, lasts=lasts)
        self._slots.extend(
            _Leased(f"{name}:{number}", heard_at + begins_in, asked_at + begins_in + terms.lasts)
            for number, begins_in in enumerate(begin)
        )
        return wait

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the store until it answers. Raises RateStoreAway once that has taken too long."""
        while True:
            try:
                answer = await ask()
            except RateStoreAway as away:
                await self._sleep(self._patience.seconds(away))
            else:
                if self._patience.answered() and self._paused_until > self._now():
                    # It may have forgotten the pause.
                    self._say(self._pause_others())
                return answer
