"""Building the next published file beside the last one, and putting it in its place in one step.

The file carries the state of every offer key, so that a night costs a night: the sweep is compared with the state, its
changes are appended, and nothing older is touched. Where the last file is missing or cannot be opened, the same steps
run for every sweep of the ledger, from the first.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import CorruptObject, InputError, LakeError, LakeFull
from pipeline.domain.tables import (
    CONTENT_STATES,
    CONTENT_TABLES,
    OFFER_CHANGE,
    STATE_TABLES,
    SWEEP,
    SWEEP_PUBLISHED,
    Table,
)
from pipeline.lake import Lake, put_in_place, sync
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.database import connect, quoted, select_files, sql_type, view_sweep_files
from pipeline.lake.delta import commit_files, is_committed
from pipeline.lake.raw import read_manifest
from pipeline.lake.relations import relation, sql_folder
from pipeline.publish.catalogue import describe, write_reference, write_side_views, write_summaries, write_views
from pipeline.publish.content import add_content, forget_working_files
from pipeline.publish.flags import move_flags_on
from pipeline.publish.ledger import LedgerEntry, enter, published_sweeps

logger = logging.getLogger(__name__)

# The storage format of the oldest DuckDB that is supported. Older formats forget that a part of a view is MATERIALIZED,
# without which DuckDB 2.0.0 never returns from a LIMIT over `mart.market_parity`.
_STORAGE_VERSION = "v1.5.0"

# The order in which a night is worked out; each is a table of schema `night` while it lasts.
_NIGHT = ("cell_observed", "offer_observed", "offer_change", "offer_change_priced", "parity_observed")


@dataclass(frozen=True, slots=True)
class _Step:
    """How a table of the file moves on: `sql/staging/<next>.sql` is added to it, or takes its place."""

    table: str
    next: str
    order: str
    is_replaced: bool = False


# All of them are worked out from the state before the night, then applied. Sorted by property, so that the trend of one
# property is found without reading the others.
_STEPS = (
    _Step("state.offer_closed", "offer_closed_next", "property_id, check_in, offer_key"),
    _Step("state.offer_open", "offer_open_next", "property_id, check_in, offer_key", is_replaced=True),
    _Step("state.cell", "cell_next", "property_id, check_in", is_replaced=True),
    _Step("state.promotion", "promotion_next", "promotion_key, promotion_no"),
    _Step("state.policy", "policy_next", "policy_key, penalty_no"),
    _Step("state.detail_penalty", "detail_penalty_next", "property_id, offer_key, penalty_no", is_replaced=True),
    _Step("state.cell_closed", "cell_closed_next", "property_id, check_in"),
    _Step("state.cell_count", "cell_count_next", "operation, market, product_type, rooms, lead_days"),
    _Step("state.stock_change", "stock_change_next", "property_id, check_in, cell_key, room_id, source"),
    _Step("state.price_move", "price_move_next", "source, market, product_type, lead_days"),
    _Step("state.waiting", "waiting_next", "source, market, product_type, lead_days"),
    _Step("state.property_sale", "property_sale_next", "property_id, market, product_type", is_replaced=True),
    _Step("state.quiet_search", "quiet_search_next", "property_id, search_id"),
    _Step("state.parity_closed", "parity_closed_next", "property_id, offer_key"),
    _Step("state.parity_open", "parity_open_next", "property_id, offer_key", is_replaced=True),
    _Step("state.floor_move", "floor_move_next", "property_id, offer_key"),
    _Step("mart.sweep", "sweep_published", "sweep_id"),
)

# Changes of a stay come together, and what is alike in them: it makes their files smaller by a quarter.
_CHANGES_ORDER = (
    "property_id, check_in, source, product_type, nights, party, room_id, board_id, policy_key, currency, market, "
    "offer_key"
)

# What relations of a night, and views, are written with.
MACROS = (
    "cell_key", "offer_key", "tolerance", "tolerance_of", "currency_basis", "lead_step", "severity", "subject_key",
    "flag_id", "case_id", "share_bound", "is_on_sale", "observation",
    "conversion", "penalty_of_units", "penalty_cost", "penalty_span",
)  # fmt: skip

# Macros over views, in the order in which they build on each other.
_VIEW_MACROS = ("offer_as_of", "penalty_step", "penalty_at", "floor_what_if")

# What the file carries from night to night.
_TABLES = {f"state.{table.name}": table for table in (*STATE_TABLES, *CONTENT_STATES)} | {"mart.sweep": SWEEP_PUBLISHED}


# How DuckDB tells that it could not write: at once, when memory and its overflow are full, or at a commit.
_WRITE_ERRORS = (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.TransactionException)


@dataclass(frozen=True, slots=True)
class Published:
    """What was published: the file, and the sweep's row of `mart.sweep`."""

    file: Path
    sweep: dict[str, Any]
    is_new: bool


