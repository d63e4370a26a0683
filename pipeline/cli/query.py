"""`nightaudit query`: the published file from the command line."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.domain.errors import InputError
from pipeline.settings import read_settings

if TYPE_CHECKING:
    import duckdb

_BATCH = 10_000


def show_query(sql: str, form: str, limit: int) -> None:
    """Print the result of a query as a table, as CSV, or as JSON lines. Raises InputError for a bad query or form."""
    if form not in {"table", "csv", "json"}:
        raise InputError(f"--format is table, csv or json, not {form!r}.")
    import duckdb

    from pipeline.lake import Lake
    from pipeline.lake.database import query_published, told

    file = Lake(read_settings().lake).published_file
    result = query_published(file, sql)
    try:
        _show(result, form, limit)
    except duckdb.Error as error:
        raise told(file, error) from None


def _show(result: duckdb.DuckDBPyConnection, form: str, limit: int) -> None:
    names = [column[0] for column in result.description or []]
    if form == "table":
        _show_table(names, result.fetchmany(limit + 1), limit)
        return
    writer = csv.writer(sys.stdout)
    if form == "csv":
        writer.writerow(names)
    while rows := result.fetchmany(_BATCH):
        if form == "csv":
            writer.writerows(rows)
        else:
            sys.stdout.writelines(
                json.dumps(dict(zip(names, map(_as_json, row), strict=True)), default=str, ensure_ascii=False) + "\n"
                for row in rows
            )


def _as_json(value: object) -> object:
    """Return a value that JSON can say: it knows neither NaN nor infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    return [_as_json(item) for item in value] if isinstance(value, list | tuple) else value


def _show_table(names: Sequence[str], rows: Sequence[Sequence[Any]], limit: int) -> None:
    console = Console()
    table = Table(*names, header_style="bold")
    for row in rows[:limit]:
        # Texts come from the supplier: nothing in them is markup of ours.
        table.add_row(*(Text("NULL", style="dim") if value is None else Text(str(value)) for value in row))
    console.print(table)
    if len(rows) > limit:
        console.print(f"… and more: only {limit} rows are shown (--limit).", style="dim")
