"""Which files of a table hold a sweep: those that it was loaded as, fewer in their place, or none any more.

<table>/<sweep>/           as they were loaded; they stay until a grace period has ended
<table>/compact-<sweep>/   few files in their place, which all read from then on
<table>/<sweep>-kept/      copies without offers in quarantine, for those who read the table by its log
"""

from __future__ import annotations

from pathlib import Path

from pipeline.domain.errors import LakeError
from pipeline.domain.tables import OFFER, Table
from pipeline.lake.delta import committed_files, is_committed
from pipeline.lake.objects import Lake

COMPACT, KEPT = "compact-", "-kept"


def sweep_files(lake: Lake, table: Table) -> dict[str, list[Path]]:
    """Return the data files of a table by sweep: those in its folder, unless others took their place, or none are kept.

    Files that were replaced stay in their folder for those who read them by now.
    """
    root = lake.table_root(table.name)
    folders = [folder for folder in (root.iterdir() if root.is_dir() else ()) if folder.name == sweep_of(folder.name)]
    # Under a name with a dot a file is being built.
    found = {folder.name: sorted(folder.glob("[!.]*.parquet")) for folder in folders}
    committed: dict[str, list[Path]] = {}
    for file in committed_files(lake, table):
        committed.setdefault(sweep_of(file.parent.name), []).append(file)
    found |= {
        sweep_id: files
        for sweep_id, files in committed.items()
        if any(file.parent.name.startswith(COMPACT) for file in files)
    }
    for sweep_id in found.keys() - committed.keys():
        if is_committed(lake, table, retirement(sweep_id)):
            found[sweep_id] = []
    return found


def sweep_of(folder: str) -> str:
    """Return the sweep that a folder of a table is of; empty for the log."""
    return "" if folder.startswith("_") else folder.removeprefix(COMPACT).removesuffix(KEPT)


def retirement(sweep_id: str) -> str:
    """Return the transaction that takes the observations of a sweep out of a table when their retention has ended."""
    return f"{sweep_id}/retired"


def refuse_retired(lake: Lake, sweep_id: str) -> None:
    """Raise LakeError where the offers of a sweep are not kept any more: nothing can be made of them."""
    if is_committed(lake, OFFER, retirement(sweep_id)):
        raise LakeError(
            f"The offers of the sweep {sweep_id} are older than NIGHTAUDIT_OBSERVATION_NIGHTS and were removed.",
            kept="Its raw answers are kept, unless NIGHTAUDIT_RAW_NIGHTS is set.",
            hint="Build every table again from the raw answers: nightaudit rebuild",
        )
