"""The size of a lake: files, bytes and rows, by kind and by the night that wrote them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.errors import NightauditError
from pipeline.lake.files import PASSING
from pipeline.lake.lake import Lake
from pipeline.lake.raw import read_manifest
from pipeline.lake.sweep_files import sweep_of


@dataclass(frozen=True, slots=True, order=True)
class Stock:
    """Files of one kind and one night: `kind` is a table's name or a folder's; `night` is None for files of no night.

    `rows` are those of Parquet files; other files have none.
    """

    kind: str
    night: date | None
    files: int
    bytes: int
    rows: int


def inventory(lake: Lake) -> list[Stock]:
    """Count all files of a lake, by kind and then by night. An unreadable file counts with no rows."""
    nights = _nights(lake)
    found: dict[tuple[str, date | None], list[int]] = {}
    for place in _files(lake):
        kind, night = _kind_and_night(place.relative_to(lake.root), nights, lake)
        counts = found.setdefault((kind, night), [0, 0, 0])
        for at, count in enumerate((1, place.stat().st_size, _rows(place))):
            counts[at] += count
    in_order = sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or date.min))
    return [Stock(kind, night, *counts) for (kind, night), counts in in_order]


def _nights(lake: Lake) -> dict[str, date]:
    nights = {}
    for sweep_id in lake.sweep_ids():
        try:
            nights[sweep_id] = read_manifest(lake, sweep_id).snapshot_date
        except NightauditError:
            # `verify` reports an unreadable manifest; here its files belong to no night.
            continue
    return nights


def _files(lake: Lake) -> Iterator[Path]:
    for top in sorted(lake.root.iterdir()) if lake.root.is_dir() else ():
        if top.name not in PASSING:
            yield from [top] if top.is_file() else (place for place in top.rglob("*") if place.is_file())


def _kind_and_night(path: Path, nights: dict[str, date], lake: Lake) -> tuple[str, date | None]:
    top, *below = path.parts
    night = next((nights[name] for part in below if (name := sweep_of(part)) in nights), None)
    if top == lake.tables_folder:
        return f"table {below[0]}" + (", log" if below[1] == "_delta_log" else ""), night
    return ("former tables" if top.startswith("tables") else top), night


def _rows(place: Path) -> int:
    if place.suffix != ".parquet" or place.parent.name == "_delta_log":
        return 0
    try:
        return int(pq.read_metadata(place).num_rows)
    except (pa.ArrowException, OSError):
        return 0
