"""Which files of a worker's folder running tasks read, so that none of them is removed. A dead task reads nothing.

<folder>/<task>.lock  held by the task while it runs; the operating system frees it if the task dies
<folder>/<task>.json  the files that it reads
"""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout


@contextmanager
def in_use(folder: Path, files: Iterable[str]) -> Iterator[None]:
    """Note that files are read while the caller runs."""
    folder.mkdir(parents=True, exist_ok=True)
    noted = folder / f"{secrets.token_hex(8)}.json"
    with FileLock(noted.with_suffix(".lock")):
        try:
            noted.write_bytes(msgspec.json.encode(sorted(files)))
            yield
        finally:
            noted.unlink(missing_ok=True)
            noted.with_suffix(".lock").unlink(missing_ok=True)


def files_in_use(folder: Path) -> set[str]:
    """Return the files that running tasks read, and forget what dead ones noted."""
    used: set[str] = set()
    for noted in folder.glob("*.json"):
        lock = FileLock(noted.with_suffix(".lock"))
        try:
            with lock.acquire(timeout=0):
                noted.unlink(missing_ok=True)
                noted.with_suffix(".lock").unlink(missing_ok=True)
        except Timeout:
            try:
                used.update(msgspec.json.decode(noted.read_bytes(), type=list[str]))
            except FileNotFoundError:
                # Its task has just ended.
                continue
    return used
