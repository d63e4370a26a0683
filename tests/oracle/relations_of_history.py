"""What was asked, what is on sale and what was before: expected rows by relation."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

from history import (
    ANSWERED,
    CELL,
    OFFER,
    UNOBSERVED_NIGHTS,
    UNREQUESTED_DAYS,
    History,
    Row,
    days_before,
    key_of,
)
from raw_zone import Sweep

OFFER_VALUES = (
    "total", "pre_promo_total", "discount_pct", "floor", "available_rooms", "included_charges", "excluded_charges",
    "resort_fee", "child_resort_fee", "city_taxes", "hotel_service_fee",
)  # fmt: skip
STATUSES = ("offered", "no_offer", "absent", "rejected", "failed", "not_swept")


def offers_stored(sweeps: list[Sweep]) -> list[Row]:
    """`lake.offer`: every product that could be read, as it was sent."""
    columns = ("sweep_id", "search_id", "offer_no", *OFFER, *OFFER_VALUES, "product_id", "room_name", "refundability")
    return [{name: offer[name] for name in columns} for sweep in sweeps for offer in sweep.offers]


def cells_stored(sweeps: list[Sweep]) -> list[Row]:
    """`lake.cell`: the one status of every requested cell."""
    columns = ("sweep_id", "search_id", *CELL, "status", "code", "offers")
    return [{name: cell[name] for name in columns} for sweep in sweeps for cell in sweep.cells]


def sweeps_counted(sweeps: list[Sweep]) -> list[Row]:
    """`mart.sweep`: planned is the sum of the six statuses."""
    return [
        {"sweep_id": sweep.sweep_id, "planned": len(sweep.cells), "offers": len(sweep.offers)}
        | {status: sum(cell["status"] == status for cell in sweep.cells) for status in STATUSES}
        for sweep in sweeps
    ]


def offer_latest(history: History) -> list[Row]:
    """`mart.offer_latest`."""
    columns = (*OFFER, *OFFER_VALUES, "first_seen_at", "last_seen_at", "valid_from", "snapshots", "unobserved_since")
    return [
        {name: row[name] for name in columns}
        | {
            "is_whole": row["is_whole"],
            "lead_days": days_before(row["check_in"], row["last_seen_at"]),
            "seen_sweep_id": row["sweep_id"],
            "seen_search_id": row["search_id"],
            "seen_offer_no": row["offer_no"],
        }
        for row in history.on_sale()
    ]


def offer_history(history: History) -> list[Row]:
    """`mart.offer_history`."""
    columns = (*OFFER, "is_offered", "valid_from", "last_seen_at", "snapshots", "total", "pre_promo_total", "floor")
    more = ("available_rooms", "change", "valid_to", "ended_by", "longest_unseen_days")
    running = [row | {"valid_to": None, "ended_by": None} for row in history.open.values()]
    return [{name: row[name] for name in (*columns, *more)} for row in history.closed + running]


def cell_latest(history: History) -> list[Row]:
    """`mart.cell_latest`."""
    assert history.latest is not None
    return [
        {name: row[name] for name in (*CELL, "status", "code", "offers", "sweep_id", "answered_at")}
        | {"is_fresh": row["sweep_id"] == history.latest.sweep_id and row["status"] in ANSWERED}
        for row in history.cells.values()
    ]


def cell_history(history: History) -> list[Row]:
    """`mart.cell_history`."""
    columns = (*CELL, "known_status", "known_code", "known_from", "known_seen_at", "known_to", "next_status", "spells")
    running = [row | {"known_to": None, "next_status": None} for row in history.cells.values() if row["known_status"]]
    return [{name: row[name] for name in columns} for row in history.cells_closed + running]


def market_coverage(history: History) -> list[Row]:
    """`mart.market_coverage`: what is still requested, and of this what was answered."""
    columns = ("source", "market", "product_type")
    cells = _still_requested(history)
    planned = Counter(key_of(row, columns) for row in cells)
    answered = Counter(key_of(row, columns) for row in cells if row["status"] in ANSWERED)
    return [
        dict(zip(columns, key, strict=True)) | {"planned": count, "answered": answered[key]}
        for key, count in planned.items()
    ]


def _still_requested(history: History) -> list[Row]:
    """Return the cells without those of a property, market or currency that has left, and those not asked for long."""
    assert history.latest is not None
    latest = history.latest.started_at.date()
    of_property: dict[Any, date] = {}
    for (_, property_id, market, _), sale in history.sales.items():
        _keep_latest(of_property, (property_id, market), sale["answered"].date())
    had_offers = set(of_property)
    last: dict[Any, date] = {}
    for row in history.cells.values():
        asked = row["searched_at"].date()
        if row["status"] not in ANSWERED:
            _keep_latest(of_property, (row["property_id"], row["market"]), asked)
        for names in (("source", "market", "currency_asked"), ("source", "market"), ("market", "market")):
            _keep_latest(last, (names, key_of(row, names)), asked)

    def is_requested(row: Row) -> bool:
        place = row["property_id"], row["market"]
        in_currency, of_kind, in_market = (
            last[names, key_of(row, names)]
            for names in (("source", "market", "currency_asked"), ("source", "market"), ("market", "market"))
        )
        return (
            (latest - row["searched_at"].date()).days <= UNREQUESTED_DAYS
            and (place not in had_offers or (latest - of_property[place]).days <= UNOBSERVED_NIGHTS)
            and (of_kind - in_currency).days <= UNOBSERVED_NIGHTS
            and (latest - in_market).days <= UNOBSERVED_NIGHTS
        )

    return [row for row in history.cells.values() if is_requested(row)]


def _keep_latest(found: dict[Any, date], key: Any, day: date) -> None:
    found[key] = max(found.get(key, day), day)


def coverage(sweeps: list[Sweep]) -> list[Row]:
    """`report.coverage`."""
    found = []
    for sweep in sweeps:
        for source, market in sorted({key_of(cell, ("source", "market")) for cell in sweep.cells}):
            cells = [cell for cell in sweep.cells if key_of(cell, ("source", "market")) == (source, market)]
            answered = sum(cell["status"] in ANSWERED for cell in cells)
            found.append(
                {
                    "sweep_id": sweep.sweep_id,
                    "source": source,
                    "market": market,
                    "planned": len(cells),
                    "swept": len(cells),
                    "answered": answered,
                    "rejected": sum(cell["status"] == "rejected" for cell in cells),
                    "failed": sum(cell["status"] == "failed" for cell in cells),
                    "answered_share": answered / len(cells),
                }
            )
    return found


def availability(sweeps: list[Sweep]) -> list[Row]:
    """`report.availability`: offered / answered, the codes apart."""
    columns = ("source", "market", "product_type")
    found = []
    for sweep in sweeps:
        for key in sorted({key_of(cell, columns) for cell in sweep.cells}):
            cells = [cell for cell in sweep.cells if key_of(cell, columns) == key and cell["status"] in ANSWERED]
            codes = Counter(cell["code"] for cell in cells if cell["status"] == "no_offer")
            offered = sum(cell["status"] == "offered" for cell in cells)
            absent = sum(cell["status"] == "absent" for cell in cells)
            found.append(
                dict(zip(columns, key, strict=True))
                | {
                    "sweep_id": sweep.sweep_id,
                    "answered": len(cells),
                    "offered": offered,
                    "absent": absent,
                    "no_offer": sum(codes.values()),
                    "no_offer_1023": codes[1023],
                    "no_offer_1025": codes[1025],
                    "no_offer_1026": codes[1026],
                    "availability": offered / len(cells) if cells else None,
                    "availability_of_present": offered / (len(cells) - absent) if len(cells) > absent else None,
                }
            )
    return found


def minimum_stay(history: History) -> list[Row]:
    """`mart.minimum_stay`: shorter stays were answered without an offer."""
    columns = (*[name for name in CELL if name != "nights"], "sweep_id")
    groups: dict[tuple, list[Row]] = {}
    for cell in history.cells.values():
        is_refused = cell["status"] == "absent" or (cell["status"] == "no_offer" and cell["code"] in {None, 1023, 1025})
        # A part that could not be read may have been an offer.
        if cell["status"] == "offered" or (is_refused and cell["is_whole"]):
            groups.setdefault(key_of(cell, columns), []).append(cell)
    found = []
    for key, cells in groups.items():
        if len(cells) > 1:
            shortest = min((cell["nights"] for cell in cells if cell["status"] == "offered"), default=None)
            refused = sorted(cell["nights"] for cell in cells if shortest and cell["nights"] < shortest)
            found.append(
                dict(zip(columns, key, strict=True))
                | {
                    "lengths_answered": sorted(cell["nights"] for cell in cells),
                    "shortest_offered": shortest,
                    "shorter_refused": refused,
                    "implied_minimum_stay": shortest if refused else None,
                }
            )
    return found


def pick_up(history: History) -> list[Row]:
    """`mart.pick_up`: rooms by which the number fell and rose; re-openings apart."""
    found: dict[tuple, Row] = {}
    for change in history.stock_changes:
        key = key_of(change, (*CELL, "room_id"))
        row = found.setdefault(
            key,
            {name: change[name] for name in (*CELL, "room_id")}
            | {"picked_up": 0, "given_back": 0, "reopenings": 0, "changes": 0},
        )
        if change["before"] is None:
            row["reopenings"] += 1
        else:
            row["changes"] += 1
            row["picked_up"] += max(change["before"] - change["after"], 0)
            row["given_back"] += max(change["after"] - change["before"], 0)
    return list(found.values())
