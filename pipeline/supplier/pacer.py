"""When the next request may leave, and how many may leave a day.

Why not aiolimiter: its bucket lets a full second's worth of requests leave at once and then as many again while it
drains, which is twice the allowed rate in the worst second, and it cannot be paused for all senders.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

# Requests are counted where they arrive, and travel, or a process that has to wait for its turn, makes gaps shorter as
# well as longer. As many as may arrive in a second leave in 1.026 of them: one may travel 25 ms longer than another.
# What is left of the rate after late wake-ups is 97% of it.
SHARE_OF_THE_RATE = 0.975

# A late wake-up may be made good by sending early, but only this much of it: older slots are let go.
_CATCH_UP_SECONDS = 0.1


class Pace(Protocol):
    """When the next request may leave."""

    async def slot(self) -> None:
        """Wait for the next slot and take it."""

    def pause(self, seconds: float) -> None:
        """Hold back every request for `seconds` from now."""

    async def close(self) -> None:
        """Let go of what it holds."""


class Pacer:
    """Hands out evenly spaced send slots, one after the other, to all waiters.

    Never more than `rate_per_second` slots begin in a second, counted by when they were really taken.
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
        allowed = rate_per_second * SHARE_OF_THE_RATE
        self._interval = 1 / allowed
        most = max(int(rate_per_second), 1)
        # `most` slots may begin in any span of this length, however late each of them was taken.
        self._span = most / allowed
        self._taken: deque[float] = deque(maxlen=most)
        self._next = now()
        self._paused_until = self._next
        self._now = now
        self._sleep = sleep
        # asyncio's lock is fair: first come, first served.
        self._turn = asyncio.Lock()

    async def slot(self) -> None:
        """Wait for the next slot and take it. A waiter that is cancelled leaves its slot to the next one."""
        async with self._turn:
            while (wait := self._opens_at() - (now := self._now())) > 0:
                await self._sleep(wait)
            self._taken.append(now)
            # Counted from the schedule, not from the wake-up, or each late wake-up would cost a part of the rate.
            self._next = max(self._next, now - _CATCH_UP_SECONDS) + self._interval

    def pause(self, seconds: float) -> None:
        """Let no request leave for `seconds` from now. A longer pause that is under way stays."""
        self._paused_until = max(self._paused_until, self._now() + seconds)

    async def close(self) -> None:
        """Let go of nothing: it is of this process alone."""

    def _opens_at(self) -> float:
        is_full = len(self._taken) == self._taken.maxlen
        return max(self._next, self._paused_until, self._taken[0] + self._span if is_full else self._next)


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
