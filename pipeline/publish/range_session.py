"""A session for one range of one night: it sees what the building session sees, for its properties only."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

import duckdb
import pyarrow as pa

from pipeline.domain.property_range import PropertyRange
from pipeline.domain.tables import SEGMENT_TABLES, TABLES
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.database import OF_PROPERTIES, connect, select_files, select_kept, view_sweep_files
from pipeline.lake.enumerations import create_enumerations, refuse_lost
from pipeline.lake.sweep_files import files_of_sweep, quarantine_file
from pipeline.publish.catalogue import write_side_views
from pipeline.publish.state import ENUMERATED_OF_STATE, ENUMERATED_OF_SWEEP, FILED, prepare
from pipeline.publish.state_files import StateFile, select_state, write_state_views

# DuckDB's share of the 700 MB that a process may take; the rest spills to disk. The process that builds the published
# file has more to hold.
MEMORY_APART, MEMORY_HERE = "450MB", "400MB"


@dataclass(frozen=True, slots=True)
class RangeJob:
    """One range of one night. `file` is the published file being built, `state` the files that hold its state.

    `folder` is where files of the state go; `published` are the sweeps that views read, `as_of` what was loaded by
    then. `has_changes`: the changes of the night are in the lake already; `over_all` are the rows of what the night
    computes over all properties, by table, `values` those of the enumerations. `parts` are the ranges that a wider one
    was joined from. `summing` is the folder for what the range contributes to the summaries; None: they are computed
    without it.
    """

    lake: Lake
    file: str
    sweep_id: str
    folder: str
    state: tuple[StateFile, ...]
    published: tuple[str, ...]
    within: PropertyRange
    properties: tuple[int, ...]
    over_all: Mapping[str, pa.Table]
    values: Mapping[str, Sequence[str]]
    as_of: datetime | None = None
    has_changes: bool = False
    parts: tuple[PropertyRange, ...] = ()
    summing: str | None = None

    @property
    def is_small(self) -> bool:
        """Whether the session that builds the published file computes all of the night, without enumerations."""
        return not self.values

    def halves(self) -> list[Self]:
        """Return two jobs with half of the properties each; none for a single property."""
        if len(self.properties) < 2:
            return []
        middle = len(self.properties) // 2
        start = self.properties[middle]
        lower, upper = PropertyRange(self.within.first, start - 1), PropertyRange(start, self.within.last)
        return [
            replace(self, within=lower, properties=self.properties[:middle]),
            replace(self, within=upper, properties=self.properties[middle:]),
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
    """Restrict the state, the night's answers and the prices of users to the properties of a range."""
    write_state_views(session, job.lake, job.state, job.within, enumerated=True)
    prices = f"FROM lake.selling_price_of_all WHERE {job.within.condition}"
    session.execute(f"CREATE OR REPLACE VIEW lake.selling_price AS {prices}")
    for name in SEGMENT_TABLES:
        # A part of an answer without a property id may belong to any property.
        where = f"WHERE {job.within.condition} OR property_id IS NULL" if name in OF_PROPERTIES else ""
        session.execute(
            f"CREATE OR REPLACE VIEW memory.sweep_files.{name} AS FROM memory.all_sweep_files.{name} {where}"
        )


@contextmanager
def session_over(job: RangeJob, memory: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a session that sees what the building session sees of the properties of a range, within some memory."""
    lake = job.lake
    with connect(lake, memory) as session:
        session.execute("SET threads = 1")
        session.execute("ATTACH ':memory:' AS nightaudit")
        session.execute(f"ATTACH {literal(job.file)} AS built (READ_ONLY)")
        # A copied view is not bound again: writing all views takes as long as comparing a small range.
        session.execute("COPY FROM DATABASE built TO nightaudit (SCHEMA)")
        prepare(session)
        create_enumerations(session, job.values)
        tables = session.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = 'built'"
        ).fetchall()
        for (name,) in tables:
            session.execute(f"DROP TABLE nightaudit.{name}")
            session.execute(f"CREATE VIEW nightaudit.{name} AS FROM built.{name}")
        # Once: checking the checksums of all files of a large night takes long.
        view_sweep_files(session, lake, job.sweep_id, "memory.all_sweep_files", enumerated=ENUMERATED_OF_SWEEP)
        write_side_views(session, lake, job.as_of)
        session.execute("ALTER VIEW lake.selling_price RENAME TO selling_price_of_all")
        turn_to(session, job)
        view_sweep(session, lake, job.sweep_id, enumerated=True)
        for name, rows in job.over_all.items():
            session.register("over_all", rows)
            session.execute(f"CREATE TABLE memory.night.{name} AS FROM over_all")
            session.unregister("over_all")
        yield session


def view_sweep(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str, *, enumerated: bool = False) -> None:
    """Set the sweep of the night: the one row of `night.sweep`. A table, as almost every step of a night reads it."""
    select = _select_sweep(lake, sweep_id, enumerated=enumerated)
    session.execute(f"CREATE OR REPLACE TABLE memory.night.sweep AS {select}")


def refuse_lost_values(session: duckdb.DuckDBPyConnection, job: RangeJob) -> None:
    """Raise CorruptObject if a text that the job reads has no value in the enumerations of the session."""
    lake = job.lake
    for name in ENUMERATED_OF_STATE:
        texts, values = (select_state(lake, job.state, name, job.within, enumerated=each) for each in (False, True))
        refuse_lost(session, f"state.{name}", FILED[name], texts, values)
    quarantine = quarantine_file(lake, job.sweep_id)
    for name in ENUMERATED_OF_SWEEP:
        files = files_of_sweep(lake, TABLES[name], job.sweep_id)
        texts, values = (
            f"FROM ({select_kept(name, files, [quarantine], enumerated=each)}) WHERE {job.within.condition}"
            for each in (False, True)
        )
        refuse_lost(session, f"lake.{name}", TABLES[name], texts, values)
    texts, values = (_select_sweep(lake, job.sweep_id, enumerated=each) for each in (False, True))
    refuse_lost(session, "lake.sweep", TABLES["sweep"], texts, values)


def _select_sweep(lake: Lake, sweep_id: str, *, enumerated: bool) -> str:
    return select_files("sweep", [lake.local(lake.table_file("sweep", sweep_id, "sweep"))], enumerated=enumerated)
