"""One night of a publication: what a sweep changes, range by range, and the findings over all ranges."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from pipeline.domain.tables import NUMBER, OFFER_CHANGE, Column
from pipeline.lake import Lake
from pipeline.lake.database import MEMORY_LIMIT, view_sweep_files
from pipeline.lake.delta import commit_files, is_committed
from pipeline.lake.enumerations import find_values
from pipeline.lake.ledger import LedgerEntry
from pipeline.lake.relations import detectors, in_order
from pipeline.publish.catalogue import write_reference, write_side_views, write_views
from pipeline.publish.comparisons import note_comparisons
from pipeline.publish.content import add_content
from pipeline.publish.flags import gather, move_flags_on, note_settings
from pipeline.publish.range_session import RangeJob, view_sweep
from pipeline.publish.range_work import RangeNight, RangeWorkers, Work, find_in_range, work_out
from pipeline.publish.ranges import choose_ranges
from pipeline.publish.settings_changed import changed_after
from pipeline.publish.state import (
    ENUMERATED,
    FILED_UPDATES,
    NATIVE,
    OVER_ALL,
    SEARCH_PATH,
    SMALL_UPDATES,
    SmallUpdate,
    attach,
    look_over_all,
    note_audit,
    note_sweep,
    write_view_macros,
)
from pipeline.publish.state_files import files_of, note_files, write_state_views
from pipeline.publish.summaries import (
    SUMMARIES,
    SummedWith,
    fill_summaries,
    sum_again,
    sum_up,
)

# DuckDB's share of the 700 MB of the process that combines the ranges' results, which it also holds.
_MEMORY_OVER_ALL = "300MB"
# Its share of a process that computes a small night. If a part of the night does not fit, it gets more. Two threads
# write Parquet beyond it, and the process itself takes 180 MB.
_MEMORY_ALONE = "400MB"

T = TypeVar("T")


@dataclass(slots=True)
class NightBuild:
    """Adds one sweep to the file being built: the last one of `published`, the sweeps of the file, oldest first.

    `summing` is the folder in which ranges leave what they contribute to the summaries; None: none are wanted.
    """

    session: duckdb.DuckDBPyConnection
    lake: Lake
    file: Path
    published: tuple[LedgerEntry, ...]
    workers: RangeWorkers
    most_offers: int
    summing: Path | None
    _jobs: list[RangeJob] = field(default_factory=list, init=False)
    _summed: list[Mapping[str, str]] = field(default_factory=list, init=False)
    _summaries: Mapping[str, pa.Table] = field(default_factory=dict, init=False)

    @property
    def entry(self) -> LedgerEntry:
        """The sweep that is added."""
        return self.published[-1]

    @property
    def _sweep_ids(self) -> tuple[str, ...]:
        return tuple(entry.sweep_id for entry in self.published)

    def add(self, folder: str) -> None:
        """Compute what the sweep changes, update the state, and open and close flags.

        `folder` is where the night's files of the state go.
        """
        session, lake, entry = self.session, self.lake, self.entry
        write_reference(session, entry.analysis)
        # A night compares markets at the rates that were loaded at that time.
        write_side_views(session, lake, entry.published_at)
        view_sweep_files(session, lake, entry.sweep_id, "memory.sweep_files")
        view_sweep(session, lake, entry.sweep_id)
        note_audit(session, entry.audit, entry.override_reason)
        look_over_all(session, entry.reference_rule)
        self._begin(folder)
        nights = self._across(work_out)
        self._load_changes(nights)
        _add_small(session, nights)
        replaced = [update.name for update in FILED_UPDATES if update.is_replaced]
        note_files(session, [file for night in nights for file in night.files], replaced)
        write_state_views(session, lake, files_of(session))
        note_sweep(session)
        add_content(session, lake, entry.sweep_id)
        session.execute("BEGIN")
        write_views(session, lake, self._sweep_ids, as_of=entry.published_at)
        write_view_macros(session)
        session.execute("COMMIT")
        self._jobs = [replace(job, state=tuple(files_of(session))) for job in self._jobs]
        findings = self._across(find_in_range, in_order([*detectors(), *SUMMARIES]))
        failed = {name: reason for part in findings for name, reason in part.failed.items()}
        note_comparisons(session, lake, [file for part in findings for file in part.comparisons])
        self._summed = [part.summed for part in findings]
        self._summaries = findings[0].summaries
        found = [part.found for part in findings]
        del findings
        gather(session, found, failed)
        note_settings(session, changed_after(self.published))
        move_flags_on(session)

    def summarise(self, with_rates_of: SummedWith) -> None:
        """Write the summaries over everything that is loaded. The views exist.

        `with_rates_of` is what the ranges' contributions were computed with; see `summed_with`.
        """
        if self._summaries:
            fill_summaries(self.session, self._summaries)
        else:
            sum_up(self.session, self._summed, SUMMARIES)
        sum_again(self.session, self.lake, with_rates_of)

    def _begin(self, folder: str) -> None:
        session, lake, entry = self.session, self.lake, self.entry
        has_changes = is_committed(lake, OFFER_CHANGE, entry.sweep_id)
        lake.remove_folder(folder)
        if not has_changes:
            # Left by an interrupted publication, whose ranges may have been different.
            lake.remove_folder(f"{lake.tables_folder}/{OFFER_CHANGE.name}/{entry.sweep_id}")
        chosen = choose_ranges(session, self.most_offers)
        if not chosen.is_small:
            # What remains for this session covers all properties, and its memory must not grow with them.
            session.execute(f"SET memory_limit = '{_MEMORY_OVER_ALL}'")
        values = {} if chosen.is_small else find_values(session, ENUMERATED)
        state = tuple(files_of(session))
        over_all = {name: session.sql(f"FROM memory.night.{name}").to_arrow_table() for name in OVER_ALL}
        self._jobs = [
            RangeJob(
                lake=lake,
                file=str(self.file),
                sweep_id=entry.sweep_id,
                folder=folder,
                state=state,
                published=self._sweep_ids,
                within=within,
                properties=tuple(number for number in chosen.properties if within.first <= number <= within.last),
                as_of=entry.published_at,
                has_changes=has_changes,
                over_all=over_all,
                values=values,
                summing=None if self.summing is None else str(self.summing),
            )
            for within in chosen.ranges
        ]

    def _across(self, work: Work[T], reads: Iterable[str] = ()) -> list[T]:
        if self._jobs[0].is_small:
            return [self._sparingly(lambda: work(self.session, self._jobs[0]))]
        # Other sessions can read the file only while no session has it open for writing.
        self.session.execute("CHECKPOINT nightaudit")
        self.session.execute("USE memory")
        self.session.execute("DETACH nightaudit")
        try:
            return self.workers.across(work, self._jobs, reads=reads)
        finally:
            attach(self.session, self.file)
            self.session.execute(SEARCH_PATH)

    def _sparingly(self, work: Callable[[], T]) -> T:
        """Do work that can be repeated: in little memory, or in more if that is not enough."""
        try:
            self.session.execute(f"SET memory_limit = '{_MEMORY_ALONE}'")
            return work()
        except duckdb.OutOfMemoryException:
            self.session.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
            return work()
        finally:
            self.session.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")

    def _load_changes(self, nights: Sequence[RangeNight]) -> None:
        """Append the night's changes to the lake, once."""
        paths = [night.changes for night in nights if night.changes is not None]
        if paths:
            commit_files(self.lake, OFFER_CHANGE, {self.entry.sweep_id: paths})


