"""How a file gets its name and loses it: built beside, recorded, renamed in one step; noted before it is removed.

A task on a machine that shares no folder with the night collects what it wrote or removed (`touching`), and sends it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from pipeline.lake.checksums import lake_of, note_gone, note_there, record, sum_of_file

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


def beside(place: Path) -> Path:
    """Return a name for a file under construction, in the same folder: one that no other process builds at."""
    return place.with_name(f".{place.stem}-{secrets.token_hex(4)}{place.suffix}")


def put_in_place(built: Path, place: Path, root: Path | None = None) -> None:
    """Rename a whole file to its place, both seen to the disk: a power cut leaves the old file or the new one.

    In a lake, which `root` names where it is only being made, its checksum is recorded. Raises OSError.
    """
    root = root or lake_of(place)
    sync(built)
    if root is not None:
        record(root, place, sum_of_file(built))
    built.replace(place)
    if root is not None:
        note_there(root, place)
        note_touched([place])
    sync(place.parent)


def write_in_place(place: Path, content: bytes, root: Path | None = None) -> Path:
    """Write a file in one step, as `put_in_place` does, and return its place. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    built = beside(place)
    try:
        built.write_bytes(content)
        put_in_place(built, place, root)
    finally:
        built.unlink(missing_ok=True)
    return place


@contextmanager
def noted_as_gone(root: Path, places: Iterable[Path]) -> Iterator[None]:
    """Note of files that they are gone, before they are removed; on a full disk, once that has made room."""
    there, is_noted = list(places), False
    note_touched(there)
    with suppress(OSError):
        note_gone(root, there)
        is_noted = True
    yield
    if not is_noted:
        with suppress(OSError):
            note_gone(root, there)


def touch(files: Iterable[Path]) -> None:
    """Note at files that from now on nothing names them: they stay for a time, counted from here."""
    for file in files:
        with suppress(FileNotFoundError):
            os.utime(file)


def sync(place: Path) -> None:
    """See a file, or the names in a folder, to the disk."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
