"""Waiting for what another thread, process or server does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def await_true(found: Callable[[], T], seconds: float = 240) -> T:
    """Wait until something holds, or is there, and return it."""
    ends_at = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < ends_at, "it did not happen in time"
        time.sleep(0.05)
    return result
