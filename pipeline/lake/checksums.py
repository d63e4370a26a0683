"""A checksum of each file of the lake, recorded just before the file gets its name.

<lake>/checksums/<folder>/sums-<host>.txt: a line for each file that <host> wrote to <folder>: a checksum of the line,
the file's bytes, its XXH3, its name. Each machine has a file of its own, because a network's file system may mix up
what two append to one; `sums.txt` is that of an earlier version. Lines are appended and never changed. A process that
is killed between a line and its file leaves a line too many, so a file is whole if it is what any of its lines says. A
file without a line was written by an earlier version, or by another program, and says nothing. See `sums_file`.

Once a file has its name, a line says that it is there, and before it is removed another that it may be gone. So a file
that is missing is known from one that a killed process never wrote, or that the lake has removed itself.

They find damage, not a forger.
"""

from __future__ import annotations

import errno
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

import xxhash

from pipeline.domain.errors import CorruptObject
from pipeline.lake.sums_file import append, is_cut, line, parsed

FOLDER = "checksums"
_SUMS = "sums*.txt"
# Of files that differ in this machine's copy of a lake on S3 from those in the store: it stays here.
LOCAL_SUMS = "sums_copy.txt"
_PART_BYTES = 1 << 20
# In the place of an XXH3: what is known of a file besides its bytes.
_THERE, _GONE, _BEGUN = "there", "gone", "begun"

Sum = tuple[int, str]
"""A file's bytes, and its XXH3 in hex."""


def sum_of(data: bytes) -> Sum:
    """Return the checksum of bytes."""
    return len(data), xxhash.xxh3_128_hexdigest(data)


def sum_of_file(place: Path) -> Sum:
    """Return the checksum of a file. Raises OSError."""
    if place.exists() and not place.is_file():
        # A pipe would never end.
        raise OSError(errno.EINVAL, "not a file", str(place))
    digest, size = xxhash.xxh3_128(), 0
    with place.open("rb") as file:
        while part := file.read(_PART_BYTES):
            digest.update(part)
            size += len(part)
    return size, digest.hexdigest()


def record(root: Path, place: Path, found: Sum, sums: str = "") -> None:
    """Record what a file of a lake is about to hold, in this machine's file of sums or another. Raises OSError."""
    _append_to(root, place.parent, line(*found, place.name), sums)


def note_there(root: Path, place: Path) -> None:
    """Note that a file that was recorded has its name now: it is missed from here on. Raises OSError."""
    _append_to(root, place.parent, line(0, _THERE, place.name))


def note_begun(root: Path, place: Path) -> None:
    """Note that a file may come to be there whose bytes are not known yet. Raises OSError."""
    _append_to(root, place.parent, line(0, _BEGUN, place.name))


def note_gone(root: Path, places: Iterable[Path]) -> None:
    """Note of files that they are about to be removed, so that they are not missed. Raises OSError."""
    by_folder: dict[Path, list[str]] = {}
    for place in places:
        by_folder.setdefault(place.parent, []).append(place.name)
    for folder, names in by_folder.items():
        _append_to(root, folder, b"".join(line(0, _GONE, name) for name in names))


def record_as_they_are(root: Path, places: Iterable[Path]) -> None:
    """Record files whose checksums are lost, as they are now. Raises OSError."""
    for place in places:
        record(root, place, sum_of_file(place))
        note_there(root, place)


def lake_of(place: Path) -> Path | None:
    """Return the root of the lake that a file lies in; None: it lies in none."""
    return next((folder for folder in place.parents if (folder / "lake.json").is_file()), None)


