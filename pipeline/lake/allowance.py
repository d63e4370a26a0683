"""The daily cap on calls, kept in the lake so that it holds across sweeps, processes and crashes.

Calls are leased: an object `calls/<day>/<number>` stands for some calls, and creating it takes them. Two processes
cannot create the same one. Calls that a killed process had leased but not used are lost for the day.
"""

import json
import threading
from collections.abc import Callable
from datetime import datetime

from pipeline.domain.errors import CallsUsedUp, CorruptObject
from pipeline.lake.lake import Lake

# The cap is leased in at least this many parts, so that a lost lease costs little.
_LEASES_PER_DAY = 100


class DailyCalls:
    """Hands out the calls of the current UTC day, up to `cap`."""

    def __init__(self, lake: Lake, cap: int, now: Callable[[], datetime]) -> None:
        self._lake = lake
        self._cap = cap
        self._now = now
        self._lease_size = max(1, cap // _LEASES_PER_DAY)
        self._day = ""
        self._left = 0
        self._leased = 0
        self._next_lease = 0
        # Blocks of searches on several threads of a worker share it.
        self._one_at_a_time = threading.RLock()

    def take(self) -> None:
        """Count one call. Raises CallsUsedUp when the day's calls are used up."""
        with self._one_at_a_time:
            if not self.covers(1):
                raise CallsUsedUp.of_day(self._cap, self._day)
            self._left -= 1

    def count(self, calls: int) -> None:
        """Count calls that other machines have sent, even if they exceed the cap."""
        with self._one_at_a_time:
            self.covers(calls)
            self._left -= calls

    def covers(self, calls: int) -> bool:
        """Whether this many calls are left today; leases them for this process."""
        with self._one_at_a_time:
            return self._covers(calls)

    def _covers(self, calls: int) -> bool:
        day = f"{self._now():%Y-%m-%d}"
        if day != self._day:
            self._day, self._left, self._leased, self._next_lease = day, 0, 0, 0
        while self._left < calls:
            if self._leased >= self._cap:
                return False
            self._left += self._lease()
        return True

    def _lease(self) -> int:
        size = min(self._lease_size, self._cap - self._leased)
        path = f"calls/{self._day}/{self._next_lease:06d}.json"
        self._next_lease += 1
        is_ours = self._lake.put_new(path, json.dumps({"calls": size}).encode())
        # Another process's lease states its size, as the cap may have been different.
        self._leased += size if is_ours else self._calls_of(path)
        return size if is_ours else 0

    def _calls_of(self, path: str) -> int:
        calls = self._lake.get_json(path).get("calls")
        # A lease of no or fewer calls would let this day exceed its cap.
        if isinstance(calls, int) and not isinstance(calls, bool) and calls >= 1:
            return calls
        raise CorruptObject(
            f"{self._lake.local(path)} does not say how many calls were leased.",
            hint=f'Write {{"calls": N}} into it, where N is at least the calls that it may stand for, or wait for the'
            f" next day (UTC). A lease of today's cap has {self._lease_size:,}.",
            place=self._lake.local(path),
        )