def publish(
    lake: Lake,
    sweep_id: str,
    now: datetime,
    *,
    audit: str = "none",
    override_reason: str | None = None,
    analysis: Analysis = Analysis(),  # noqa: B008 - frozen
) -> Published:
    """Publish a loaded sweep. Publishing it again changes nothing. The caller holds the lake's writer lock.

    Whether it may be published is the caller's to know; `audit` and `override_reason` are only written down.

    Readers see the last file until the next one is whole. Raises LakeError where the sweep is not loaded, or is older
    than what is published already; then the published file stays as it was.
    """
    manifest = read_manifest(lake, sweep_id)
    if not is_committed(lake, SWEEP, sweep_id):
        raise LakeError(
            f"The sweep {sweep_id} is not loaded yet, so it cannot be published.",
            kept="The published file is as it was.",
            hint=f"Finish it first: nightaudit resume {sweep_id}",
        )
    file = lake.published_file
    held = _sweeps_of(lake)
    wanted = LedgerEntry(sweep_id, manifest.started_at, now, audit, override_reason, analysis)
    entries = {entry.sweep_id: entry for entry in published_sweeps(lake)}
    if sweep_id in held and not entries.keys() - set(held):
        return Published(file, _sweep_row(file, sweep_id), is_new=False)
    is_new = sweep_id not in entries
    if is_new and any(entry.started_at > wanted.started_at for entry in entries.values()):
        raise InputError(
            f"The sweep {sweep_id} is older than the last published one, and history is published in order.",
            kept="The published file is as it was.",
        )
    if is_new:
        _refuse_overtaken(lake, sweep_id)
    entries.setdefault(sweep_id, wanted)
    in_order = sorted(entries.values(), key=lambda entry: entry.started_at)
    todo = [entry for entry in in_order if entry.sweep_id not in held]
    if in_order[: len(held)] != [entry for entry in in_order if entry.sweep_id in held]:
        held, todo = [], in_order
    beside = file.with_name(f".{file.stem}.{sweep_id}.duckdb")
    try:
        _remove_left_overs(file)
        try:
            _build(lake, beside, file if held else None, todo, in_order)
        except duckdb.Error as error:
            if not held or _is_whole(file):
                raise
            logger.warning("%s is damaged (%s) and is built anew", file, str(error).splitlines()[0])
            _remove_left_overs(file)
            _build(lake, beside, None, in_order, in_order)
        sync(beside)
        enter(lake, wanted)
        put_in_place(beside, file)
        forget_working_files(lake, sweep_id)
    except (OSError, duckdb.Error) as error:
        is_full = isinstance(error, (OSError, *_WRITE_ERRORS))
        raise (LakeFull if is_full else LakeError)(
            f"The published file could not be built: {str(error).splitlines()[0]}",
            kept="The last published file is as it was, and the sweep stays loaded.",
            hint="Mend the cause (space, memory, a damaged file).",
        ) from None
    finally:
        _remove_left_overs(file)
    return Published(file, _sweep_row(file, sweep_id), is_new=is_new)


def _refuse_overtaken(lake: Lake, sweep_id: str) -> None:
    """Raise InputError where the publication of a later sweep has begun: its changes count from the night before it."""
    sweeps = lake.sweep_ids()
    for later in sweeps[sweeps.index(sweep_id) + 1 :]:
        if any(is_committed(lake, table, later) for table in (OFFER_CHANGE, *CONTENT_TABLES)):
            raise InputError(
                f"The publication of {later} was begun and not ended, and {sweep_id} is older than that.",
                kept="The published file is as it was.",
                hint=f"End what was begun: nightaudit publish {later}",
            )


