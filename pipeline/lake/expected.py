"""Compares the files of a lake with those recorded: which are gone, and which have lost their checksums."""

from collections.abc import Iterator
from pathlib import Path

from pipeline.lake.checksums import FOLDER, Recorded
from pipeline.lake.files import PASSING, is_finished
from pipeline.lake.lake import Lake
from pipeline.lake.mark import MARK

# Folders in which the lake writes and records every file itself.
_OURS = ("raw", "tables", "published", "state", "quotes", "reports", "nights", "durations", "calls", MARK)


def files_of_lake(lake: Lake) -> Iterator[Path]:
    """Yield all files except those of replaced tables and those being written."""
    for top in sorted(lake.root.iterdir()) if lake.root.is_dir() else ():
        if top.name in PASSING or top.name == FOLDER or _is_replaced(lake, top):
            continue
        for place in [top] if top.is_file() else sorted(place for place in top.rglob("*") if place.is_file()):
            if is_finished(place.name):
                yield place


def not_files(lake: Lake) -> Iterator[Path]:
    """Yield what is neither a file nor a folder, as opening it may block or fail; and folders for checksum files."""
    for top in sorted(lake.root.iterdir()):
        if top.name.startswith((*_OURS, FOLDER)) and not _is_replaced(lake, top):
            for place in (top, *sorted(top.rglob("*"))):
                is_for_file = top.name == FOLDER and place.match("sums*.txt")
                is_there = place.exists() or place.is_symlink()
                if is_there and not place.is_file() and (is_for_file or not place.is_dir()):
                    yield place


def missing_files(lake: Lake, recorded: Recorded) -> Iterator[Path]:
    """Yield the files that were written, were not removed, and are missing."""
    for folder in recorded.folders(lake.root):
        if folder == lake.root or not _is_replaced(lake, lake.root / folder.relative_to(lake.root).parts[0]):
            yield from recorded.missing(folder)


def without_checksums(lake: Lake, recorded: Recorded) -> dict[Path, list[Path]]:
    """Return the files whose checksums are lost, by the folder of the checksums; none for a lake without checksums.

    A list that was cut at the end of a line has lost the checksums of its last files. If all lists are gone, the
    result has one entry.
    """
    if not lake.records_all:
        return {}
    files = [place for place in files_of_lake(lake) if place.relative_to(lake.root).parts[0].startswith(_OURS)]
    if not (lake.root / FOLDER).is_dir():
        return {lake.root / FOLDER: [*files_of_lake(lake)]}
    bare: dict[Path, list[Path]] = {}
    names: dict[Path, set[str]] = {}
    for place in files:
        folder = place.parent
        if folder not in names:
            names[folder] = recorded.names(folder)
        if place.name not in names[folder]:
            bare.setdefault(lake.root / FOLDER / folder.relative_to(lake.root), []).append(place)
    return bare


def _is_replaced(lake: Lake, top: Path) -> bool:
    return top.name.startswith("tables") and top.name != lake.tables_folder
