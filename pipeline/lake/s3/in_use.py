"""Which files of a worker's folder running tasks read, so that none of them is removed. A dead task reads nothing.

<folder>/<task>.lock  held by the task while it runs; the operating system frees it if the task dies
<folder>/<task>.json  the files that it reads

Both functions need a lock of the folder, or a lock that is only just being taken would pass for that of a dead task.
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from pipeline.lake.files import beside


@contextmanager
def in_use(folder: Path, files: Iterable[str], guard: FileLock) -> Iterator[None]:
    """Note that files are read while the caller runs."""
    folder.mkdir(parents=True, exist_ok=True)
    noted = folder / f"{secrets.token_hex(8)}.json"
    with ExitStack() as stack:
        with guard:
            stack.enter_context(FileLock(noted.with_suffix(".lock")))
            built = beside(noted)
            built.write_bytes(msgspec.json.encode(sorted(files)))
            built.replace(noted)
        try:
            yield
        finally:
            noted.unlink(missing_ok=True)
            noted.with_suffix(".lock").unlink(missing_ok=True)


def files_in_use(folder: Path) -> set[str] | None:
    """Return the files that running tasks read, and forget what dead ones noted; None: a note cannot be read."""
    used: set[str] = set()
    for lock_file in folder.glob("*.lock"):
        noted = lock_file.with_suffix(".json")
        try:
            with FileLock(lock_file).acquire(timeout=0):
                noted.unlink(missing_ok=True)
                lock_file.unlink(missing_ok=True)
        except Timeout:
            try:
                used.update(msgspec.json.decode(noted.read_bytes(), type=list[str]))
            except FileNotFoundError:
                # Its task has just ended.
                continue
            except msgspec.MsgspecError:
                return None
    return used