def publish_anew(lake: Lake, settle: Callable[[], None]) -> Path | None:
    """Build the published file from nothing but the ledger and the lake's tables; None where nothing is published.

    `settle` is called between the two: once the new file is whole, and before readers meet it. The caller holds the
    lake's writer lock. Raises LakeError where the file cannot be built; then `settle` was not called.
    """
    entries = published_sweeps(lake)
    if not entries:
        settle()
        return None
    file = lake.published_file
    beside = file.with_name(f".{file.stem}.anew.duckdb")
    sweeps = [entry.sweep_id for entry in entries]
    try:
        _remove_left_overs(file)
        _build(lake, beside, None, entries, entries)
        sync(beside)
        settle()
        put_in_place(beside, file)
        for sweep_id in sweeps:
            forget_working_files(lake, sweep_id)
    except (OSError, duckdb.Error) as error:
        raise LakeError(
            f"The published file could not be built: {str(error).splitlines()[0]}",
            kept="The last published file is as it was.",
        ) from None
    finally:
        _remove_left_overs(file)
    return file


def _remove_left_overs(file: Path) -> None:
    # A build that was killed leaves its file and its log, which DuckDB would apply to the next file of that name.
    for left_over in file.parent.glob(f".{file.stem}.*"):
        left_over.unlink(missing_ok=True)


def _sweeps_of(lake: Lake) -> list[str]:
    """Return the sweeps that the published file holds; none where there is no file, or it is damaged."""
    file = lake.published_file
    if not file.exists():
        return []
    try:
        refuse_damaged(lake.root, [file])
    except CorruptObject as error:
        logger.warning("%s It is built again from the tables.", error.message)
        return []
    try:
        with _reading(file) as session:
            rows = session.execute("SELECT sweep_id FROM published.mart.sweep ORDER BY started_at").fetchall()
            for name, table in _TABLES.items():
                found = session.execute(f"DESCRIBE published.{name}").fetchall()
                if [column[0] for column in found] != [column.name for column in table.columns]:
                    logger.warning("%s was written by another version and is built anew", file)
                    return []
    except duckdb.Error as error:
        logger.warning("%s cannot be read (%s) and is built anew", file, str(error).splitlines()[0])
        return []
    return [row[0] for row in rows]


def _is_whole(file: Path) -> bool:
    """Whether everything that the published file carries from night to night can be read."""
    try:
        with _reading(file) as session:
            for name in _TABLES:
                session.execute(f"SELECT max(COLUMNS(*)) FROM published.{name}").fetchall()  # noqa: S608 - our own names
    except duckdb.Error:
        return False
    return True


def _sweep_row(file: Path, sweep_id: str) -> dict[str, Any]:
    with _reading(file) as session:
        found = session.execute("SELECT * FROM published.mart.sweep WHERE sweep_id = ?", [sweep_id])
        names = [column[0] for column in found.description]
        return dict(zip(names, found.fetchone() or (), strict=True))


def _reading(file: Path) -> duckdb.DuckDBPyConnection:
    # Attached, not opened: a path that was opened once in a process keeps giving the file that it was then.
    session = duckdb.connect(":memory:")
    session.execute("SET TimeZone = 'UTC'")
    session.execute(f"ATTACH {quoted(str(file))} AS published (READ_ONLY)")
    return session


def _build(
    lake: Lake, beside: Path, before: Path | None, todo: Sequence[LedgerEntry], published: Sequence[LedgerEntry]
) -> None:
    beside.parent.mkdir(parents=True, exist_ok=True)
    beside.unlink(missing_ok=True)
    if before is not None:
        shutil.copyfile(before, beside)
    with connect(lake) as session:
        session.execute(f"ATTACH {quoted(str(beside))} AS nightaudit (STORAGE_VERSION '{_STORAGE_VERSION}')")
        prepare(session)
        for entry in todo:
            write_reference(session, entry.analysis)
            # A night compares markets at the rates that were loaded by then.
            write_side_views(session, lake, entry.published_at)
            _add_night(session, lake, entry)
            until = [other.sweep_id for other in published if other.started_at <= entry.started_at]
            session.execute("BEGIN")
            write_views(session, lake, until, as_of=entry.published_at)
            write_view_macros(session)
            session.execute("COMMIT")
            move_flags_on(session)
        # Hundreds of small statements: one by one, each would wait for the disk.
        session.execute("BEGIN")
        write_views(session, lake, [entry.sweep_id for entry in published])
        write_view_macros(session)
        write_summaries(session)
        describe(session)
        session.execute("COMMIT")
        session.execute("CHECKPOINT nightaudit")
        session.execute("USE memory")
        session.execute("DETACH nightaudit")


