"""The raw zone of a lake, read by its documented format: what was asked, what came back, and what each answer says.

Written from the supplier's document and from the words of the domain; nothing of the pipeline is imported. Money is
whole ten-thousandths of a unit. A policy is the set of its terms as text, promotions are their texts in order.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import polars as pl

NODES = 256
NO_AVAILABILITY = {1023, 1024, 1025, 1026}
MONEY = {
    "total": "total",
    "pre_promo_total": "prePromoTotal",
    "floor": "minSellablePrice",
    "included_charges": "includedCharges",
    "excluded_charges": "excludedCharges",
}
FEES = {
    "resort_fee": "resortFee",
    "child_resort_fee": "childResortFee",
    "city_taxes": "cityTaxes",
    "hotel_service_fee": "hotelServiceFee",
}

PRODUCT = ("productId", "boardBasis", "charges", "promotions", "cancelPenalties")


class Unfit(ValueError):
    """A part of an answer that is not what the document says."""


@dataclass
class Sweep:
    """One sweep: its cells, its offers and their penalties, by search and position in the answer."""

    sweep_id: str
    started_at: datetime
    snapshot_date: date
    cells: list[dict[str, Any]] = field(default_factory=list)
    offers: list[dict[str, Any]] = field(default_factory=list)
    penalties: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=dict)
    promotions: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=dict)
    nameless: dict[int, int] = field(default_factory=dict)
    """Properties without an id, by search."""
    unread: set[tuple[int, int]] = field(default_factory=set)
    """Search and property of which a part could not be read."""


def sweeps(lake: Path) -> list[Sweep]:
    """Read all sweeps of a lake, oldest first."""
    found = [_sweep(folder) for folder in (lake / "raw").iterdir() if (folder / "sweep.json").exists()]
    return sorted(found, key=lambda sweep: sweep.started_at)


def _sweep(folder: Path) -> Sweep:
    manifest = orjson.loads((folder / "sweep.json").read_bytes())
    sweep = Sweep(
        manifest["sweep_id"],
        datetime.fromisoformat(manifest["started_at"]),
        date.fromisoformat(manifest["snapshot_date"]),
    )
    for record in _records(folder):
        _add(sweep, record)
    return sweep


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """Give the records that answer for cells: no batch whose halves were asked instead.

    `left_open` says that an answered list left the properties of the record open.
    """
    for shard in sorted(folder.glob("*.parquet")):
        if shard.stem.endswith("-again"):
            continue
        again = shard.with_name(f"{shard.stem}-again.parquet")
        later = pl.read_parquet(again).to_dicts() if again.exists() else []
        asked_again: dict[int, set[int]] = {}
        for record in later:
            node = record["search_id"] % NODES
            asked_again.setdefault(record["search_id"] - node + node // 2, set()).update(_ids(record))
        answered: set[int] = set()
        for record in (*pl.read_parquet(shard).to_dicts(), *later):
            since = asked_again.get(record["search_id"], set())
            if not record["is_split"] and not since.issuperset(_ids(record)):
                if record["http_status"] == 200 and not record["failure"]:
                    answered.add(record["search_id"])
                yield record | {"asked_again": since, "left_open": not answered.isdisjoint(_wholes(record))}


def _wholes(record: dict[str, Any]) -> list[int]:
    """Return the ids of the searches of which the record's is a part."""
    node = record["search_id"] % NODES
    return [record["search_id"] - node + (node >> halved) for halved in range(1, node.bit_length())]


def _ids(record: dict[str, Any]) -> list[int]:
    asked = orjson.loads(record["request"])
    return asked.get("propertyIds") or [asked["propertyId"]]


