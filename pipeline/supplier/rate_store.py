"""The Redis of NIGHTAUDIT_RATE_STORE, and the schedule of send slots that it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from pipeline.domain.errors import SettingsError, SupplierError
from pipeline.supplier.shared_pace import Terms, Used

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis
    from redis.commands.core import AsyncScript

_STORE_SECONDS = 5

# Returns how long to wait, if it is too early for any slot, then in how many microseconds each leased slot begins.
# KEYS: the schedule, and the instants until which slots may be used, or at which they were. ARGV: the name of the
# lease, how many slots, the time between two, how many per window, the length of the window, how long a slot lasts, how
# much is caught up, and how far ahead is not too early; then earlier slots, each with how long ago it was used, or ''.
_LEASE = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count, interval, most, window = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local function written(instant) return string.format('%.0f', instant) end
for place = 9, #ARGV, 2 do
  if ARGV[place + 1] == '' then
    redis.call('ZREM', KEYS[2], ARGV[place])
  else
    redis.call('ZADD', KEYS[2], 'XX', written(now - ARGV[place + 1]), ARGV[place])
  end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', written(now - window))
local following = math.max(now - ARGV[7], tonumber(redis.call('GET', KEYS[1]) or '0'))
local begin = {0}
for number = 1, count do
  local first = math.max(now, following)
  local before = redis.call('ZREVRANGE', KEYS[2], most - 1, most - 1, 'WITHSCORES')
  if before[2] then first = math.max(first, before[2] + window) end
  if first - now > tonumber(ARGV[8]) then
    if number == 1 then begin[1] = first - now - ARGV[8] / 2 end
    break
  end
  redis.call('ZADD', KEYS[2], written(first + ARGV[6]), ARGV[1] .. ':' .. (number - 1))
  following = following + interval
  begin[number + 1] = first - now
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


class RateStoreAway(SupplierError):
    """The store of the shared rate could not be reached: nothing may be sent without it."""

    @classmethod
    def because(cls, error: Exception) -> RateStoreAway:
        """Return it for an error of the store's client, whose text may hold a password."""
        return cls(
            f"The Redis server of NIGHTAUDIT_RATE_STORE could not be used ({type(error).__name__}).",
            kept="Answers that have landed are kept.",
            hint="Check NIGHTAUDIT_RATE_STORE; without it, each process limits its own rate.",
        )


def open_store(address: str) -> Redis:
    """Return a client of the store. It connects on first use."""
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
            "NIGHTAUDIT_RATE_STORE needs the package redis, which is not installed.",
            hint='Install it: pip install "nightaudit[cluster]"',
        ) from None


class RedisLeases:
    """The schedule of one supplier in Redis. `address` may hold a password and is never logged."""

    def __init__(self, address: str, supplier: str) -> None:
        self._store = open_store_beside(address)
        schedule = f"nightaudit:pace:{supplier}"
        self._keys = [schedule, f"{schedule}:slots"]
        self._lease: AsyncScript = self._store.register_script(_LEASE)
        self._hold: AsyncScript = self._store.register_script(_PAUSE)

    async def take(self, lease: str, slots: int, terms: Terms, used: Sequence[Used]) -> tuple[float, Sequence[float]]:
        """See `Leases.take`."""
        spans = map(_micros, (terms.window, terms.lasts, terms.catch_up, terms.ahead))
        said = ((each.slot, "" if each.seconds_ago is None else _micros(each.seconds_ago)) for each in used)
        found = await self._call(
            self._lease, lease, slots, _micros(terms.interval), terms.most, *spans, *chain.from_iterable(said)
        )
        wait, *begin = (micros / 1e6 for micros in found)
        return wait, begin

    async def pause(self, seconds: float) -> None:
        """Let no slot begin for `seconds` from now."""
        await self._call(self._hold, _micros(seconds))

    async def close(self) -> None:
        """Close the connection."""
        await self._store.aclose()

    async def _call(self, script: AsyncScript, *arguments: str | int) -> Any:  # noqa: ANN401 - as the scripts return it
        from redis.exceptions import RedisError

        try:
            return await script(keys=self._keys, args=arguments)
        except (RedisError, OSError) as error:
            raise RateStoreAway.because(error) from None


def _micros(seconds: float) -> int:
    return round(seconds * 1e6)
