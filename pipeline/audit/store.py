"""Findings of audits as rows of the table `quality`: written once, read by the gate and by later nights."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.audit.history import History, Seen
from pipeline.audit.results import Audit, Finding
from pipeline.domain.tables import QUALITY
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.checksums import damaged_of, refuse_damaged
from pipeline.lake.database import connect, rows_of, select_files
from pipeline.lake.delta import commit_files, commit_rows, is_committed, replace_files
from pipeline.lake.sweep_files import files_of_sweep, quarantine_file

_FILE = "audit-{:05d}"


def stored_audit(lake: Lake, sweep_id: str) -> Audit | None:
    """Return the last stored audit of a sweep; None: no audit of it was completed."""
    last = _last(lake, sweep_id)
    while last and not is_committed(lake, QUALITY, _transaction(sweep_id, last)):
        last -= 1
    if not last:
        return None
    rows = _rows(lake, _path(lake, sweep_id, last))
    names = [field.name for field in fields(Finding)]
    findings = tuple(Finding(**{name: row[name] for name in names}) for row in rows)
    audited_at = rows[0]["audited_at"]
    return Audit(sweep_id, last, audited_at, findings, (), count_quarantined(lake, sweep_id), is_new=False)


def store(lake: Lake, audit: Audit) -> Audit:
    """Store an audit and return it with its number; if it finds what the last one found, that one is returned.

    Damaged audits of the sweep are removed.
    """
    last = _last(lake, audit.sweep_id)
    damaged = damaged_of(lake.root, files_of_sweep(lake, QUALITY, audit.sweep_id))
    stored = _stored(lake, audit, last, is_damaged=_path(lake, audit.sweep_id, last) in damaged)
    for place in damaged:
        path = lake.path_of(place)
        replace_files(lake, QUALITY, {path: None}, f"{audit.sweep_id}/{place.stem}/damaged")
        lake.remove(path)
    return stored


def _stored(lake: Lake, audit: Audit, last: int, *, is_damaged: bool) -> Audit:
    if last and not is_damaged:
        before = _rows(lake, _path(lake, audit.sweep_id, last))
        shared = {"sweep_id", "audit_no", "audited_at"}
        found = [{name: value for name, value in row.items() if name not in shared} for row in before]
        if found == [finding.as_row() for finding in audit.findings]:
            # The process may have ended between the file and its commit.
            path = lake.table_file(QUALITY.name, audit.sweep_id, _FILE.format(last))
            is_new = not is_committed(lake, QUALITY, _transaction(audit.sweep_id, last))
            commit_files(lake, QUALITY, {_transaction(audit.sweep_id, last): [path]})
            return replace(audit, audit_no=last, is_new=is_new)
    number = last + 1
    shared_values = {"sweep_id": audit.sweep_id, "audit_no": number, "audited_at": audit.audited_at}
    rows = pa.Table.from_pylist([shared_values | f.as_row() for f in audit.findings], schema=QUALITY.schema)
    transaction = _transaction(audit.sweep_id, number)
    commit_rows(lake, QUALITY, rows, audit.sweep_id, _FILE.format(number), transaction)
    return replace(audit, audit_no=number, is_new=True)


def refuse_damaged_audit(lake: Lake, sweep_id: str) -> None:
    """Raise CorruptObject if the last audit of a sweep has changed since it was written."""
    if last := _last(lake, sweep_id):
        refuse_damaged(lake.root, [_path(lake, sweep_id, last)])


def history(lake: Lake, nights: Sequence[str]) -> History:
    """Return the values measured in these nights, oldest first, by market, table and check.

    Their files are not damaged: see `refuse_damaged_audit`.
    """
    found: defaultdict[tuple[str, str, str], list[Seen]] = defaultdict(list)
    for sweep_id in sorted(nights):
        if last := _last(lake, sweep_id):
            file = _path(lake, sweep_id, last)
            for key, seen in _measured(file, file.stat().st_mtime_ns):
                found[key].append(seen)
    return found


@lru_cache(maxsize=64)
def _measured(file: Path, _written_at_ns: int) -> list[tuple[tuple[str, str, str], Seen]]:
    """Return the values of an audit. Cached, as many later audits read it; its file changes only in a rebuild."""
    names = ["market", "table_name", "check_name", "outcome", "observed"]
    columns = pq.read_table(file, columns=names, partitioning=None).to_pydict()
    return [
        ((market, table, check), Seen(observed, outcome == "failed", outcome != "not_judged"))
        for market, table, check, outcome, observed in zip(*(columns[name] for name in names), strict=True)
        if observed is not None
    ]


def count_quarantined(lake: Lake, sweep_id: str) -> int:
    """Return how many offers of a sweep are in quarantine."""
    file = quarantine_file(lake, sweep_id)
    if not file.exists():
        return 0
    with connect(lake) as session:
        taken = f"SELECT count(*) FROM read_parquet({literal(str(file))}) WHERE part = 'offer'"  # noqa: S608 - our own names; the path is quoted
        return int(session.execute(taken).fetchall()[0][0])


def _last(lake: Lake, sweep_id: str) -> int:
    names = lake.names(f"{lake.tables_folder}/{QUALITY.name}/{sweep_id}", ".parquet")
    return max((int(name.removeprefix("audit-")) for name in names if name.startswith("audit-")), default=0)


def _path(lake: Lake, sweep_id: str, number: int) -> Path:
    return lake.local(lake.table_file(QUALITY.name, sweep_id, _FILE.format(number)))


def _transaction(sweep_id: str, number: int) -> str:
    return f"{sweep_id}/{number}"


def _rows(lake: Lake, file: Path) -> list[dict[str, Any]]:
    refuse_damaged(lake.root, [file])
    with connect(lake) as session:
        return rows_of(session.execute(select_files(QUALITY.name, [file])))
