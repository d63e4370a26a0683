"""Reading a user's table: first as text with the row of each line, then as declared types.

CSV is split line by line, so that a fault names the row that a spreadsheet shows, even with blank lines and texts over
several lines. Rows of Parquet are counted as if there were a header too.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.errors import InputError, first_line
from pipeline.domain.names import meant_by
from pipeline.inputs.kinds import InputColumn
from pipeline.inputs.problems import MOST_SHOWN, Findings

ROW = "line_no"
# Names of the columns whose value could not be read, as a list.
REFUSED = "refused"
_CHUNK = 100_000
_MOST_ROWS = 10_000_000
_MOST_COLUMNS = 1_000
# What spreadsheets write between columns instead, in countries that write a decimal comma.
_OTHER_SEPARATORS = (";", "\t", "|")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_UNDECODED = re.compile("[\udc80-\udcff]")


def read_table(data: bytes, columns: Sequence[InputColumn], findings: Findings) -> pl.DataFrame:
    """Return the rows of a CSV or Parquet file with the declared columns, typed, with `line_no` and `refused`.

    Raises InputError if the file or its header cannot be used; an unreadable value is added to `findings` and becomes
    NULL.
    """
    is_parquet = findings.file_name.lower().endswith(".parquet")
    texts = _parquet_texts(data, findings) if is_parquet else csv_texts(data, findings)
    _check_header(texts.columns, columns, findings)
    return typed(texts, columns, findings)


def csv_texts(data: bytes, findings: Findings) -> pl.DataFrame:
    """Return the cells of a CSV file as stripped texts, NULL where empty, with the row of each line.

    Commas separate them, or what separates the names in a header without commas.

    Raises InputError if it is not CSV; lines with too many or too few cells are added to `findings`.
    """
    text = _decoded(data, findings)
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
        header = [name.strip() for name in next(lines, [])]
        if header and not header[-1]:
            header.pop()
        _refuse_too_wide(len(header), findings)
        if not header:
            findings.add(0, "", "it is empty: not even a header")
            findings.refuse_faults()
        for name in sorted(name for name, times in Counter(header).items() if times > 1):
            findings.add(1, name or "(without a name)", "the header names it twice")
        _refuse_own_names(header, findings)
        findings.refuse_faults()
        frames = list(_frames(lines, header, findings))
    except csv.Error as error:
        raise _unreadable(findings, f"row {lines.line_num}: {error}") from None
    schema = {ROW: pl.Int64, **dict.fromkeys(header, pl.String)}
    texts = pl.concat(frames) if frames else pl.DataFrame(schema=schema)
    cells = pl.col(header).str.strip_chars()
    return texts.with_columns(pl.when(cells != "").then(cells).name.keep())


def _separator(text: str) -> str:
    header = text.partition("\n")[0]
    return next((mark for mark in _OTHER_SEPARATORS if mark in header and "," not in header), ",")


def _decoded(data: bytes, findings: Findings) -> str:
    """Return the text of a file. Raises InputError with the rows and columns that are not UTF-8."""
    if data.startswith(_UTF_16):
        raise _unreadable(findings, "from row 1 on it is UTF-16; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", "surrogateescape")
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text))
    with suppress(csv.Error):
        header = [name.strip() for name in next(lines, [])]
        for row, cells in enumerate(chain([header], lines), 1):
            for index, cell in enumerate(cells):
                if bad := _UNDECODED.search(cell):
                    column = header[index] if row > 1 and index < len(header) else f"number {index + 1}"
                    reason = f"byte 0x{ord(bad[0]) - 0xDC00:02X} is not UTF-8; save the file as UTF-8"
                    _add_bounded(findings, row, reason, column)
    findings.refuse_faults()
    raise _unreadable(findings, "it is not UTF-8 text")


def _frames(lines: Iterator[list[str]], header: Sequence[str], findings: Findings) -> Iterator[pl.DataFrame]:
    schema: Mapping[str, type[pl.DataType]] = {ROW: pl.Int64, **dict.fromkeys(header, pl.String)}
    rows = _rows(lines, len(header), findings)
    while chunk := list(islice(rows, _CHUNK)):
        yield pl.DataFrame(chunk, schema=schema, orient="row")


def _rows(lines: Iterator[list[str]], width: int, findings: Findings) -> Iterator[list[object]]:
    number = 1
    for cells in lines:
        number += 1
        if not any(map(str.strip, cells)):
            continue
        if len(cells) < width:
            _add_bounded(findings, number, f"{len(cells)} cells, where the header has {width}")
        elif any(map(str.strip, cells[width:])):
            _add_bounded(
                findings, number, f"more than the {width} cells of the header; is a text with separators unquoted?"
            )
        else:
            yield [number, *cells[:width]]


def _refuse_too_wide(columns: int, findings: Findings) -> None:
    if columns > _MOST_COLUMNS:
        raise _unreadable(findings, f"it has {columns:,} columns, more than {_MOST_COLUMNS:,}")


def _refuse_own_names(header: Iterable[str], findings: Findings) -> None:
    for name in header:
        if name in {ROW, REFUSED}:
            findings.add(1, name, "this name is reserved; rename or remove the column")


def _add_bounded(findings: Findings, row: int, reason: str, column: str = "") -> None:
    if len(findings.faults) < MOST_SHOWN:
        findings.add(row, column, reason)
    else:
        findings.count_unseen(1)


def _parquet_texts(data: bytes, findings: Findings) -> pl.DataFrame:
    try:
        # Polars panics on some damaged files and texts, so they are read and validated by another library first.
        file = pq.ParquetFile(io.BytesIO(data))
        held = file.metadata
        # A few bytes can stand for any number of equal rows.
        if held.num_rows > _MOST_ROWS:
            raise _unreadable(findings, f"it has {held.num_rows:,} rows, more than {_MOST_ROWS:,}; divide it")
        _refuse_too_wide(held.num_columns, findings)
        table = file.read(use_threads=False)
        table.validate(full=True)
        frame = pl.DataFrame(table.select(table.column_names).replace_schema_metadata())
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise _unreadable(findings, f"it is not Parquet: {first_line(error).rstrip('.')}") from None
    _refuse_own_names(frame.columns, findings)
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in {pl.Binary, pl.Boolean, pl.Time, pl.Duration}:
            findings.add(1, name, f"its type {kind} cannot be read")
    findings.refuse_faults()
    texts = [_as_text(name, kind) for name, kind in frame.schema.items()]
    rows = pl.int_range(2, pl.len() + 2, dtype=pl.Int64).alias(ROW)
    return frame.select(texts).with_columns(rows).select(ROW, *frame.columns)


def _as_text(name: str, kind: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if isinstance(kind, pl.Datetime):
        # Without a time zone it has no offset, and is refused.
        return (column if kind.time_zone is None else column.dt.convert_time_zone("UTC")).dt.to_string("iso:strict")
    text = column.cast(pl.String)
    if not kind.is_float():
        return text
    # A float beyond the whole numbers that its type can tell apart may already be a different id from the one written:
    # it keeps its ".0" and is refused.
    exact = 2**11 if kind == pl.Float16 else 2**24 if kind == pl.Float32 else 2**53
    return pl.when(column.abs() < exact).then(text.str.replace(r"\.0$", "")).otherwise(text)


def _check_header(found: Iterable[str], columns: Sequence[InputColumn], findings: Findings) -> None:
    known = [column.name for column in columns]
    for name in found:
        if name not in {ROW, *known}:
            meant = meant_by(name, known)
            like = f"; did you mean {meant}?" if meant else "."
            findings.add(1, name, f"it is unknown{like} Known columns: {', '.join(known)}")
    for column in columns:
        if column.is_required and column.name not in found:
            findings.add(1, column.name, "the column is missing")
    findings.refuse_faults()


def typed(texts: pl.DataFrame, columns: Sequence[InputColumn], findings: Findings) -> pl.DataFrame:
    """Return the texts as their declared types. An unreadable one is NULL, in `refused`, and added to `findings`."""
    absent = [pl.lit(None, pl.String).alias(column.name) for column in columns if column.name not in texts.columns]
    texts = texts.with_columns(absent)
    values = texts.select(ROW, *(column.kind.parse(pl.col(column.name)).alias(column.name) for column in columns))
    refused = []
    for column in columns:
        is_refused = values[column.name].is_null() & texts[column.name].is_not_null()
        report(findings, texts.filter(is_refused), column.name, _unlike(column.kind.expected))
        if column.is_required:
            report(findings, texts.filter(texts[column.name].is_null()), column.name, lambda _: "it is empty")
            is_refused = values[column.name].is_null()
        refused.append(pl.when(is_refused).then(pl.lit(column.name)))
    return values.with_columns(pl.concat_list(refused).list.drop_nulls().alias(REFUSED))


def readable(rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Return the rows in which none of `columns` was refused."""
    return rows.filter(pl.col(REFUSED).list.set_intersection(list(columns)).list.len() == 0)


