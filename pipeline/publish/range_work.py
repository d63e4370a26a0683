"""The work on one range of properties, and how ranges are distributed among processes.

A job holds only addresses, so any process can run it, and running it again gives the same files. A small night is
computed in the session that builds the published file. Any other range has a session of its own, which reads the file
as written so far, with bounded memory; if there are several, they run in processes of their own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from pipeline.domain.servers import Workforce
from pipeline.domain.tables import OFFER_CHANGE, TABLES
from pipeline.lake import Lake
from pipeline.lake.database import write_rows
from pipeline.lake.relations import detectors, relation
from pipeline.process.range_pool import RangePool
from pipeline.publish.catalogue import write_lake_views
from pipeline.publish.comparisons import COMPARED, keeping_offers, view_comparisons, write_comparisons
from pipeline.publish.flags import NO_FAULT_OF_A_RULE, ask_rules
from pipeline.publish.range_files import files_read
from pipeline.publish.range_session import (
    MEMORY_APART,
    MEMORY_HERE,
    RangeJob,
    joined,
    refuse_lost_values,
    session_over,
    turn_to,
)
from pipeline.publish.state import FILED_UPDATES, SMALL_UPDATES, compare, forget_night
from pipeline.publish.state_files import StateFile, write_state_views, write_update
from pipeline.publish.summaries import SUMMARIES, select_summed

# Changes of a stay and similar values are adjacent, which makes the files a quarter smaller.
_CHANGES_ORDER = (
    "property_id, check_in, source, product_type, nights, party, room_id, board_id, policy_key, currency, market, "
    "offer_key"
)

# Relations that rules and summaries read: computed once for both. They have far fewer rows than there are offers.
_SHARED = ("mart.price_against_floor", "mart.reference_price")

# What rules and summaries read is narrower than the state, so several ranges fit into memory at once; and planning
# their queries takes a second, however few the rows.
_RANGES_AT_ONCE = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RangeNight:
    """What a night changes in a range: files of the state, the file of changes, and the rows of small tables."""

    files: tuple[StateFile, ...]
    changes: str | None
    small: Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class RangeFindings:
    """Comparisons of markets in a range, what the rules find in it, and why some failed, by relation.

    `summed` are the files of what the range contributes to the summaries, by relation; if it is the only one, it has
    the rows of the summaries themselves instead.
    """

    comparisons: tuple[StateFile, ...]
    found: pa.Table
    failed: Mapping[str, str]
    summed: Mapping[str, str]
    summaries: Mapping[str, pa.Table]


Work = Callable[[duckdb.DuckDBPyConnection, RangeJob], T]


def work_out(session: duckdb.DuckDBPyConnection, job: RangeJob) -> RangeNight:
    """Compute what the night of the session changes in a range, and write it to files."""
    lake = job.lake
    compare(session)
    files = [write_update(session, lake, update, job.folder, job.sweep_id, job.within) for update in FILED_UPDATES]
    small = {update.next: _arrow(session, relation("staging", update.next).sql) for update in SMALL_UPDATES}
    small["change_count"] = _arrow(session, "FROM memory.night.change_count")
    changes = None if job.has_changes else _write_changes(session, lake, job)
    forget_night(session)
    return RangeNight(tuple(file for file in files if file is not None), changes, small)


def find_in_range(session: duckdb.DuckDBPyConnection, job: RangeJob) -> RangeFindings:
    """Compare the markets of a range, run all rules on it, and select what the summaries need. The views exist.

    Pairs are wide, so the parts of a joined range are compared one by one.
    """
    comparisons = []
    for part in job.parts or (job.within,):
        if job.parts:
            write_state_views(session, job.lake, job.state, part, enumerated=True, names=COMPARED)
        with nullcontext() if job.is_small else keeping_offers(session):
            comparisons.append(write_comparisons(session, job.lake, job.folder, job.sweep_id, part))
    if job.parts:
        write_state_views(session, job.lake, job.state, job.within, enumerated=True, names=COMPARED)
        view_comparisons(session, job.lake, comparisons)
    with _sharing(session):
        ask_rules(session, detectors())
        failed = session.execute("FROM memory.night.failed_rule").fetchall()
        found = _arrow(session, "FROM memory.night.found")
        summed, summaries = dict[str, str](), dict[str, pa.Table]()
        if job.summing is not None and job.within.is_all and not job.parts:
            summaries = {name: _arrow(session, relation(*name.split(".")).sql) for name in SUMMARIES}
        elif job.summing is not None:
            summed = select_summed(session, Path(job.summing), job.within)
    return RangeFindings(tuple(comparisons), found, dict(failed), summed, summaries)


@contextmanager
def _sharing(session: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Keep the rows of relations that are read more than once, and let their views read them."""
    try:
        for name in _SHARED:
            made = relation(*name.split("."))
            rows = f"memory.night.{made.name}"
            try:
                session.execute(f"CREATE OR REPLACE TABLE {rows} AS {made.sql}")
            except NO_FAULT_OF_A_RULE:
                raise
            except duckdb.Error:
                # Its rule fails in the same way, and is reported.
                rows = f"({made.sql})"
            session.execute(f"CREATE OR REPLACE VIEW nightaudit.{name} AS FROM {rows}")
        yield
    finally:
        for name in _SHARED:
            made = relation(*name.split("."))
            session.execute(f"CREATE OR REPLACE VIEW nightaudit.{name} AS {made.sql}")
            session.execute(f"DROP TABLE IF EXISTS memory.night.{made.name}")


