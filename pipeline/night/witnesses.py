"""Folders that must be there because another part of the lake knows of them, although their checksums are gone too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.domain.errors import CorruptObject
from pipeline.domain.tables import OFFER, OFFER_CHANGE, PENALTY, PROMOTION, QUOTE_TABLES, REJECT
from pipeline.inputs.load import KINDS
from pipeline.lake import Lake
from pipeline.lake.raw import is_retired
from pipeline.lake.sweep_files import files_of_sweep
from pipeline.night.overview import sweep_rows
from pipeline.night.record import done_steps
from pipeline.publish import LedgerEntry
from pipeline.publish.ledger import copies_of_entry

# Rows of an offer's own that another table holds, by the column that says so: 0 where there are none.
_CHILDREN = {PENALTY.name: "policy_key", PROMOTION.name: "promotion_key"}
# The step of a night that leaves such files.
_LEFT_BY = {"reports": "report", "durations": "publish"}


def missing_folders(lake: Lake, entries: Sequence[LedgerEntry]) -> Iterator[tuple[Path, str]]:
    """Yield folders that are gone, with what knows of them. Raises NightauditError where that cannot be read.

    A lake of an earlier version may have been without them.
    """
    if not lake.records_all:
        return
    for table, witness in _tables(lake, entries):
        if not lake.table_root(table).is_dir():
            yield lake.table_root(table), f"is missing, and {witness}"
    copies = lake.local(copies_of_entry("")[1]).parent
    if entries and not copies.is_dir():
        yield copies, "is missing, and published/ledger has its entries"
    done = {step for entry in entries for step in done_steps(lake, entry.sweep_id) or ()}
    for folder, step in _LEFT_BY.items():
        if step in done and not (lake.root / folder).is_dir():
            yield lake.root / folder, f"is missing, and a night has been through the step {step}"
    if any(lake.table_root(table).is_dir() for table in QUOTE_TABLES) and not (lake.root / "quotes").is_dir():
        yield lake.root / "quotes", "is missing, and tables hold its quotes"


def _tables(lake: Lake, entries: Sequence[LedgerEntry]) -> Iterator[tuple[str, str]]:
    """Yield tables that must be there, each with what says so."""
    try:
        rows = sweep_rows(lake)
    except CorruptObject:
        # A file that cannot be read is damage by itself.
        rows = {}
    loaded = {sweep_id: row for sweep_id, row in rows.items() if not is_retired(lake, sweep_id)}
    with_offers = [sweep_id for sweep_id, row in loaded.items() if row["offers"]]
    if with_offers:
        yield OFFER.name, "lake.sweep counts its offers"
        yield from _children(lake, with_offers[-1])
    if {entry.sweep_id for entry in entries}.intersection(with_offers):
        yield OFFER_CHANGE.name, "a night with offers is published"
    if any(row["rejects"] for row in loaded.values()):
        yield REJECT.name, "lake.sweep counts its rejects"
    for kind in KINDS.values():
        if any(lake.local(lake.inputs_folder(kind.name)).glob("*.json")):
            yield kind.table.name, "files of its rows are in raw/inputs"
    if any((lake.root / "quotes").glob("*/*-answer.json")):
        yield from ((table, "quotes/ has answers") for table in sorted(QUOTE_TABLES)[:1])


def _children(lake: Lake, sweep_id: str) -> Iterator[tuple[str, str]]:
    try:
        files = files_of_sweep(lake, OFFER, sweep_id)
        held = pq.read_table(files[0], columns=[*_CHILDREN.values()]) if files else None
    except (pa.ArrowException, OSError):
        # A file that cannot be read is damage by itself.
        return
    for table, column in _CHILDREN.items():
        if held is not None and pc.any(pc.not_equal(held[column], 0)).as_py():
            yield table, f"lake.offer has rows of it ({column})"
