"""One rate for several processes: blocks of send slots, leased from one schedule that they share.

The schedule is a single instant in Redis: when the next free slot begins. A lease moves it on by a block of slots in
one step and owns what lies between, so that no two processes ever own the same slot, and as many slots begin in a
second as are allowed, in whatever process. A slot in which nothing was written in time lapses: a request that would
be written after its end waits for another one. Why not the windows of `limits`: a window lets all of its requests
leave at once, and as many again at the start of the next one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from pipeline.domain.errors import SettingsError, SupplierError
from pipeline.supplier.pacer import SHARE_OF_THE_RATE, Slot

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis
    from redis.commands.core import AsyncScript

# Seconds that a block lasts: what a process that dies takes with it, and how often the store is asked.
_BLOCK_SECONDS = 0.5
# A slot that is taken later than this would crowd the slots of another process: it lapses.
_LATE_SECONDS = 0.02
# Where a process wakes up later than that again and again, its blocks end with so much time that is in no slot, by
# which its own slots may be late. A block is shorter than a second, so one such gap lies in any second that it crowds.
_LEAST_GAP_SECONDS, _MOST_GAP_SECONDS = 0.05, 1.0
_STORE_SECONDS = 5

# Gives how many microseconds ahead the leased block begins. KEYS: the schedule; ARGV: the length of the block.
_LEASE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local first = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
redis.call('SET', KEYS[1], string.format('%.0f', first + ARGV[1]), 'EX', 86400)
return string.format('%.0f', first - now)
"""
# Moves the schedule to so many microseconds from now, never back.
_PAUSE = """
local time = redis.call('TIME')
local wanted = time[1] * 1000000 + time[2] + ARGV[1]
local next = math.max(wanted, tonumber(redis.call('GET', KEYS[1]) or '0'))
redis.call('SET', KEYS[1], string.format('%.0f', next), 'EX', 86400)
return '0'
"""


class RateStoreAway(SupplierError):
    """The store that keeps the shared rate could not be reached: nothing may be sent without it."""

    @classmethod
    def because(cls, error: Exception) -> RateStoreAway:
        """Return it for what the store's client raised, whose text may hold a password."""
        return cls(
            f"The Redis of NIGHTAUDIT_RATE_STORE could not be used ({type(error).__name__}).",
            kept="Answers that have landed are kept.",
            hint="Check NIGHTAUDIT_RATE_STORE; without it, each process limits its own rate.",
        )


class Leases(Protocol):
    """A schedule of send slots that processes share."""

    async def take(self, seconds: float) -> float:
        """Lease the next free stretch of so many seconds; return in how many seconds it begins."""

    async def pause(self, seconds: float) -> None:
        """Let no stretch begin for so many seconds from now."""

    async def close(self) -> None:
        """Let go of the store."""


class _LeasedSlot(Slot):
    """A slot that lapses: a request that would be written after its end takes another one."""

    def __init__(self, now: Callable[[], float], ends_at: float, take: Callable[[], Awaitable[float]]) -> None:
        super().__init__(now)
        self._ends_at = ends_at
        self._take = take

    async def opens(self) -> None:
        """Wait for another slot where this one has lapsed. Raises RateStoreAway."""
        while self._now() > self._ends_at:
            self._ends_at = await self._take()


