"""`nightaudit query`: the published file from the command line."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import InputError
from pipeline.domain.texts import printable, printable_json, unformulated
from pipeline.settings import read_settings

if TYPE_CHECKING:
    from pipeline.lake.user_query import Row

_FORMS = ("table", "csv", "json")


def show_query(sql: str, form: str, limit: int, seconds: float | None) -> None:
    """Print the result of a query as a table, as CSV, or as JSON lines.

    Raises InputError for a bad query or form, and QueryStopped where it takes more than `seconds` (unset: the setting).
    """
    if form not in _FORMS:
        raise InputError(f"--format is table, csv or json, not {form!r}.")
    from pipeline.lake import Lake
    from pipeline.lake.user_query import Bounds, user_query

    settings = read_settings()
    bounds = Bounds(seconds or settings.query_seconds, settings.query_memory_mb)
    with user_query(Lake(settings.lake).published_file, sql, bounds) as answer:
        if form == "table":
            _show_table(answer.columns, list(islice(answer.rows(), limit + 1)), limit)
        elif form == "csv":
            _write_csv(answer.columns, answer.rows())
        else:
            sys.stdout.writelines(_json_line(answer.columns, row) for row in answer.rows())


def _write_csv(names: Sequence[str], rows: Iterator[Row]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(_as_cell, names))
    writer.writerows(map(_as_cell, row) for row in rows)


def _as_cell(value: object) -> object:
    """Return a value for a cell of a spreadsheet or a terminal; texts come from the supplier."""
    if value is None or isinstance(value, int | float):
        return value
    text = printable(str(value))
    return unformulated(text) if isinstance(value, str) else text


def _json_line(names: Sequence[str], row: Row) -> str:
    held = dict(zip(names, map(_as_json, row), strict=True))
    return printable_json(json.dumps(held, default=str, ensure_ascii=False)) + "\n"


def _as_json(value: object) -> object:
    """Return a value that JSON can say: it knows neither NaN nor infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _as_json(item) for key, item in value.items()}
    return [_as_json(item) for item in value] if isinstance(value, list | tuple) else value


def _show_table(names: Sequence[str], rows: Sequence[Sequence[Any]], limit: int) -> None:
    console = Terminal()
    table = Table(header_style="bold")
    for name in names:
        table.add_column(Text(printable(name)))
    for row in rows[:limit]:
        # Texts come from the supplier: nothing in them is markup of ours. What is shown is measured.
        table.add_row(*(Text("NULL", style="dim") if value is None else Text(printable(str(value))) for value in row))
    console.print(table)
    if len(rows) > limit:
        console.print(f"… and more: only {limit} rows are shown (--limit).", style="dim")
