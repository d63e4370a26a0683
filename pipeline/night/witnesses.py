"""Folders that must exist because other parts of the lake refer to them, even if their checksums are gone too."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.domain.errors import CorruptObject, NightauditError
from pipeline.domain.tables import (
    CONTENT_STATES,
    OFFER,
    OFFER_CHANGE,
    PENALTY,
    PROMOTION,
    QUOTE,
    QUOTE_OFFER,
    QUOTE_PENALTY,
    QUOTE_PROMOTION,
    QUOTE_TABLES,
    REJECT,
)
from pipeline.inputs.load import KINDS
from pipeline.lake import Lake
from pipeline.lake.database import open_published
from pipeline.lake.ledger import copies_of_entry
from pipeline.lake.raw import is_retired
from pipeline.lake.sweep_files import files_of_sweep
from pipeline.night.done_steps import done_steps
from pipeline.night.overview import sweep_rows
from pipeline.publish import LedgerEntry

# Tables with the rows of an offer (of a search, of a quote), by the column that shows whether there are any: 0 if not.
_CHILDREN = {"policy_key": (PENALTY.name, QUOTE_PENALTY.name), "promotion_key": (PROMOTION.name, QUOTE_PROMOTION.name)}
# The step of a night that writes each folder.
_LEFT_BY = {"reports": "report", "durations": "publish"}


def missing_folders(lake: Lake, entries: Sequence[LedgerEntry]) -> Iterator[tuple[Path, str]]:
    """Yield missing folders, each with the evidence for it. Raises NightauditError if that cannot be read.

    Lakes of an earlier version may lack them.
    """
    if not lake.records_all:
        return
    for table, witness in _tables(lake, entries):
        if not lake.table_root(table).is_dir():
            yield lake.table_root(table), f"is missing, but {witness}"
    copies = lake.local(copies_of_entry("")[1]).parent
    if entries and not copies.is_dir():
        yield copies, "is missing, but published/ledger has its entries"
    done = {step for entry in entries for step in _steps_of(lake, entry)}
    for folder, step in _LEFT_BY.items():
        if step in done and not (lake.root / folder).is_dir():
            yield lake.root / folder, f"is missing, but a night has completed the step {step}"
    if any(lake.table_root(table).is_dir() for table in QUOTE_TABLES) and not (lake.root / "quotes").is_dir():
        yield lake.root / "quotes", "is missing, but tables have its quotes"


def _tables(lake: Lake, entries: Sequence[LedgerEntry]) -> Iterator[tuple[str, str]]:
    """Yield tables that must exist, each with the evidence for it."""
    try:
        rows = sweep_rows(lake)
    except CorruptObject:
        # An unreadable file is reported separately.
        rows = {}
    loaded = {sweep_id: row for sweep_id, row in rows.items() if not is_retired(lake, sweep_id)}
    with_offers = [sweep_id for sweep_id, row in loaded.items() if row["offers"]]
    if with_offers:
        yield OFFER.name, "lake.sweep counts its offers"
        yield from _children(files_of_sweep(lake, OFFER, with_offers[-1])[:1], OFFER.name)
    if {entry.sweep_id for entry in entries}.intersection(with_offers):
        yield OFFER_CHANGE.name, "a night with offers is published"
    yield from ((table, "the published file knows its content") for table in _known_content(lake))
    if any(row["rejects"] for row in loaded.values()):
        yield REJECT.name, "lake.sweep counts its rejects"
    for kind in KINDS.values():
        if any(lake.local(lake.inputs_folder(kind.name)).glob("*.json")):
            yield kind.table.name, "files of its rows are in raw/inputs"
    if any((lake.root / "quotes").glob("*/*-answer.json")):
        yield from ((table, "quotes/ has answers") for table in (QUOTE.name, QUOTE_OFFER.name))
        yield from _children(sorted(lake.table_root(QUOTE_OFFER.name).rglob("*.parquet")), QUOTE_OFFER.name)


def _steps_of(lake: Lake, entry: LedgerEntry) -> frozenset[str]:
    try:
        return done_steps(lake, entry.sweep_id) or frozenset()
    except CorruptObject:
        # An unreadable record is reported separately.
        return frozenset()


def _known_content(lake: Lake) -> list[str]:
    """Return the content tables from which the published file has content of properties and rooms."""
    if not lake.published_file.is_file():
        return []
    try:
        with open_published(lake.published_file) as session:
            return [
                state.name
                for state in CONTENT_STATES
                if session.execute(f"SELECT 1 FROM state.{state.name} LIMIT 1").fetchone()  # noqa: S608 - our own names
            ]
    except (NightauditError, duckdb.Error):
        # An unreadable one is reported separately; another version keeps its state elsewhere.
        return []


def _children(files: Sequence[Path], parent: str) -> Iterator[tuple[str, str]]:
    for column, tables in _CHILDREN.items():
        try:
            held = [pq.read_table(file, columns=[column])[column] for file in files]
        except (pa.ArrowException, OSError):
            # An unreadable file is reported separately.
            return
        if any(pc.any(pc.not_equal(each, 0)).as_py() for each in held):
            yield tables[parent == QUOTE_OFFER.name], f"lake.{parent} has rows of it ({column})"
