"""A checksum of each file of the lake, recorded just before the file gets its name.

<lake>/checksums/<folder>/sums-<host>.txt has a line for each file that <host> wrote to <folder>: a checksum of the
line, the file's size, its XXH3, its name. Each machine has its own file, as a network file system may mix up appends of
two machines; `sums.txt` comes from an earlier version. Lines are appended and never changed. A process that is killed
between a line and its file leaves an extra line, so a file is intact if any of its lines matches. A file without a line
was written by an earlier version or another program, and is not checked. See `sums_file`.

After a file is written, a line records that it exists; before it is removed, another that it may be gone. So a missing
file differs from one that a killed process never wrote, or that the lake has removed.

Checksums find damage, not forgery.
"""

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
# For files of this machine's copy of a lake on S3 that differ from the store; it is not uploaded.
LOCAL_SUMS = "sums_copy.txt"
_PART_BYTES = 1 << 20
# In place of an XXH3: other events of a file.
_THERE, _GONE, _BEGUN = "there", "gone", "begun"

Sum = tuple[int, str]
"""A file's bytes, and its XXH3 in hex."""


def sum_of(data: bytes) -> Sum:
    """Return the checksum of bytes."""
    return len(data), xxhash.xxh3_128_hexdigest(data)


def sum_of_file(place: Path) -> Sum:
    """Return the checksum of a file. Raises OSError."""
    if place.exists() and not place.is_file():  # A pipe would never end.
        raise OSError(errno.EINVAL, "not a file", str(place))
    digest, size = xxhash.xxh3_128(), 0
    with place.open("rb") as file:
        while part := file.read(_PART_BYTES):
            digest.update(part)
            size += len(part)
    return size, digest.hexdigest()


def record(root: Path, place: Path, found: Sum, sums: str = "") -> None:
    """Record the bytes that a file is about to have, in this machine's file of sums or another. Raises OSError."""
    _append_to(root, place.parent, line(*found, place.name), sums)


def note_there(root: Path, place: Path) -> None:
    """Record that a file exists now, so that its loss is noticed from here on. Raises OSError."""
    _append_to(root, place.parent, line(0, _THERE, place.name))


def note_begun(root: Path, place: Path) -> None:
    """Record that a file may appear, or be replaced, whose bytes are not known yet. Raises OSError."""
    _append_to(root, place.parent, line(0, _BEGUN, place.name))


def note_gone(root: Path, places: Iterable[Path]) -> None:
    """Record that files are about to be removed, so that they do not count as missing. Raises OSError."""
    by_folder: dict[Path, list[str]] = {}
    for place in places:
        by_folder.setdefault(place.parent, []).append(place.name)
    for folder, names in by_folder.items():
        _append_to(root, folder, b"".join(line(0, _GONE, name) for name in names))


def record_as_they_are(root: Path, places: Iterable[Path]) -> None:
    """Record files whose checksums are lost, with their present bytes. Raises OSError."""
    for place in places:
        record(root, place, sum_of_file(place))
        note_there(root, place)