def prepare(session: duckdb.DuckDBPyConnection) -> None:
    """Make what a night is worked out in: schemas, the tables that a file carries, and the macros that they need.

    The file is attached as `nightaudit`; what lasts for a night only goes into the session's memory.
    """
    for schema in ("night", "sweep_files"):
        session.execute(f"CREATE SCHEMA memory.{schema}")
    # A name like night.sweep is found in another database only if its schema is on the path.
    session.execute("SET search_path = 'nightaudit.main,memory.night,memory.sweep_files'")
    for schema in ("mart", "report", "ref", "state", "lake"):
        session.execute(f"CREATE SCHEMA IF NOT EXISTS nightaudit.{schema}")
    write_macros(session)
    for name, table in _TABLES.items():
        session.execute(create(name, table))


def write_macros(session: duckdb.DuckDBPyConnection) -> None:
    """Write the macros that views are made with."""
    for name in MACROS:
        session.execute(_macro(name))


def write_view_macros(session: duckdb.DuckDBPyConnection) -> None:
    """Write the macros over views. The views are there."""
    for name in _VIEW_MACROS:
        session.execute(_macro(name))


def _add_night(session: duckdb.DuckDBPyConnection, lake: Lake, entry: LedgerEntry) -> None:
    """Work out what a sweep changes, and move the state on to after it."""
    sweep_id = entry.sweep_id
    view_sweep_files(session, lake, sweep_id, "memory.sweep_files")
    sweep_file = lake.local(lake.table_file("sweep", sweep_id, "sweep"))
    session.execute(f"CREATE OR REPLACE VIEW memory.night.sweep AS {select_files('sweep', [sweep_file])}")
    compare(session, entry.audit, entry.override_reason)
    _load_changes(session, lake, sweep_id)
    add_content(session, lake, sweep_id)
    move_on(session)


def compare(session: duckdb.DuckDBPyConnection, audit: str, override_reason: str | None) -> None:
    """Work out what `night.sweep` and the rows of `sweep_files` change."""
    session.execute("CREATE OR REPLACE TABLE memory.night.audit (audit VARCHAR, override_reason VARCHAR)")
    session.execute("INSERT INTO memory.night.audit VALUES (?, ?)", [audit, override_reason])
    for name in _NIGHT:
        session.execute(f"CREATE OR REPLACE TABLE memory.night.{name} AS {relation('staging', name).sql}")


def move_on(session: duckdb.DuckDBPyConnection) -> None:
    """Move the state on to after the night that was compared."""
    for step in _STEPS:
        session.execute(f"CREATE OR REPLACE TABLE memory.night.{step.next} AS {relation('staging', step.next).sql}")
    for step in _STEPS:
        if step.is_replaced:
            session.execute(f"TRUNCATE {step.table}")
        select = f"SELECT * FROM memory.night.{step.next} ORDER BY {step.order}"  # noqa: S608 - our own names
        session.execute(f"INSERT INTO {step.table} BY NAME {select}")
    for name in (*_NIGHT, *(step.next for step in _STEPS)):
        session.execute(f"DROP TABLE memory.night.{name}")


def _load_changes(session: duckdb.DuckDBPyConnection, lake: Lake, sweep_id: str) -> None:
    """Append the night's changes to the lake, once."""
    if is_committed(lake, OFFER_CHANGE, sweep_id):
        return
    if session.execute("SELECT count(*) FROM memory.night.offer_change").fetchall() == [(0,)]:
        return
    path = lake.table_file(OFFER_CHANGE.name, sweep_id, "changes")
    place = lake.local(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    names = ", ".join(f"{column.name}::{sql_type(column)} AS {column.name}" for column in OFFER_CHANGE.stored)
    beside = place.with_name(f".{place.name}")
    session.execute(
        f"COPY (SELECT {names} FROM memory.night.offer_change ORDER BY {_CHANGES_ORDER}) "  # noqa: S608 - our own names
        f"TO {quoted(str(beside))} (FORMAT parquet, COMPRESSION zstd)"
    )
    put_in_place(beside, place)
    commit_files(lake, OFFER_CHANGE, [path], sweep_id)


def create(name: str, table: Table) -> str:
    """Return the statement that creates a declared table unless it is there."""
    columns = ", ".join(
        f"{column.name} {sql_type(column)}{' NOT NULL' if column.is_required else ''}" for column in table.columns
    )
    return f"CREATE TABLE IF NOT EXISTS {name} ({columns})"


def _macro(name: str) -> str:
    return (sql_folder() / "macro" / f"{name}.sql").read_text(encoding="utf-8")
