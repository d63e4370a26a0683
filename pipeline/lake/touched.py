"""Which files of a lake a task wrote or removed: a machine that shares no folder with the night sends them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

# Files that got or lost their names in this task; None: no one asks.
_touched: ContextVar[set[Path] | None] = ContextVar("touched", default=None)


@contextmanager
def touching() -> Iterator[set[Path]]:
    """Collect the files that get or lose their names within, in this thread."""
    touched: set[Path] = set()
    token = _touched.set(touched)
    try:
        yield touched
    finally:
        _touched.reset(token)


def note_touched(places: Iterable[Path]) -> None:
    """Note of files that they are or were there, though no checksum is recorded of them."""
    touched = _touched.get()
    if touched is not None:
        touched.update(places)
