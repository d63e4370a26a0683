"""Copy what a lake's published file reads to another folder: from a mounted share to a laptop, for example.

Files that the published file's views read never change once written, so existing ones are not copied again. The
published file comes last, with its views pointed to the new folder: until then the folder is unchanged for readers.
Files come from a `Source`: a lake in a folder, or one on S3.
"""

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Protocol

from pipeline.domain.errors import CorruptObject, InputError, LakeError
from pipeline.lake import Lake, beside, building, put_in_place, write_in_place
from pipeline.lake.checksums import Recorded, Sum, sum_of_file
from pipeline.lake.files import noted_as_gone, remove_left_over
from pipeline.lake.layout import PUBLISHED
from pipeline.lake.mark import MARK
from pipeline.lake.published_paths import paths_read_by, read_from_here
from pipeline.lake.pulled import NOTE, pulled_from
from pipeline.lake.s3.commit_log import CommitLog, Listing
from pipeline.lake.s3.object_store import Store


class Source(Protocol):
    """A lake that can be pulled from. Paths are those within the lake."""

    name: str

    def sizes(self, pattern: str) -> Mapping[str, int]:
        """Return the sizes in bytes of the files that match a path, or a pattern in its last two parts."""

    def fetch(self, path: str, place: Path) -> None:
        """Copy a file. Raises FileNotFoundError if it is gone."""

    def recorded(self, path: str) -> set[Sum]:
        """Return the recorded checksums of a file; empty if there are none."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """The published file in its new folder, and how many files were copied, kept and removed."""

    file: Path
    copied: int
    copied_bytes: int
    kept: int
    removed: int


class LakeInStore:
    """A lake on S3, as of the version that it has when this is made. Each object is verified by its SHA-256."""

    def __init__(self, address: str) -> None:
        self._store = Store(address)
        self._files = CommitLog(self._store).read(Listing()).files
        self.name = self._store.address

    def sizes(self, pattern: str) -> Mapping[str, int]:
        """Return the sizes in bytes of the files that match a path, or a pattern in its last two parts."""
        wanted = pattern.split("/")

        def matches(path: str) -> bool:
            parts = path.split("/")
            return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))

        return {path: size for path, (_, size) in self._files.items() if matches(path)}

    def fetch(self, path: str, place: Path) -> None:
        """Copy a file. Raises FileNotFoundError if it is gone, and CorruptObject."""
        if path not in self._files:
            raise FileNotFoundError(path)
        self._store.fetch(*self._files[path], place)

    def recorded(self, path: str) -> set[Sum]:  # noqa: ARG002 - they are verified as they are fetched
        """Return no checksums."""
        return set()


class LakeFolder:
    """A lake in a local or mounted folder."""

    def __init__(self, lake: Lake) -> None:
        self._root = lake.root
        self._recorded = Recorded(lake.root)
        self.name = str(lake.root)

    def sizes(self, pattern: str) -> Mapping[str, int]:
        """Return the sizes in bytes of the files that match a path, or a pattern in its last two parts."""
        return {
            place.relative_to(self._root).as_posix(): place.stat().st_size
            for place in self._root.glob(pattern)
            if not place.name.startswith(".")
        }

    def fetch(self, path: str, place: Path) -> None:
        """Copy a file. Raises FileNotFoundError if it is gone, and CorruptObject if it is none."""
        try:
            shutil.copyfile(self._root / path, place)
        except (shutil.SpecialFileError, IsADirectoryError):
            raise _damaged(self, path) from None

    def recorded(self, path: str) -> set[Sum]:
        """Return the recorded checksums of a file; empty if there are none."""
        return self._recorded.of(self._root / path)


def pull(source: Source, folder: Path) -> Pulled:
    """Copy files of the published file that are not there yet, then the published file itself.

    Files of the previous published file stay until the next pull, for those who have it open. Raises InputError if
    nothing is published or the folder holds something else; CorruptObject if a file is damaged in transfer.
    """
    folder = folder.absolute()
    _refuse_other(source, folder)
    file = folder / PUBLISHED
    if not source.sizes(PUBLISHED):
        raise _not_published(source)
    try:
        # First the note: a folder that a killed pull has left must be one that the next pull may fill.
        write_in_place(folder / NOTE, json.dumps({"from": source.name}).encode(), folder)
        file.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise _no_folder(folder, error) from None
    for place in (file, folder / NOTE, folder / MARK):
        remove_left_over(place)
    before = paths_read_by(file) if file.exists() else set()
    arrived = beside(file)
    try:
        try:
            # If a night is published meanwhile, its file replaces the source's; this copy stays complete.
            source.fetch(PUBLISHED, arrived)
        except FileNotFoundError:
            raise _not_published(source) from None
        _refuse_damaged(source, PUBLISHED, arrived)
        # It marks the folder as a lake, so that the commands find the published file.
        with building(folder / MARK, folder) as mark:
            source.fetch(MARK, mark)
            _refuse_damaged(source, MARK, mark)
        wanted = {
            path: size for pattern in sorted(paths_read_by(arrived)) for path, size in source.sizes(pattern).items()
        }
        missing = [
            path
            for path, size in wanted.items()
            if not (folder / path).exists() or (folder / path).stat().st_size != size
        ]
        for path in missing:
            _fetch(source, path, folder / path)
        read_from_here(arrived, folder)
        put_in_place(arrived, file)
    finally:
        for left_over in file.parent.glob(f"{arrived.name}*"):
            left_over.unlink()
    kept_for_readers = {path for pattern in before for path in LakeFolder(Lake(str(folder))).sizes(pattern)}
    removed = _remove_others(folder, wanted.keys() | kept_for_readers)
    return Pulled(file, len(missing), sum(wanted[path] for path in missing), len(wanted) - len(missing), removed)


def _refuse_other(source: Source, folder: Path) -> None:
    """Raise InputError if a folder holds something that was not pulled from this source."""
    try:
        # A pull that was killed at once has left no more than its note under construction.
        if not folder.exists() or all(fnmatchcase(each.name, f".{Path(NOTE).stem}-*") for each in folder.iterdir()):
            return
    except OSError as error:
        raise _no_folder(folder, error) from None
    held = pulled_from(folder)
    if held is None:
        raise InputError(
            f"{folder} is not empty, and it was not filled by `nightaudit pull`.",
            kept="It is unchanged.",
            hint="Choose an empty folder.",
        )
    if held != source.name:
        raise InputError(
            f"{folder} was pulled from {held}, not from {source.name}.",
            kept="It is unchanged.",
            hint="Name another folder, or the lake that it was pulled from.",
        )


def _no_folder(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"{folder} is not a folder that can be written to: {error.strerror}.",
        kept="Nothing was copied.",
        hint="Name an empty folder, or one that does not exist yet.",
    )


def _not_published(source: Source) -> InputError:
    return InputError(
        f"Nothing is published in {source.name}.", hint="Correct the name, or run a night there: nightaudit nightly"
    )


def _fetch(source: Source, path: str, place: Path) -> None:
    with building(place) as built:
        try:
            source.fetch(path, built)
        except FileNotFoundError:
            raise LakeError(
                f"{path} was removed from the lake while it was being pulled.",
                kept="What was pulled earlier is unchanged.",
                hint="Pull again.",
            ) from None
        _refuse_damaged(source, path, built)


def _refuse_damaged(source: Source, path: str, arrived: Path) -> None:
    recorded = source.recorded(path)
    if recorded and sum_of_file(arrived) not in recorded:
        raise _damaged(source, path)


def _damaged(source: Source, path: str) -> CorruptObject:
    return CorruptObject(
        f"{path} is damaged in {source.name}, or was damaged while copying.",
        kept="What was pulled earlier is unchanged.",
        hint="Pull again. If it fails again, check the source lake: nightaudit verify --deep",
    )


def _remove_others(folder: Path, wanted: Iterable[str]) -> int:
    """Remove files that neither the published file nor the previous one reads; return how many."""
    named = set(wanted)
    removed = 0
    for top in {PurePosixPath(path).parts[0] for path in named}:
        for place in sorted((folder / top).rglob("*.parquet")):
            if place.relative_to(folder).as_posix() not in named:
                with noted_as_gone(folder, [place]):
                    place.unlink()
                removed += 1
    return removed