class RangeWorkers:
    """Does the same work on many ranges, several at once. A single range needs no process."""

    def __init__(self, lake: Lake, workforce: Workforce = Workforce()) -> None:
        self._pool = RangePool("publishing", "nightaudit publish", lake.root, lake.carrier(files_read), workforce)

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    def across(self, work: Work[T], jobs: Sequence[RangeJob], *, reads: Iterable[str] = ()) -> list[T]:
        """Do the work on each range and return the results in order; a range that needs too much memory is split.

        `reads` are all relations that it reads, in the order of `relations.in_order`; for them several ranges that
        follow one another are joined, and share one result.

        Raises LakeError if processes keep being killed; DuckDB's errors pass unchanged.
        """
        if len(jobs) == 1:
            (outcome,) = _apart(jobs, work, tuple(reads), MEMORY_HERE)
            # What needs too much memory here may fit into a process of its own, or is split there.
            if not isinstance(outcome, duckdb.OutOfMemoryException):
                return [] if outcome is None else [outcome]
        results = self._pool.across(_apart, jobs, work, tuple(reads), together=_RANGES_AT_ONCE if reads else 1)
        return [result for result in results if result is not None]


def _apart(
    jobs: Sequence[RangeJob], work: Work[T], reads: tuple[str, ...], memory: str = MEMORY_APART
) -> list[T | duckdb.OutOfMemoryException | None]:
    """Do the work on ranges of one night; return a result for each, or why it is too large.

    The result of a joined range is that of its first part; the others have None.
    """
    outcomes: list[T | duckdb.OutOfMemoryException | None] = []
    with session_over(jobs[0], memory) as session:
        if reads:
            read = [name for name in TABLES if f"lake.{name}" in reads]
            write_lake_views(session, jobs[0].lake, jobs[0].published, read)
        for group in _groups(jobs, _RANGES_AT_ONCE if reads else 1):
            outcome = _done(session, work, joined(group), reads)
            if len(group) > 1 and isinstance(outcome, duckdb.OutOfMemoryException):
                outcomes += [_done(session, work, job, reads) for job in group]
            else:
                outcomes += [outcome, *[None] * (len(group) - 1)]
    return outcomes


def _done(
    session: duckdb.DuckDBPyConnection, work: Work[T], job: RangeJob, reads: tuple[str, ...]
) -> T | duckdb.OutOfMemoryException:
    turn_to(session, job)
    if reads:
        view_comparisons(session, job.lake, job.state, job.within)
    try:
        refuse_lost_values(session, job)
        return work(session, job)
    except duckdb.OutOfMemoryException as error:
        forget_night(session)
        return error


def _groups(jobs: Sequence[RangeJob], most: int) -> list[list[RangeJob]]:
    groups: list[list[RangeJob]] = []
    for job in jobs:
        # After a failure the remaining ranges have gaps between them.
        if groups and len(groups[-1]) < most and groups[-1][-1].within.last + 1 == job.within.first:
            groups[-1].append(job)
        else:
            groups.append([job])
    return groups


def _write_changes(session: duckdb.DuckDBPyConnection, lake: Lake, job: RangeJob) -> str | None:
    name = "changes" if job.within.is_all else f"changes-{job.within.first}"
    path = lake.table_file(OFFER_CHANGE.name, job.sweep_id, name)
    select = "FROM memory.night.offer_change"
    # As texts: of an enumeration, DuckDB 1.5 states the values of all nights as those of the file, and a query for the
    # changes of one night would read all files.
    rows = write_rows(session, lake.local(path), OFFER_CHANGE, select, _CHANGES_ORDER)
    return path if rows else None


def _arrow(session: duckdb.DuckDBPyConnection, select: str) -> pa.Table:
    return session.sql(select).to_arrow_table()
