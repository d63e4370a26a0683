"""Hand-made loaded sweeps, the starting point of tests of publishing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition
from pipeline.domain.tables import DAY, FLAG, INSTANT, MONEY, NUMBER, RATE, SWEEP, TABLES, TEXT
from pipeline.lake import Lake
from pipeline.lake.delta import commit_rows
from pipeline.lake.raw import Ending, Manifest, write_ending, write_manifest

FIRST_DAY = date(2030, 1, 1)
_BLANKS = {TEXT: "", DAY: date(2030, 3, 1), FLAG: False, INSTANT: datetime(2030, 1, 1, tzinfo=UTC), NUMBER: 0.0}
USUAL = {
    "operation": "multi",
    "source": "multi",
    "property_id": 1,
    "market": "GB",
    "product_type": "Hotel",
    "nights": 2,
    "party": "2",
    "status": "offered",
    "refundability": "refundable",
    "outcome": "answered",
    "part": "offer",
}


def started_at(night: int) -> datetime:
    """The start of a night's sweep: night 0 is the first day of 2030, at two."""
    return datetime(2030, 1, 1, 2, tzinfo=UTC) + timedelta(days=night)


def sweep_id(night: int) -> str:
    return f"{started_at(night):%Y%m%dT%H%M%SZ}-00000{night % 10}"


def filled(table, given: dict[str, object], **usual) -> dict[str, object]:
    """A row of a declared table; columns that are not given get their usual value, a blank or NULL."""
    usual_row, decimals = _usual_row(table)
    unknown = given.keys() - usual_row.keys()
    assert not unknown, f"{table.name} has no column {', '.join(unknown)}; it has {', '.join(usual_row)}"
    row = usual_row | {name: value for name, value in usual.items() if name in usual_row} | given
    for name in decimals:
        if row[name] is not None:
            row[name] = Decimal(str(row[name]))
    if isinstance(fx := row.get("fx"), dict) and "rate" in fx:
        row["fx"] = fx | {"rate": Decimal(str(fx["rate"]))}
    return row


# By identity, for tables of two schemas may share a name; the table is kept, so that no other object gets its identity.
_USUAL_ROWS: dict[int, tuple[dict[str, object], list[str], object]] = {}


def _usual_row(table) -> tuple[dict[str, object], list[str]]:
    """The default of each column, and which columns are decimals; computed once, because there are many rows."""
    if id(table) not in _USUAL_ROWS:
        row = {
            column.name: USUAL.get(column.name, _BLANKS.get(column.type, 0) if column.is_required else None)
            for column in table.columns
        }
        decimals = [column.name for column in table.columns if column.type in {MONEY, RATE}]
        _USUAL_ROWS[id(table)] = row, decimals, table
    row, decimals, _ = _USUAL_ROWS[id(table)]
    return row, decimals


def load_night(lake: Lake, night: int, **rows: list[dict[str, object]]) -> str:
    """Write the files of a sweep's tables and commit its row, as a loaded sweep leaves them; return its id."""
    sweep = sweep_id(night)
    usual = {"sweep_id": sweep, "searched_at": started_at(night)}
    for name, given in rows.items():
        table = TABLES[name]
        if given:
            made = pa.Table.from_pylist([filled(table, row, **usual) for row in given], schema=table.schema)
            path = lake.local(lake.table_file(name, sweep, "multi-GB-00000"))
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(made, path, store_schema=False)
    cells = rows.get("cell", ())
    lost = {each: sum(cell.get("status") == each for cell in cells) for each in ("rejected", "not_swept")}
    finish(lake, night, cells=len(cells), lost=lost)
    return sweep


def finish(
    lake: Lake, night: int, cells: int = 0, lost: Mapping[str, int] | None = None, supplier: str = "sandbox"
) -> None:
    """Write the records that a sweep was begun, has ended and is loaded."""
    start = started_at(night)
    manifest = Manifest(
        sweep_id=sweep_id(night),
        started_at=start,
        snapshot_date=start.date(),
        is_simulated=True,
        supplier=supplier,
        spec="{}",
        property_ids=(1,),
        partitions=(Partition(Operation.MULTI, "GB", 0, 1),),
        cells=cells,
        send_rate_type=True,
        plan_version=1,
        nightaudit_version="0",
        contract_version="1.0.0",
    )
    write_manifest(lake, manifest)
    write_ending(lake, manifest.sweep_id, Ending(start, is_complete=True))
    row = filled(
        SWEEP,
        {
            "sweep_id": manifest.sweep_id,
            "snapshot_date": start.date(),
            "started_at": start,
            "finished_at": start + timedelta(hours=1),
            "state": "complete",
            "is_simulated": True,
            "planned": cells,
            **(lost or {}),
        },
    )
    rows = pa.Table.from_pylist([row], schema=SWEEP.schema)
    commit_rows(lake, SWEEP, rows, manifest.sweep_id, "sweep", manifest.sweep_id)


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
