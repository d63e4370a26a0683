"""A checksum of each file of the lake, recorded just before the file gets its name.

<lake>/checksums/<folder>/sums-<host>.txt: a line for each file that <host> wrote to <folder>: a checksum of the line,
the file's bytes, its XXH3, its name. Each machine has a file of its own, because a network's file system may mix up
what two append to one; `sums.txt` is that of an earlier version. Lines are appended and never changed. A process that
is killed between a line and its file leaves a line too many, so a file is whole if it is what any of its lines says. A
file without a line was written by an earlier version, or by another program, and says nothing.

They find damage, not a forger.
"""

from __future__ import annotations

import os
import platform
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

import xxhash

from pipeline.domain.errors import CorruptObject

FOLDER = "checksums"
_SUMS = "sums*.txt"
_PART_BYTES = 1 << 20

Sum = tuple[int, str]
"""A file's bytes, and its XXH3 in hex."""


def sum_of(data: bytes) -> Sum:
    """Return the checksum of bytes."""
    return len(data), xxhash.xxh3_128_hexdigest(data)


def sum_of_file(place: Path) -> Sum:
    """Return the checksum of a file. Raises OSError."""
    digest, size = xxhash.xxh3_128(), 0
    with place.open("rb") as file:
        while part := file.read(_PART_BYTES):
            digest.update(part)
            size += len(part)
    return size, digest.hexdigest()


def record(root: Path, place: Path, found: Sum) -> None:
    """Record what a file of a lake is about to hold. Raises OSError."""
    sums = _folder_of_sums(root, place.parent) / f"sums-{_host()}.txt"
    said = f"{found[0]} {found[1]} {place.name}"
    line = f"{zlib.crc32(said.encode()):08x} {said}\n".encode()
    try:
        _append(sums, line)
    except FileNotFoundError:
        sums.parent.mkdir(parents=True, exist_ok=True)
        _append(sums, line)


def record_built(built: Path, place: Path) -> None:
    """Record a file that was built and is about to be renamed to `place`, if that lies in a lake. Raises OSError."""
    root = next((folder for folder in place.parents if (folder / "lake.json").is_file()), None)
    if root is not None:
        record(root, place, sum_of_file(built))


class Recorded:
    """The checksums of a lake, read as they are needed, and again where some have been added since."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[Path, int] = {}
        self._sums: dict[Path, dict[str, set[Sum]]] = {}
        self._damaged: dict[Path, int] = {}

    def of(self, place: Path) -> set[Sum]:
        """Return what a file may hold; empty where nothing is recorded."""
        return self._of_folder(place.parent).get(place.name, set())

    def damaged(self) -> dict[Path, int]:
        """Return the files of checksums of which lines cannot be read, with how many; the last may be cut off."""
        found = {}
        for sums in sorted((self._root / FOLDER).rglob(_SUMS)):
            self._of_folder(self._root / sums.parent.relative_to(self._root / FOLDER))
            if lines := self._damaged.get(sums, 0) + (sums.stat().st_size != self._read[sums]):
                found[sums] = lines
        return found

    def refuse(self, place: Path, found: Sum) -> None:
        """Raise CorruptObject where a file is not what was written."""
        recorded = self.of(place)
        if recorded and found not in recorded:
            raise CorruptObject(
                f"{place} is damaged: its checksum is not the recorded one.",
                kept="Nothing was changed, and no other file is touched.",
                hint="List the damage and its repairs: nightaudit verify --deep",
            )

    def _of_folder(self, folder: Path) -> dict[str, set[Sum]]:
        known = self._sums.setdefault(folder, {})
        for sums in sorted(_folder_of_sums(self._root, folder).glob(_SUMS)):
            self._read_on(sums, known)
        return known

    def _read_on(self, sums: Path, known: dict[str, set[Sum]]) -> None:
        before = self._read.get(sums, 0)
        with sums.open("rb") as file:
            file.seek(before)
            text = file.read()
        # The last line may be under way.
        whole = text[: text.rfind(b"\n") + 1]
        self._read[sums] = before + len(whole)
        for line in whole.splitlines():
            crc, _, said = line.partition(b" ")
            parts = said.split(b" ", 2)
            if crc != b"%08x" % zlib.crc32(said) or len(parts) != 3:
                self._damaged[sums] = self._damaged.get(sums, 0) + 1
                continue
            known.setdefault(os.fsdecode(parts[2]), set()).add((int(parts[0]), parts[1].decode()))


def refuse_damaged(root: Path, places: Iterable[Path]) -> None:
    """Raise CorruptObject where one of some files is not what was written, before anything is made of it."""
    recorded = Recorded(root)
    for place in places:
        if recorded.of(place):
            recorded.refuse(place, sum_of_file(place))


def carry_over(root: Path, former: Path, place: Path) -> None:
    """Record of the files below `place` what is recorded of those that they are copies of. Raises OSError."""
    recorded = Recorded(root)
    for file in sorted(place.rglob("*")):
        for found in sorted(recorded.of(former / file.relative_to(place))):
            record(root, file, found)


def _folder_of_sums(root: Path, folder: Path) -> Path:
    return root / FOLDER / folder.relative_to(root)


def _host() -> str:
    """Return this machine's name, as it may stand in a file's."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", platform.node())


def _append(sums: Path, line: bytes) -> None:
    # One write of one line: of two processes that append at once, neither's is torn.
    descriptor = os.open(sums, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
