"""Nights of a simulated world as a lake holds them once they are loaded: files of each table, inputs, and quotes.

One batch of properties is written at a time, for all wanted nights, because it is computed that way. `kept` is a
database beside the lake that collects what a night's files need of all batches.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import duckdb
from benchmarks.simulated import BATCH, FIRST_DAY, World, opened, relation

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition
from pipeline.domain.tables import QUOTE, SWEEP, TABLES, Table
from pipeline.domain.texts import literal
from pipeline.inputs.load import load
from pipeline.lake import Lake
from pipeline.lake.column_sql import sql_type
from pipeline.lake.delta import commit_files, commit_rows
from pipeline.lake.raw import Ending, Manifest, write_ending, write_manifest

_EUROS = {"GBP": 0.862, "SEK": 11.25, "USD": 1.09}


@contextmanager
def simulating(lake: Lake, world: World) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session with the world, and with `kept`, which goes when the session ends."""
    scratch = lake.root / ".simulated"
    scratch.mkdir(parents=True)
    try:
        with opened(world, scratch) as session:
            session.execute(f"ATTACH {literal(f'{scratch}.duckdb')} AS kept")
            yield session
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.with_suffix(".duckdb").unlink(missing_ok=True)


def keep(session: duckdb.DuckDBPyConnection, name: str, query: str) -> None:
    """Add the rows of a query to `kept`."""
    session.execute(f"CREATE TABLE IF NOT EXISTS kept.{name} AS SELECT * FROM ({query}) LIMIT 0")
    session.execute(f"INSERT INTO kept.{name} {query}")


def declared(session: duckdb.DuckDBPyConnection, table: Table, query: str) -> str:
    """Return a query with a table's declared columns: those that the world knows nothing of are NULL."""
    known = set(session.sql(query).columns)
    columns = (f"{c.name if c.name in known else 'NULL'}::{sql_type(c.type)} AS {c.name}" for c in table.columns)
    return f"SELECT {', '.join(columns)} FROM ({query})"


def tell_batch(session: duckdb.DuckDBPyConnection, lake: Lake, world: World, batch: int, nights: Iterable[int]) -> None:
    """Write what the batch that was entered last offers on these nights, and keep its cells for all nights."""
    for name in ("cell_told", "selling_price", "quote_told"):
        keep(session, name, "FROM cell_told" if name == "cell_told" else relation(name))
    for night in nights:
        session.execute(f"SET VARIABLE told_night = {night}")
        session.execute(f"CREATE OR REPLACE TABLE offer_told AS {relation('offer_told')}")
        for name in ("offer", "penalty", "promotion"):
            table = TABLES[name]
            query = "FROM offer_told" if name == "offer" else relation(f"{name}_told")
            _write(session, lake, table, world.sweep_id(night), f"multi-XX-{batch:05d}", query)


def write_night(session: duckdb.DuckDBPyConnection, lake: Lake, world: World, night: int) -> None:
    """Write what all batches come to on a night, and what says that its sweep has ended and is loaded."""
    sweep = world.sweep_id(night)
    session.execute(f"SET VARIABLE told_night = {night}")
    session.execute(f"CREATE OR REPLACE TABLE cells AS FROM kept.cell_told WHERE night = {night}")
    _write(session, lake, TABLES["search"], sweep, "multi-XX-00000", relation("search_told"))
    _write(session, lake, TABLES["cell"], sweep, "multi-XX-00000", "FROM cells")
    keep(session, "sweep_told", relation("sweep_told"))
    (planned,) = session.execute("SELECT count(*) FROM cells").fetchall()[0]
    start = world.started_at(night)
    manifest = Manifest(
        sweep_id=sweep,
        started_at=start,
        snapshot_date=start.date(),
        is_simulated=True,
        supplier="sandbox",
        spec="{}",
        property_ids=tuple(row[0] for row in session.execute("SELECT property_id FROM property ORDER BY 1").fetchall()),
        partitions=_partitions(session, night),
        cells=planned,
        send_rate_type=True,
        plan_version=1,
        nightaudit_version="0",
        contract_version="1.0.0",
    )
    write_manifest(lake, manifest)
    write_ending(lake, sweep, Ending(start + timedelta(hours=1), is_complete=True))
    row = session.sql(declared(session, SWEEP, relation("sweep_told"))).to_arrow_table()
    commit_rows(lake, SWEEP, row, sweep, "sweep", sweep)
    for name in ("search", "cell", "offer", "penalty", "promotion"):
        files = sorted((lake.table_root(name) / sweep).glob("*.parquet"))
        if files:
            commit_files(lake, TABLES[name], {f"{sweep}/all": [str(file.relative_to(lake.root)) for file in files]})


