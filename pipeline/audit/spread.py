"""Counts a large night's offers in ranges of properties, in parallel.

A search is never cut by a range.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import duckdb

from pipeline.audit.counts import RangeCounts, count_range
from pipeline.audit.domain_measures import view_leads
from pipeline.audit.rules import CHECKED
from pipeline.domain.codes import BOARDS, ISO_4217, MARKETS, minor_unit
from pipeline.domain.property_range import ALL, PropertyRange, cut
from pipeline.domain.servers import Workforce
from pipeline.lake import Lake
from pipeline.lake.database import OF_OFFERS, connect, select_files, view_sweep_files
from pipeline.lake.mark import MARK
from pipeline.lake.relations import macros
from pipeline.lake.sweep_files import paths_below, sweep_of
from pipeline.process.range_pool import RangePool

# Great Expectations and its libraries take another 250 MB.
_MEMORY = "400MB"
# Offers, penalties and promotions of a range. For fewer, starting processes takes longer than counting.
MOST_ROWS = 8_000_000
# Tables that are compared with those of the last published night.
_COMPARED = ("search", "offer", "drift")


@dataclass(frozen=True, slots=True)
class Spread:
    """How a large sweep is spread: over a workforce, in ranges of `most_rows`."""

    workforce: Workforce = Workforce()
    most_rows: int = MOST_ROWS


@dataclass(frozen=True, slots=True)
class AuditedNight:
    """A sweep, and the last published one that it is compared with."""

    lake: Lake
    sweep_id: str
    before: str | None


@dataclass(frozen=True, slots=True)
class AuditJob:
    """One range of an audited night. `blocks` are its properties, in groups that were searched together."""

    night: AuditedNight
    within: PropertyRange
    blocks: tuple[PropertyRange, ...]

    @property
    def sweep_id(self) -> str:
        """The sweep of the night."""
        return self.night.sweep_id

    def halves(self) -> list[Self]:
        """Return two jobs with half of the blocks each; none for a single block."""
        if len(self.blocks) < 2:
            return []
        middle = len(self.blocks) // 2
        start = self.blocks[middle].first
        lower, upper = PropertyRange(self.within.first, start - 1), PropertyRange(start, self.within.last)
        return [
            replace(self, within=lower, blocks=self.blocks[:middle]),
            replace(self, within=upper, blocks=self.blocks[middle:]),
        ]


@contextmanager
def open_night(night: AuditedNight) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session over the files of a sweep and of the last published night."""
    lake = night.lake
    with connect(lake, _MEMORY) as session:
        session.execute("CREATE SCHEMA audit")
        session.execute("CREATE SCHEMA ref")
        session.execute("CREATE SCHEMA mart")
        for macro in macros(over_views=False):
            session.execute(macro)
        view_sweep_files(session, lake, night.sweep_id, "all_sweep_files", is_before_audit=True)
        view_sweep_files(session, lake, night.before or "none", "all_before_files", tables=_COMPARED)
        sweep = lake.local(lake.table_file("sweep", night.sweep_id, "sweep"))
        session.execute(f"CREATE VIEW audit.sweep AS {select_files('sweep', [sweep])}")
        session.execute("CREATE TABLE ref.market AS SELECT unnest(?) AS market", [list(MARKETS)])
        currencies = [{"currency": code, "minor_unit": minor_unit(code)} for code in sorted(ISO_4217)]
        session.execute(
            "CREATE TABLE ref.currency AS SELECT unnest($1::STRUCT(currency VARCHAR, minor_unit DECIMAL(18, 4))[], "
            "recursive := true)",
            [currencies],
        )
        session.execute("CREATE TABLE ref.board_basis AS SELECT unnest(?) AS board_id", [list(BOARDS)])
        turn_to(session, ALL)
        view_leads(session)
        yield session


