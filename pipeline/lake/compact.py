"""Merges a night's many files of a table into a few, sorted by property, so that views over many nights open fewer.

While a sweep lands, each of its segments is a file. Once all are loaded, they are merged into files of about 128 MB in
another folder, in one commit. The rows stay the same.
"""

import math
from collections.abc import Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from pipeline.domain.errors import LakeError, LakeFull, first_line
from pipeline.domain.tables import Table
from pipeline.domain.texts import literal
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.column_sql import as_stored
from pipeline.lake.database import connect
from pipeline.lake.delta import replace_files
from pipeline.lake.files import building, touch
from pipeline.lake.lake import Lake
from pipeline.lake.sweep_files import COMPACT

_FILE_BYTES = 128_000_000

# Files are sorted and divided by the first of these columns that a table has.
_SORTED_BY = ("property_id", "search_id", "segment")


def files_wanted(files: Sequence[Path]) -> int:
    """Return how many files are enough."""
    return max(1, math.ceil(sum(file.stat().st_size for file in files) / _FILE_BYTES))


def compact(lake: Lake, table: Table, sweep_id: str, files: Sequence[Path]) -> None:
    """Replace the many files of one sweep with a few. The caller holds the lake's writer lock.

    Raises CorruptObject if one of them is damaged, and LakeError if they cannot be written or rows would be lost; the
    table is then unchanged.
    """
    refuse_damaged(lake.root, files)
    try:
        paths = _written(lake, table, sweep_id, files)
    except (OSError, duckdb.Error) as error:
        is_full = isinstance(error, (OSError, duckdb.IOException, duckdb.OutOfMemoryException))
        raise (LakeFull if is_full else LakeError)(
            f"The files of {table.name} of {sweep_id} could not be merged: {first_line(error)}",
            kept="The table is unchanged.",
            hint="Fix the cause (disk space or memory), then: nightaudit lake --apply",
        ) from None
    before = sum(pq.read_metadata(file).num_rows for file in files)
    after = sum(pq.read_metadata(lake.local(path)).num_rows for path in paths)
    if before != after:
        raise LakeError(
            f"The files of {table.name} of {sweep_id} were not merged: {before:,} rows were read, {after:,} written.",
            kept="The table is unchanged.",
            hint="Try again: nightaudit lake --apply. If it fails again, please report it.",
        )
    touch(files)
    former = [lake.path_of(file) for file in files]
    replaced = dict(zip_longest(former, paths))
    replace_files(lake, table, replaced, f"{sweep_id}/compact")


def _written(lake: Lake, table: Table, sweep_id: str, files: Sequence[Path]) -> list[str]:
    names = [column.name for column in table.stored]
    by = next(name for name in _SORTED_BY if name in names)
    source = f"read_parquet([{', '.join(literal(str(file)) for file in files)}])"
    order = ", ".join([f"{by} NULLS FIRST", *(name for name in table.key if name != by)])
    paths = []
    with connect(lake) as session:
        session.execute("SET preserve_insertion_order = true")
        for number, within in enumerate(_ranges(session, source, by, files_wanted(files))):
            path = lake.table_file(table.name, f"{COMPACT}{sweep_id}", str(number))
            with building(lake.local(path)) as built:
                session.execute(
                    f"COPY (SELECT {as_stored(table.stored)} FROM {source} WHERE {within} ORDER BY {order}) "  # noqa: S608 - our own names
                    f"TO {literal(str(built))} (FORMAT parquet, COMPRESSION zstd)"
                )
            paths.append(path)
    return paths


def _ranges(session: duckdb.DuckDBPyConnection, source: str, by: str, count: int) -> list[str]:
    """Return a condition for each of `count` files with about the same number of rows; NULL belongs to the first."""
    shares = ", ".join(str(number / count) for number in range(1, count))
    bounds: list[int] = []
    if shares:
        found = session.execute(f"SELECT quantile_disc({by}, [{shares}]) FROM {source}").fetchone()  # noqa: S608 - our own names
        bounds = sorted(set((found or [None])[0] or ()))
    if not bounds:
        return ["true"]
    between = [f"{by} > {low} AND {by} <= {high}" for low, high in pairwise(bounds)]
    return [f"({by} <= {bounds[0]} OR {by} IS NULL)", *between, f"{by} > {bounds[-1]}"]
