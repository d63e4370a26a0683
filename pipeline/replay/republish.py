"""Normalises some answers of some nights again, and publishes them in memory with the same steps and views.

The findings of a rule then depend on these answers alone.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.domain.analysis import Analysis
from pipeline.domain.search import Operation
from pipeline.domain.tables import REJECT, SEGMENT_TABLES, TABLES, Table
from pipeline.lake import Lake
from pipeline.lake.checksums import refuse_damaged
from pipeline.lake.column_sql import as_stored
from pipeline.lake.database import OF_OFFERS, connect, failed_query, open_published, rows_of
from pipeline.lake.ledger import REFERENCE_RULE
from pipeline.lake.raw_answer import Evidence
from pipeline.lake.sweep_files import quarantine_file
from pipeline.normalise.segment import rows_of_answers
from pipeline.publish.catalogue import write_reference, write_relations, write_side_views
from pipeline.publish.flags import find, find_ended
from pipeline.publish.state import (
    FILED,
    NATIVE,
    compare,
    create,
    look_over_all,
    move_on,
    note_audit,
    prepare,
    write_view_macros,
)
from pipeline.replay.answers import Answers
from pipeline.replay.finding import Row


@dataclass(frozen=True, slots=True)
class ReplayedNight:
    """A sweep as one row of the table `sweep`, with the rows of its replayed answers by table."""

    sweep: pa.Table
    rows: Mapping[str, Sequence[pa.Table]]


@contextmanager
def replayed(
    lake: Lake,
    nights: Sequence[ReplayedNight],
    analysis: Analysis,
    as_of: datetime | None,
    *,
    needed: Collection[str] | None = None,
    watch: Callable[[int], None] = lambda _: None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a session with the state and views after publishing these nights in this order.

    User files come from the lake, as of `as_of` if given. Of the state, only what is `needed` is computed, if given.
    `watch` gets the number of nights that are done.
    """
    with connect(lake) as session:
        # A night of a few answers is thousands of rows: several threads would wait for each other most of the time.
        session.execute("SET threads = 1")
        session.execute("ATTACH ':memory:' AS nightaudit")
        prepare(session)
        for name, table in (NATIVE | {f"state.{name}": table for name, table in FILED.items()}).items():
            session.execute(create(name, table))
        write_reference(session, analysis)
        write_side_views(session, lake, as_of)
        for name, table in TABLES.items():
            session.execute(create(f"lake.{name}", table))
        for done, night in enumerate(nights):
            watch(done)
            _fill(session, "memory.night.sweep", TABLES["sweep"], [night.sweep])
            for name in SEGMENT_TABLES:
                _fill(session, f"memory.sweep_files.{name}", TABLES[name], night.rows.get(name, ()))
                session.execute(f"INSERT INTO lake.{name} FROM memory.sweep_files.{name}")
            session.execute("INSERT INTO lake.sweep FROM memory.night.sweep")
            note_audit(session, "none", None)
            look_over_all(session, REFERENCE_RULE)
            compare(session, needed)
            move_on(session, needed)
        watch(len(nights))
        write_relations(session)
        write_view_macros(session)
        yield session


def findings(session: duckdb.DuckDBPyConnection, rule: str) -> dict[str, dict[str, object]]:
    """Return the findings of a rule in a replay, by flag. `rule` is its relation. Raises duckdb.Error."""
    find(session, [rule])
    if session.execute("SELECT count(*) FROM memory.night.failed_rule").fetchall() != [(0,)]:
        session.execute(f"SELECT * FROM {rule}").fetchall()  # noqa: S608 - our own names
    return {row["flag_id"]: row for row in rows_of(session.execute("SELECT * FROM memory.night.finding"))}


