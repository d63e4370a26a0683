"""`nightaudit query`: the published file from the command line."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.domain.errors import InputError
from pipeline.settings import read_settings

_BATCH = 10_000


def show_query(sql: str, form: str, limit: int) -> None:
    """Print the result of a query as a table, as CSV, or as JSON lines. Raises InputError for a bad query or form."""
    if form not in {"table", "csv", "json"}:
        raise InputError(f"--format is table, csv or json, not {form!r}.")
    from pipeline.lake import Lake
    from pipeline.warehouse import query_published

    result = query_published(Lake(read_settings().lake).published_file, sql)
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
                json.dumps(dict(zip(names, row, strict=True)), default=str, ensure_ascii=False) + "\n" for row in rows
            )


def _show_table(names: Sequence[str], rows: Sequence[Sequence[Any]], limit: int) -> None:
    console = Console()
    table = Table(*names, header_style="bold")
    for row in rows[:limit]:
        # Texts come from the supplier: nothing in them is markup of ours.
        table.add_row(*(Text("NULL", style="dim") if value is None else Text(str(value)) for value in row))
    console.print(table)
    if len(rows) > limit:
        console.print(f"… and more: only {limit} rows are shown (--limit).", style="dim")
