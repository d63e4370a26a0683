"""When the next request may be sent, and how many may be sent a day.

Why not aiolimiter: its bucket lets a full second's worth of requests leave at once and then as many again while it
drains, which is twice the allowed rate in the worst second, and it cannot be paused for all senders.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

# Slots are this share of the rate: what late wake-ups cost of it leaves 97%.
SHARE_OF_THE_RATE = 0.975

# Requests are counted where they arrive, and one travels longer than another: as many as may arrive in a second are
# written in this many. What is between that and the share above lets late slots be made good.
_SECONDS_OF_A_WINDOW = 1.02

# A late wake-up is made good by the slots after it, which leave at once as far as the span above lets them: more than a
# second's worth never may. Time in which nothing waited for a slot is not made good, but for this much of it.
_CATCH_UP_SECONDS = 1.0
_IDLE_SECONDS = 0.1


class Slot:
    """A turn to send one request. It counts from when the request was really written, not from when its turn came."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.sent_at: float | None = None
        self._now = now
        self._is_sent = asyncio.Event()

    async def opens(self) -> None:
        """Wait until the request may be written: not at all, where the slot has not lapsed."""

    def sent(self) -> None:
        """Note that the request has just been written, or ended without; a second call changes nothing."""
        if self.sent_at is None:
            self.sent_at = self._now()
            self._is_sent.set()

    async def sending(self) -> float:
        """Wait until the request is written; return when it was."""
        if self.sent_at is None:
            await self._is_sent.wait()
        assert self.sent_at is not None  # noqa: S101 - the event is set with it
        return self.sent_at


class Pace(Protocol):
    """When the next request may leave."""

    async def slot(self) -> Slot:
        """Wait for the next slot and take it. Its `sent` is called when it was used."""

    def pause(self, seconds: float) -> None:
        """Hold back every request for `seconds` from now."""

    async def close(self) -> None:
        """Let go of what it holds."""


class Pacer:
    """Hands out evenly spaced send slots, one after the other, to all waiters.

    Never more than `rate_per_second` requests are written in a second, counted by when each was really written: a
    connection may have to be opened first, and a process that waits for a processor writes late.
    """

    def __init__(
        self,
        rate_per_second: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        if rate_per_second <= 0:
            msg = f"a rate of {rate_per_second} requests a second sends nothing"
            raise ValueError(msg)
        self._interval = 1 / (rate_per_second * SHARE_OF_THE_RATE)
        most = max(int(rate_per_second), 1)
        # `most` requests may be written in any span of this length, however late each of them was.
        self._span = most / rate_per_second * _SECONDS_OF_A_WINDOW
        self._taken: deque[Slot] = deque(maxlen=most)
        self._next = now()
        self._paused_until = self._next
        self._waiting = 0
        self._idle_since = self._next
        self._now = now
        self._sleep = sleep
        # asyncio's lock is fair: first come, first served.
        self._turn = asyncio.Lock()

    async def slot(self) -> Slot:
        """Wait for the next slot and take it. A waiter that is cancelled leaves its slot to the next one."""
        self._end_of_idleness()
        self._waiting += 1
        try:
            async with self._turn:
                return await self._take()
        finally:
            self._waiting -= 1
            self._idle_since = self._now()

    async def _take(self) -> Slot:
        is_full = len(self._taken) == self._taken.maxlen
        # Slots open in order, so that the oldest one is as far back as counts.
        least = await self._taken[0].sending() + self._span if is_full else self._next
        while (wait := max(self._next, self._paused_until, least) - (now := self._now())) > 0:
            await self._sleep(wait)
        self._taken.append(slot := Slot(self._now))
        # Counted from the schedule, not from the wake-up, or each late wake-up would cost a part of the rate.
        self._next = max(self._next, now - _CATCH_UP_SECONDS, self._paused_until) + self._interval
        return slot

    def _end_of_idleness(self) -> None:
        """Let go of the time since the last slot was given, unless a waiter is there."""
        if not self._waiting:
            late = max(self._idle_since - self._next, _IDLE_SECONDS)
            self._next = max(self._next, self._now() - late)

    def pause(self, seconds: float) -> None:
        """Let no request leave for `seconds` from now. A longer pause that is under way stays."""
        self._paused_until = max(self._paused_until, self._now() + seconds)

    async def close(self) -> None:
        """Let go of nothing: it is of this process alone."""


class Allowance(Protocol):
    """How many requests may still leave today."""

    def take(self) -> None:
        """Count one request. Raises SweepStopped when the day's requests are used up."""


class Unlimited:
    """No cap on the requests of a day."""

    def take(self) -> None:
        """Count nothing."""

    def covers(self, calls: int) -> bool:  # noqa: ARG002 - as an allowance with a cap is asked
        """Whether so many requests are left: always."""
        return True