def _add_small(session: duckdb.DuckDBPyConnection, nights: Sequence[RangeNight]) -> None:
    """Merge the rows that ranges return for small tables, and add them."""
    for update in SMALL_UPDATES:
        _gather_rows(session, update.next, nights)
        session.execute(f"INSERT INTO state.{update.name} BY NAME {_as_one(update)} ORDER BY {update.order}")
        session.execute(f"DROP TABLE memory.night.{update.next}")
    _gather_rows(session, "change_count", nights)
    columns = session.execute("DESCRIBE memory.night.change_count").fetchall()
    added = ", ".join(f"sum({name})::BIGINT AS {name}" for name, *_ in columns if name != "range_no")
    summed = f"SELECT {added} FROM memory.night.change_count"  # noqa: S608 - our own names
    session.execute(f"CREATE OR REPLACE TABLE memory.night.change_count AS {summed}")


def _gather_rows(session: duckdb.DuckDBPyConnection, name: str, nights: Sequence[RangeNight]) -> None:
    for number, night in enumerate(nights):
        session.register("rows_of_range", night.small[name])
        how = f"INSERT INTO memory.night.{name}" if number else f"CREATE OR REPLACE TABLE memory.night.{name} AS"
        session.execute(f"{how} SELECT {number} AS range_no, * FROM rows_of_range")  # noqa: S608 - our own names
        session.unregister("rows_of_range")


def _as_one(update: SmallUpdate) -> str:
    table = f"memory.night.{update.next}"
    if update.key:
        # Several ranges may report the same thing: the first one counts.
        return (
            f"SELECT * EXCLUDE (range_no) FROM {table} "  # noqa: S608 - our own names
            f"QUALIFY range_no = min(range_no) OVER (PARTITION BY {update.key})"
        )
    columns = NATIVE[f"state.{update.name}"].pick(*update.sums)
    added = ", ".join(f"{_sum_of(column)} AS {column.name}" for column in columns)
    return f"SELECT * EXCLUDE (range_no, {', '.join(update.sums)}), {added} FROM {table} GROUP BY ALL"  # noqa: S608 - our own names


def _sum_of(column: Column) -> str:
    if column.type == NUMBER:
        # Added up as whole billionths, so that the order of the ranges does not change the sum.
        return f"sum(round({column.name} * 1e9)::HUGEINT) / 1e9"
    return f"sum({column.name})::BIGINT"
