"""Declared columns as SQL: their types, and how they are read from files and written to them."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from pipeline.domain.tables import Column
from pipeline.domain.texts import literal
from pipeline.lake.enumerations import enumeration_of

_SQL_TYPES = {
    "string": "VARCHAR",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
    "decimal128(18, 4)": "DECIMAL(18,4)",
    "decimal128(18, 8)": "DECIMAL(18,8)",
}


def sql_type(kind: pa.DataType) -> str:
    """Return the DuckDB type that stands for an Arrow type."""
    if pa.types.is_list(kind):
        return f"{sql_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{field.name} {sql_type(field.type)}' for field in kind)})"
    return _SQL_TYPES[str(kind)]


def declared(columns: Iterable[Column]) -> str:
    """Return columns as a CREATE TABLE declares them, in their types for readers."""
    return ", ".join(
        f"{column.name} {sql_type(column.read_type)}{' NOT NULL' if column.is_required else ''}" for column in columns
    )


def select_columns(columns: Iterable[Column], files: Iterable[Path | str], *, enumerated: bool = False) -> str:
    """Return a SELECT of declared columns, in their types for readers, over Parquet files or patterns.

    `enumerated`: some texts as enumerations, which the session has with all values.
    """
    types = {column: enumeration_of(column) if enumerated else None for column in columns}
    paths = [literal(str(file)) for file in files]
    if not paths:
        empty = (f"NULL::{kind or sql_type(column.read_type)} AS {column.name}" for column, kind in types.items())
        return f"SELECT {', '.join(empty)} WHERE false"
    read = ", ".join(_read(column, kind) for column, kind in types.items())
    return f"SELECT {read} FROM read_parquet([{', '.join(paths)}])"  # noqa: S608 - our own names; paths are quoted


def _read(column: Column, enumeration: str | None) -> str:
    if enumeration:
        # It has all values of the column. DuckDB applies a cast that cannot fail to the dictionary of a file, and one
        # that can to every row, which takes nine times as long.
        return f"TRY_CAST({column.name} AS {enumeration}) AS {column.name}"
    if column.derived:
        return f"{column.derived} AS {column.name}"
    is_wider = column.read_type != column.type
    return f"{column.name}::{sql_type(column.read_type)} AS {column.name}" if is_wider else column.name


def as_stored(columns: Iterable[Column], *, enumerated: bool = False) -> str:
    """Return a SELECT list of declared columns in the types of their files.

    `enumerated`: enumerations as they are, since a file has them as texts.
    """
    return ", ".join(
        column.name
        if enumerated and enumeration_of(column)
        else f"{column.name}::{sql_type(column.type)} AS {column.name}"
        for column in columns
    )