def load_inputs(session: duckdb.DuckDBPyConnection, lake: Lake, world: World) -> None:
    """Load reference rates, selling prices, a property map and weights, as a user does."""
    # Before the first night: rates that come later would have the markets of the last night compared twice.
    now = world.started_at(0) - timedelta(hours=6)
    folder = lake.root / ".inputs"
    folder.mkdir()
    days = (FIRST_DAY + timedelta(days=day) for day in range(-5, world.nights + 1))
    rates = [f"Date,{','.join(_EUROS)},"]
    rates += [
        ",".join([str(day), *(f"{rate * (1 + day.day % 5 / 1000):.4f}" for rate in _EUROS.values()), ""])
        for day in days
        if day.weekday() < 5
    ]
    (folder / "eurofxref-hist.csv").write_text("\n".join(rates) + "\n", encoding="utf-8")
    session.execute(f"COPY (FROM kept.selling_price) TO '{folder}/selling_prices.parquet'")
    session.execute(
        "COPY (SELECT first.property_id AS branded_id, other.property_id AS unbranded_id FROM property AS first "
        "INNER JOIN property AS other ON other.property_no = first.property_no + 1 WHERE first.property_no % 25 = 0) "
        f"TO '{folder}/property_map.csv' (HEADER)"
    )
    session.execute(
        "COPY (SELECT property_id, NULL AS market, 1 + property_no % 4 / 2 AS weight FROM property "
        f"WHERE property_no % 3 = 0) TO '{folder}/weights.csv' (HEADER)"
    )
    files = {
        "rates": "eurofxref-hist.csv",
        "prices": "selling_prices.parquet",
        "property-map": "property_map.csv",
        "weights": "weights.csv",
    }
    for kind, name in files.items():
        # A world of a few properties has no rows for some.
        if kind == "rates" or world.properties > BATCH // 4:
            load(lake, kind, folder / name, now)
    shutil.rmtree(folder)


def load_quotes(session: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Append a run of quotes to the lake."""
    rows = session.sql(declared(session, QUOTE, "FROM kept.quote_told")).to_arrow_table()
    if rows.num_rows:
        run = rows.column("run_id")[0].as_py()
        commit_rows(lake, QUOTE, rows, run, "quotes", run)


def _write(
    session: duckdb.DuckDBPyConnection, lake: Lake, table: Table, sweep_id: str, file_name: str, query: str
) -> None:
    place = lake.local(lake.table_file(table.name, sweep_id, file_name))
    place.parent.mkdir(parents=True, exist_ok=True)
    order = ", ".join(name for name in table.key if name in ("search_id", "offer_no", "property_id"))
    session.execute(
        f"COPY ({declared(session, table, query)} ORDER BY {order}) TO {literal(str(place))} "
        "(FORMAT parquet, COMPRESSION zstd)"
    )


def _partitions(session: duckdb.DuckDBPyConnection, night: int) -> tuple[Partition, ...]:
    found = session.execute(
        "SELECT operation, market, min(search_no), max(search_no) + 1 FROM search WHERE night = ? GROUP BY ALL "
        "ORDER BY min(search_no)",
        [night],
    ).fetchall()
    return tuple(Partition(Operation(operation), market, start, stop) for operation, market, start, stop in found)
