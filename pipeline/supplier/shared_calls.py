"""One daily cap for several machines: calls are leased from a count in a store, by the store's UTC day.

The lake counts them too, so that an emptied store does not raise the cap. Calls that a process has leased but not sent
when it ends, or when the day ends, are lost for the day.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from pipeline.domain.errors import CallsUsedUp
from pipeline.supplier.pacer import Allowance
from pipeline.supplier.rate_store import open_store
from pipeline.supplier.store_away import Patience, RateStoreAway, told_as_ours

if TYPE_CHECKING:
    from redis import Redis
    from redis.commands.core import Script

# The cap is leased in at least this many parts, so that a lost lease costs little.
_LEASES_PER_DAY = 100

# Returns how many calls are granted, and the seconds left of the store's day. KEYS: the count; ARGV: how many are
# wanted, and the cap.
_GRANT = """
local now = redis.call('TIME')[1]
local day = string.format('%.0f', math.floor(now / 86400))
if redis.call('HGET', KEYS[1], 'day') ~= day then
  redis.call('HSET', KEYS[1], 'day', day, 'used', 0)
end
local used = tonumber(redis.call('HGET', KEYS[1], 'used'))
local granted = math.max(0, math.min(tonumber(ARGV[1]), tonumber(ARGV[2]) - used))
redis.call('HINCRBY', KEYS[1], 'used', string.format('%.0f', granted))
redis.call('EXPIRE', KEYS[1], 172800)
return {granted, 86400 - now % 86400}
"""


class Count(Protocol):
    """The number of calls granted today for a supplier, shared by several machines."""

    def grant(self, calls: int, cap: int) -> tuple[int, float]:
        """Grant at most `calls` within the cap; return how many, and the seconds until the day ends."""


class SharedCalls:
    """Hands out the calls of the current day, up to `cap` for all machines together. `own` counts this lake's."""

    def __init__(self, cap: int, count: Count, own: Allowance, *, now: Callable[[], float] = time.monotonic) -> None:
        self._cap = cap
        self._count = count
        self.own = own
        """The calls that this lake counts."""
        self._lease_size = max(1, cap // _LEASES_PER_DAY)
        self._left = 0
        self._ends_at = 0.0
        self._now = now
        # Blocks of searches on several threads of a worker share it.
        self._one_at_a_time = threading.RLock()

    def take(self) -> None:
        """Count one call. Raises CallsUsedUp when the day's calls are used up, RateStoreAway without the store."""
        with self._one_at_a_time:
            if not self._holds(1):
                raise CallsUsedUp.of_day(self._cap, f"{datetime.now(UTC):%Y-%m-%d}")
            self.own.take()
            self._left -= 1

    def covers(self, calls: int) -> bool:
        """Whether this many calls are left today; leases them for this process."""
        with self._one_at_a_time:
            try:
                return self.own.covers(calls) and self._holds(calls)
            except RateStoreAway as away:
                if away.again_after_seconds is None:
                    raise
                # Nothing is sent before the store answers again, and then `take` decides.
                return True

    def count(self, calls: int) -> None:
        """Count calls that other machines have sent: they have leased them."""
        self.own.count(calls)

    def _holds(self, calls: int) -> bool:
        if self._now() >= self._ends_at:
            self._left = 0
        while self._left < calls:
            granted, seconds = self._count.grant(self._lease_size, self._cap)
            if granted == 0:
                return False
            ends_at = self._now() + seconds
            # A new day's lease replaces the leases of the day before.
            is_next_day = self._left > 0 and ends_at > self._ends_at + 1
            self._left = granted if is_next_day else self._left + granted
            self._ends_at = ends_at
        return True


class RedisCount:
    """The count of one supplier in Redis. `address` may hold a password and is never logged."""

    def __init__(self, address: str, supplier: str) -> None:
        self._store: Redis = open_store(address)
        self._key = f"nightaudit:calls:{supplier}"
        self._script: Script = self._store.register_script(_GRANT)
        self._patience = Patience(address)

    def grant(self, calls: int, cap: int) -> tuple[int, float]:
        """Grant at most `calls` within the cap; return how many, and the seconds until the store's day ends.

        If the answer to a grant is lost, its calls are lost for the day.
        """
        try:
            with told_as_ours():
                granted, seconds = self._script(keys=[self._key], args=[calls, cap])
        except RateStoreAway as away:
            away.again_after_seconds = self._patience.seconds(away)
            raise
        self._patience.answered()
        return int(granted), float(seconds)