def _unlike(expected: str) -> Callable[[object], str]:
    return lambda text: f"{text!r} is not {expected}"


def report(findings: Findings, rows: pl.DataFrame, column: str, reason: Callable[[object], str]) -> None:
    """Add a fault for each of `rows`, with the `reason` of its value of `column`; of many, only the first are shown."""
    first = rows.sort(ROW).head(MOST_SHOWN)
    for row, value in zip(first[ROW], first[column], strict=True):
        findings.add(row, column, reason(value))
    findings.count_unseen(rows.height - first.height)


def report_repeated(findings: Findings, rows: pl.DataFrame, key: Sequence[str], words: str) -> None:
    """Add a fault for each row whose `key` an earlier row has already; `words` describe the key.

    The fault names the columns of the key that the file gives.
    """
    column = ", ".join(name for name in key if rows[name].null_count() < rows.height)
    first = rows.with_columns(pl.col(ROW).min().over(key).alias("first")).filter(pl.col(ROW) > pl.col("first"))
    for row, earlier in first.sort(ROW).head(MOST_SHOWN).select(ROW, "first").iter_rows():
        findings.add(row, column, f"{words} as row {earlier}")
    findings.count_unseen(max(first.height - MOST_SHOWN, 0))


def _unreadable(findings: Findings, reason: str) -> InputError:
    return InputError(f"{findings.file_name} cannot be loaded: {reason}.", kept="Nothing was loaded.")
