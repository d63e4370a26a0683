"""The one module that opens DuckDB: over a sweep's files, over the lake's tables, and over the published file."""

import platform
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from pipeline.domain.errors import CorruptObject, InputError, NightauditError
from pipeline.domain.tables import SEGMENT_TABLES, SIDE_TABLES, TABLES, Table
from pipeline.domain.texts import literal
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.column_sql import as_stored, select_columns
from pipeline.lake.files import beside, put_in_place
from pipeline.lake.lake import Lake
from pipeline.lake.sweep_files import files_of_sweep, quarantine_file, refuse_retired
from pipeline.lake.user_sql import CANNOT_RUN, LIST_RELATIONS, UNSAFE_OPTIMIZERS

# The memory of a session, and of a report's, whose charts need half of its 700 MB. Data beyond it is spilled to disk.
MEMORY_LIMIT, REPORT_MEMORY = "1500MB", "200MB"

# More effort, and dictionaries of thousands of values (totals), cost a fifth more and make no file smaller.
PARQUET = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, DICTIONARY_SIZE_LIMIT 1000"

OF_OFFERS = ("offer", "penalty", "promotion")
# Tables of a sweep whose rows are about one property.
OF_PROPERTIES = frozenset({*OF_OFFERS, "reject", "cell"})


@contextmanager
def connect(lake: Lake, memory: str = MEMORY_LIMIT) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session in memory, in UTC, that spills data beyond `memory` into the lake's folder."""
    # DuckDB names spilled files by its process id and removes those of dead processes. Machines and containers that
    # share a lake may have equal ids, so each has a folder of its own; a worker on another machine creates it.
    shared = lake.spill
    own = shared / platform.node()
    spill = own if own.is_dir() else shared
    with duckdb.connect(":memory:") as session:
        session.execute(f"SET memory_limit = '{memory}'")
        session.execute(f"SET temp_directory = {literal(str(spill))}")
        session.execute("SET TimeZone = 'UTC'")
        session.execute("SET preserve_insertion_order = false")
        # By default, DuckDB compresses tables in memory after each large write, which costs more than the write.
        session.execute("SET checkpoint_threshold = '1TB'")
        session.execute("SET parquet_metadata_cache = true")
        session.execute("SET autoinstall_known_extensions = false")
        # The bar would appear in logs after two seconds.
        session.execute("SET enable_progress_bar = false")
        yield session


def view_sweep_files(
    session: duckdb.DuckDBPyConnection,
    lake: Lake,
    sweep_id: str,
    schema: str,
    *,
    tables: Iterable[str] = SEGMENT_TABLES,
    is_before_audit: bool = False,
    enumerated: Container[str] = (),
) -> None:
    """Create one view per table over the files of one sweep; a table without files is an empty view.

    Offers in quarantine are left out with their penalties and promotions; `is_before_audit` includes them. Tables of
    `enumerated` are read as in `select_columns`.
    """
    session.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    quarantine = quarantine_file(lake, sweep_id)
    for name in tables:
        files = files_of_sweep(lake, TABLES[name], sweep_id)
        if name == "offer" and not files:
            refuse_retired(lake, sweep_id)
        refuse_damaged(lake.root, files)
        if is_before_audit:
            select = select_files(name, [file for file in files if file != quarantine])
        else:
            select = select_kept(name, files, [quarantine], enumerated=name in enumerated)
        session.execute(f"CREATE OR REPLACE VIEW {schema}.{name} AS {select}")


def select_kept(
    table: str, files: Iterable[Path | str], quarantine: Iterable[Path], *, enumerated: bool = False
) -> str:
    """Return a SELECT like `select_files`, without offers in quarantine, their penalties and promotions."""
    select = select_files(table, files, enumerated=enumerated)
    taken = [literal(str(file)) for file in quarantine if file.exists()]
    if table not in OF_OFFERS or not taken:
        return select
    join = " AND ".join(f"taken.{name} = kept.{name}" for name in ("sweep_id", "search_id", "offer_no"))
    return f"SELECT kept.* FROM ({select}) AS kept ANTI JOIN read_parquet([{', '.join(taken)}]) AS taken ON {join}"  # noqa: S608 - our own names; paths are quoted


def select_files(table: str, files: Iterable[Path | str], *, enumerated: bool = False) -> str:
    """Return a SELECT of a table's declared columns over Parquet files or patterns."""
    return select_columns((TABLES | SIDE_TABLES)[table].columns, files, enumerated=enumerated)


