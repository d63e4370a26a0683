"""The files of a table that hold a sweep: those first loaded, the fewer that replaced them, or none once retired.

<table>/<sweep>/           files as loaded; they stay until a grace period has ended
<table>/compact-<sweep>/   the few files that replaced them for all readers
<table>/<sweep>-kept/      copies without offers in quarantine, for readers of the table's log
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pipeline.domain.errors import LakeError
from pipeline.domain.tables import OFFER, Table
from pipeline.lake.delta import committed_files, is_committed
from pipeline.lake.lake import Lake

COMPACT, KEPT = "compact-", "-kept"


def sweep_files(lake: Lake, table: Table) -> dict[str, list[Path]]:
    """Return the data files of a table by sweep: those in its folder, unless they were replaced or retired.

    Replaced files stay in their folder for present readers.
    """
    root = lake.table_root(table.name)
    folders = _names_in(root)
    found = {folder: _files_in(root / folder) for folder in folders if folder == sweep_of(folder)}
    committed: dict[str, list[Path]] = {}
    for file in committed_files(lake, table):
        committed.setdefault(sweep_of(file.parts[-2]), []).append(file)
    found |= {sweep_id: files for sweep_id, files in committed.items() if _are_compact(files)}
    for sweep_id in found.keys() - committed.keys():
        if is_committed(lake, table, retirement(sweep_id)):
            found[sweep_id] = []
    return found


def files_of_sweep(lake: Lake, table: Table, sweep_id: str) -> list[Path]:
    """Return the data files of one sweep in a table, like `sweep_files`."""
    committed = [file for file in committed_files(lake, table) if sweep_of(file.parts[-2]) == sweep_id]
    if _are_compact(committed):
        return committed
    if not committed and is_committed(lake, table, retirement(sweep_id)):
        return []
    return _files_in(lake.table_root(table.name) / sweep_id)


def all_or_each(folder: Path, files: Sequence[Path]) -> Sequence[Path]:
    """Return one pattern if all files of a folder belong to the table, which keeps views short; else each file."""
    names = {file.name for file in files if file.parent == folder}
    is_all = len(names) == len(files) and names == parquet_names(folder)
    return [folder / "*.parquet"] if files and is_all else files


def parquet_names(folder: Path) -> set[str]:
    """Return the names of all Parquet files in a folder, including those under construction."""
    return {name for name in _names_in(folder) if name.endswith(".parquet")}


def paths_below(lake: Lake, folder: Path) -> Iterator[str]:
    """Yield the paths of the files below a folder, without those under construction."""
    return (lake.path_of(place) for place in folder.rglob("*") if place.is_file() and not place.name.startswith("."))


def _files_in(folder: Path) -> list[Path]:
    # A name that starts with a dot belongs to a file under construction.
    return [folder / name for name in sorted(parquet_names(folder)) if not name.startswith(".")]


def _names_in(folder: Path) -> list[str]:
    # Only names: creating paths for a year's folders would take longer than reading them.
    try:
        with os.scandir(folder) as found:
            return [entry.name for entry in found]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _are_compact(committed: Iterable[Path]) -> bool:
    return any(file.parts[-2].startswith(COMPACT) for file in committed)


def quarantine_file(lake: Lake, sweep_id: str) -> Path:
    """Return the file of the table `reject` with the offers that the audit removed from a sweep."""
    return lake.local(lake.table_file("reject", sweep_id, "quarantine"))


def sweep_of(folder: str) -> str:
    """Return the sweep of a table's folder; empty for the log."""
    return "" if folder.startswith("_") else folder.removeprefix(COMPACT).removesuffix(KEPT)


def retirement(sweep_id: str) -> str:
    """Return the transaction that removes a sweep's observations from a table when their retention has ended."""
    return f"{sweep_id}/retired"


def refuse_retired(lake: Lake, sweep_id: str) -> None:
    """Raise LakeError if the offers of a sweep are no longer kept."""
    if is_committed(lake, OFFER, retirement(sweep_id)):
        raise LakeError(
            f"The offers of the sweep {sweep_id} are older than NIGHTAUDIT_OBSERVATION_NIGHTS and were removed.",
            kept="Its raw answers are kept, unless NIGHTAUDIT_RAW_NIGHTS is set.",
            hint="Rebuild every table from the raw answers: nightaudit rebuild",
        )
