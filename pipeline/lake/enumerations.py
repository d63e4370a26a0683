"""Texts of few values as enumerations, while a night is computed.

A quarter of the columns of the state are texts that are equal in thousands of rows, like the market. As enumerations
they are compared, sorted, copied and encoded in an eighth of the time. Files hold texts, and so does what readers see.
An enumeration equals a text that reads the same, but their hashes differ: a query must not compare the hash of one
with that of the other.
"""

from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from pipeline.domain.errors import CorruptObject
from pipeline.domain.tables import TEXT, Column, Table

# The enumeration of each column, by name.
_OF_COLUMN = {
    "source": "source",
    "operation": "operation",
    "market": "market",
    "reference_market": "market",
    "product_type": "product_type",
    "party": "party",
    "currency_asked": "currency",
    "currency": "currency",
    "reference_currency": "currency",
    "refundability": "refundability",
    "change": "change",
    "sweep_id": "sweep_id",
    "began_sweep_id": "sweep_id",
    "seen_sweep_id": "sweep_id",
}
_SCHEMA = "memory.enumeration"


def enumeration_of(column: Column) -> str | None:
    """Return the type of a column that is read as an enumeration; None: it is read as it is."""
    is_text = column.type == TEXT and not column.derived
    return _type(_OF_COLUMN[column.name]) if is_text and column.name in _OF_COLUMN else None


def _type(name: str) -> str:
    # Quoted: some names are words of DuckDB 1.5.
    return f'{_SCHEMA}."{name}"'


def find_values(session: duckdb.DuckDBPyConnection, tables: Mapping[str, Table]) -> dict[str, list[str]]:
    """Return all values of each enumeration; the session has the tables by these names, with texts.

    Those that a column declares are among them: a night may be the first that has one of them.
    """
    values: dict[str, set[str]] = {name: set() for name in _OF_COLUMN.values()}
    for place, table in tables.items():
        for column in table.columns:
            if enumeration_of(column):
                # One by one: a file has its few values in a dictionary, and then its rows cost hardly anything.
                found = session.execute(f"SELECT DISTINCT {column.name} FROM {place}").fetchall()  # noqa: S608 - our own names
                values[_OF_COLUMN[column.name]] |= {value for (value,) in found if value is not None}
                values[_OF_COLUMN[column.name]].update(column.values)
    return {name: sorted(found) for name, found in values.items()}


def create_enumerations(session: duckdb.DuckDBPyConnection, values: Mapping[str, Sequence[str]]) -> None:
    """Create the enumerations, in place of those of an earlier night. `values` are sorted, so they sort like texts.

    Where there is no value, or one with a NUL, columns stay texts.
    """
    session.execute(f"DROP SCHEMA IF EXISTS {_SCHEMA} CASCADE")
    session.execute(f"CREATE SCHEMA {_SCHEMA}")
    for name, texts in values.items():
        if not texts or any("\0" in text for text in texts):
            # DuckDB 1.5 cannot sort such an enumeration.
            session.execute(f"CREATE TYPE {_type(name)} AS VARCHAR")
            continue
        session.register("enumerated", pa.table({"text": pa.array(texts, TEXT)}))
        session.execute(f"CREATE TYPE {_type(name)} AS ENUM (SELECT text FROM enumerated)")  # noqa: S608 - our own names
        session.unregister("enumerated")


def refuse_lost(session: duckdb.DuckDBPyConnection, name: str, table: Table, texts: str, enumerated: str) -> None:
    """Raise CorruptObject if a text is not among the values of its enumeration: it would be read as NULL.

    `texts` and `enumerated` are SELECTs of the same rows of a table, which is called `name`.
    """
    columns = [column.name for column in table.stored if enumeration_of(column)]
    counts = ", ".join(f"count({column})" for column in columns)
    in_files, read = (
        session.execute(f"SELECT {counts} FROM ({select})").fetchall()[0]  # noqa: S608 - our own names
        for select in (texts, enumerated)
    )
    for column, texts_in_files, values in zip(columns, in_files, read, strict=True):
        if texts_in_files != values:
            raise CorruptObject(
                f"{texts_in_files - values} rows of {name} have a {column} that it did not have when publishing began.",
                kept="The last published file is unchanged, and the sweep stays loaded.",
                hint="List the damage and its repairs: nightaudit verify --deep",
            )
