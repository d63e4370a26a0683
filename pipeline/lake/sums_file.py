"""One file of checksums: appended lines, each with its own checksum, after a first line with the length.

The first line states at which byte the last one ends, and is overwritten after each append, so that a file cut at the
end of a line is noticed. A process that is killed between the two leaves a first line with too low a number, which is
no damage. Files of an earlier version have no such line.
"""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

_END = "end"
_DIGITS = 16


def line(size: int, what: str, name: str) -> bytes:
    """Return the line with `what` about the file `name`."""
    said = os.fsencode(f"{size} {what} {name}")
    return b"%08x %s\n" % (zlib.crc32(said), said)


def parsed(text: bytes) -> Iterator[tuple[int, str, str] | None]:
    """Yield the arguments of `line` for each line; None for an unreadable one."""
    for each in text.splitlines():
        crc, _, said = each.partition(b" ")
        parts = said.split(b" ", 2)
        if crc != b"%08x" % zlib.crc32(said) or len(parts) != 3:
            yield None
        elif parts[1] != _END.encode():
            yield int(parts[0]), parts[1].decode(), os.fsdecode(parts[2])


def append(sums: Path, lines: bytes) -> None:
    """Append lines and update the first one. Raises OSError."""
    # In one write, so that two processes can append at once.
    descriptor = os.open(sums, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        text = lines if os.fstat(descriptor).st_size else _first(0) + lines
        if os.write(descriptor, text) < len(text):
            # The disk is full, which the next write reports.
            return
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    descriptor = os.open(sums, os.O_RDWR)
    try:
        end = _end_of(os.pread(descriptor, len(_first(0)), 0))
        if end is not None and end < size:
            os.pwrite(descriptor, _first(size), 0)
    finally:
        os.close(descriptor)


def is_cut(sums: Path) -> bool:
    """Whether a file is shorter than its first line says. Raises OSError."""
    with sums.open("rb") as file:
        end = _end_of(file.read(len(_first(0))))
        return end is not None and end > os.fstat(file.fileno()).st_size


def _first(end: int) -> bytes:
    return line(0, _END, f"{end:0{_DIGITS}}")


def _end_of(first: bytes) -> int | None:
    """Return the number in a first line; None: it is not such a line, or is unreadable."""
    crc, _, said = first.rstrip(b"\n").partition(b" ")
    kind, _, end = said.rpartition(b" ")
    is_one = kind == f"0 {_END}".encode() and crc == b"%08x" % zlib.crc32(said) and end.isdigit()
    return int(end) if is_one else None