def _add(sweep: Sweep, record: dict[str, Any]) -> None:
    asked = orjson.loads(record["request"])
    source = "multi" if "propertyIds" in asked else "detail"
    ids = asked.get("propertyIds") or [asked["propertyId"]]
    check_in, check_out = date.fromisoformat(asked["checkIn"]), date.fromisoformat(asked["checkOut"])
    common = {
        "sweep_id": sweep.sweep_id,
        "search_id": record["search_id"],
        "searched_at": record["started_at"],
        "source": source,
        "market": asked["market"],
        "product_type": asked["productType"],
        "check_in": check_in,
        "nights": (check_out - check_in).days,
        "party": "+".join(_room(stay["guestCount"]) for stay in asked["roomStays"]),
        "currency_asked": asked.get("currencyCode"),
    }
    found: dict[int, int] = {}
    status, code, unread = _answer(sweep, record, common, set(ids), found)
    for property_id in ids:
        if property_id in record["asked_again"]:
            continue
        if found.get(property_id):
            reported: tuple[str, int | None] = ("offered", None)
        elif property_id in unread:
            reported = (status, code) if status == "failed" else ("failed", None)
        elif property_id in found and status != "failed":
            # It is listed, and nothing of it is on sale.
            reported = ("no_offer", code if status == "no_offer" else None)
        else:
            reported = (status, code)
        sweep.cells.append(
            common
            | {
                "property_id": property_id,
                "status": reported[0],
                "code": reported[1],
                "offers": found.get(property_id, 0),
                "is_left_out": reported[0] == "failed" and record["left_open"],
            }
        )
        if property_id in unread:
            sweep.unread.add((record["search_id"], property_id))


def _room(guests: dict[str, Any]) -> str:
    ages = sorted(guests.get("childAges") or ())
    return f"{guests['adultCount']}c{'-'.join(map(str, ages))}" if ages else str(guests["adultCount"])


def _answer(
    sweep: Sweep, record: dict[str, Any], common: dict[str, Any], asked: set[int], found: dict[int, int]
) -> tuple[str, int | None, set[int]]:
    """Add the offers of an answer to the sweep, and count them by property in `found`.

    Returns status and code of the properties that it does not list, and the properties that were not read in full.
    """
    body = _body(record)
    codes = _codes(body)
    if record["http_status"] == 400 and not record["failure"]:
        return "rejected", next(iter(codes), None), set()
    if record["http_status"] != 200 or record["failure"]:
        return "failed", next(iter(codes), None), set()
    is_multi = common["source"] == "multi"
    name = "properties" if is_multi else "property"
    listed = body.get(name) if isinstance(body, dict) else None
    if not isinstance(body, dict) or (is_multi and listed is not None and not isinstance(listed, list)):
        return "failed", None, asked
    listed = (listed or []) if is_multi else [listed] if listed is not None else []
    unread: set[int] = set()
    position = 0
    for hotel in listed:
        property_id = hotel.get("propertyId")
        if property_id is None and is_multi and not len(asked) == len(listed) == 1:
            # If the properties that it may belong to were requested again, those answers show which one it is.
            parts = sweep.nameless.get(record["search_id"], 0) + (not record["asked_again"])
            sweep.nameless[record["search_id"]] = parts
            continue
        property_id = next(iter(asked)) if property_id is None else int(property_id)
        found.setdefault(property_id, 0)
        for room in hotel.get("roomStays") or ():
            if not room:
                unread.add(property_id)
            for product in room.get("products") or ():
                try:
                    offer, penalties, promotions = _offer(product)
                except Unfit:
                    unread.add(property_id)
                else:
                    found[property_id] += 1
                    key = (record["search_id"], position)
                    sweep.penalties[key], sweep.promotions[key] = penalties, promotions
                    sweep.offers.append(
                        common
                        | offer
                        | {
                            "offer_no": position,
                            "property_id": property_id,
                            "currency": hotel.get("currencyCode"),
                            "room_stay_id": room.get("id"),
                            "room_id": room.get("roomId"),
                            "room_name": room.get("roomName"),
                            "available_rooms": room.get("availableRooms"),
                        }
                    )
                position += 1
    known = [code for code in codes if code in NO_AVAILABILITY]
    if known and not any(500 <= code < 600 for code in codes):
        return "no_offer", known[0], unread
    # It lists properties, or says that it lists none; everything else says nothing about any.
    if body.get("errors") in (None, []) and isinstance(body.get(name), list if is_multi else dict):
        return ("absent" if is_multi else "no_offer"), None, unread
    return "failed", next(iter(codes), None), unread


