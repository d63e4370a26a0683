"""Content kept as changes: what single answers say about properties and rooms, compared with what is known.

A loaded sweep carries all content that was answered. When it is published, what has changed is appended to the content
tables and the rest is dropped: a description is stored when it is new, not every night.
"""

from contextlib import suppress

import duckdb

from pipeline.domain.tables import CONTENT_STATES, CONTENT_TABLES, WORKING_TABLES, Table
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.database import select_files, write_rows
from pipeline.lake.delta import commit_files, is_committed
from pipeline.lake.relations import relation


def add_content(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str) -> None:
    """Append a sweep's content changes to the lake, once, and update the state.

    The changes of a sweep that was published before are in the lake already, and are applied to the state unchanged.
    """
    has_files = _view_working_files(session, lake, sweep_id)
    if has_files:
        observed = relation("staging", "cell_observed").sql
        session.execute(f"CREATE OR REPLACE TABLE memory.night.cell_observed AS {observed}")
    for table, state in zip(CONTENT_TABLES, CONTENT_STATES, strict=True):
        if is_committed(lake, table, sweep_id):
            changes = select_files(table.name, [lake.local(_path(lake, table, sweep_id))])
        elif has_files:
            changes = relation("staging", f"{table.name}_change").sql
        else:
            continue
        session.execute(f"CREATE OR REPLACE TABLE memory.night.content AS {changes}")
        _commit(session, lake, table, sweep_id)
        _move_on(session, state)
        session.execute("DROP TABLE memory.night.content")
    session.execute("DROP TABLE IF EXISTS memory.night.cell_observed")


def forget_working_files(lake: Lake, sweep_id: str) -> None:
    """Drop the content of a published sweep beyond its changes. A rebuild recomputes it from raw.

    These two folders are not Delta tables, so they go with their last files.
    """
    for name in WORKING_TABLES:
        lake.remove_folder(f"{lake.tables_folder}/{name}/{sweep_id}")
        with suppress(OSError):
            lake.table_root(name).rmdir()


def _view_working_files(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str) -> bool:
    found = False
    for name, table in WORKING_TABLES.items():
        files = sorted((lake.table_root(name) / sweep_id).glob("*.parquet"))
        found = found or bool(files)
        session.register("working", table.schema.empty_table())
        paths = ", ".join(literal(str(file)) for file in files)
        source = f"read_parquet([{paths}])" if files else "working"
        session.execute(f"CREATE OR REPLACE TABLE memory.sweep_files.{name} AS SELECT * FROM {source}")  # noqa: S608 - our own names; paths are quoted
        session.unregister("working")
    return found


def _commit(session: duckdb.DuckDBPyConnection, lake: Lake, table: Table, sweep_id: str) -> None:
    if is_committed(lake, table, sweep_id):
        return
    # There is seldom any, and an empty folder would be left in the table.
    if session.execute("SELECT count(*) FROM memory.night.content").fetchall() == [(0,)]:
        return
    path = _path(lake, table, sweep_id)
    write_rows(session, lake.local(path), table, "FROM memory.night.content", ", ".join(table.key[1:]))
    commit_files(lake, table, {sweep_id: [path]})


def _move_on(session: duckdb.DuckDBPyConnection, state: Table) -> None:
    same = " AND ".join(f"known.{name} IS NOT DISTINCT FROM changed.{name}" for name in state.key)
    session.execute(f"DELETE FROM state.{state.name} AS known USING memory.night.content AS changed WHERE {same}")  # noqa: S608 - our own names
    order = ", ".join(state.key)
    session.execute(f"INSERT INTO state.{state.name} BY NAME SELECT * FROM memory.night.content ORDER BY {order}")  # noqa: S608 - our own names


def _path(lake: Lake, table: Table, sweep_id: str) -> str:
    return lake.table_file(table.name, sweep_id, "changes")
