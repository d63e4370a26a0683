"""Hand-made complete nights, as loaded sweeps: clean ones that differ by chance, and ones with a planted fault.

A night is a dictionary of lists of rows, one list a table; a fault changes it before it is written.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
from nights import filled, started_at, sweep_id

from pipeline.domain.search import NODES_PER_SEARCH, Operation
from pipeline.domain.shards import Partition
from pipeline.domain.tables import SWEEP, TABLES
from pipeline.lake import Lake
from pipeline.lake.delta import commit_rows
from pipeline.lake.ledger import LedgerEntry, enter
from pipeline.lake.raw import Ending, Manifest, write_ending, write_manifest
from pipeline.night.gate import audit_sweep
from pipeline.settings import Settings

MARKETS = ("GB", "SE")
PROPERTIES = 30
STAYS = 8
FIRST_STAY = started_at(0).date() + timedelta(days=100)

# How cells end that have no offer.
_DRAWN = (("absent", 0.15), ("no_offer", 0.25), ("failed", 0.255), ("rejected", 0.455))

Night = dict[str, list[dict[str, object]]]


def clean_night(night: int, seed: int = 1) -> Night:
    """A night of a healthy supplier: prices move a little, offers come and go."""
    dice = random.Random(seed * 1000 + night)  # noqa: S311 - not a secret
    rows: Night = {name: [] for name in ("search", "cell", "offer", "penalty", "promotion", "reject", "drift")}
    for market_no, market in enumerate(MARKETS):
        for stay in range(STAYS):
            number = market_no * STAYS + stay
            _add_search(rows, night, market, number, stay, dice)
        rows["drift"].append(drift(market, "$.old"))
    return rows


def drift(market: str, path: str) -> dict[str, object]:
    """A deviation from the supplier's document, as a row."""
    said = {"operation": "multi", "market": market, "path": path, "kind": "unknown_field", "detail": "int"}
    return said | {"occurrences": 3, "example_raw_address": "raw/x#1"}


def reject(search_id: int, number: int, market: str) -> dict[str, object]:
    """A part of an answer that could not be read, as a row."""
    said = {"search_id": search_id, "reject_no": number, "market": market, "part": "offer"}
    return said | {"path": "$", "reason": "total is not a number", "sample": "{}", "raw_address": "raw/x#1"}


def _add_search(rows: Night, night: int, market: str, number: int, stay: int, dice: random.Random) -> None:
    search_id = number * NODES_PER_SEARCH + 1
    sent = started_at(night) + timedelta(minutes=1, seconds=number)
    asked = {
        "market": market,
        "product_type": "Hotel",
        "check_in": FIRST_STAY + timedelta(days=7 * stay),
        "nights": 2,
        "party": "2",
        "currency_asked": "EUR",
    }
    offer_no = 0
    for property_id in range(1, PROPERTIES + 1):
        offers = 0
        drawn = dice.random()
        status = next((name for name, below in _DRAWN if drawn < below), "offered")
        if status == "offered":
            offers = 3
            for room in range(offers):
                _add_offer(rows, search_id, offer_no, property_id, room, asked, sent, dice)
                offer_no += 1
        cell = {"operation": "multi", "property_id": property_id, "status": status, "offers": offers}
        rows["cell"].append(cell | asked | {"search_id": search_id, "searched_at": sent})
    search = {"search_id": search_id, "operation": "multi", "properties": PROPERTIES, "outcome": "answered"}
    search |= {"http_status": 200, "attempts": 1, "started_at": sent, "ended_at": sent + timedelta(milliseconds=300)}
    rows["reject"].append(reject(search_id, 0, market))
    search |= {"offers": offer_no, "rejects": 1, "raw_address": f"raw/{sweep_id(night)}/multi-{market}-000000#{stay}"}
    rows["search"].append(search | asked | {"body_sha256": f"{dice.getrandbits(256):064x}"})


