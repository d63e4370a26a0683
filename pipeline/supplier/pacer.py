"""When the next request may be sent, and how many may be sent a day.

Why not aiolimiter: its bucket lets a full second's worth of requests leave at once and then as many again while it
drains, which is twice the allowed rate in the worst second, and it cannot be paused for all senders.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

# Slots are spaced for this share of the rate; late wake-ups lower it to 97%.
SHARE_OF_THE_RATE = 0.975

# The supplier counts requests as they arrive, and transit times vary, so one second's worth of requests is written in
# this many seconds. The difference between that and the share above leaves room to catch up after late slots.
_SECONDS_OF_A_WINDOW = 1.02

# After a late wake-up the following slots open sooner to catch up, as far as the window above allows. Idle time, in
# which no request waited for a slot, is caught up only as far as `_IDLE_SECONDS`.
_CATCH_UP_SECONDS = 1.0
_IDLE_SECONDS = 0.1

# Slots that catch up stay this share of an interval apart. A burst at the edge of one of the supplier's seconds could
# arrive in that second as a whole. Shorter sleeps than the minimum take longer than asked, so fast rates have no gap.
_CATCH_UP_SHARE = 0.25
_SHORTEST_SLEEP_SECONDS = 0.005


class Slot:
    """A turn to send one request. It counts from when the request was written, not from when the turn came."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.sent_at: float | None = None
        self._now = now
        self._is_sent = asyncio.Event()

    async def opens(self) -> None:
        """Wait until the request may be written: at once, unless the slot has lapsed."""

    def sent(self) -> None:
        """Record that the request was written, or ended before that; further calls change nothing."""
        if self.sent_at is None:
            self.sent_at = self._now()
            self._is_sent.set()

    async def sending(self) -> float:
        """Wait until the request is written, and return that time."""
        if self.sent_at is None:
            await self._is_sent.wait()
        assert self.sent_at is not None  # noqa: S101 - the event is set with it
        return self.sent_at


class Pace(Protocol):
    """When the next request may leave."""

    async def slot(self) -> Slot:
        """Wait for the next slot and take it; the caller then calls its `sent`."""

    def pause(self, seconds: float) -> None:
        """Hold back every request for `seconds` from now."""

    async def close(self) -> None:
        """Close its connections."""


class Pacer:
    """Hands out evenly spaced send slots, one after the other, to all waiters.

    No more than `rate_per_second` requests, rounded up, are written in any second. That counts when each was written,
    which may be later than its turn: a connection has to be opened, or the process waits for a processor.
    """

    def __init__(
        self,
        rate_per_second: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        if rate_per_second <= 0:
            raise ValueError(f"a rate of {rate_per_second} requests a second sends nothing")
        self._interval = 1 / (rate_per_second * SHARE_OF_THE_RATE)
        most = math.ceil(rate_per_second)
        # At most `most` requests are written in any span of this length, however late each is.
        self._span = most / rate_per_second * _SECONDS_OF_A_WINDOW
        self._taken: deque[Slot] = deque(maxlen=most)
        gap = self._interval * _CATCH_UP_SHARE
        self._gap = gap if gap >= _SHORTEST_SLEEP_SECONDS else 0.0
        self._next = now()
        self._earliest = self._next
        self._paused_until = self._next
        self._waiting = 0
        self._idle_since = self._next
        self._now = now
        self._sleep = sleep
        # asyncio's lock is fair: first come, first served.
        self._turn = asyncio.Lock()

    async def slot(self) -> Slot:
        """Wait for the next slot and take it. A waiter that is cancelled leaves its slot to the next one."""
        if not self._waiting:
            # Idle time is not caught up.
            late = max(self._idle_since - self._next, _IDLE_SECONDS)
            self._next = max(self._next, self._now() - late)
        self._waiting += 1
        try:
            async with self._turn:
                return await self._take()
        finally:
            self._waiting -= 1
            self._idle_since = self._now()

    async def _take(self) -> Slot:
        is_full = len(self._taken) == self._taken.maxlen
        # Slots open in order, so only the oldest one matters.
        least = await self._taken[0].sending() + self._span if is_full else self._next
        while (wait := max(self._next, self._earliest, self._paused_until, least) - (now := self._now())) > 0:
            await self._sleep(wait)
        self._taken.append(slot := Slot(self._now))
        self._earliest = now + self._gap
        # Counted from the schedule, not from the wake-up, or each late wake-up would cost a part of the rate.
        self._next = max(self._next, now - _CATCH_UP_SECONDS, self._paused_until) + self._interval
        return slot

    def pause(self, seconds: float) -> None:
        """Hold back every request for `seconds` from now; a longer pause stays in force."""
        self._paused_until = max(self._paused_until, self._now() + seconds)

    async def close(self) -> None:
        """Do nothing: it has no connections."""


class Allowance(Protocol):
    """The calls that are left today."""

    def take(self) -> None:
        """Count one call. Raises CallsUsedUp when the day's calls are used up."""

    def covers(self, calls: int) -> bool:
        """Whether this many calls are left today."""

    def count(self, calls: int) -> None:
        """Count calls that other machines have sent."""


class Unlimited:
    """No cap on the calls of a day."""

    def take(self) -> None:
        """Count nothing."""

    def covers(self, calls: int) -> bool:  # noqa: ARG002 - part of the protocol
        """Whether this many calls are left: always."""
        return True

    def count(self, calls: int) -> None:
        """Count nothing."""
