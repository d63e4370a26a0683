"""The documentation inside the published file: reference tables, views, and a comment on everything."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from functools import cache
from itertools import chain

import duckdb
import xxhash

from pipeline.domain.analysis import Analysis, analysis_columns
from pipeline.domain.codes import BOARD_FAMILY_VERSION, BOARDS, ERROR_CODES, MARKETS, MINOR_DIGITS, minor_unit
from pipeline.domain.search import Operation
from pipeline.domain.tables import (
    CASE_NOTE,
    CONFIRMATION,
    FAILED_RULE,
    INPUT_TABLES,
    QUALITY,
    QUOTE_TABLES,
    SELDOM_WRITTEN,
    SIDE_TABLES,
    STATE_TABLES,
    TABLES,
)
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.checksums import damaged_of, refuse_damaged
from pipeline.lake.database import select_files, select_kept
from pipeline.lake.delta import committed_files
from pipeline.lake.relations import Relation, declared_meanings, direct_sources, views
from pipeline.lake.sweep_files import all_or_each, quarantine_file, sweep_files
from pipeline.publish.state import NATIVE
from pipeline.publish.summaries import CASES, SUMMARIES

# Whether a row of a side table was known at an instant: by when it was loaded, or by its run, named after its start.
_NOT_LATER = "<= TIMESTAMPTZ '{0:%Y-%m-%d %H:%M:%S.%f}+00'"
_KNOWN_AT = {
    **dict.fromkeys(INPUT_TABLES, f"loaded_at {_NOT_LATER}"),
    **dict.fromkeys(QUOTE_TABLES, "run_id <= '{0:%Y%m%dT%H%M%S%f}'"),
    CASE_NOTE.name: f"noted_at {_NOT_LATER}",
    CONFIRMATION.name: f"run_at {_NOT_LATER}",
}

# Written as views, stored as tables: they read much and return little, and other views read them.
_KEPT = frozenset({"mart.fx_of_sweep"})
_TABLES = _KEPT.union(SUMMARIES, CASES)

_REFERENCE: Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]] = {
    "market": ("One row per market code.", {"market": ("VARCHAR", "Market code: the point of sale.")}),
    "board_basis": (
        "One row per board basis of the supplier's document.",
        {
            "board_id": ("BIGINT", "Board basis id."),
            "name": ("VARCHAR", "Name in the supplier's document."),
            "qualifier": ("VARCHAR", "Qualifier in the supplier's document; NULL: none."),
            "family": ("VARCHAR", "Boards similar enough to compare if the exact one is missing."),
            "family_version": ("INTEGER", "Version of the grouping into families."),
        },
    ),
    "error_code": (
        "One row per error code of the supplier's document.",
        {
            "code": ("INTEGER", "Error code."),
            "kind": ("VARCHAR", "`no_availability`, `validation` or `server`."),
            "http_status": ("INTEGER", "HTTP status that it comes with."),
            "operations": ("VARCHAR", "Operations that it occurs in."),
            "meaning": ("VARCHAR", "What it means."),
        },
    ),
    "currency": (
        "One row per currency whose smallest unit is known; others are assumed to have hundredths.",
        {
            "currency": ("VARCHAR", "ISO 4217 code of the currency."),
            "minor_digits": ("INTEGER", "Decimals of an amount in it."),
            "minor_unit": ("DECIMAL(18,4)", "Smallest amount in the currency: prices are not more precise than this."),
        },
    ),
    "analysis": ("One row: the thresholds and defaults that the analytics use.", analysis_columns()),
    "written_with": (
        "One row: what wrote this file.",
        {"relations": ("VARCHAR", "Digest of the SQL of all relations of `mart` and `report`.")},
    ),
}


def write_reference(session: duckdb.DuckDBPyConnection, analysis: Analysis) -> None:
    """Write the tables of schema `ref`."""
    rows: dict[str, Iterable[Sequence[object]]] = {
        "market": [(market,) for market in MARKETS],
        "board_basis": [(b.id, b.name, b.qualifier, b.family.value, BOARD_FAMILY_VERSION) for b in BOARDS.values()],
        "error_code": [
            (c.code, c.kind.value, c.http_status, " ".join(o for o in Operation if o in c.operations), c.meaning)
            for c in ERROR_CODES.values()
        ],
        "currency": [(code, digits, minor_unit(code)) for code, digits in sorted(MINOR_DIGITS.items())],
        "analysis": [astuple(analysis)],
    }
    for name, wanted in rows.items():
        _create_reference(session, "CREATE OR REPLACE TABLE", name)
        row = f"({', '.join('?' for _ in _REFERENCE[name][1])})"
        values = list(wanted)
        # One statement: inserting a few hundred markets row by row takes longer than comparing a small night.
        session.execute(f"INSERT INTO ref.{name} VALUES {', '.join([row] * len(values))}", list(chain(*values)))  # noqa: S608 - our own names


def _create_reference(session: duckdb.DuckDBPyConnection, how: str, name: str) -> None:
    declared = ", ".join(f"{column} {kind}" for column, (kind, _) in _REFERENCE[name][1].items())
    session.execute(f"{how} ref.{name} ({declared})")


def write_views(
    session: duckdb.DuckDBPyConnection, lake: Lake, published: Iterable[str], as_of: datetime | None = None
) -> None:
    """Write the views: marts over the file's own state, schema `lake` over the files of the published sweeps.

    `as_of` leaves out what users loaded or requested later, so that recomputing a night gives the same findings.
    The summaries and cases, which take longest, are left to `write_summaries`.
    """
    write_lake_views(session, lake, published)
    write_side_views(session, lake, as_of)
    write_relations(session)


def write_lake_views(
    session: duckdb.DuckDBPyConnection, lake: Lake, published: Iterable[str], names: Iterable[str] = TABLES
) -> None:
    """Write schema `lake` over the files of the published sweeps."""
    # Latest first: a view opens the first of its files to know its columns, and an old one may be damaged.
    sweeps = list(published)[::-1]
    quarantine = [quarantine_file(lake, sweep_id) for sweep_id in sweeps]
    for name in names:
        root = lake.table_root(name)
        # The checks of a blocked sweep are readable too.
        wanted = lake.sweep_ids()[::-1] if name == QUALITY.name else sweeps
        held = sweep_files(lake, TABLES[name])
        patterns = [place for sweep_id in wanted for place in all_or_each(root / sweep_id, held.get(sweep_id, []))]
        if name == QUALITY.name and patterns:
            # Only folders of sweeps, which begin with a year: the log beside them is Parquet in part.
            patterns = [root / "[0-9]*" / "*.parquet"]
        files = [file for sweep_id in wanted for file in held.get(sweep_id, [])]
        if TABLES[name] in SELDOM_WRITTEN and (damaged := damaged_of(lake.root, files)):
            patterns = [file for file in files if file not in damaged]
        session.execute(f"CREATE OR REPLACE VIEW lake.{name} AS {select_kept(name, patterns, quarantine)}")


def write_side_views(session: duckdb.DuckDBPyConnection, lake: Lake, as_of: datetime | None) -> None:
    """Write schema `lake` over what users have loaded and requested. Raises CorruptObject."""
    for name, table in SIDE_TABLES.items():
        refuse_damaged(lake.root, files := committed_files(lake, table))
        select = select_files(name, files)
        if as_of is not None:
            select = f"SELECT * FROM ({select}) WHERE {_KNOWN_AT[name].format(as_of.astimezone(UTC))}"  # noqa: S608 - our own names
        session.execute(f"CREATE OR REPLACE VIEW lake.{name} AS {select}")


def write_relations(session: duckdb.DuckDBPyConnection) -> None:
    """Write the relations of `sql/`. What they read exists.

    A file written with the same SQL keeps its views, as binding takes time; its tables are written again.
    """
    session.execute("CREATE SCHEMA IF NOT EXISTS report")
    _create_reference(session, "CREATE TABLE IF NOT EXISTS", "written_with")
    is_kept = session.execute("SELECT relations FROM ref.written_with").fetchall() == [(fingerprint(),)]
    if not is_kept:
        # In a file of an earlier version they may be views, or have other columns.
        listed = (
            "SELECT table_schema || '.' || table_name, replace(table_type, 'BASE ', '') FROM information_schema.tables"
        )
        for name, kind in session.execute(listed).fetchall():
            if name in _TABLES:
                session.execute(f"DROP {kind} {name}")
    for made in views():
        if made.full_name in _KEPT or not (is_kept or made.full_name in SUMMARIES):
            _create_relation(session, made)
    if not is_kept:
        _create_reference(session, "CREATE OR REPLACE TABLE", "written_with")
        session.execute("INSERT INTO ref.written_with VALUES (?)", [fingerprint()])


def _create_relation(session: duckdb.DuckDBPyConnection, made: Relation) -> None:
    # Views read the tables of cases, which are filled later.
    rows = " LIMIT 0" if made.full_name in CASES else ""
    session.execute(f"CREATE OR REPLACE {_kind(made)} {made.full_name} AS {made.sql}{rows}")


@cache
def fingerprint() -> str:
    """Return a digest of the SQL of all views and of the types that they read."""
    text = "".join(f"{_kind(made)} {made.full_name} {made.sql}\0" for made in views())
    tables = (*STATE_TABLES, *TABLES.values(), *SIDE_TABLES.values())
    text += "".join(f"{table.name} {column.name} {column.read_type}\0" for table in tables for column in table.columns)
    return xxhash.xxh3_128_hexdigest(text.encode())


def finish(session: duckdb.DuckDBPyConnection) -> None:
    """Describe the file that is being built, and close it."""
    session.execute("BEGIN")
    describe(session)
    for statement in ("COMMIT", "CHECKPOINT nightaudit", "USE memory", "DETACH nightaudit"):
        session.execute(statement)


def describe(session: duckdb.DuckDBPyConnection) -> None:
    """Comment every table, view and column that analysts see, unless its comment is up to date."""
    relations = session.execute(
        "SELECT schema_name || '.' || table_name, 'TABLE', comment FROM duckdb_tables() "
        "UNION ALL SELECT schema_name || '.' || view_name, 'VIEW', comment FROM duckdb_views() WHERE NOT internal"
    ).fetchall()
    columns = session.execute(
        "SELECT schema_name || '.' || table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    names = {name for name, _, _ in columns}
    said = _meanings({each: [column for name, column, _ in columns if name == each] for each in names})
    for name, kind, comment in relations:
        if name in said and comment != said[name][0]:
            session.execute(f"COMMENT ON {kind} {name} IS {literal(said[name][0])}")
    for name, column, comment in columns:
        if name in said and comment != said[name][1][column]:
            session.execute(f"COMMENT ON COLUMN {name}.{column} IS {literal(said[name][1][column])}")


def _meanings(columns_of: Mapping[str, Sequence[str]]) -> Mapping[str, tuple[str, Mapping[str, str]]]:
    """Return the grain and column meanings of every relation that analysts see, by full name."""
    said: dict[str, tuple[str, Mapping[str, str]]] = {
        f"ref.{name}": (grain, {column: text for column, (_, text) in columns.items()})
        for name, (grain, columns) in _REFERENCE.items()
    }
    declared = NATIVE | {"state.failed_rule": FAILED_RULE}
    declared |= {f"lake.{table.name}": table for table in (*TABLES.values(), *SIDE_TABLES.values())}
    for name, table in declared.items():
        said[name] = (table.grain, {column.name: column.meaning for column in table.columns})
    general = declared_meanings()
    for view in views():
        read = [said[name][1] for name in sorted(said.keys() & direct_sources(view)) if not name.startswith("ref.")]
        meanings = dict(view.meanings)
        # A column that is taken over keeps its meaning; if the relations read differ in it, the general one applies.
        for column in set(columns_of.get(view.full_name, ())) - meanings.keys():
            taken = {of[column] for of in read if column in of}
            if not taken and column not in general:
                raise ValueError(f"sql/{view.schema}/{view.name}.sql: add a comment `-- {column}: <its meaning>.`")
            meanings[column] = taken.pop() if len(taken) == 1 else general.get(column) or max(taken)
        said[view.full_name] = (view.grain, meanings)
    return said


def _kind(made: Relation) -> str:
    return "TABLE" if made.full_name in _TABLES else "VIEW"