def lend_movement(session: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Let markets have moved, and been answered, as all answers up to the last night of a replay said.

    A few answers do not show it.
    """
    (latest,) = session.execute("SELECT max(sweep_id) FROM mart.sweep").fetchall()[0]
    for name in ("state.price_change", "state.cell_count", "mart.sweep"):
        query = f"FROM {name} WHERE sweep_id <= $latest"
        with open_published(lake.published_file) as published:
            try:
                # Not through a cursor, which would copy the rows once more, and warn of it.
                rows = published.sql(query, params={"latest": latest}).to_arrow_table()
            except duckdb.Error as error:
                raise failed_query(lake.published_file, error) from None
        _fill(session, name, NATIVE[name], [rows])


def hold_open(session: duckdb.DuckDBPyConnection, flags: Sequence[Row]) -> None:
    """Let these flags be open before the last night of a replay."""
    table = NATIVE["state.flag_open"]
    _fill(session, "state.flag_open", table, [pa.Table.from_pylist(list(flags), schema=table.schema)])


def ended(session: duckdb.DuckDBPyConnection, silent_nights: int) -> set[str]:
    """Return which of the open flags the last night of a replay would end. `findings` was called for their rule."""
    # A few answers do not show whether their market sold nothing: it was replayed with no silent nights.
    session.execute("UPDATE ref.analysis SET silent_nights = ?", [silent_nights])
    find_ended(session)
    return {row["flag_id"] for row in rows_of(session.execute("FROM memory.night.flag_ended"))}


def _fill(session: duckdb.DuckDBPyConnection, name: str, table: Table, parts: Sequence[pa.Table]) -> None:
    session.execute(create(name, table).replace("CREATE TABLE IF NOT EXISTS", "CREATE OR REPLACE TABLE"))
    columns = as_stored(table.columns)
    for part in parts:
        session.register("replayed_part", part)
        session.execute(f"INSERT INTO {name} BY NAME SELECT {columns} FROM replayed_part")  # noqa: S608 - our own names
        session.unregister("replayed_part")


def nights_of(lake: Lake, answers: Answers, max_body_bytes: int) -> list[ReplayedNight]:
    """Return the sweeps of some answers, oldest first, with the rows of these answers."""
    by_sweep: dict[str, dict[tuple[str, str], list[Evidence]]] = defaultdict(lambda: defaultdict(list))
    for (sweep_id, _), (search, evidence) in sorted(answers.items(), key=lambda answer: answer[0]):
        by_sweep[sweep_id][search["operation"], search["market"]].append(evidence)
    return [
        ReplayedNight(
            sweep_table(lake, sweep_id),
            _without_quarantine(lake, sweep_id, normalised(sweep_id, parts, max_body_bytes)),
        )
        for sweep_id, parts in by_sweep.items()
    ]


def normalised(
    sweep_id: str, parts: Mapping[tuple[str, str], Sequence[Evidence]], max_body_bytes: int
) -> dict[str, list[pa.Table]]:
    """Return the rows, by table, of answers by operation and market."""
    rows: dict[str, list[pa.Table]] = defaultdict(list)
    for (operation, market), evidence in parts.items():
        records = ((each.address, each.record) for each in evidence)
        for name, table in rows_of_answers(sweep_id, Operation(operation), market, records, max_body_bytes).items():
            rows[name].append(table)
    return rows


def sweep_table(lake: Lake, sweep_id: str) -> pa.Table:
    """Return a sweep's row of the table `sweep`."""
    file = lake.local(lake.table_file("sweep", sweep_id, "sweep"))
    refuse_damaged(lake.root, [file])
    return pq.read_table(file)


def _without_quarantine(lake: Lake, sweep_id: str, rows: dict[str, list[pa.Table]]) -> dict[str, list[pa.Table]]:
    """Return the rows with the offers that the audit removed as rejects."""
    file = quarantine_file(lake, sweep_id)
    if not file.exists():
        return rows
    searches = pa.concat_tables(rows["cell"])["search_id"].combine_chunks()
    refuse_damaged(lake.root, [file])
    quarantine = pq.read_table(file, schema=REJECT.schema)
    taken = quarantine.filter(pc.is_in(quarantine["search_id"], value_set=searches))
    keys = set(zip(taken["search_id"].to_pylist(), taken["offer_no"].to_pylist(), strict=True))
    kept = {name: [_but(table, keys) for table in rows[name]] for name in OF_OFFERS if name in rows}
    return rows | kept | {"reject": [*rows.get("reject", ()), taken]}


def _but(table: pa.Table, keys: Collection[tuple[int, int | None]]) -> pa.Table:
    held = zip(table["search_id"].to_pylist(), table["offer_no"].to_pylist(), strict=True)
    return table.filter(pa.array([key not in keys for key in held], pa.bool_()))