class Recorded:
    """The checksums of a lake, read when needed, with later additions."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._read: dict[Path, int] = {}
        self._sums: dict[Path, dict[str, set[Sum]]] = {}
        # By folder, each with its file of sums: a file that any of them records as removed is not missing.
        self._there: dict[Path, set[tuple[str, Path]]] = {}
        self._gone: dict[Path, set[tuple[str, Path]]] = {}
        self._damaged: dict[Path, int] = {}

    def of(self, place: Path) -> set[Sum]:
        """Return the recorded checksums of a file; empty: there are none."""
        return self._of_folder(place.parent).get(place.name, set())

    def names(self, folder: Path) -> set[str]:
        """Return the files of a folder that have a record."""
        return set(self._of_folder(folder))

    def there(self, folder: Path) -> set[str]:
        """Return the files that must be in a folder: they were written, and not removed since."""
        self._of_folder(folder)
        gone = {name for name, _ in self._gone.get(folder, ())}
        return {name for name, _ in self._there.get(folder, ())} - gone

    def missing(self, folder: Path) -> list[Path]:
        """Return the files that must be in a folder and are not, in order."""
        try:
            # A folder or a pipe of that name does not count.
            with os.scandir(folder) as found:
                held = {entry.name for entry in found if entry.is_file(follow_symlinks=False)}
        except OSError as error:
            # It is a file, gone, a link that leads nowhere, or another process has just made it.
            if not isinstance(error, FileNotFoundError) and folder.is_dir():
                raise
            held = set()
        # Files that another process has written meanwhile are not missing.
        return [folder / name for name in sorted(self.there(folder) - held) if not (folder / name).is_file()]

    def folders(self, below: Path) -> list[Path]:
        """Return a folder and those below it that have a record."""
        sums = _folder_of_sums(self._root, below).rglob(_SUMS)
        return sorted({self._root / file.parent.relative_to(self._root / FOLDER) for file in sums})

    def damaged(self) -> dict[Path, str]:
        """Return the damaged checksum files, and whether lines cannot be read or are gone."""
        found = {}
        for sums in sorted(file for file in (self._root / FOLDER).rglob(_SUMS) if file.is_file()):
            self._of_folder(self._root / sums.parent.relative_to(self._root / FOLDER))
            if lines := self._damaged.get(sums, 0) + (sums.stat().st_size != self._read[sums]):
                found[sums] = f"{lines} of its lines cannot be read"
            elif is_cut(sums):
                found[sums] = "its last lines are gone"
        return found

    def refuse(self, place: Path, found: Sum | None) -> None:
        """Raise CorruptObject if a file is not what was written; None: it cannot be read."""
        recorded = self.of(place)
        if recorded and found not in recorded:
            why = "its checksum is not the recorded one" if found else "it is not a file, or the disk cannot read it"
            raise CorruptObject(
                f"{place} is damaged: {why}.",
                kept="Nothing was changed, and no other file is touched.",
                hint="List the damage and its repairs: nightaudit verify --deep",
                place=place,
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
            # If it is shorter than before, its folder was removed and created again.
            before = before if before <= os.fstat(file.fileno()).st_size else 0
            file.seek(before)
            text = file.read()
        # The last line may be incomplete.
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
            elif what == _BEGUN:
                found.clear()
            else:
                found.add((size, what))


def refuse_damaged(root: Path, places: Iterable[Path]) -> None:
    """Raise CorruptObject if one of some files is not what was written."""
    recorded = Recorded(root)
    for place in places:
        if recorded.of(place):
            recorded.refuse(place, _read_sum(place))


def damaged_of(root: Path, places: Iterable[Path]) -> list[Path]:
    """Return those of some files that are not what was written. Raises OSError."""
    recorded = Recorded(root)
    return [place for place in places if recorded.of(place) and _read_sum(place) not in recorded.of(place)]


def _read_sum(place: Path) -> Sum | None:
    """Return the checksum of a file; None if its place holds none, or the disk cannot read it."""
    try:
        return sum_of_file(place)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EIO}:
            raise
        return None


def carry_over(root: Path, former: Path, place: Path) -> None:
    """Record the files below `place` like those of `former` that they are copies of. Raises OSError.

    Missing files stay missing.
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
    host = re.sub(r"[^A-Za-z0-9.-]", "_", platform.node())
    sums = _folder_of_sums(root, folder) / (name or f"sums-{host}.txt")
    if sums.exists() and not sums.is_file():  # A pipe would be waited for.
        raise CorruptObject(f"{sums} is not a file.", kept="What was written is kept.", hint="Remove it.")
    try:
        append(sums, lines)
    except FileNotFoundError:
        sums.parent.mkdir(parents=True, exist_ok=True)
        append(sums, lines)
