"""Build the next published file next to the last one, and replace that one in a single step.

The file is a catalogue: views over immutable files, and tables for what is small. The state of every offer key is kept
in files, one per range of properties. A night is compared with the state range by range, each within the memory of one
process; only changes are written, and older files are never touched. If the last file is missing or unreadable, the
same steps run for every sweep of the ledger, from the first.
"""

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import InputError, LakeError, LakeFull, first_line
from pipeline.domain.servers import Workforce
from pipeline.domain.tables import CONTENT_TABLES, OFFER_CHANGE, SWEEP
from pipeline.lake import Lake, put_in_place, sync
from pipeline.lake.database import connect, has_moved
from pipeline.lake.delta import is_committed
from pipeline.lake.ledger import REFERENCE_RULE, LedgerEntry, enter, published_sweeps, restore_entries
from pipeline.lake.raw import read_manifest
from pipeline.publish.catalogue import finish, write_views
from pipeline.publish.comparisons import compare_again, made_with
from pipeline.publish.content import forget_working_files
from pipeline.publish.last_published import forget_unread, is_readable, sweep_row, sweeps_of
from pipeline.publish.night_build import NightBuild
from pipeline.publish.range_work import RangeWorkers
from pipeline.publish.ranges import MOST_OFFERS
from pipeline.publish.refresh import catch_up, refresh
from pipeline.publish.state import NATIVE, attach, create, prepare, write_view_macros
from pipeline.publish.state_files import files_of, generation_of, new_generation, night_folder, write_state_views
from pipeline.publish.summaries import CASES, summed_with, summing_folder, write_summaries

logger = logging.getLogger(__name__)

# What DuckDB raises when it cannot write: at once, when memory and spill space are full, or at a commit.
_WRITE_ERRORS = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.TransactionException)


@dataclass(frozen=True, slots=True)
class Published:
    """What was published: the file, and the sweep's row of `mart.sweep`.

    `is_new` is whether the sweep was published for the first time, `is_built` whether the file was written.
    """

    file: Path
    sweep: dict[str, Any]
    is_new: bool
    is_built: bool


def publish(
    lake: Lake,
    sweep_id: str,
    now: datetime,
    *,
    audit: str = "none",
    override_reason: str | None = None,
    analysis: Analysis = Analysis(),
    most_offers: int = MOST_OFFERS,
    workforce: Workforce = Workforce(),
    with_later: bool = True,
) -> Published:
    """Publish a loaded sweep. Publishing it again changes nothing. The caller holds the lake's writer lock.

    The caller decides whether it may be published; `audit` and `override_reason` are only recorded. A night of more
    than twice `most_offers` is computed in ranges of properties, by the workforce. Other sweeps of the ledger are
    published too, later ones only `with_later`. Readers see the last file until the next one is complete. Raises
    LakeError if the sweep is not loaded, and InputError if it is older than the last published one.
    """
    manifest = read_manifest(lake, sweep_id)
    if not is_committed(lake, SWEEP, sweep_id):
        raise LakeError(
            f"The sweep {sweep_id} is not loaded yet, so it cannot be published.",
            kept="The published file is unchanged.",
            hint=f"Finish it first: nightaudit resume {sweep_id}",
        )
    file = lake.published_file
    restore_entries(lake)
    held = sweeps_of(lake)
    wanted = LedgerEntry(sweep_id, manifest.started_at, now, audit, override_reason, analysis, REFERENCE_RULE)
    entries = {
        entry.sweep_id: entry
        for entry in published_sweeps(lake)
        if with_later or entry.started_at <= manifest.started_at
    }
    if sweep_id in held and not entries.keys() - set(held):
        return _as_published(lake, sweep_id)
    is_new = sweep_id not in entries
    if is_new:
        _refuse_overtaken(lake, wanted, entries.values())
    entries.setdefault(sweep_id, wanted)
    in_order = sorted(entries.values(), key=lambda entry: entry.started_at)
    todo = [entry for entry in in_order if entry.sweep_id not in held]
    if in_order[: len(held)] != [entry for entry in in_order if entry.sweep_id in held]:
        held, todo = [], in_order
    kept = "The last published file is unchanged, and the sweep stays loaded."
    with _beside(file, sweep_id, kept, f"nightaudit publish {sweep_id}") as beside:
        try:
            _build(lake, beside, file if held else None, todo, in_order, most_offers, workforce)
        except duckdb.Error as error:
            if not held or is_readable(file):
                raise
            logger.warning("%s is damaged (%s) and is rebuilt", file, first_line(error))
            _remove_left_overs(file)
            _build(lake, beside, None, in_order, in_order, most_offers, workforce)
        sync(beside)
        enter(lake, wanted)
        _show(lake, beside, todo)
    return Published(file, sweep_row(file, sweep_id), is_new=is_new, is_built=True)