def _body(record: dict[str, Any]) -> Any:
    body = record["body"]
    if record["content_encoding"] == "gzip":
        body = gzip.decompress(body)
    elif record["content_encoding"] == "deflate":
        body = zlib.decompress(body)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _codes(body: Any) -> list[int]:
    """Return the codes of an answer, of either shape of item, in their order."""
    errors = body.get("errors") if isinstance(body, dict) else None
    items = [item for item in errors or () if isinstance(item, dict)]
    codes = (item.get("code") if item.get("code") is not None else item.get("errorCode") for item in items)
    return [int(code) for code in codes if code is not None]


def _offer(product: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    if not any(product.get(name) for name in PRODUCT):
        raise Unfit(product)
    product_id = _number(product.get("productId"))
    board = _of(product.get("boardBasis"), dict, {})
    charges = _of(product.get("charges"), dict, {})
    fees = _of(charges.get("excludedChargeDetails"), dict, {})
    promotions = [
        {"promo_type": each.get("promoType"), "description": each.get("description")}
        for each in _of(product.get("promotions"), list, [])
    ]
    penalties = [_penalty(each) for each in _of(product.get("cancelPenalties"), list, [])]
    discount = _number(charges.get("discountPercentage"))
    said = {penalty["is_refundable"] for penalty in penalties} - {None}
    offer = {
        "product_id": None if product_id is None else int(product_id),
        "board_id": board.get("id"),
        "policy": "; ".join(sorted({_terms(penalty) for penalty in penalties})),
        "promotion": "; ".join(f"{each['promo_type']}: {each['description']}" for each in promotions),
        "refundability": "unknown"
        if not said
        else "mixed"
        if len(said) > 1
        else "refundable"
        if True in said
        else "non_refundable",
        "discount_pct": None if discount is None else float(discount),
        **{name: _money(charges.get(field)) for name, field in MONEY.items()},
        **{name: _money(fees.get(field)) for name, field in FEES.items()},
    }
    return offer, penalties, promotions


def _penalty(given: dict[str, Any]) -> dict[str, Any]:
    hours, amount = given.get("penaltyWindow"), given.get("penaltyInAmount")
    return {
        "window_hours": hours,
        "penalty_pct": _number(given.get("penaltyPercentage")),
        "penalty_nights": _number(given.get("penaltyNights")),
        "is_refundable": given.get("refundable"),
        "start_at": _instant(given.get("penaltyStartDate")),
        "end_at": _instant(given.get("penaltyEndDate")),
        "amount": _money(amount),
    }


def _terms(penalty: dict[str, Any]) -> str:
    return " ".join(
        str(penalty[name].normalize() if isinstance(penalty[name], Decimal) else penalty[name])
        for name in ("window_hours", "penalty_pct", "penalty_nights", "is_refundable")
    )


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _of(value: Any, kind: type, missing: Any) -> Any:
    if value is None:
        return missing
    if not isinstance(value, kind):
        raise Unfit(value)
    return value


def _number(value: Any) -> Decimal | None:
    """Return a number, be it written as a text, as exactly as it was written."""
    if value is None:
        return None
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        raise Unfit(value)
    try:
        return Decimal(str(value))
    except ArithmeticError:
        raise Unfit(value) from None


def _money(value: Any) -> int | None:
    number = _number(value)
    if number is None:
        return None
    units = number * 10_000
    assert units == units.to_integral_value(), value
    return int(units)
