"""When searches arrived: how many in the busiest second, wherever it begins, and in what time altogether."""

from __future__ import annotations

from collections import deque


class Arrivals:
    """Searches from the first to the latest, refused ones too. Times are of a clock that never goes back."""

    def __init__(self) -> None:
        self._in_a_second: deque[float] = deque()
        self._first = 0.0
        self._searches = self._busiest = 0

    def note(self, now: float) -> None:
        """Count a search that has just arrived."""
        latest = self._in_a_second
        if not self._searches:
            self._first = now
        self._searches += 1
        latest.append(now)
        while now - latest[0] >= 1:
            latest.popleft()
        self._busiest = max(self._busiest, len(latest))

    def as_form(self) -> dict[str, float]:
        """Return what `GET /sandbox/arrivals` says; `seconds` lie between the first search and the latest."""
        latest = self._in_a_second[-1] if self._in_a_second else self._first
        return {"searches": self._searches, "seconds": latest - self._first, "busiest_second": self._busiest}