def _as_published(lake: Lake, sweep_id: str) -> Published:
    """Return a sweep that the published file holds, once the file reads this folder and shows all that was loaded."""
    file = lake.published_file
    with _beside(file, "moved", "The last published file is unchanged.", f"nightaudit publish {sweep_id}"):
        is_built = refresh(lake, is_required=True) if has_moved(file) else catch_up(lake)
    forget_unread(lake, file)
    return Published(file, sweep_row(file, sweep_id), is_new=False, is_built=is_built)


def _refuse_overtaken(lake: Lake, wanted: LedgerEntry, published: Iterable[LedgerEntry]) -> None:
    """Raise InputError if publishing a later sweep is done or has begun: its changes count from the night before it."""
    sweep_id, sweeps = wanted.sweep_id, lake.sweep_ids()
    if any(entry.started_at > wanted.started_at for entry in published):
        raise InputError(
            f"The sweep {sweep_id} is older than the last published one; nights are published in order.",
            kept="The published file is unchanged, and the sweep's answers and tables stay in the lake.",
            hint="Publish each night before the next.",
        )
    for later in sweeps[sweeps.index(sweep_id) + 1 :]:
        if any(is_committed(lake, table, later) for table in (OFFER_CHANGE, *CONTENT_TABLES)):
            raise InputError(
                f"{sweep_id} cannot be published: publishing the later sweep {later} was interrupted.",
                kept="The published file is unchanged.",
                hint=f"Finish the later one first: nightaudit publish {later}",
            )


def republish_all(
    lake: Lake,
    settle: Callable[[], None],
    most_offers: int = MOST_OFFERS,
    workforce: Workforce = Workforce(),
) -> Path | None:
    """Rebuild the published file from the ledger and the lake's tables alone; None if nothing is published.

    `settle` is called once the new file is complete and before readers see it. The caller holds the lake's writer lock.
    Raises LakeError if the file cannot be built; then `settle` was not called.
    """
    restore_entries(lake)
    entries = published_sweeps(lake)
    if not entries:
        settle()
        return None
    file = lake.published_file
    with _beside(file, "anew", "The last published file is unchanged.", "nightaudit rebuild") as beside:
        _build(lake, beside, None, entries, entries, most_offers, workforce)
        sync(beside)
        settle()
        _show(lake, beside, entries)
    return file


@contextmanager
def _beside(file: Path, name: str, kept: str, go_on: str) -> Iterator[Path]:
    """Give the path of the next file while it is built and shown. Raises LakeError if that fails."""
    try:
        _remove_left_overs(file)
        yield file.with_name(f".{file.stem}.{name}.duckdb")
    except (OSError, duckdb.Error) as error:
        is_full = isinstance(error, (OSError, *_WRITE_ERRORS))
        raise (LakeFull if is_full else LakeError)(
            f"The published file could not be built: {first_line(error)}",
            kept=kept,
            hint=f"Fix the cause (disk space, memory or a damaged file), then: {go_on}",
        ) from None
    finally:
        _remove_left_overs(file)


def _show(lake: Lake, beside: Path, built: Iterable[LedgerEntry]) -> None:
    put_in_place(beside, lake.published_file)
    for entry in built:
        forget_working_files(lake, entry.sweep_id)
    forget_unread(lake, lake.published_file)


def _remove_left_overs(file: Path) -> None:
    # A killed build leaves its file and its log; DuckDB would apply that log to the next file of that name.
    for left_over in file.parent.glob(f".{file.stem}.*"):
        left_over.unlink(missing_ok=True)


def _build(
    lake: Lake,
    beside: Path,
    before: Path | None,
    todo: Sequence[LedgerEntry],
    published: Sequence[LedgerEntry],
    most_offers: int,
    workforce: Workforce,
) -> None:
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.unlink(missing_ok=True)
    if before is not None:
        shutil.copyfile(before, beside)
    with (
        summing_folder(lake) as summing,
        closing(RangeWorkers(lake, workforce)) as range_workers,
        connect(lake) as session,
    ):
        attach(session, beside)
        prepare(session)
        for name, table in NATIVE.items():
            session.execute(create(name, table))
        # The lake may have moved since the file was written.
        write_state_views(session, lake, files_of(session))
        generation = generation_of(session) or new_generation(lake)
        night: NightBuild | None = None
        for entry in todo:
            until = tuple(other for other in published if other.started_at <= entry.started_at)
            # Summaries are of the last night alone.
            place = summing if entry is todo[-1] else None
            night = NightBuild(session, lake, beside, until, range_workers, most_offers, place)
            night.add(night_folder(generation, entry.sweep_id))
        comparisons_made_with, summaries_made_with = made_with(session), summed_with(session)
        session.execute("BEGIN")
        # Hundreds of small statements; outside a transaction each would wait for the disk.
        write_views(session, lake, [entry.sweep_id for entry in published])
        write_view_macros(session)
        session.execute("COMMIT")
        compare_again(session, lake, comparisons_made_with)
        write_summaries(session, CASES)
        if night is not None:
            night.summarise(summaries_made_with)
        finish(session)
