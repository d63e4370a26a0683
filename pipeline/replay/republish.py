"""Publishes some answers of some nights again in memory, with the same steps and views.

The findings of a rule then depend on these answers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from pipeline.domain.analysis import Analysis
from pipeline.domain.tables import SEGMENT_TABLES, TABLES, Table
from pipeline.lake import Lake
from pipeline.lake.database import as_stored, connect, rows_of
from pipeline.publish.catalogue import write_reference, write_relations, write_side_views
from pipeline.publish.flags import find
from pipeline.publish.state import (
    FILED,
    NATIVE,
    compare,
    create,
    look_over_all,
    move_on,
    note_audit,
    prepare,
    write_view_macros,
)


@dataclass(frozen=True, slots=True)
class ReplayedNight:
    """A sweep as one row of the table `sweep`, with the rows of its replayed answers by table."""

    sweep: pa.Table
    rows: Mapping[str, Sequence[pa.Table]]


@contextmanager
def replayed(
    lake: Lake, nights: Sequence[ReplayedNight], analysis: Analysis, as_of: datetime | None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session with the state and views after publishing these nights in this order.

    User files come from the lake, as of `as_of` if given.
    """
    with connect(lake) as session:
        session.execute("ATTACH ':memory:' AS nightaudit")
        prepare(session)
        for name, table in (NATIVE | {f"state.{name}": table for name, table in FILED.items()}).items():
            session.execute(create(name, table))
        write_reference(session, analysis)
        write_side_views(session, lake, as_of)
        for name, table in TABLES.items():
            session.execute(create(f"lake.{name}", table))
        for night in nights:
            _fill(session, "memory.night.sweep", TABLES["sweep"], [night.sweep])
            for name in SEGMENT_TABLES:
                _fill(session, f"memory.sweep_files.{name}", TABLES[name], night.rows.get(name, ()))
                session.execute(f"INSERT INTO lake.{name} FROM memory.sweep_files.{name}")
            session.execute("INSERT INTO lake.sweep FROM memory.night.sweep")
            note_audit(session, "none", None)
            look_over_all(session)
            compare(session)
            move_on(session)
        write_relations(session)
        write_view_macros(session)
        yield session


def findings(session: duckdb.DuckDBPyConnection, relation: str) -> dict[str, dict[str, object]]:
    """Return the findings of a rule in a replay, by flag. `relation` is its full name. Raises duckdb.Error."""
    find(session, [relation])
    if session.execute("SELECT count(*) FROM memory.night.failed_rule").fetchall() != [(0,)]:
        session.execute(f"SELECT * FROM {relation}").fetchall()  # noqa: S608 - our own names
    return {row["flag_id"]: row for row in rows_of(session.execute("SELECT * FROM memory.night.finding"))}


def _fill(session: duckdb.DuckDBPyConnection, name: str, table: Table, parts: Sequence[pa.Table]) -> None:
    session.execute(create(name, table).replace("CREATE TABLE IF NOT EXISTS", "CREATE OR REPLACE TABLE"))
    columns = as_stored(table.columns)
    for part in parts:
        session.register("replayed_part", part)
        session.execute(f"INSERT INTO {name} BY NAME SELECT {columns} FROM replayed_part")  # noqa: S608 - our own names
        session.unregister("replayed_part")
