"""The last published file: which nights it holds, and whether the next night can be built on it."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from pipeline.domain.errors import CorruptObject, first_line
from pipeline.domain.tables import Table
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import attached, rows_of
from pipeline.publish.state import FILED, NATIVE
from pipeline.publish.state_files import are_whole, files_of, forget_superseded, refuse_damaged_state

logger = logging.getLogger(__name__)


def sweeps_of(lake: Lake) -> list[str]:
    """Return the sweeps that the published file holds; none if there is no file or it must be rebuilt."""
    file = lake.published_file
    if not file.exists():
        return []
    try:
        refuse_damaged(lake.root, [file])
        return _sweeps_held(lake, file)
    except CorruptObject as error:
        logger.warning("%s It is rebuilt from the tables.", error.message)
    except duckdb.CatalogException:
        logger.warning("%s was written by another version and is rebuilt from the tables.", file)
    except duckdb.Error as error:
        logger.warning("%s cannot be read (%s) and is rebuilt from the tables.", file, first_line(error))
    return []


def _sweeps_held(lake: Lake, file: Path) -> list[str]:
    """Return the sweeps that a file holds. Raises CorruptObject if it, or a file that it reads, cannot be used."""
    with attached(file) as session:
        rows = session.execute("SELECT sweep_id FROM published.mart.sweep ORDER BY started_at").fetchall()
        _refuse_other_columns(session, file, NATIVE)
        session.execute("USE published")
        files = files_of(session)
        if not are_whole(lake, files):
            raise CorruptObject(f"Files that {file} reads are missing or damaged.")
        _refuse_other_columns(session, file, {f"state.{name}": table for name, table in FILED.items()})
    refuse_damaged_state(lake, files)
    return [row[0] for row in rows]


def _refuse_other_columns(session: duckdb.DuckDBPyConnection, file: Path, tables: Mapping[str, Table]) -> None:
    for name, table in tables.items():
        found = session.execute(f"DESCRIBE published.{name}").fetchall()
        if [column[0] for column in found] != [column.name for column in table.stored]:
            raise CorruptObject(f"{file} was written by another version.")


def is_readable(file: Path) -> bool:
    """Whether everything that the published file carries from night to night can be read."""
    try:
        with attached(file) as session:
            for name in (*NATIVE, *(f"state.{table}" for table in FILED)):
                session.execute(f"SELECT max(COLUMNS(*)) FROM published.{name}").fetchall()  # noqa: S608 - our own names
    except duckdb.Error:
        return False
    return True


def forget_unread(lake: Lake, file: Path) -> None:
    """Remove files of the state that the published file no longer reads; see `forget_superseded`."""
    with attached(file) as session:
        session.execute("USE published")
        forget_superseded(lake, files_of(session))


def is_superseded(lake: Lake, path: str) -> bool:
    """Whether the published file can be read and does without that file of the state."""
    try:
        with attached(lake.published_file) as session:
            session.execute("USE published")
            return path not in {file.path for file in files_of(session)}
    except duckdb.Error:
        return False


def sweep_row(file: Path, sweep_id: str) -> dict[str, Any]:
    """Return the row of `mart.sweep` of a published sweep."""
    with attached(file) as session:
        return rows_of(session.execute("SELECT * FROM published.mart.sweep WHERE sweep_id = ?", [sweep_id]))[0]