class Recorded:
    """The checksums of a lake, read as they are needed, and again where some have been added since."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[Path, int] = {}
        self._sums: dict[Path, dict[str, set[Sum]]] = {}
        # By folder, each with the file of sums that says so: a file that any of them takes for removed is not missed.
        self._there: dict[Path, set[tuple[str, Path]]] = {}
        self._gone: dict[Path, set[tuple[str, Path]]] = {}
        self._damaged: dict[Path, int] = {}

    def of(self, place: Path) -> set[Sum]:
        """Return what a file may hold; empty where nothing is recorded."""
        return self._of_folder(place.parent).get(place.name, set())

    def names(self, folder: Path) -> set[str]:
        """Return the files of a folder that have a record."""
        return set(self._of_folder(folder))

    def there(self, folder: Path) -> set[str]:
        """Return the files that must be in a folder: they got their names, and were not removed since."""
        self._of_folder(folder)
        gone = {name for name, _ in self._gone.get(folder, ())}
        return {name for name, _ in self._there.get(folder, ())} - gone

    def missing(self, folder: Path) -> list[Path]:
        """Return the files that must be in a folder and are not, in order."""
        try:
            # A name that a folder has, or a pipe, is no file that is there.
            with os.scandir(folder) as found:
                held = {entry.name for entry in found if entry.is_file()}
        except (FileNotFoundError, NotADirectoryError):
            held = set()
        # What another process has put there since is not missing.
        return [folder / name for name in sorted(self.there(folder) - held) if not (folder / name).is_file()]

    def folders(self, below: Path) -> list[Path]:
        """Return a folder and those below it that have a record."""
        sums = _folder_of_sums(self._root, below).rglob(_SUMS)
        return sorted({self._root / file.parent.relative_to(self._root / FOLDER) for file in sums})

    def damaged(self) -> dict[Path, str]:
        """Return the checksum files that are damaged, and how: some of their lines cannot be read, or are gone."""
        found = {}
        for sums in sorted(file for file in (self._root / FOLDER).rglob(_SUMS) if file.is_file()):
            self._of_folder(self._root / sums.parent.relative_to(self._root / FOLDER))
            if lines := self._damaged.get(sums, 0) + (sums.stat().st_size != self._read[sums]):
                found[sums] = f"{lines} of its lines cannot be read"
            elif is_cut(sums):
                found[sums] = "its last lines are gone"
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
        for sums in sorted(file for file in _folder_of_sums(self._root, folder).glob(_SUMS) if file.is_file()):
            self._read_on(sums, folder, known)
        return known

    def _read_on(self, sums: Path, folder: Path, known: dict[str, set[Sum]]) -> None:
        there, gone = self._there.setdefault(folder, set()), self._gone.setdefault(folder, set())
        before = self._read.get(sums, 0)
        with sums.open("rb") as file:
            # Shorter than it was: its folder was removed and made again.
            before = before if before <= os.fstat(file.fileno()).st_size else 0
            file.seek(before)
            text = file.read()
        # The last line may be under way.
        whole = text[: text.rfind(b"\n") + 1]
        self._read[sums] = before + len(whole)
        for said in parsed(whole):
            if said is None:
                self._damaged[sums] = self._damaged.get(sums, 0) + 1
                continue
            size, what, name = said
            found = known.setdefault(name, set())
            if what == _THERE:
                there.add((name, sums))
                gone.discard((name, sums))
            elif what == _GONE:
                gone.add((name, sums))
                there.discard((name, sums))
            elif what != _BEGUN:
                found.add((size, what))


def refuse_damaged(root: Path, places: Iterable[Path]) -> None:
    """Raise CorruptObject where one of some files is not what was written, before anything is made of it."""
    recorded = Recorded(root)
    for place in places:
        if recorded.of(place):
            recorded.refuse(place, sum_of_file(place))


def carry_over(root: Path, former: Path, place: Path) -> None:
    """Record of the files below `place` what is recorded of those that they are copies of. Raises OSError.

    What was missing before is missed further on.
    """
    recorded = Recorded(root)
    for folder in recorded.folders(former):
        there = recorded.there(folder)
        for name in sorted(recorded.names(folder)):
            file = place / folder.relative_to(former) / name
            if name not in there and not file.exists():
                continue
            for found in sorted(recorded.of(folder / name)):
                record(root, file, found)
            if name in there:
                note_there(root, file)


def _folder_of_sums(root: Path, folder: Path) -> Path:
    return root / FOLDER / folder.relative_to(root)


def _append_to(root: Path, folder: Path, lines: bytes, name: str = "") -> None:
    sums = _folder_of_sums(root, folder) / (name or f"sums-{_host()}.txt")
    try:
        append(sums, lines)
    except FileNotFoundError:
        sums.parent.mkdir(parents=True, exist_ok=True)
        append(sums, lines)


def _host() -> str:
    """Return this machine's name, as it may stand in a file's."""
    return re.sub(r"[^A-Za-z0-9.-]", "_", platform.node())
