"""The files of the state: immutable Parquet, each of one table, one night and one range of properties.

The published file names them in `state.file` and reads them through views, so a night writes only what it changed. A
state that is rebuilt from the first night gets a folder of its own, and readers of the last file keep theirs.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import duckdb

from pipeline.domain.property_range import PropertyRange
from pipeline.domain.tables import STATE_FILE
from pipeline.lake import Lake
from pipeline.lake.checksums import Recorded, note_gone, refuse_damaged
from pipeline.lake.column_sql import select_columns
from pipeline.lake.database import write_rows
from pipeline.lake.relations import relation
from pipeline.publish.state import ENUMERATED_OF_STATE, FILED, StateUpdate

_FOLDER = "state"
# How long readers that opened the published file before it was replaced can keep reading.
_GRACE_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class StateFile:
    """A row of `state.file`."""

    table_name: str
    sweep_id: str
    path: str
    rows: int
    bytes: int
    first_property_id: int
    last_property_id: int


def new_generation(lake: Lake) -> str:
    """Return the name of a folder for a state that is rebuilt from the first night."""
    root = lake.local(_FOLDER)
    known = [int(folder.name) for folder in root.glob("*") if folder.name.isdecimal()] if root.is_dir() else []
    return f"{max(known, default=0) + 1:04d}"


def generation_of(session: duckdb.DuckDBPyConnection) -> str | None:
    """Return the folder with the state of the attached file; None: it has no files."""
    row = session.execute("SELECT max(path) FROM state.file").fetchone()
    return row[0].split("/")[1] if row and row[0] else None


def night_folder(generation: str, sweep_id: str) -> str:
    """Return where the files of a night are within the lake."""
    return f"{_FOLDER}/{generation}/{sweep_id}"


def write_update(
    session: duckdb.DuckDBPyConnection,
    lake: Lake,
    update: StateUpdate,
    folder: str,
    sweep_id: str,
    within: PropertyRange,
) -> StateFile | None:
    """Write the result of an update for the night in this session to a file; None: it has no rows."""
    table = FILED[update.name]
    path = f"{folder}/{update.name}-{within.first}-{within.last}.parquet"
    select = relation("staging", update.next).sql
    rows = write_rows(session, lake.local(path), table, select, update.order, enumerated=True)
    if not rows:
        return None
    size = lake.local(path).stat().st_size
    return StateFile(update.name, sweep_id, path, rows, size, within.first, within.last)


def note_files(session: duckdb.DuckDBPyConnection, files: Iterable[StateFile], replaced: Iterable[str]) -> None:
    """Record the files of a night; earlier files of tables that it replaces are no longer part of the state."""
    for name in replaced:
        session.execute("DELETE FROM state.file WHERE table_name = ?", [name])
    rows = [astuple(file) for file in files]
    if rows:
        marks = ", ".join(["(" + ", ".join("?" * len(STATE_FILE.columns)) + ")"] * len(rows))
        session.execute(f"INSERT INTO state.file VALUES {marks}", [value for row in rows for value in row])  # noqa: S608 - marks alone


def files_of(session: duckdb.DuckDBPyConnection) -> list[StateFile]:
    """Return the files that the state of the attached file is read from."""
    found = session.execute("FROM state.file ORDER BY table_name, sweep_id, first_property_id").fetchall()
    return [StateFile(*row) for row in found]


def write_state_views(
    session: duckdb.DuckDBPyConnection,
    lake: Lake,
    files: Sequence[StateFile],
    within: PropertyRange | None = None,
    *,
    enumerated: bool = False,
    names: Iterable[str] = FILED,
) -> None:
    """Write the views of schema `state` over their files; `within` leaves out other properties.

    `enumerated`: those of ENUMERATED_OF_STATE as in `select_columns`.
    """
    for name in names:
        select = select_state(lake, files, name, within, enumerated=enumerated and name in ENUMERATED_OF_STATE)
        session.execute(f"CREATE OR REPLACE VIEW state.{name} AS {select}")


def select_state(
    lake: Lake, files: Iterable[StateFile], name: str, within: PropertyRange | None, *, enumerated: bool
) -> str:
    """Return a SELECT of a table of the state; see `write_state_views`."""
    places = [
        lake.local(file.path)
        for file in files
        if file.table_name == name and (within is None or within.meets(file.first_property_id, file.last_property_id))
    ]
    condition = f" WHERE {within.condition}" if within is not None and places else ""
    return f"{select_columns(FILED[name].stored, places, enumerated=enumerated)}{condition}"


def refuse_damaged_state(lake: Lake, files: Iterable[StateFile]) -> None:
    """Raise CorruptObject if one of the files is not what was written."""
    refuse_damaged(lake.root, [lake.local(file.path) for file in files])


def are_whole(lake: Lake, files: Iterable[StateFile]) -> bool:
    """Whether all files exist with their recorded sizes."""
    places = ((lake.local(file.path), file.bytes) for file in files)
    return all(place.is_file() and place.stat().st_size == size for place, size in places)


def forget_superseded(lake: Lake, files: Iterable[StateFile]) -> None:
    """Remove files that the state no longer reads, once no reader of an earlier night can have them open."""
    wanted = {lake.local(file.path) for file in files}
    oldest = time.time() - _GRACE_SECONDS
    for place in lake.local(_FOLDER).glob("*/*/*.parquet"):
        if place not in wanted and place.stat().st_mtime < oldest:
            lake.remove(lake.path_of(place))
    recorded = Recorded(lake.root)
    for folder in recorded.folders(lake.local(_FOLDER)):
        # A lost file that the state no longer reads is not missed either.
        note_gone(lake.root, [place for place in recorded.missing(folder) if place not in wanted])