class SharedPacer:
    """Hands out evenly spaced send slots of leased blocks, one after the other, to all who wait in this process."""

    def __init__(
        self,
        rate_per_second: float,
        leases: Leases,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._interval = 1 / (rate_per_second * SHARE_OF_THE_RATE)
        self._block = max(1, round(_BLOCK_SECONDS / self._interval))
        self._leases = leases
        # When each begins, and until when it may be taken.
        self._slots: deque[tuple[float, float]] = deque()
        self._gap = 0.0
        self._lapsed = 0
        self._ahead: asyncio.Task[None] | None = None
        self._pausing: set[asyncio.Task[None]] = set()
        self._paused_until = 0.0
        self._now = now
        self._sleep = sleep
        self._turn = asyncio.Lock()

    async def slot(self) -> Slot:
        """Wait for the next slot and take it. Raises RateStoreAway, also where a pause did not reach the others."""
        return _LeasedSlot(self._now, await self._take(), self._take)

    async def _take(self) -> float:
        """Wait for the next slot; return until when it may be used."""
        async with self._turn:
            while True:
                self._hear_of_pauses()
                begins_at, ends_at = await self._next()
                if (wait := begins_at - self._now()) > 0:
                    await self._sleep(wait)
                self._slots.popleft()
                now = self._now()
                if now <= ends_at and now >= self._paused_until:
                    return ends_at
                self._lapsed += now > ends_at

    async def _next(self) -> tuple[float, float]:
        """Return the next slot of this process. The block after it is leased meanwhile."""
        if self._ahead is None and len(self._slots) <= self._block // 2:
            self._ahead = asyncio.create_task(self._lease())
        if self._ahead is not None and (not self._slots or self._ahead.done()):
            ahead, self._ahead = self._ahead, None
            await ahead
        return self._slots[0]

    def pause(self, seconds: float) -> None:
        """Let no process send for `seconds` from now; this one at once, the others from their next block on."""
        self._paused_until = max(self._paused_until, self._now() + seconds)
        self._pausing.add(asyncio.create_task(self._leases.pause(seconds)))

    def _hear_of_pauses(self) -> None:
        for task in [task for task in self._pausing if task.done()]:
            self._pausing.remove(task)
            task.result()

    async def close(self) -> None:
        """Let go of the store; slots that are leased lapse."""
        tasks = self._pausing if self._ahead is None else {*self._pausing, self._ahead}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._leases.close()

    async def _lease(self) -> None:
        if self._lapsed > self._block // 2:
            self._gap = min(max(2 * self._gap, _LEAST_GAP_SECONDS), _MOST_GAP_SECONDS)
        elif not self._lapsed:
            self._gap = self._gap / 2 if self._gap > _LEAST_GAP_SECONDS else 0.0
        gap, self._lapsed = self._gap, 0
        asked_at = self._now()
        ahead = await self._leases.take(self._block * self._interval + gap)
        # The store worked it out between the question and the answer: slots begin by the latest such instant, and end
        # by the earliest.
        heard_at = self._now()
        for number in range(self._block):
            begins_in = ahead + number * self._interval
            self._slots.append((heard_at + begins_in, asked_at + begins_in + _LATE_SECONDS + gap))


def open_store(address: str) -> Redis:
    """Return a client of the store. It connects when it is first asked."""
    with _installed():
        from redis import Redis
    return Redis.from_url(address, socket_timeout=_STORE_SECONDS, socket_connect_timeout=_STORE_SECONDS)


def open_store_beside(address: str) -> AsyncRedis:
    """Return a client of the store that lets other tasks run while it waits."""
    with _installed():
        from redis.asyncio import Redis
    return Redis.from_url(address, socket_timeout=_STORE_SECONDS, socket_connect_timeout=_STORE_SECONDS)


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise SettingsError(
            "NIGHTAUDIT_RATE_STORE needs the package redis.",
            kept="Nothing was started.",
            hint='Install it: pip install "nightaudit[cluster]"',
        ) from None


class RedisLeases:
    """The schedule of one supplier in Redis. `address` may hold a password and is never logged."""

    def __init__(self, address: str, supplier: str) -> None:
        self._store = open_store_beside(address)
        self._key = f"nightaudit:pace:{supplier}"
        self._lease: AsyncScript = self._store.register_script(_LEASE)
        self._hold: AsyncScript = self._store.register_script(_PAUSE)

    async def take(self, seconds: float) -> float:
        """Lease the next free stretch of so many seconds; return in how many seconds it begins."""
        return await self._call(self._lease, seconds) / 1e6

    async def pause(self, seconds: float) -> None:
        """Let no stretch begin for so many seconds from now."""
        await self._call(self._hold, seconds)

    async def close(self) -> None:
        """Close the connection."""
        await self._store.aclose()

    async def _call(self, script: AsyncScript, seconds: float) -> float:
        from redis.exceptions import RedisError

        try:
            return float(await script(keys=[self._key], args=[round(seconds * 1e6)]))
        except (RedisError, OSError) as error:
            raise RateStoreAway.because(error) from None
