"""The figures of a report as files: CSV for spreadsheets, Parquet for programs, JSON for machines.

Text from a supplier may start like a formula, which a spreadsheet would run, or contain control characters. CSV
neutralises both, JSON only control characters, and Parquet keeps text as received.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow.parquet as pq

from pipeline.domain.texts import GUARDED, in_a_cell, printable_json

# Rows that are made text at once: nested values and texts take many times the memory that they have in a frame.
_ROWS_AT_ONCE = 5_000


def write_figures(frames: Iterable[pl.DataFrame], csv: Path, parquet: Path) -> None:
    """Write the rows of frames as CSV and as Parquet, in which each of several frames is a row group."""
    ahead = iter(frames)
    first, second = next(ahead), next(ahead, None)
    with csv.open("wb") as file:
        file.writelines(as_csv(first))
        if second is None:
            first.write_parquet(parquet)
            return
        table = first.to_arrow()
        with pq.ParquetWriter(parquet, table.schema, compression="zstd") as writer:
            writer.write_table(table)
            for frame in chain([second], ahead):
                file.writelines(as_csv(frame, has_header=False))
                writer.write_table(frame.to_arrow().cast(table.schema))


def as_csv(frame: pl.DataFrame, *, has_header: bool = True) -> Iterator[bytes]:
    """Yield a frame as parts of a CSV file with neutralised text; nested values are JSON."""
    for place, part in enumerate(frame.iter_slices(_ROWS_AT_ONCE) if frame.height else [frame]):
        flat = part.with_columns(
            pl.col(name).map_elements(_json, return_dtype=pl.String)
            for name, kind in part.schema.items()
            if kind.is_nested()
        )
        safe = flat.with_columns(_guarded(flat[name]) for name, kind in flat.schema.items() if kind == pl.String)
        is_first = has_header and place == 0
        yield safe.write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ", include_header=is_first).encode()


def as_json(page: dict[str, Any]) -> bytes:
    """Return plain values as JSON: money as text, so that no digit is lost, and instants in UTC."""
    return printable_json(msgspec.json.format(msgspec.json.encode(page), indent=1).decode()).encode()


def _guarded(texts: pl.Series) -> pl.Series:
    # Few columns have such text, and polars finds out quickly.
    return texts.map_elements(in_a_cell, pl.String) if texts.str.contains(GUARDED).any() else texts


def _json(value: object) -> str:
    plain = value.to_list() if isinstance(value, pl.Series) else value
    return json.dumps(plain, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    return value.isoformat() if isinstance(value, date) else str(value) if isinstance(value, Decimal) else repr(value)
