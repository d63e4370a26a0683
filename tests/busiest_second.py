"""How many of some events fall into one second, wherever it begins."""

from __future__ import annotations

from collections.abc import Sequence


def most_in_any_second(times: Sequence[float]) -> int:
    """Return the most events in a second; `times` are in order, in seconds."""
    most = start = 0
    for end, at in enumerate(times):
        while at - times[start] >= 1:
            start += 1
        most = max(most, end - start + 1)
    return most