def turn_to(session: duckdb.DuckDBPyConnection, within: PropertyRange) -> None:
    """Restrict both nights' offers to the properties of a range."""
    for schema, tables in (("sweep_files", CHECKED), ("before_files", _COMPARED)):
        session.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for name in tables:
            condition = f" WHERE {within.condition}" if name in OF_OFFERS and not within.is_all else ""
            session.execute(f"CREATE OR REPLACE VIEW {schema}.{name} AS FROM all_{schema}.{name}{condition}")


def choose_ranges(session: duckdb.DuckDBPyConnection, night: AuditedNight, most_rows: int) -> list[AuditJob]:
    """Cut a night's properties into ranges of at most `most_rows` without cutting a search; none if one is enough."""
    tables = [f"sweep_files.{name}" for name in OF_OFFERS]
    counts = " + ".join(f"(SELECT count(*) FROM {name})" for name in tables)  # noqa: S608 - our own names
    if session.execute(f"SELECT {counts}").fetchall()[0][0] <= most_rows:
        return []
    rows = " UNION ALL ".join(f"SELECT search_id, property_id FROM {name}" for name in tables)  # noqa: S608 - our own names
    found = session.execute(
        f"""
        SELECT first, last, sum(rows)::BIGINT, sum(unknown)::BIGINT
        FROM (
            SELECT min(property_id) AS first, max(property_id) AS last, count(*) AS rows,
                count(*) FILTER (WHERE property_id IS NULL) AS unknown
            FROM ({rows})
            GROUP BY search_id
        )
        GROUP BY ALL
        ORDER BY ALL
        """  # noqa: S608 - our own names
    ).fetchall()
    # A row without a property is in no range.
    is_known = not any(unknown for *_, unknown in found)
    return _jobs(night, [(first, last, rows) for first, last, rows, _ in found], most_rows) if is_known else []


def _jobs(night: AuditedNight, asked: Sequence[tuple[int, int, int]], most_rows: int) -> list[AuditJob]:
    blocks: list[tuple[PropertyRange, int]] = []
    for first, last, rows in asked:
        if blocks and first <= blocks[-1][0].last:
            block, held = blocks[-1]
            blocks[-1] = PropertyRange(block.first, max(block.last, last)), held + rows
        else:
            blocks.append((PropertyRange(first, last), rows))
    return [
        AuditJob(night, within, tuple(block for block, _ in blocks if within.meets(block.first, block.last)))
        for within in cut([(block.first, rows) for block, rows in blocks], most_rows)
    ]


@contextmanager
def counted(jobs: Sequence[AuditJob], spread: Spread) -> Iterator[list[RangeCounts]]:
    """Count in all ranges; the files that they leave behind exist within the context."""
    lake = jobs[0].night.lake
    folder = lake.spill / f"audit-{jobs[0].sweep_id}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        carrier = lake.carrier(files_read)
        pool_of_night = RangePool("the audit", "nightaudit audit", lake.root, carrier, spread.workforce)
        with closing(pool_of_night) as pool:
            parts = pool.across(_count, jobs, str(folder))
        yield parts
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _count(jobs: Sequence[AuditJob], folder: str) -> list[RangeCounts | duckdb.OutOfMemoryException]:
    outcomes: list[RangeCounts | duckdb.OutOfMemoryException] = []
    with open_night(jobs[0].night) as session:
        session.execute("SET threads = 1")
        for job in jobs:
            turn_to(session, job.within)
            try:
                outcomes.append(count_range(session, Path(folder), str(job.within.first)))
            except duckdb.OutOfMemoryException as error:
                outcomes.append(error)
    return outcomes


def files_read(jobs: Sequence[AuditJob], _: str) -> Iterator[str]:
    """Give the files of the lake that a session over ranges of one night reads."""
    night = jobs[0].night
    lake = night.lake
    yield MARK
    for name in ("sweep", *CHECKED):
        wanted = {night.sweep_id, night.before} if name in _COMPARED else {night.sweep_id}
        root = lake.table_root(name)
        for folder in root.glob("*"):
            if folder.name == "_delta_log" or sweep_of(folder.name) in wanted:
                yield from paths_below(lake, folder)
