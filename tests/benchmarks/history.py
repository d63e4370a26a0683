"""A published history of many observations, made in minutes: `python -m benchmarks.history FOLDER [OBSERVATIONS]`.

All nights but the last are worked out at once, as intervals, and written as publication would have left them: the state
in the published file, and in the lake what costs little (sweep, search, cell, offer_change). The last night is written
to the lake in full and published by the project's own code, which also makes views, macros and comments. A test holds
the intervals against the same nights published one by one.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

import duckdb
from benchmarks.simulated import World, enter_batch, relation
from benchmarks.simulated_lake import declared, keep, load_inputs, load_quotes, simulating, tell_batch, write_night

from pipeline.delta import commit_files
from pipeline.domain.tables import (
    CELL_STATE,
    DETAIL_PENALTY,
    OFFER_CHANGE,
    OFFER_CLOSED,
    OFFER_OPEN,
    SWEEP_PUBLISHED,
    Table,
)
from pipeline.lake import Lake
from pipeline.publish import LedgerEntry, publish
from pipeline.publish.ledger import enter
from pipeline.publish.publish import _STORAGE_VERSION, _TABLES, _create
from pipeline.warehouse import quoted

OBSERVATIONS = 50_000_000
NIGHTS = 30
_ORDER = "property_id, check_in, offer_key"


def make_history(lake: Lake, world: World) -> Path:
    """Fill an empty lake with the world's nights and publish the last; return the published file."""
    last = world.nights - 1
    with simulating(lake, world) as session:
        session.execute(f"SET VARIABLE known_nights = {last}")
        for batch in world.batches:
            enter_batch(session, batch)
            session.execute(f"CREATE OR REPLACE TABLE change AS {relation('change')}")
            for name in ("interval", "cell_state", "detail_penalty"):
                keep(session, name, relation(name))
            tell_batch(session, lake, world, batch, [last])
        for night in range(world.nights):
            write_night(session, lake, world, night)
        for night in range(last):
            _write_changes(session, lake, world, night)
            started = world.started_at(night)
            enter(lake, LedgerEntry(world.sweep_id(night), started, started + timedelta(hours=2), "passed"))
        load_inputs(session, lake, world)
        load_quotes(session, lake)
        _write_state(session, lake.published_file, last)
    return publish(lake, world.sweep_id(last), world.started_at(last) + timedelta(hours=2), audit="passed").file


def _write_changes(session: duckdb.DuckDBPyConnection, lake: Lake, world: World, night: int) -> None:
    sweep = world.sweep_id(night)
    path = lake.table_file(OFFER_CHANGE.name, sweep, "changes")
    place = lake.local(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    session.execute(f"SET VARIABLE told_night = {night}")
    session.execute(
        f"COPY ({declared(session, OFFER_CHANGE, relation('change_told'))} ORDER BY {_ORDER}) "
        f"TO {quoted(str(place))} (FORMAT parquet, COMPRESSION zstd)"
    )
    commit_files(lake, OFFER_CHANGE, [path], sweep)


def _write_state(session: duckdb.DuckDBPyConnection, file: Path, nights: int) -> None:
    """Write the published file as it stands after so many nights, without what the next publication makes anew."""
    file.parent.mkdir(parents=True, exist_ok=True)
    session.execute(f"ATTACH {quoted(str(file))} AS published (STORAGE_VERSION '{_STORAGE_VERSION}')")
    for schema in ("state", "mart"):
        session.execute(f"CREATE SCHEMA published.{schema}")
    for name, table in _TABLES.items():
        session.execute(_create(f"published.{name}", table))
    # Each night appended the intervals that it ended.
    for night in range(nights):
        closed = f"SELECT * FROM kept.interval WHERE closed_night = {night}"
        _insert(session, OFFER_CLOSED, "published.state.offer_closed", closed, _ORDER)
    opened = "SELECT * FROM kept.interval WHERE closed_night IS NULL"
    _insert(session, OFFER_OPEN, "published.state.offer_open", opened, _ORDER)
    _insert(session, CELL_STATE, "published.state.cell", "FROM kept.cell_state", "property_id, check_in")
    # Promotions and policies are not known yet: the last night has them all.
    _insert(
        session,
        DETAIL_PENALTY,
        "published.state.detail_penalty",
        "FROM kept.detail_penalty",
        ", ".join(DETAIL_PENALTY.key),
    )
    _insert(session, SWEEP_PUBLISHED, "published.mart.sweep", relation("sweep_counted"), "sweep_id")
    session.execute("DETACH published")


def _insert(session: duckdb.DuckDBPyConnection, table: Table, name: str, query: str, order: str) -> None:
    session.execute(f"INSERT INTO {name} BY NAME {declared(session, table, query)} ORDER BY {order}")


if __name__ == "__main__":
    folder, *rest = sys.argv[1:]
    began, cpu = time.perf_counter(), time.process_time()
    wanted = World.holding(int(rest[0].replace("_", "")) if rest else OBSERVATIONS, NIGHTS)
    made = make_history(Lake(folder), wanted)
    sys.stdout.write(
        f"{made}: {wanted.properties:,} properties, {wanted.nights} nights, {made.stat().st_size / 1e6:,.0f} MB, "
        f"in {time.perf_counter() - began:.0f} s ({time.process_time() - cpu:.0f} CPU s)\n"
    )
