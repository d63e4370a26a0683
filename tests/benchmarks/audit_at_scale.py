"""What the audit of a large sweep costs: `python tests/benchmarks/audit_at_scale.py FOLDER [OFFERS]`.

Makes a lake in FOLDER whose last night holds OFFERS offers (10 million), no two alike, in eight markets, with the
cells, penalties and promotions of a multi search; six nights of a hundredth of it give the checks their history, and
the night before is as large as the last one, with prices that moved. The audit of the last one runs in a process of
its own. Prints its seconds, CPU seconds and peak memory, and its share of the time that the sweep takes: at the
pipeline's own speed, and at the rates that a supplier may allow.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition
from pipeline.domain.tables import SWEEP, TABLES
from pipeline.domain.texts import literal
from pipeline.lake import Lake
from pipeline.lake.column_sql import sql_type
from pipeline.lake.delta import commit_files
from pipeline.lake.ledger import LedgerEntry, enter
from pipeline.lake.raw import Ending, Manifest, write_ending, write_manifest
from pipeline.night.gate import audit_sweep
from pipeline.settings import Settings

MARKETS = ("GB", "US", "DE", "SE", "FR", "ES", "IT", "NL")
PROPERTIES = 100  # of a search
OFFERS_OF_A_CELL = 9
SEARCHES_OF_A_FILE = 128
NIGHTS = 7
FIRST = datetime(2030, 1, 1, 2, tzinfo=UTC)
# Offers a second of a whole night (fetch, land, normalise, load) as measured on two cores, and requests a second.
OFFERS_A_SECOND = 110_000
POLITE = (5, 20)

# One row per search, per cell and per offer: {night} moves a part of the prices, {first} and {last} are searches.
_SEARCH = """
SELECT number * 256 + 1 AS search_id, number, 'multi' AS operation, {market} AS market, 'Hotel' AS product_type,
    DATE '2030-06-01' + (number % 300)::INTEGER AS check_in, 1 + (number % 3) AS nights, '2' AS party,
    'EUR' AS currency_asked, {properties} AS properties, 'answered' AS outcome, 200 AS http_status, 1 AS attempts,
    {started} + to_milliseconds(number * 20) AS started_at, {started} + to_milliseconds(number * 20 + 400) AS ended_at,
    400 AS latency_ms, 40000 AS wire_bytes, 400000 AS body_bytes, sha256(number || ' {night}') AS body_sha256,
    {properties} * {of_a_cell} AS offers, 0 AS rejects, 'raw/{sweep}/multi-' || {market} || '#' || number AS raw_address
FROM range({first}, {last}) AS numbers (number)
"""
_CELL = """
SELECT search.*, place, search.number // 300 * {properties} + place AS property_id, 'offered' AS status,
    {of_a_cell} AS offers, search.started_at AS searched_at
FROM ({search}) AS search, range({properties}) AS places (place)
"""
_OFFER = """
SELECT cell.*, place * {of_a_cell} + room AS offer_no, 'multi' AS source, 0 AS room_stay_id,
    property_id * 10 + room // 3 AS room_id, 'Room ' || room // 3 AS room_name, 'BAR' AS rate_type,
    hash(number, place, room, {night}) // 2 AS product_id, [14, 3, 19][1 + room % 3] AS board_id,
    'Board ' || room % 3 AS board_name, 1000 + room % 3 AS policy_key, (room = 0)::INTEGER * 7 AS promotion_key,
    'EUR' AS currency, price AS pre_promo_total, CASE WHEN room = 0 THEN price * 0.9 ELSE price END AS total,
    CASE WHEN room = 0 THEN 10 ELSE 0 END AS discount_pct, CASE WHEN (place + room) % 10 > 0 THEN price END AS floor,
    1 + drawn % 9 AS available_rooms, 'mixed' AS refundability, 48 AS free_cancel_hours
FROM (
    SELECT cell.*, room, hash(property_id, room, check_in) AS drawn,
        ((8000 + hash(property_id, room, check_in) % 40000
        + CASE WHEN hash(property_id, check_in, {night}) % 10 < 3 THEN hash(property_id, {night}) % 400 ELSE 0 END)
        * nights / 100)::DECIMAL(16, 2) AS price
    FROM ({cell}) AS cell, range({of_a_cell}) AS rooms (room)
) AS cell
"""
_PENALTY = """
SELECT offer.*, penalty_no, 48 - 24 * penalty_no AS window_hours, 50 + 50 * penalty_no AS penalty_pct,
    0 AS penalty_nights, penalty_no = 0 AS is_refundable
