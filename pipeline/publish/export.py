"""A self-contained DuckDB file: every relation that analysts read, for some properties, markets or nights.

It only reads the published file, so it never waits for a night and no night waits for it.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb

from pipeline.domain.errors import CorruptObject, InputError, LakeFull, first_line
from pipeline.domain.texts import literal
from pipeline.lake import beside, sync
from pipeline.lake.database import open_published
from pipeline.lake.files import remove_left_over
from pipeline.lake.published_paths import refuse_damaged_reads
from pipeline.process.regular_file import unusable_name
from pipeline.publish.catalogue import finish
from pipeline.publish.last_published import is_readable
from pipeline.publish.state import attach, write_macros, write_view_macros

_SCHEMAS = ("lake", "ref", "mart", "report")
_MEMORY = "1000MB"
# Columns that give the period in which a row was true, for relations without a sweep id.
_SPANS = (("first_seen_at", "last_seen_at"), ("first_flagged_at", "last_flagged_at"), ("began_at", "ended_at"))
_SWEEPS = ("sweep_id", "seen_sweep_id")


@dataclass(frozen=True, slots=True)
class Selection:
    """What to export: these properties and markets (none named: all), nights from `first` to `last`."""

    properties: tuple[int, ...] = ()
    markets: tuple[str, ...] = ()
    first: date | None = None
    last: date | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """One relation of an exported file: its number of rows, and what they were filtered by."""

    relation: str
    rows: int
    narrowed_by: tuple[str, ...]


def export(published: Path, target: Path, selection: Selection) -> list[Exported]:
    """Write the relations of a published file to a new file, and return them.

    A relation without a property, market or night keeps all its rows, summaries among them; `ref.export` says which.
    Raises InputError if the target exists, nothing is published or nothing is selected, and CorruptObject if a file
    differs from its checksum; an existing file is never touched.
    """
    if why := unusable_name(target):
        raise InputError(
            f"{target} cannot be written: {why}.", kept="Nothing was written.", hint="Choose another name."
        )
    if target.exists():
        raise _taken(target)
    if not target.parent.is_dir():
        raise InputError(
            f"There is no folder {target.parent}.",
            kept="Nothing was written.",
            hint="Create it, or name a file in another folder.",
        )
    remove_left_over(target.absolute())
    built = beside(target.absolute())
    spill = built.with_suffix(".spill")
    try:
        with open_published(published) as session:
            refuse_damaged_reads(published)
            session.execute(f"SET memory_limit = '{_MEMORY}'")
            session.execute(f"SET temp_directory = {literal(str(spill))}")
            session.execute("SET preserve_insertion_order = false")
            session.execute("SET enable_progress_bar = false")
            made = _export(session, built, selection)
        sync(built)
        _take_name(built, target)
    except duckdb.Error as error:
        if not is_readable(published):
            raise CorruptObject(
                f"The published file, or a file that it reads, is damaged: {first_line(error)}",
                kept="Nothing was written.",
                hint="See what is damaged and how to repair it: nightaudit verify --deep",
            ) from None
        if not isinstance(error, duckdb.IOException | duckdb.TransactionException):
            raise
        raise LakeFull(
            f"{target} could not be written: {first_line(error)}",
            kept="Nothing was written, and the published file is unchanged.",
            hint="Free some space, or export less: --property, --market, --from, --to.",
        ) from None
    finally:
        for left_over in built.parent.glob(f"{built.name}*"):
            left_over.unlink()
        shutil.rmtree(spill, ignore_errors=True)
    return made


def _export(session: duckdb.DuckDBPyConnection, built: Path, selection: Selection) -> list[Exported]:
    nights = _nights(session, selection)
    # The storage version of the published file: what opens that opens this.
    attach(session, built, "exported")
    columns: dict[str, list[str]] = {}
    for schema, name, column in session.execute(
        "SELECT table_schema, table_name, column_name FROM information_schema.columns "
        "WHERE table_catalog = 'nightaudit' AND list_contains($schemas, table_schema) "
        "ORDER BY table_schema, table_name, ordinal_position",
        {"schemas": _SCHEMAS},
    ).fetchall():
        columns.setdefault(f"{schema}.{name}", []).append(column)
    for schema in _SCHEMAS:
        session.execute(f"CREATE SCHEMA exported.{schema}")
    made = []
    for name, found in columns.items():
        conditions = _conditions(found, selection, nights)
        where = " AND ".join(conditions.values()) or "true"
        session.execute(f"CREATE TABLE exported.{name} AS SELECT * FROM nightaudit.{name} WHERE {where}")  # noqa: S608 - our own names; values are quoted
        rows = session.execute(f"SELECT count(*) FROM exported.{name}").fetchall()[0][0]  # noqa: S608 - our own names
        made.append(Exported(name, rows, tuple(conditions)))
    session.execute("CREATE TABLE exported.ref.export (relation VARCHAR, rows BIGINT, narrowed_by VARCHAR[])")
    session.executemany(
        "INSERT INTO exported.ref.export VALUES (?, ?, ?)",
        [[each.relation, each.rows, list(each.narrowed_by)] for each in made],
    )
    session.execute("USE memory")
    session.execute("DETACH nightaudit")
    session.execute("DETACH exported")
    # Attached again under the name that our macros and comments use.
    attach(session, built)
    session.execute("USE nightaudit")
    write_macros(session)
    write_view_macros(session)
    finish(session)
    return made


def _nights(session: duckdb.DuckDBPyConnection, selection: Selection) -> Sequence[str] | None:
    """Return the published sweeps of the selected nights; None: all. Raises InputError for what is not published."""
    for kind, column, wanted in (
        ("property", "property_id", selection.properties),
        ("market", "market", selection.markets),
    ):
        for each in wanted:
            if not session.execute(f"SELECT 1 FROM mart.cell_latest WHERE {column} = ? LIMIT 1", [each]).fetchall():  # noqa: S608 - two columns of ours
                raise InputError(
                    f"No upcoming stay of the {kind} {each} is published.",
                    kept="Nothing was written.",
                    hint=f'List what has one: nightaudit query "SELECT DISTINCT {column} FROM mart.cell_latest"',  # noqa: S608 - shown
                )
    if selection.first is None and selection.last is None:
        return None
    found = session.execute(
        "SELECT sweep_id FROM mart.sweep WHERE snapshot_date BETWEEN coalesce(?, DATE '0001-01-01') "
        "AND coalesce(?, DATE '9999-12-31')",
        [selection.first, selection.last],
    ).fetchall()
    if not found:
        raise InputError(
            "No night of this period is published.",
            kept="Nothing was written.",
            hint="List the published nights: nightaudit status",
        )
    return [sweep_id for (sweep_id,) in found]


def _conditions(columns: Sequence[str], selection: Selection, nights: Sequence[str] | None) -> dict[str, str]:
    found = {}
    if selection.properties and "property_id" in columns:
        found["property"] = f"property_id IN ({', '.join(map(str, selection.properties))})"
    if selection.markets and "market" in columns:
        found["market"] = f"market IN ({', '.join(map(literal, selection.markets))})"
    if nights is not None and (condition := _of_nights(columns, selection, nights)):
        found["night"] = condition
    return found


def _of_nights(columns: Sequence[str], selection: Selection, nights: Sequence[str]) -> str | None:
    within = f"IN ({', '.join(map(literal, nights))})"
    span = next((pair for pair in _SPANS if {*pair} <= {*columns}), None)
    if "sweep_id" not in columns and span is not None:
        # Days in UTC, both included; what has not ended is still true.
        parts = [] if selection.last is None else [f"{span[0]} < DATE '{selection.last}' + INTERVAL 1 DAY"]
        parts += [] if selection.first is None else [f"coalesce({span[1]} >= DATE '{selection.first}', true)"]
        return " AND ".join(parts)
    named = next((name for name in _SWEEPS if name in columns), None)
    return None if named is None else f"{named} {within}"


def _take_name(built: Path, target: Path) -> None:
    """Give a complete file its name, unless another file has taken it."""
    try:
        os.link(built, target)
    except OSError:
        # The name is taken, or the file system has no hard links.
        if target.exists():
            raise _taken(target) from None
        built.rename(target)
    sync(target.absolute().parent)


def _taken(target: Path) -> InputError:
    return InputError(f"{target} already exists.", kept="It is unchanged.", hint="Choose another file name.")