def write_rows(
    session: duckdb.DuckDBPyConnection, place: Path, table: Table, select: str, order: str, *, enumerated: bool = False
) -> int:
    """Write the rows of a SELECT to a file with the columns of a declared table; no file if there are no rows.

    `enumerated`: see `as_stored`.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    built = beside(place)
    session.execute("SET preserve_insertion_order = true")
    try:
        sorted_rows = f"SELECT {as_stored(table.stored, enumerated=enumerated)} FROM ({select}) ORDER BY {order}"  # noqa: S608 - our own names
        written = session.execute(f"COPY ({sorted_rows}) TO {literal(str(built))} ({PARQUET})").fetchall()
        rows = int(written[0][0])
    finally:
        session.execute("SET preserve_insertion_order = false")
    if rows:
        put_in_place(built, place)
    else:
        built.unlink()
    return rows


def rows_of(found: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return the rows of a result by the names of its columns."""
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def open_published(file: Path, spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open the published file read-only, in UTC, with its schemas on the search path.

    With `spill`, it has the memory of a report. Raises InputError if nothing is published, CorruptObject if damaged.
    """
    refuse_no_file(file)
    session = duckdb.connect(":memory:")
    try:
        session.execute("SET TimeZone = 'UTC'")
        session.execute(f"SET disabled_optimizers = '{UNSAFE_OPTIMIZERS}'")
        session.execute("SET parquet_metadata_cache = true")
        if spill is not None:
            session.execute(f"SET memory_limit = '{REPORT_MEMORY}'")
            # What a query no longer uses goes back to the system before the next one: 30 MB less at the peak of a page.
            session.execute("SET allocator_background_threads = true")
            session.execute(f"SET temp_directory = {literal(str(spill))}")
        # Attached, not opened: DuckDB keeps returning the first file that a process has opened at a path.
        session.execute(f"ATTACH {literal(str(file))} AS nightaudit (READ_ONLY)")
        session.execute("USE nightaudit")
    except duckdb.Error as error:
        session.close()
        raise damaged(file, str(error)) from None
    return session


def attached(file: Path) -> duckdb.DuckDBPyConnection:
    """Open a session in which a published file is attached as `published`, read-only. Raises DuckDB's errors."""
    # Not opened: within a process DuckDB keeps returning the file that a path named when first opened.
    session = duckdb.connect(":memory:")
    session.execute("SET TimeZone = 'UTC'")
    session.execute(f"ATTACH {literal(str(file))} AS published (READ_ONLY)")
    return session


# DuckDB's errors during a query over a damaged file.
_DAMAGE = (duckdb.IOException, duckdb.FatalException, duckdb.SerializationException)
_READ_ONLY = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.PRAGMA})


def query_published(
    file: Path, query: str, parameters: Mapping[str, object] | None = None
) -> duckdb.DuckDBPyConnection:
    """Run a query over the published file, read-only, and return the session with its result.

    `parameters` are the values of $name in it. Raises InputError if the file is missing or the query cannot be run, and
    CorruptObject if the file is damaged.
    """
    session = open_published(file)
    try:
        # Only the file is read-only; a COPY or an ATTACH could still write elsewhere.
        kinds = [statement.type for statement in session.extract_statements(query)]
        if len(kinds) != 1 or kinds[0] not in _READ_ONLY:
            message = "Only a single read-only statement can be run, such as SELECT, FROM, DESCRIBE or SHOW."
            raise InputError(message, hint=LIST_RELATIONS)
        return session.execute(query, parameters)
    except duckdb.Error as error:
        session.close()
        raise failed_query(file, error) from None


def failed_query(file: Path, error: duckdb.Error) -> NightauditError:
    """Return the error of a failed query over the published file: a wrong query, or a damaged file."""
    is_damaged = isinstance(error, _DAMAGE)
    return damaged(file, str(error)) if is_damaged else InputError(f"{CANNOT_RUN}{error}", hint=LIST_RELATIONS)


def has_moved(file: Path) -> bool:
    """Whether the views of a published file read a lake in another folder: it was moved or copied."""
    with attached(file) as session:
        views = session.execute(
            "SELECT sql FROM duckdb_views() WHERE database_name = 'published' AND contains(sql, 'read_parquet')"
        ).fetchall()
    # With the quote before it: the path of a copy may be the end of the first lake's.
    root = literal(f"{file.absolute().parents[1]}/")[:-1]
    return any(root not in sql for (sql,) in views)


def refuse_no_file(file: Path) -> None:
    """Raise InputError if nothing is published, CorruptObject for what is not a file: DuckDB would wait for a pipe."""
    if not file.exists():
        raise InputError(f"Nothing is published yet: there is no {file}.", hint="Run a night first: nightaudit nightly")
    if not file.is_file():
        raise damaged(file, "it is not a file")


def damaged(file: Path, why: str) -> CorruptObject:
    """Return the error of a published file that DuckDB cannot read: it was moved, or is damaged."""
    with suppress(duckdb.Error):
        if file.is_file() and has_moved(file):
            return CorruptObject(
                "The lake was moved, and its published file still points to the old folder.",
                kept="Nothing is damaged or lost.",
                hint="Point it to this folder: nightaudit publish\nA pulled copy: nightaudit pull ADDRESS FOLDER",
            )
    return CorruptObject(
        f"{file} cannot be read: {why.splitlines()[0]}",
        kept="The lake's raw answers and tables are untouched.",
        hint="If it is damaged, move it away and rebuild it from the tables: nightaudit publish",
    )
