"""Some answers of some nights, published again in memory: the same steps and views, nothing else.

What a rule finds in such a file follows from these answers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from pipeline.domain.analysis import Analysis
from pipeline.domain.tables import TABLES, Table
from pipeline.lake import Lake
from pipeline.lake.database import connect, rows_of, sql_type
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

# What a sweep's answers are rows of.
_OF_ANSWERS = ("search", "offer", "penalty", "promotion", "reject", "drift", "cell")


@dataclass(frozen=True, slots=True)
class ReplayedNight:
    """A sweep, as one row of the table `sweep`, and the rows of those of its answers that are replayed, by table."""

    sweep: pa.Table
    rows: Mapping[str, Sequence[pa.Table]]


@contextmanager
def replayed(
    lake: Lake, nights: Sequence[ReplayedNight], analysis: Analysis, as_of: datetime | None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a session over the state and the views that publishing these nights, in this order, leaves behind.

    The lake gives what users have loaded, by `as_of` if it is given.
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
            for name in _OF_ANSWERS:
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
    """Return what a rule finds in a replay, by flag. `relation` is its full name. Raises duckdb.Error."""
    find(session, [relation])
    if session.execute("SELECT count(*) FROM memory.night.failed_rule").fetchall() != [(0,)]:
        session.execute(f"SELECT * FROM {relation}").fetchall()  # noqa: S608 - our own names
    return {row["flag_id"]: row for row in rows_of(session.execute("SELECT * FROM memory.night.finding"))}


def _fill(session: duckdb.DuckDBPyConnection, name: str, table: Table, parts: Sequence[pa.Table]) -> None:
    session.execute(create(name, table).replace("CREATE TABLE IF NOT EXISTS", "CREATE OR REPLACE TABLE"))
    columns = ", ".join(f"{column.name}::{sql_type(column)} AS {column.name}" for column in table.columns)
    for part in parts:
        session.register("replayed_part", part)
        session.execute(f"INSERT INTO {name} BY NAME SELECT {columns} FROM replayed_part")  # noqa: S608 - our own names
        session.unregister("replayed_part")