def _add_offer(rows, search_id, offer_no, property_id, room, asked, sent, dice) -> None:
    base = 80 + (property_id * 37) % 200 + 25 * room
    # What moves a price from night to night moves it for that night only.
    move = 1 + (dice.random() - 0.5) / 10 if dice.random() < 0.3 else 1
    before = Decimal(round(base * 2 * move, 2)).quantize(Decimal("0.01"))
    is_promoted = (property_id + room) % 3 == 0
    total = (before * (Decimal("0.9") if is_promoted else 1)).quantize(Decimal("0.01"))
    offer = {
        "search_id": search_id,
        "offer_no": offer_no,
        "source": "multi",
        "searched_at": sent,
        "property_id": property_id,
        "room_stay_id": 0,
        "room_id": property_id * 10 + room,
        "board_id": 14,
        "policy_key": 5,
        "promotion_key": 7 if is_promoted else 0,
        "currency": "EUR",
        "total": total,
        "pre_promo_total": before,
        "discount_pct": 10.0 if is_promoted else 0.0,
        "floor": None if dice.random() < 0.1 else total,
        "available_rooms": 1 + (property_id + room) % 9,
        "refundability": "mixed",
        "free_cancel_hours": 48,
    }
    rows["offer"].append(offer | asked)
    same = {"search_id": search_id, "offer_no": offer_no, "property_id": property_id, "market": asked["market"]}
    for penalty_no, (hours, pct) in enumerate(((48, 50.0), (24, 100.0))):
        penalty = {"penalty_no": penalty_no, "window_hours": hours, "penalty_pct": pct, "penalty_nights": 0.0}
        rows["penalty"].append(same | penalty | {"is_refundable": pct < 100})
    if is_promoted:
        rows["promotion"].append(same | {"promotion_no": 0, "promo_type": "Discount off"})


def load(lake: Lake, night: int, rows: Night, stays: Mapping[str, int] | None = None, **changed) -> str:
    """Write a night's files and commit its row, as a loaded sweep leaves them.

    `stays` are markets with fewer requested stays, `changed` columns of the sweep's row.
    """
    stays = dict.fromkeys(MARKETS, STAYS) | dict(stays or {})
    sweep, start = sweep_id(night), started_at(night)
    for name, given in rows.items():
        table = TABLES[name]
        # A fault may be a NULL where none may be.
        schema = pa.schema([field.with_nullable(True) for field in table.schema])
        for market in MARKETS:
            of_market = [row for row in given if row["market"] == market]
            if of_market:
                made = pa.Table.from_pylist([filled(table, r, sweep_id=sweep) for r in of_market], schema=schema)
                path = lake.local(lake.table_file(name, sweep, f"multi-{market}-00000"))
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(made, path, store_schema=False)
    planned = sum(stays.values()) * PROPERTIES
    manifest = Manifest(
        sweep_id=sweep,
        started_at=start,
        snapshot_date=start.date(),
        is_simulated=True,
        supplier="sandbox",
        spec="{}",
        property_ids=tuple(range(1, PROPERTIES + 1)),
        partitions=tuple(
            Partition(Operation.MULTI, market, STAYS * number, STAYS * number + stays[market])
            for number, market in enumerate(MARKETS)
        ),
        cells=planned,
        send_rate_type=True,
        plan_version=1,
        nightaudit_version="0",
        contract_version="1.0.0",
    )
    write_manifest(lake, manifest)
    write_ending(lake, sweep, Ending(start + timedelta(hours=1), is_complete=True))
    statuses = [row["status"] for row in rows["cell"]]
    row = {
        "sweep_id": sweep,
        "snapshot_date": start.date(),
        "started_at": start,
        "finished_at": start + timedelta(hours=1),
        "state": "complete",
        "is_simulated": True,
        "planned": planned,
        "offers": len(rows["offer"]),
        **{status: statuses.count(status) for status in set(statuses) & set(SWEEP.schema.names)},
    }
    made = pa.Table.from_pylist([filled(SWEEP, row | changed)], schema=SWEEP.schema)
    commit_rows(lake, SWEEP, made, sweep, "sweep", sweep)
    return sweep


def audited(lake: Lake, night: int, rows: Night, *, settings: Settings | None = None, **changed):
    """Load a night and audit it; `changed` as in `load`."""
    load(lake, night, rows, **changed)
    return audit_sweep(settings or settings_of(lake), lake, sweep_id(night), started_at(night) + timedelta(hours=2))


def passed(lake: Lake, night: int) -> None:
    """Enter a night in the ledger, so that later nights are compared with it, without building the published file."""
    enter(lake, LedgerEntry(sweep_id(night), started_at(night), started_at(night), "passed"))


def settings_of(lake: Lake, **given) -> Settings:
    return Settings(lake=str(lake.root), _env_file=None, **given)


def failed_checks(audit, severity: str | None = None) -> set[str]:
    """The names of the checks that failed."""
    return {f.check_name for f in audit.findings if f.is_failed and severity in {None, f.severity}}


def every(rows: Night, table: str, change: Callable[[dict[str, object]], dict[str, object]], market=None) -> Night:
    """Return a night with each row of a table changed, of one market or of all."""
    changed = [row | change(row) if market in {None, row["market"]} else row for row in rows[table]]
    return rows | {table: changed}


def first(rows: Night, table: str, **values) -> Night:
    """Return a night with the first row of a table changed."""
    head, *rest = rows[table]
    return rows | {table: [head | values, *rest]}
