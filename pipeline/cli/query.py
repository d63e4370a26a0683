"""`nightaudit query`: the published file from the command line."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from pipeline.cli.query_values import as_object, as_text, json_text
from pipeline.cli.terminal import Terminal, opened
from pipeline.domain.errors import InputError
from pipeline.domain.texts import in_a_cell, printable

if TYPE_CHECKING:
    import subprocess

    from pipeline.settings import Settings

# Forms that only go into a file or a pipe.
_BINARY = ("parquet", "xlsx")
_ROWS_OF_A_TABLE = 50
# A table shows at least this many characters of a cell in one line.
_READABLE = 10


def show_query(sql: str, form: str, limit: int | None, seconds: float | None, output: Path | None) -> None:
    """Write the result of a query: as a table, as CSV, JSON lines, Parquet or an Excel sheet.

    `limit` is the most rows; unset: 50 in a table, otherwise all. `output` is the file; unset: standard output. Raises
    InputError for a bad query or form, and QueryStopped if it takes more than `seconds` (unset: the setting).
    """
    if form in _BINARY and output is None and sys.stdout.isatty():
        raise InputError(f"A terminal cannot show {form}: it is binary.", hint=f"Name a file: --output result.{form}")
    from pipeline.lake.user_query import query_process

    # It imports its libraries while we do.
    with query_process() as process:
        from pipeline.settings import read_settings

        _show(sql, form, limit, read_settings(), seconds, output, process)


def _show(
    sql: str,
    form: str,
    limit: int | None,
    settings: Settings,
    seconds: float | None,
    output: Path | None,
    process: subprocess.Popen[bytes],
) -> None:
    from pipeline.lake import Lake
    from pipeline.lake.user_query import Bounds, user_query

    bounds = Bounds(seconds or settings.query_seconds, settings.query_memory_mb)
    file = Lake(settings.lake).published_file
    with (
        user_query(file, sql, bounds, as_arrow=form == "parquet", process=process) as answer,
        opened(output, is_binary=form in _BINARY) as place,
    ):
        if form == "table":
            most = limit or _ROWS_OF_A_TABLE
            _show_table(place, answer.columns, list(islice(answer.rows(), most + 1)), most)
        elif form == "csv":
            writer = csv.writer(place, lineterminator="\n")
            writer.writerow(map(_as_cell, answer.columns))
            writer.writerows(map(_as_cell, row) for row in islice(answer.rows(), limit))
        elif form == "json":
            rows = (as_object(answer.columns, row) for row in islice(answer.rows(), limit))
            place.writelines(json_text(row) + "\n" for row in rows)
        elif form == "parquet":
            from pipeline.cli.query_files import write_parquet

            write_parquet(place, answer.arrow(), limit)
        else:
            from pipeline.cli.query_files import write_sheet

            write_sheet(place, answer.columns, islice(answer.rows(), limit))


def _as_cell(value: object) -> object:
    """Return a value for a cell of a spreadsheet; texts may come from the supplier."""
    # A list or a struct may hold such texts, too.
    return value if value is None or isinstance(value, int | float | Decimal) else in_a_cell(as_text(value))


def _show_table(place: IO[str], names: Sequence[str], rows: Sequence[Sequence[Any]], limit: int) -> None:
    console = Terminal(file=place)
    # As Text, because they may come from the supplier and must not be read as markup.
    heads = [Text(printable(name)) for name in names]
    cells = [
        [Text("NULL", style="dim") if value is None else Text(printable(as_text(value))) for value in row]
        for row in rows[:limit]
    ]
    if _is_too_wide(heads, cells, console.width):
        for number, row in enumerate(cells, 1):
            table = Table(title=f"Row {number}", title_justify="left", show_header=False)
            for head, cell in zip(heads, row, strict=True):
                table.add_row(head, cell)
            console.print(table)
    else:
        table = Table(header_style="bold")
        for head in heads:
            table.add_column(head)
        for row in cells:
            table.add_row(*row)
        console.print(table)
    if len(rows) > limit:
        console.print(f"… only {limit} rows are shown; for more, use --limit.", style="dim")


def _is_too_wide(heads: Sequence[Text], cells: Sequence[Sequence[Text]], width: int) -> bool:
    """Whether columns would be too narrow to read, so that each row is shown as a list."""
    needed = sum(
        min(_READABLE, max(text.cell_len for text in column)) + 3 for column in zip(heads, *cells, strict=True)
    )
    return len(cells) > 0 and needed + 1 > width
