"""The Redis of NIGHTAUDIT_RATE_STORE, and the schedule of send slots that it keeps."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pipeline.domain.errors import SettingsError
from pipeline.supplier.shared_pace import Terms, Used
from pipeline.supplier.store_away import told_as_ours

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis
    from redis.commands.core import AsyncScript

logger = logging.getLogger(__name__)

# Clocks may differ by this share of the time, and by this much, without having been set.
_UNSURE_SHARE = 0.001
_UNSURE_SECONDS = 0.02

_IN_TIME: dict[str, Any] = {"socket_timeout": 5, "socket_connect_timeout": 5}

# Returns the server's time, how long to wait, if it is too early for any slot, and in how many microseconds each leased
# slot begins.
# KEYS: the schedule; and the instants until which slots may be used, or at which they were, with the server that wrote
# them at the instant 0.
# ARGV: the name of the lease, how many slots, the time between two, how many per window, the length of the window, how
# long a slot lasts, how much is caught up, and how far ahead is not too early; then earlier slots, each with how long
# ago it was used, or ''.
_LEASE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count, interval, most, window = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local function written(instant) return string.format('%.0f', instant) end
-- A server that was restarted, or evicts keys, may have lost what was leased and used before: nothing of that still
-- counts after this.
local server = redis.pcall('INFO', 'server')
local run = type(server) == 'string' and string.match(server, 'run_id:(%w+)') or 'unknown'
local held, planned = now + ARGV[5] + ARGV[6] + ARGV[8], tonumber(redis.call('GET', KEYS[1]) or '0')
-- No pause is so long: the server's clock was set back.
if planned > now + 600000000 then
  planned = 0
  redis.call('DEL', KEYS[2])
end
if not redis.call('ZSCORE', KEYS[2], run) or planned == 0 then
  redis.call('SET', KEYS[1], written(math.max(held, planned)))
  redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, 0)
  redis.call('ZADD', KEYS[2], 0, run)
end
for place = 9, #ARGV, 2 do
  if ARGV[place + 1] == '' then
    redis.call('ZREM', KEYS[2], ARGV[place])
  else
    redis.call('ZADD', KEYS[2], 'XX', written(now - ARGV[place + 1]), ARGV[place])
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], 1, written(now - window))
local following = math.max(now - ARGV[7], tonumber(redis.call('GET', KEYS[1]) or '0'))
local begin = {now, 0}
for number = 1, count do
  local first = math.max(now, following)
  local before = redis.call('ZREVRANGE', KEYS[2], most - 1, most - 1, 'WITHSCORES')
  if before[2] then first = math.max(first, before[2] + window) end
  if first - now > tonumber(ARGV[8]) then
    if number == 1 then begin[2] = first - now - ARGV[8] / 2 end
    break
  end
  redis.call('ZADD', KEYS[2], written(first + ARGV[6]), ARGV[1] .. ':' .. (number - 1))
  following = following + interval
  begin[number + 2] = first - now
end
redis.call('SET', KEYS[1], written(following), 'EX', 86400)
redis.call('EXPIRE', KEYS[2], 86400)
return begin
"""
# Moves the schedule to this many microseconds from now, never backwards.
_PAUSE = """
local time = redis.call('TIME')
local wanted = time[1] * 1000000 + time[2] + ARGV[1]
local next = math.max(wanted, tonumber(redis.call('GET', KEYS[1]) or '0'))
redis.call('SET', KEYS[1], string.format('%.0f', next), 'EX', 86400)
return '0'
"""


def open_store(address: str) -> Redis:
    """Return a client of the store. It connects on first use."""
    with _installed():
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    # See `store_away.Patience`.
    return Redis.from_url(address, retry=Retry(NoBackoff(), 0), **_IN_TIME)


def open_store_beside(address: str) -> AsyncRedis:
    """Return a client of the store that lets other tasks run while it waits."""
    with _installed():
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    # Slots are counted from when they were asked for, so each try must be its own.
    return Redis.from_url(address, retry=Retry(NoBackoff(), 0), **_IN_TIME)


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise SettingsError(
            "NIGHTAUDIT_RATE_STORE needs the package redis, which is not installed.",
            hint='In the folder of nightaudit: pip install ".[cluster]"',
        ) from None


@dataclass(frozen=True, slots=True)
class _ClockReading:
    """The store's time in seconds, and the instants of this process's clock between which it was read."""

    time: float
    sent_at: float
    received_at: float

    def set_since(self, before: _ClockReading) -> float:
        """Return by how many seconds, at least, the store's clock was set between two readings; 0: it was not."""
        passed = self.time - before.time
        unsure = _UNSURE_SECONDS + _UNSURE_SHARE * abs(passed)
        forward = passed - (self.received_at - before.sent_at) - unsure
        back = passed - (self.sent_at - before.received_at) + unsure
        return max(forward, 0.0) + min(back, 0.0)


class RedisLeases:
    """The schedule of one supplier in Redis. `address` may hold a password and is never logged."""

    def __init__(self, address: str, supplier: str) -> None:
        self._reading: _ClockReading | None = None
        self._paused_until = 0.0
        self._store = open_store_beside(address)
        schedule = f"nightaudit:pace:{supplier}"
        self._keys = [schedule, f"{schedule}:slots"]
        self._lease: AsyncScript = self._store.register_script(_LEASE)
        self._hold: AsyncScript = self._store.register_script(_PAUSE)

    async def take(self, lease: str, slots: int, terms: Terms, used: Sequence[Used]) -> tuple[float, Sequence[float]]:
        """See `Leases.take`."""
        spans = map(_micros, (terms.window, terms.lasts, terms.catch_up, terms.ahead))
        said = ((each.slot, "" if each.seconds_ago is None else _micros(each.seconds_ago)) for each in used)
        before, sent_at = self._reading, time.monotonic()
        found = await self._call(
            self._lease, lease, slots, _micros(terms.interval), terms.most, *spans, *chain.from_iterable(said)
        )
        at, wait, *begin = (micros / 1e6 for micros in found)
        self._reading = _ClockReading(at, sent_at, time.monotonic())
        if before and (seconds := self._reading.set_since(before)):
            await self._forget(seconds)
            return 0.0, []
        return wait, begin

    async def pause(self, seconds: float) -> None:
        """Let no slot begin for `seconds` from now."""
        self._paused_until = max(self._paused_until, time.monotonic() + seconds)
        await self._call(self._hold, _micros(seconds))

    async def _forget(self, seconds: float) -> None:
        """Forget what was leased and used by a clock that was set: the next lease then holds back all others.

        If it was set back, the schedule lies in the future. Otherwise it stays, as another process may have paused it.
        """
        logger.warning(
            "The clock of the Redis server of NIGHTAUDIT_RATE_STORE was changed by %+.1f s. Requests wait about two "
            "seconds, so that the rate is kept.",
            seconds,
        )
        with told_as_ours():
            await self._store.delete(*self._keys[seconds > 0 :])
        if (left := self._paused_until - time.monotonic()) > 0:
            await self.pause(left)

    async def close(self) -> None:
        """Close the connection."""
        await self._store.aclose()

    async def _call(self, script: AsyncScript, *arguments: str | int) -> Any:  # noqa: ANN401 - as the scripts return it
        with told_as_ours():
            return await script(keys=self._keys, args=arguments)


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
