"""The files of a lake's copy on this machine: which object each one is, and how it looked when last seen."""

import hashlib
import logging
import os
import platform
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Self

import msgspec

from pipeline.lake.checksums import FOLDER, LOCAL_SUMS
from pipeline.lake.files import PASSING, beside, is_finished, put_in_place
from pipeline.lake.s3.commit_log import Claim, CommitLog, Listing, Object
from pipeline.lake.s3.object_store import Store
from pipeline.lake.sums_file import parsed

logger = logging.getLogger(__name__)

# Written without the writer lock, by reports or for calls, and again if they are lost; a later commit includes them.
_UNGUARDED = re.compile(rf"(?:{FOLDER}/)?(?:reports|calls)/.*|{FOLDER}/sums[^/]*")

Look = tuple[int, int]
"""Bytes of a file and its last modification: while neither changes, the file is the same."""


class Known(msgspec.Struct, frozen=True, array_like=True):
    """A known file of the copy."""

    object: Object
    look: Look | None = None
    """None: it differs from the object, which is older."""


class Index(msgspec.Struct):
    """The files of the copy when it was last in sync with the store. Written after the files, so it may lack some."""

    address: str
    id: str
    host: str
    version: int = 0
    files: dict[str, Known] = {}
    claim: Claim | None = None
    entry: str = ""
    """Id of the log's entry of this version; empty: unknown."""

    @classmethod
    def new(cls, address: str) -> Self:
        """Return the index of a copy without files."""
        return cls(address, secrets.token_hex(8), platform.node())

    def listing(self) -> Listing:
        """Return the lake's files as of the copy's version."""
        known = {path: file.object for path, file in self.files.items()}
        return Listing(self.version, known, self.claim, entry=self.entry)


def read_index(file: Path, address: str, log: CommitLog) -> Index:
    """Read a copy's index; one that is lost, of another machine, or of what the store no longer has starts empty."""
    try:
        index = msgspec.json.decode(file.read_bytes(), type=Index)
    except (OSError, msgspec.MsgspecError):
        index = None
    if index is None or (index.address, index.host) != (address, platform.node()):
        return Index.new(address)
    if not log.holds(index.version, index.entry):
        logger.warning("%s was restored from a backup. What only this machine has of it is moved aside.", address)
        return Index.new(address)
    return index


def write_index(file: Path, index: Index) -> None:
    """Write a copy's index in one step."""
    built = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    built.write_bytes(msgspec.json.encode(index))
    built.replace(file)


def is_unguarded(path: str) -> bool:
    """Whether a file may be written without holding the lake."""
    return _UNGUARDED.fullmatch(path) is not None


def looks(root: Path, folder: str = "") -> dict[str, Look]:
    """Return the looks of a lake's files, or of those directly in one of its folders."""
    return dict(_walk(root / folder, f"{folder}/") if folder else _walk(root, "", is_deep=True))


def look_of(place: Path) -> Look | None:
    """Return how a file looks now; None: it is not there."""
    try:
        stat = place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.st_size, stat.st_mtime_ns


def is_sums(path: str) -> bool:
    """Whether a file holds checksums; lines may be appended to it while it is read."""
    return path.startswith(f"{FOLDER}/")


def lined_files(root: Path, sums: Mapping[str, int]) -> set[str]:
    """Return the files that have a line in checksum files; `sums` gives how many bytes of each are read."""
    lined = set[str]()
    for path, size in sums.items():
        with (root / path).open("rb") as file:
            lines = parsed(file.read(size))
        folder = PurePosixPath(path).parent.relative_to(FOLDER)
        lined |= {(folder / each[2]).as_posix() for each in lines if each is not None}
    return lined


def is_passing(path: str) -> bool:
    """Whether a file belongs to this machine alone and is never committed."""
    return path.partition("/")[0] in PASSING or not _is_of_lake(path.rpartition("/")[2])


def name_of(place: Path) -> str:
    """Return the name of the object with a file's bytes."""
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch_file(store: Store, root: Path, path: str, it: Object) -> Look | None:
    """Fetch a file of the lake that is not committed yet; return its look. Raises OSError and CorruptObject."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    built = beside(place)
    try:
        store.fetch(*it, built)
        if is_passing(path):
            built.replace(place)
        else:
            put_in_place(built, place, root)
    finally:
        built.unlink(missing_ok=True)
    return look_of(place)


def remove_file(root: Path, path: str) -> None:
    """Remove a file, and its folders if they become empty."""
    place = root / path
    place.unlink(missing_ok=True)
    for folder in place.parents:
        if folder == root:
            break
        try:
            folder.rmdir()
        except OSError:
            break


def _walk(folder: Path, before: str, *, is_deep: bool = False) -> Iterator[tuple[str, Look]]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if not before and entry.name in PASSING:
            continue
        if entry.is_dir(follow_symlinks=False):
            if is_deep:
                yield from _walk(folder / entry.name, f"{before}{entry.name}/", is_deep=True)
        elif _is_of_lake(entry.name):
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue
            yield f"{before}{entry.name}", (stat.st_size, stat.st_mtime_ns)


def _is_of_lake(name: str) -> bool:
    return is_finished(name) and name != LOCAL_SUMS
