"""A session for one range of one night: it sees what the building session sees, for its properties only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

import duckdb
import pyarrow as pa

from pipeline.domain.property_range import PropertyRange
from pipeline.domain.tables import SEGMENT_TABLES
from pipeline.lake import Lake
from pipeline.lake.database import OF_PROPERTIES, connect, quoted, select_files, view_sweep_files
from pipeline.publish.catalogue import write_side_views
from pipeline.publish.state import prepare
from pipeline.publish.state_files import StateFile, write_state_views

# DuckDB's share of the 700 MB that a process may take; the rest spills to disk.
_RANGE_MEMORY = "450MB"


@dataclass(frozen=True, slots=True)
class RangeJob:
    """One range of one night. `file` is the published file being built, `state` the files that hold its state.

    `folder` is where files of the state go; `published` are the sweeps that views read, `as_of` what was loaded by
    then. `has_changes`: the changes of the night are in the lake already;
    `doubtful` are the rows of `night.cell_doubtful`. `parts` are the ranges that a wider one was joined from.
    `summing` is the folder for what the range contributes to the summaries; None: they are computed without it.
    """

    lake: Lake
    file: str
    sweep_id: str
    folder: str
    state: tuple[StateFile, ...]
    published: tuple[str, ...]
    within: PropertyRange
    properties: tuple[int, ...]
    doubtful: pa.Table
    as_of: datetime | None = None
    has_changes: bool = False
    parts: tuple[PropertyRange, ...] = ()
    summing: str | None = None

    def halves(self) -> list[Self]:
        """Return two jobs with half of the properties each; none for a single property."""
        inside = [number for number in self.properties if self.within.first <= number <= self.within.last]
        if len(inside) < 2:
            return []
        middle = len(inside) // 2
        lower = PropertyRange(self.within.first, inside[middle] - 1)
        upper = PropertyRange(inside[middle], self.within.last)
        return [
            replace(self, within=lower, properties=tuple(inside[:middle])),
            replace(self, within=upper, properties=tuple(inside[middle:])),
        ]


def joined(jobs: Sequence[RangeJob]) -> RangeJob:
    """Return one job over the ranges of several, which follow one another."""
    if len(jobs) == 1:
        return jobs[0]
    return replace(
        jobs[0],
        within=PropertyRange(jobs[0].within.first, jobs[-1].within.last),
        properties=tuple(number for job in jobs for number in job.properties),
        parts=tuple(job.within for job in jobs),
    )


def turn_to(session: duckdb.DuckDBPyConnection, job: RangeJob) -> None:
    """Restrict the state and the night's answers to the properties of a range."""
    write_state_views(session, job.lake, job.state, job.within)
    for name in SEGMENT_TABLES:
        # A part of an answer without a property id may belong to any property.
        where = f"WHERE {job.within.condition} OR property_id IS NULL" if name in OF_PROPERTIES else ""
        session.execute(
            f"CREATE OR REPLACE VIEW memory.sweep_files.{name} AS FROM memory.all_sweep_files.{name} {where}"
        )


@contextmanager
def session_over(job: RangeJob) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a session that sees what the building session sees, without the properties of other ranges."""
    lake = job.lake
    with connect(lake, _RANGE_MEMORY) as session:
        session.execute("SET threads = 1")
        session.execute("ATTACH ':memory:' AS nightaudit")
        session.execute(f"ATTACH {quoted(job.file)} AS built (READ_ONLY)")
        # A copied view is not bound again: writing all views takes as long as comparing a small range.
        session.execute("COPY FROM DATABASE built TO nightaudit (SCHEMA)")
        prepare(session)
        tables = session.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = 'built'"
        ).fetchall()
        for (name,) in tables:
            session.execute(f"DROP TABLE nightaudit.{name}")
            session.execute(f"CREATE VIEW nightaudit.{name} AS FROM built.{name}")
        # Once: checking the checksums of all files of a large night takes long.
        view_sweep_files(session, lake, job.sweep_id, "memory.all_sweep_files")
        turn_to(session, job)
        view_sweep(session, lake, job.sweep_id)
        session.register("doubtful", job.doubtful)
        session.execute("CREATE TABLE memory.night.cell_doubtful AS FROM doubtful")
        session.unregister("doubtful")
        write_side_views(session, lake, job.as_of)
        yield session


def view_sweep(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str) -> None:
    """Set the sweep of the night: the one row of `night.sweep`. A table, as almost every step of a night reads it."""
    sweep_file = lake.local(lake.table_file("sweep", sweep_id, "sweep"))
    session.execute(f"CREATE OR REPLACE TABLE memory.night.sweep AS {select_files('sweep', [sweep_file])}")
