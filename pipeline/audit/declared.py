"""Checks that follow from the declarations of the tables: types, nulls, keys and listed values.

Bounds of single values are row-level rules: see `rules`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.audit.results import ALL, Measure
from pipeline.audit.rules import CHECKED, EXAMPLES, in_words, place, with_addresses
from pipeline.domain.tables import TABLES, Column, Table
from pipeline.domain.texts import literal
from pipeline.lake.database import rows_of

# Prices without these cannot be compared: a night that loses them is lost.
_VITAL = ("total", "currency")
_PLACE = ("property_id", "search_id", "offer_no")


def measure_types(files: Sequence[tuple[str, Path]]) -> Iterator[Measure]:
    """Count, per table, the files that lack a declared column or have it in another type, with a few of them."""
    wrong: dict[str, list[dict[str, object]]] = {name: [] for name in CHECKED}
    for name, file in files:
        if reason := misfit(TABLES[name], file):
            nowhere = dict.fromkeys(_PLACE)
            wrong[name].append({**nowhere, "raw_address": file.name, "reason": reason})
    meaning = (
        "files that lack a column, or have one with a type other than the declared one: nightaudit rebuild rewrites "
        "them"
    )
    for name, found in wrong.items():
        examples = json.dumps(found[:EXAMPLES]) if found else None
        said: dict[str, Any] = {"violations": len(found), "examples": examples}
        yield Measure(ALL, name, "types", "critical", meaning, "rule", float(len(found)), highest=0.0, **said)


def misfit(table: Table, file: Path) -> str | None:
    """Return how a file differs from its table's declaration, as another version may have written it; None: it fits."""
    try:
        schema = pq.read_schema(file)
    except (pa.ArrowException, OSError):
        return "cannot be read as Parquet"
    for column in table.columns:
        if column.name not in schema.names:
            return f"has no column {column.name}"
        if (kind := _plain(schema.field(column.name).type)) != (declared := _plain(column.type)):
            return f"has {column.name} as {kind}, not {declared}"
    return None


def _plain(kind: pa.DataType) -> str:
    # The encoding is not part of the type: text may be stored as a dictionary.
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return str(plain).replace("large_", "").replace("+00:00", "UTC")


def count_declared(session: duckdb.DuckDBPyConnection, name: str) -> list[Any]:
    """Count a table's rows per market, and the nulls and unlisted values of each column."""
    columns = ", ".join(f"count(*) FILTER (WHERE {condition})" for _, _, condition in _counts(TABLES[name]))
    return session.execute(f"SELECT market, count(*), {columns} FROM sweep_files.{name} GROUP BY market").fetchall()  # noqa: S608 - our own names


def measure_declared(
    session: duckdb.DuckDBPyConnection, name: str, counted: Sequence[Sequence[Any]] | None = None
) -> Iterator[Measure]:
    """Measure nulls and unlisted values of a table per market, in one scan unless they are `counted` already."""
    table = TABLES[name]
    for market, total, *found in count_declared(session, name) if counted is None else counted:
        for (column, what, condition), count in zip(_counts(table), found, strict=True):
            measure = _measure(market or ALL, table.name, column, what, count, total)
            if count and measure.severity == "critical":
                measure = replace(measure, examples=_examples(session, table, column, condition, market))
            yield measure


def _counts(table: Table) -> Iterator[tuple[Column, str, str]]:
    for column in table.columns:
        yield column, "null", f"{column.name} IS NULL"
        if column.values:
            listed = ", ".join(literal(value) for value in column.values)
            yield column, "value", f"{column.name} NOT IN ({listed})"


def _examples(
    session: duckdb.DuckDBPyConnection, table: Table, column: Column, condition: str, market: str | None
) -> str:
    value = f"format('''{{}}'' is not a known value', {column.name}::VARCHAR)"
    said = f"CASE WHEN {column.name} IS NULL THEN 'there is no value' ELSE {value} END"
    rows = session.execute(
        f"SELECT {place(table)}, '{in_words(column)}: ' || {said} AS reason "  # noqa: S608 - our own names
        f"FROM sweep_files.{table.name} WHERE ({condition}) AND market IS NOT DISTINCT FROM ? LIMIT {EXAMPLES}",
        [market],
    )
    return with_addresses(session, rows_of(rows))


def _measure(market: str, table: str, column: Column, what: str, count: int, total: int) -> Measure:
    check = f"{what}_{column.name}"
    if what == "null" and not column.is_required:
        severity = "critical" if table == "offer" and column.name in _VITAL else "warning"
        meaning = f"share of rows without {column.name}"
        return Measure(market, table, check, severity, meaning, "history", count / total, of=total)
    meaning = {
        "null": f"rows without {column.name}, which is required",
        "value": f"rows whose {column.name} is none of: {', '.join(column.values)}",
    }[what]
    return Measure(market, table, check, "critical", meaning, "rule", float(count), highest=0.0, violations=count)


def count_doubled(session: duckdb.DuckDBPyConnection, name: str) -> int:
    """Count the keys of a table that occur more than once in the sweep."""
    return int(session.execute(f"SELECT count(*) FROM ({_doubled(name)})").fetchall()[0][0])  # noqa: S608 - our own names


def _key(name: str) -> list[str]:
    return [column for column in TABLES[name].key if column != "sweep_id"]


def _doubled(name: str) -> str:
    key = ", ".join(_key(name))
    return f"SELECT {key}, count(*) AS times FROM sweep_files.{name} GROUP BY {key} HAVING count(*) > 1"  # noqa: S608 - our own names


def measure_key(session: duckdb.DuckDBPyConnection, name: str, counted: int | None = None) -> Measure:
    """Measure the keys of a table that occur more than once in the sweep, with examples; see `count_doubled`."""
    names = _key(name)
    count = count_doubled(session, name) if counted is None else counted
    examples = None
    if count:
        rows = session.execute(f"FROM ({_doubled(name)}) ORDER BY ALL LIMIT {EXAMPLES}").fetchall()
        found = [dict(zip((*names, "times"), row, strict=True)) for row in rows]
        reasons = [", ".join(f"{column} {value}" for column, value in row.items()) for row in found]
        places = [{column: row.get(column) for column in _PLACE} for row in found]
        examples = with_addresses(session, [p | {"reason": r} for p, r in zip(places, reasons, strict=True)])
    meaning = f"keys that occur more than once: {', '.join(names)}"
    said: dict[str, Any] = {"highest": 0.0, "violations": count, "examples": examples}
    return Measure(ALL, name, "key", "critical", meaning, "rule", float(count), **said)
