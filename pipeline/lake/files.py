"""Writing and removing files: built under another name, recorded, renamed in one step; recorded before removal.

A task on a machine that does not share the night's folder collects what it wrote or removed (`touching`), and sends it.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from pipeline.lake.checksums import FOLDER, note_gone, note_there, record, sum_of_file
from pipeline.lake.mark import MARK

# Temporary entries of a lake's folder.
PASSING = frozenset({".lock", ".lock.note", ".spill"})
# Names of files that the object store is writing.
_UNDER_CONSTRUCTION = re.compile(r".*#[0-9]+")

# So long a file under construction that nothing writes to may still belong to a process.
_GRACE_SECONDS = 3600

# Files written or removed in this task; None: they are not collected.
_touched: ContextVar[set[Path] | None] = ContextVar("touched", default=None)


@contextmanager
def touching() -> Iterator[set[Path]]:
    """Collect the files that this thread writes or removes meanwhile."""
    touched: set[Path] = set()
    token = _touched.set(touched)
    try:
        yield touched
    finally:
        _touched.reset(token)


def note_touched(places: Iterable[Path]) -> None:
    """Add files to the collection, though no checksum is recorded for them."""
    touched = _touched.get()
    if touched is not None:
        touched.update(places)


def is_finished(name: str) -> bool:
    """Whether a file of this name is a finished one: neither hidden nor under construction."""
    is_hidden = name.startswith(".") and not name.endswith(".crc")
    return not is_hidden and not _UNDER_CONSTRUCTION.fullmatch(name)


def beside(place: Path) -> Path:
    """Return a unique name in the same folder for a file under construction."""
    return place.with_name(f".{place.stem}-{secrets.token_hex(4)}{place.suffix}")


def remove_left_over(place: Path) -> None:
    """Remove what killed processes have left of `place` under construction: files and folders of DuckDB's with it.

    Whatever was written to within the last hour stays: another process may be at work on it.
    """
    name = re.compile(rf"\.{re.escape(place.stem)}-([0-9a-f]{{8}})(?:\.spill|{re.escape(place.suffix)}(?:\.\w+)?)")
    found: dict[str, list[Path]] = {}
    for each in place.parent.iterdir():
        if of := name.fullmatch(each.name):
            found.setdefault(of[1], []).append(each)
    for parts in found.values():
        with suppress(FileNotFoundError):
            if max(each.stat().st_mtime for each in parts) < time.time() - _GRACE_SECONDS:
                for each in parts:
                    shutil.rmtree(each) if each.is_dir() else each.unlink()


def is_lake(folder: Path) -> bool:
    """Whether a folder is the root of a lake, which works without lake.json until its tables are first rebuilt."""
    is_recorded = (folder / FOLDER).is_dir() and any((folder / name).is_dir() for name in ("raw", "published"))
    return is_recorded or (folder / MARK).is_file()


def put_in_place(built: Path, place: Path, root: Path | None = None) -> None:
    """Rename a complete file to its place and sync both: a power cut leaves the old file or the new one.

    In a lake its checksum is recorded; `root` names a lake that is still being created. Raises OSError.
    """
    root = root or next(filter(is_lake, place.parents), None)
    sync(built)
    if root is not None:
        record(root, place, sum_of_file(built))
    built.replace(place)
    if root is not None:
        note_there(root, place)
        note_touched([place])
    sync(place.parent)


@contextmanager
def building(place: Path, root: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path to write a file to, then put it in place as `put_in_place` does. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    built = beside(place)
    try:
        yield built
        put_in_place(built, place, root)
    finally:
        built.unlink(missing_ok=True)


def write_in_place(place: Path, content: bytes, root: Path | None = None) -> Path:
    """Write a file in one step, as `put_in_place` does, and return its place. Raises OSError."""
    with building(place, root) as built:
        built.write_bytes(content)
    return place


@contextmanager
def noted_as_gone(root: Path, places: Iterable[Path]) -> Iterator[None]:
    """Record that files are gone, before they are removed or, on a full disk, once that has made room."""
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
    """Set the times of files that nothing refers to any longer: their grace period starts now."""
    for file in files:
        with suppress(FileNotFoundError):
            os.utime(file)


def sync(place: Path) -> None:
    """Sync a file, or the names in a folder, to the disk."""
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
