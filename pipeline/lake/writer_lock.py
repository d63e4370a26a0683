"""The one writer lock of a lake's folder, and the error for a write that fails."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pipeline.domain.errors import LakeBusy, LakeFull, first_line
from pipeline.domain.texts import printable


@contextmanager
def locked(root: Path, address: str, what: str) -> Iterator[None]:
    """Hold the lock of the lake in folder `root`; messages name it by `address`, and the holder by `what`.

    The system releases the lock when its process dies. Raises LakeBusy at once if another process holds it; LakeFull.
    """
    lock, note = FileLock(root / ".lock"), root / ".lock.note"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        # Its bytes may be damaged, as no checksum covers them.
        holder = printable(note.read_text(errors="replace")) if note.is_file() else "another process"
        raise busy(address, holder) from None
    except OSError as error:
        raise write_failed(root, ".lock", error) from None
    try:
        try:
            if note.exists() and not note.is_file():
                # To write to a pipe would wait for a reader.
                note.unlink()
            note.write_text(f"{what} (process {os.getpid()})")
        except OSError as error:
            raise write_failed(root, note.name, error) from None
        yield
    finally:
        lock.release()


def busy(address: str, holder: str, then: str = "") -> LakeBusy:
    """Return the error for a lake that `holder` is writing to. `then` adds to what a user can do."""
    return LakeBusy(
        f"The lake {address} is being written to by {holder}.",
        kept="Nothing was started.",
        hint=f"Wait until it ends, or use another lake (NIGHTAUDIT_LAKE). Reading is always possible.{then}",
    )


def write_failed(root: Path, path: str, error: Exception) -> LakeFull:
    """Return the error for an object below `root` that could not be written."""
    # This import is slow.
    from pipeline.process.failures import what_helps

    return LakeFull(
        f"{root / path} could not be written: {first_line(error)}",
        kept="What had landed before is untouched.",
        hint=what_helps(error),
    )
