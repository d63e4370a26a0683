"""Commits to the lake's Delta tables, each under a name that is used only once.

The name is an application transaction, so that a repeated or racing commit is recognised as done.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction

from pipeline.domain.errors import LakeError, first_line
from pipeline.domain.tables import Table
from pipeline.lake.checksums import Recorded, note_gone, refuse_damaged
from pipeline.lake.lake import Lake
from pipeline.lake.table_log import CHECKPOINT_EVERY, existing, files_of, forget, note_log, reading, record_log
from pipeline.process.failures import as_ours

# Attempts of a commit that loses races to others, which is rare.
_RACES = 5
# When a vacuum of the table may remove replaced files: never, as our own views still read them.
_NEVER_MS = 253_402_300_799_000


def is_committed(lake: Lake, table: Table, transaction: str) -> bool:
    """Whether a transaction of that name has been committed to a table."""
    delta = existing(lake, table)
    return delta is not None and _has(lake, table, delta, transaction)


def _has(lake: Lake, table: Table, delta: DeltaTable, transaction: str) -> bool:
    with reading(lake.table_root(table.name)):
        return delta.transaction_version(transaction) is not None


def committed_files(lake: Lake, table: Table) -> list[Path]:
    """Return the data files of a table; none if there is no table yet."""
    delta = existing(lake, table)
    return [] if delta is None else list(files_of(lake, table, delta))


def committed_sizes(lake: Lake, table: Table) -> dict[Path, int]:
    """Return the data files of a table with their bytes, as they were committed. Raises LakeError for a broken log."""
    delta = existing(lake, table)
    if delta is None:
        return {}
    root = lake.table_root(table.name)
    with reading(root):
        actions = delta.get_add_actions()
    pairs = zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True)
    return {root / path: size for path, size in pairs}


def refuse_broken_logs(lake: Lake, tables: Iterable[Table]) -> None:
    """Raise LakeError if the log of a table cannot be read, so that answers could not be loaded."""
    for table in tables:
        delta = existing(lake, table)
        _refuse_lost_commits(lake, table, -1 if delta is None else delta.version())
        if delta is not None:
            log = lake.table_root(table.name) / "_delta_log"
            # Entries before the last checkpoint are no longer read.
            refuse_damaged(lake.root, sorted(log.glob("*.json"))[-CHECKPOINT_EVERY:])
            refuse_damaged(lake.root, sorted(log.glob("*.checkpoint*.parquet"))[-1:])


def commit_rows(lake: Lake, table: Table, rows: pa.Table, sweep_id: str, file_name: str, transaction: str) -> None:
    """Write rows as one file and commit it; nothing happens if the transaction was committed before."""
    if is_committed(lake, table, transaction):
        return
    path = lake.table_file(table.name, sweep_id, file_name)
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows.cast(table.schema),
        sink,
        compression="zstd",
        store_decimal_as_integer=True,
        store_schema=False,
        write_page_checksum=True,
    )
    lake.put(path, sink.getvalue().to_pybytes())
    commit_files(lake, table, {transaction: [path]})


def commit_files(lake: Lake, table: Table, loads: Mapping[str, Sequence[str]]) -> None:
    """Add files to a table in one commit: `loads` has them by transaction. A transaction committed before is skipped.

    Raises LakeError if the commit cannot be written, and LakeFull if there is no space.
    """
    try:
        for is_last in (*[False] * _RACES, True):
            try:
                _commit(lake, table, loads)
            except CommitFailedError:
                # Another process has committed in between, perhaps this very load.
                if is_last:
                    raise
            else:
                return
    except (DeltaError, OSError, pa.ArrowException) as error:
        raise as_ours(error) or LakeError(
            f"The table {lake.table_root(table.name)} could not be written: {first_line(error)}",
            kept="The raw answers are untouched, and each load is in a table completely or not at all.",
            hint="Fix the cause, then run the command again.",
        ) from None


def replace_files(lake: Lake, table: Table, replaced: Mapping[str, str | None], transaction: str) -> None:
    """Replace files of a table with others, or with none, in one commit, unless that transaction was committed before.

    Both are paths in the lake. The library cannot commit the removal of single files, so the log's entry is written
    here by Delta's protocol, under the next number, which only one writer gets. Raises LakeError.
    """
    for _ in range(_RACES):
        delta = existing(lake, table)
        if delta is None or _has(lake, table, delta, transaction) or not replaced:
            return
        version = delta.version() + 1
        _refuse_lost_commits(lake, table, delta.version())
        log = lake.table_root(table.name).relative_to(lake.root) / "_delta_log" / f"{version:020}.json"
        if lake.put_new(log.as_posix(), _replacement(lake, table, replaced, transaction)):
            return
    raise LakeError(
        f"The table {lake.table_root(table.name)} could not be written: other processes kept committing to it.",
        kept="The raw answers are untouched, and each load is in a table completely or not at all.",
        hint="Run the command again.",
    )


def _replacement(lake: Lake, table: Table, replaced: Mapping[str, str | None], transaction: str) -> bytes:
    """Return the entry of a log that removes files and adds others."""
    root = lake.table_root(table.name)
    refuse_damaged(lake.root, [lake.local(path) for path in replaced.values() if path])
    actions: list[dict[str, object]] = [{"txn": {"appId": transaction, "version": 1}}]
    for former in replaced:
        name = lake.local(former).relative_to(root).as_posix()
        actions.append({"remove": {"path": name, "deletionTimestamp": _NEVER_MS, "dataChange": True}})
    actions += [
        {
            "add": {
                "path": added.path,
                "partitionValues": {},
                "size": added.size,
                "modificationTime": added.modification_time,
                "dataChange": True,
                "stats": added.stats,
            }
        }
        for added in _additions(lake, table, [path for path in replaced.values() if path])
    ]
    return "".join(f"{json.dumps(action)}\n" for action in actions).encode()


def _commit(lake: Lake, table: Table, loads: Mapping[str, Sequence[str]]) -> None:
    found = existing(lake, table)
    _refuse_lost_commits(lake, table, -1 if found is None else found.version(), chain.from_iterable(loads.values()))
    delta = found or _created(lake, table)
    missing = [transaction for transaction in loads if not _has(lake, table, delta, transaction)]
    if not missing:
        return
    paths = [path for transaction in missing for path in loads[transaction]]
    refuse_damaged(lake.root, [lake.local(path) for path in paths])
    forget(lake, table)
    note_log(lake, table, delta.version() + 1)
    delta.create_write_transaction(
        list(_additions(lake, table, paths)),
        mode="append",
        schema=table.schema,
        commit_properties=CommitProperties(app_transactions=[Transaction(transaction, 1) for transaction in missing]),
    )
    record_log(lake, table)


def _refuse_lost_commits(lake: Lake, table: Table, version: int, added: Iterable[str] = ()) -> None:
    """Raise LakeError if a log ends before its recorded commits, so that no new commit replaces a lost one.

    A table is created again if only the folders of the added files are left.
    """
    root = lake.table_root(table.name)
    log, known = root / "_delta_log", {lake.local(path).parent for path in added}
    if not root.is_dir() or known.issuperset(root.iterdir()):
        return
    lost = [
        place.stem
        for place in Recorded(lake.root).missing(log)
        if place.suffix == ".json" and place.stem.isdecimal() and int(place.stem) > version
    ]
    if lost:
        raise LakeError(
            f"The log of the table {log.parent} has lost entries: it ends at version {version}, but version "
            f"{int(lost[-1])} was committed.",
            kept="Nothing was changed.",
            hint="See how to repair it: nightaudit verify --deep",
        )


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


def _created(lake: Lake, table: Table) -> DeltaTable:
    note_gone(lake.root, Recorded(lake.root).missing(lake.table_root(table.name) / "_delta_log"))
    note_log(lake, table, 0)
    return DeltaTable.create(
        lake.table_root(table.name),
        schema=table.schema,
        mode="ignore",
        name=table.name,
        description=table.grain,
        configuration={"delta.checkpointInterval": str(CHECKPOINT_EVERY)},
    )
