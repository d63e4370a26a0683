"""Loading: the files of normalised segments become rows of the lake's Delta tables, each exactly once.

A partition (operation and market) of a sweep is one commit a table. The commit carries an application transaction
named after sweep and partition, so that a repeated or racing load finds it done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from pipeline.domain.errors import LakeError
from pipeline.domain.shards import Partition, segments
from pipeline.domain.tables import TABLES, Table
from pipeline.lake import Lake

# What a segment may hold.
SEGMENT_TABLES = ("search", "offer", "penalty", "promotion", "reject", "drift", "cell")


def load_partition(lake: Lake, sweep_id: str, partition: Partition) -> None:
    """Commit the files of all segments of a partition. Loading it again changes nothing."""
    names = [segment.name for segment in segments(partition)]
    for name in SEGMENT_TABLES:
        paths = [lake.table_file(name, sweep_id, segment) for segment in names]
        held = [path for path in paths if lake.exists(path)]
        if held:
            commit_files(lake, TABLES[name], held, f"{sweep_id}/{partition.name}")


def is_loaded(lake: Lake, sweep_id: str, partition: Partition) -> bool:
    """Whether a partition's cells, which are loaded last, are in the lake's tables."""
    return is_committed(lake, TABLES["cell"], f"{sweep_id}/{partition.name}")


def is_committed(lake: Lake, table: Table, transaction: str) -> bool:
    """Whether a transaction of that name has been committed to a table."""
    delta = _existing(lake, table)
    return delta is not None and delta.transaction_version(transaction) is not None


def commit_rows(lake: Lake, table: Table, rows: pa.Table, sweep_id: str, file_name: str, transaction: str) -> None:
    """Write rows as one file and commit it; nothing happens if the transaction was committed before."""
    if is_committed(lake, table, transaction):
        return
    path = lake.table_file(table.name, sweep_id, file_name)
    sink = pa.BufferOutputStream()
    pq.write_table(rows.cast(table.schema), sink, compression="zstd", store_decimal_as_integer=True, store_schema=False)
    lake.put(path, sink.getvalue().to_pybytes())
    commit_files(lake, table, [path], transaction)


def commit_files(lake: Lake, table: Table, paths: Sequence[str], transaction: str) -> None:
    """Add files to a table in one commit, unless a transaction of that name was committed before.

    Raises LakeError where the commit could not be written.
    """
    try:
        delta = _existing(lake, table) or _created(lake, table)
        if delta.transaction_version(transaction) is not None:
            return
        delta.create_write_transaction(
            list(_additions(lake, table, paths)),
            mode="append",
            schema=table.schema,
            commit_properties=CommitProperties(app_transactions=[Transaction(transaction, 1)]),
        )
    except CommitFailedError:
        # Another process committed in between. If it was the same load, it is done; if not, this is not ours to hide.
        if not is_committed(lake, table, transaction):
            raise
    except (DeltaError, OSError) as error:
        raise LakeError(
            f"The table {lake.table_root(table.name)} could not be written: {str(error).splitlines()[0]}",
            kept="The raw answers are untouched, and each table holds a load wholly or not at all.",
            hint="Mend the cause (space, permissions), then go on with: nightaudit resume",
        ) from None


def _additions(lake: Lake, table: Table, paths: Iterable[str]) -> Iterable[AddAction]:
    root = lake.table_root(table.name)
    for path in paths:
        place = lake.local(path)
        stat = place.stat()
        rows = pq.read_metadata(place).num_rows
        yield AddAction(
            path=place.relative_to(root).as_posix(),
            size=stat.st_size,
            partition_values={},
            modification_time=int(stat.st_mtime * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": rows}),
        )


def _existing(lake: Lake, table: Table) -> DeltaTable | None:
    try:
        return DeltaTable(lake.table_root(table.name))
    except TableNotFoundError:
        return None


def _created(lake: Lake, table: Table) -> DeltaTable:
    return DeltaTable.create(
        lake.table_root(table.name),
        schema=table.schema,
        mode="ignore",
        name=table.name,
        description=table.grain,
    )


def is_sweep_loaded(lake: Lake, sweep_id: str) -> bool:
    """Whether a sweep has ended and all its rows are in the lake's tables."""
    return is_committed(lake, TABLES["sweep"], sweep_id)
