"""Answers of a supplier in which each property has one value at one place that no price has, on the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

INTS = [0, -1, 2**31 - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**63]
AMOUNTS = [0, -1, 1e308, -1e308, 1e-300, 99999999999999.9999, 10**30]
INSTANTS = [
    "0001-01-01T00:00:00+00:00",
    # In UTC, before the first year and after the last one that a date can have.
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59+00:00",
    "9999-12-31T23:59:59-12:00",
    "",
]
# Direction, line ends, an escape sequence, half of a pair, pairs that are cut, a formula, a page, and very much of it.
TEXTS = [
    "",
    "\u202egnp.exe\u2028\u2029\ufeff\u0085",
    "\x1b]0;owned\x07\x1b[31m\x9b\x00",
    "\ud800",
    "\U0001f3e8" * 60,
    "=HYPERLINK(1)",
    "<script>alert(1)</script>",
    "\x78" * 2**20,
]
FLAGS = ["true", 0, 1, -1, [], {}, None]
PICTURES = [None, "x", [None], [[]], [5], ["\x78" * 2**20], ["javascript:alert(1)", "\ud800\x1b[2J"]]
_LONG = 1000
_DETAILS = ("resortFee", "childResortFee", "cityTaxes", "hotelServiceFee")
# Places by what they hold: of a property, of a room, of a product and of what belongs to it.
_PLACES: dict[str, list[Any]] = {
    **dict.fromkeys(
        ("property.propertyId", "room.id", "room.roomId", "room.availableRooms", "product.productId"), INTS
    ),
    **dict.fromkeys(("product.boardBasis.id", "penalty.penaltyWindow", "amenity.id"), INTS),
    **{
        f"product.charges.{name}": AMOUNTS
        for name in (
            *("total", "minSellablePrice", "prePromoTotal", "discountPercentage", "includedCharges"),
            *("excludedCharges", *(f"excludedChargeDetails.{name}" for name in _DETAILS)),
        )
    },
    **dict.fromkeys(("penalty.penaltyPercentage", "penalty.penaltyNights", "penalty.penaltyInAmount"), AMOUNTS),
    **dict.fromkeys(("penalty.penaltyStartDate", "penalty.penaltyEndDate"), INSTANTS),
    "penalty.refundable": FLAGS,
    "room.images": PICTURES,
    **dict.fromkeys(("property.currencyCode", "property.propertyName", "room.roomName", "room.rateType"), TEXTS),
    **dict.fromkeys(("room.roomDescription", "room.bedTypeInfo", "amenity.name"), TEXTS),
    **dict.fromkeys(("product.boardBasis.name", "product.boardBasis.detail"), TEXTS),
    **dict.fromkeys(("promotion.promoType", "promotion.description"), TEXTS),
}
ABSURD = [(place, value) for place, values in _PLACES.items() for value in values]


def spoilt(text: bytes, absurd: dict[int, tuple[str, Any]]) -> bytes:
    """Return an answer in which each property that is named in `absurd` has that value at that place."""
    answer = json.loads(text)
    for each in answer.get("properties") or [answer.get("property") or {}]:
        if given := absurd.get(each.get("propertyId")):
            _spoil(each, *given)
    return json.dumps(answer).encode()


def _spoil(held: dict[str, Any], place: str, value: Any) -> None:
    kind, *names = place.split(".")
    things = list(_things(held, kind))
    # Once is enough of what is long: an answer has its limits, too.
    for thing in things[:1] if len(str(value)) > _LONG else things:
        at = thing
        for name in names[:-1]:
            at[name] = at.get(name) or {}
            at = at[name]
        at[names[-1]] = value


def _things(held: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    rooms = held.get("roomStays") or []
    products = [product for room in rooms for product in room.get("products") or []]
    lists = {"penalty": "cancelPenalties", "promotion": "promotions"}
    if kind == "property":
        yield held
    elif kind == "room":
        yield from rooms
    elif kind == "product":
        yield from products
    elif kind == "amenity":
        for room in rooms:
            yield from room.get("roomAmenities") or []
    else:
        for product in products:
            yield from product.get(lists[kind]) or []
