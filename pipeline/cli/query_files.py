"""The answer of a query as a file that other programs open: Parquet with its types, or one sheet of Excel."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final

from pipeline.cli.query_values import as_text
from pipeline.domain.errors import InputError
from pipeline.domain.texts import printable

if TYPE_CHECKING:
    from pipeline.lake.user_query import Row

_MOST_ROWS: Final = 1_048_575
_MOST_COLUMNS: Final = 16_384
_MOST_LETTERS: Final = 32_767
# A larger whole number would lose digits: Excel calculates with doubles.
_EXACT: Final = 2**53


def write_parquet(place: IO[bytes], stream: Iterator[bytes], limit: int | None) -> None:
    """Write at most `limit` rows of an Arrow stream as Parquet. Raises InputError if Parquet lacks a type."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.ipc.read_schema(pa.py_buffer(next(stream)))
    left = math.inf if limit is None else limit
    try:
        with pq.ParquetWriter(place, schema) as writer:
            for part in stream:
                batch = pa.ipc.read_record_batch(pa.py_buffer(part), schema)
                writer.write_batch(batch if batch.num_rows <= left else batch.slice(0, int(left)))
                left -= batch.num_rows
                if left <= 0:
                    break
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise InputError(
            f"The result cannot be written as Parquet: {error}", hint="Cast that column to VARCHAR in the query."
        ) from None


def write_sheet(place: IO[bytes], names: Sequence[str], rows: Iterator[Row]) -> None:
    """Write rows as a workbook of one sheet with a fixed header. Raises InputError for too many.

    Text is never a formula. Instants are in UTC; numbers that a double cannot hold are text.
    """
    # In a file of its own first: after a write that failed, the library's archive would fail again when it is dropped.
    with TemporaryFile() as whole:
        _write_book(whole, names, rows)
        whole.seek(0)
        shutil.copyfileobj(whole, place)


def _write_book(place: IO[bytes], names: Sequence[str], rows: Iterator[Row]) -> None:
    import xlsxwriter
    from xlsxwriter.worksheet import Worksheet

    class Sheet(Worksheet):  # type: ignore[misc]
        """A sheet with the shortest decimals: the library writes 16 digits, 88.49 as 88.48999999999999."""

        def _xml_number_element(self, number: float, attributes: Sequence[tuple[str, object]] = ()) -> None:
            stated = "".join(f' {key}="{value}"' for key, value in attributes)
            self.fh.write(f"<c{stated}><v>{_shortest(number)}</v></c>")

    if len(names) > _MOST_COLUMNS:
        raise InputError(
            f"The result has {len(names):,} columns, and a sheet holds at most {_MOST_COLUMNS:,}.",
            hint="Select fewer columns, or write Parquet: --format parquet",
        )
    # Row by row, so that memory does not grow with the answer; without the time of writing, so that bytes are stable.
    with xlsxwriter.Workbook(place, {"constant_memory": True, "default_date_format": "yyyy-mm-dd"}) as book:
        book.set_properties({"created": datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)})
        bold, instant = book.add_format({"bold": True}), book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        sheet = book.add_worksheet("query", worksheet_class=Sheet)
        sheet.freeze_panes(1, 0)
        for column, name in enumerate(names):
            sheet.write_string(0, column, printable(name), bold)
        for number, row in enumerate(rows, 1):
            if number > _MOST_ROWS:
                raise InputError(
                    f"The result has more than the {_MOST_ROWS:,} rows that a sheet holds.",
                    hint="Narrow the query, or write Parquet: --format parquet",
                )
            for column, value in enumerate(row):
                _write_cell(sheet, number, column, value, instant)


def _shortest(number: float) -> str:
    return f"{number:.0f}" if number == int(number) else repr(number)


def _is_held(number: float | Decimal) -> bool:
    """Whether a double has all digits of a number."""
    if not (math.isfinite(number) and -_EXACT <= number <= _EXACT):
        return False
    return not isinstance(number, Decimal) or Decimal(repr(float(number))) == number


def _write_cell(sheet: Any, row: int, column: int, value: object, instant: Any) -> None:  # noqa: ANN401 - it has no types
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float | Decimal) and _is_held(value):
        sheet.write_number(row, column, float(value))
    elif isinstance(value, datetime):
        sheet.write_datetime(
            row, column, value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value, instant
        )
    elif isinstance(value, date):
        sheet.write_datetime(row, column, value)
    else:
        sheet.write_string(row, column, printable(as_text(value))[:_MOST_LETTERS])