FROM ({offer}) AS offer, range(2) AS steps (penalty_no)
"""
_PROMOTION = """
SELECT offer.*, 0 AS promotion_no, 'Discount off' AS promo_type, 'Save 10 %' AS description
FROM ({offer}) AS offer WHERE promotion_key <> 0
"""


def make_night(lake: Lake, night: int, searches: int) -> str:
    """Write and commit a night with a number of searches per market, as a loaded sweep leaves it; return its id."""
    started = FIRST + timedelta(days=night)
    sweep = f"{started:%Y%m%dT%H%M%SZ}-00000{night}"
    for market_no, market in enumerate(MARKETS):
        for first in range(0, searches, SEARCHES_OF_A_FILE):
            last = min(first + SEARCHES_OF_A_FILE, searches)
            file = f"multi-{market}-{first // SEARCHES_OF_A_FILE:05d}"
            _write_segment(
                lake, sweep, night, market, (market_no * searches + first, market_no * searches + last), file
            )
    cells = len(MARKETS) * searches * PROPERTIES
    parts = [
        Partition(Operation.MULTI, market, number * searches, (number + 1) * searches)
        for number, market in enumerate(MARKETS)
    ]
    usual = {"is_simulated": True, "supplier": "sandbox", "spec": "{}", "nightaudit_version": "0"}
    usual |= {"sweep_id": sweep, "started_at": started, "snapshot_date": started.date(), "contract_version": "1.0.0"}
    manifest = Manifest(
        **usual, property_ids=(1,), partitions=tuple(parts), cells=cells, send_rate_type=True, plan_version=1
    )
    write_manifest(lake, manifest)
    ended = started + timedelta(hours=6)
    write_ending(lake, sweep, Ending(ended, is_complete=True))
    row = usual | {"finished_at": ended, "state": "complete", "planned": cells, "offered": cells}
    row |= {"offers": cells * OFFERS_OF_A_CELL, "searches": len(MARKETS) * searches}
    with duckdb.connect(":memory:") as session:
        session.execute("SET TimeZone = 'UTC'")
        given = ", ".join(f"${name} AS {name}" for name in row)
        _copy(session, SWEEP.name, f"SELECT {given}", lake.local(lake.table_file("sweep", sweep, "sweep")), row)
    commit_files(lake, SWEEP, {sweep: [lake.table_file("sweep", sweep, "sweep")]})
    return sweep


def _write_segment(lake: Lake, sweep: str, night: int, market: str, numbers: tuple[int, int], file: str) -> None:
    words = {"market": literal(market), "night": night, "sweep": sweep, "first": numbers[0], "last": numbers[1]}
    words |= {"started": f"TIMESTAMPTZ '{FIRST + timedelta(days=night)}'"}
    words |= {"properties": PROPERTIES, "of_a_cell": OFFERS_OF_A_CELL}
    search = _SEARCH.format(**words)
    cell = _CELL.format(search=search, **words)
    with duckdb.connect(":memory:") as session:
        session.execute("SET TimeZone = 'UTC'")
        session.execute(f"CREATE TABLE made AS {_OFFER.format(cell=cell, **words)}")
        offer = "SELECT * FROM made"
        made = {"search": search, "cell": cell, "offer": offer}
        made |= {"penalty": _PENALTY.format(offer=offer), "promotion": _PROMOTION.format(offer=offer)}
        for name, select in made.items():
            place = lake.local(lake.table_file(name, sweep, file))
            _copy(session, name, f"SELECT '{sweep}' AS sweep_id, * FROM ({select})", place)


def _copy(
    session: duckdb.DuckDBPyConnection, table: str, select: str, place: Path, given: dict[str, object] | None = None
) -> None:
    """Write a table's declared columns; what the query does not give is NULL, or blank where it may not be."""
    there = {column[0] for column in session.execute(f"DESCRIBE {select}", given or {}).fetchall()}
    blank = {"VARCHAR": "''", "BOOLEAN": "false"}
    columns = ", ".join(
        f"{column.name if column.name in there else blank.get(kind, '0') if column.is_required else 'NULL'}"
        f"::{kind} AS {column.name}"
        for column in TABLES[table].columns
        for kind in (sql_type(column.type),)
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    session.execute(
        f"COPY (SELECT {columns} FROM ({select})) TO {literal(str(place))} (FORMAT parquet, COMPRESSION zstd)", given
    )


def audit_night(lake: Lake, sweep: str, offers: int) -> None:
    """Audit a night in this process, and print what it took."""
    began, cpu = time.perf_counter(), time.process_time()
    now = FIRST + timedelta(days=NIGHTS - 1, hours=7)
    found = audit_sweep(Settings(_env_file=None, lake=str(lake.root)), lake, sweep, now)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    outcomes = [finding.outcome for finding in found.findings]
    failed = sorted({finding.check_name for finding in found.findings if finding.is_failed})
    said = {outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "not_judged")}
    print(f"{offers:,} offers: audited in {seconds:.1f} s ({cpu:.1f} CPU s), peak {peak:,.0f} MB; {said} {failed}")  # noqa: T201 - a table for people
    print(f"of a sweep at {OFFERS_A_SECOND:,} offers/s: {seconds / (offers / OFFERS_A_SECOND):.1%}")  # noqa: T201 - a table for people
    for rate in POLITE:
        requests = offers / PROPERTIES / OFFERS_OF_A_CELL
        print(f"of a sweep at {rate} requests/s: {seconds / (requests / rate):.1%}")  # noqa: T201 - a table for people


if __name__ == "__main__":
    if sys.argv[1] == "audit":
        audit_night(Lake(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        made = Lake(sys.argv[1])
        wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
        of_a_market = -(-wanted // (len(MARKETS) * PROPERTIES * OFFERS_OF_A_CELL))
        for number in range(NIGHTS):
            is_large = number >= NIGHTS - 2
            last_night = make_night(made, number, of_a_market if is_large else max(of_a_market // 100, 8))
            if number < NIGHTS - 2:
                audit_sweep(
                    Settings(_env_file=None, lake=str(made.root)), made, last_night, FIRST + timedelta(days=number)
                )
            if number < NIGHTS - 1:
                day = FIRST + timedelta(days=number)
                enter(made, LedgerEntry(last_night, day, day, "passed"))
        total = of_a_market * len(MARKETS) * PROPERTIES * OFFERS_OF_A_CELL
        subprocess.run([sys.executable, __file__, "audit", sys.argv[1], last_night, str(total)], check=True)
