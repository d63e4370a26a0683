"""Checks request bodies against the document's rules, and finds every broken rule, not just the first.

Where the document is silent:

- A body that is not JSON, or not an object, lacks every field, and gets the codes of all of them.
- A value of the wrong JSON type counts as missing (a market of 5 is 'not a listed market', a date of 5 is 'not in the
  format'). `null` counts as missing too, and is not allowed for optional fields (currencyCode, childAges). `2.0` is the
  integer 2.
- An adult count below 1 counts as missing (1008), and so do room stay ids other than 0, 1, 2, ... (1007). `childAges`
  that are not a list of integers make the guest count unreadable (1009).
- A rateType other than BAR, or null, is 1022. A missing rateType is 1022 as well unless the sandbox is set otherwise,
  as the document allows both readings.
- Unknown fields are ignored. Any 32-bit age is allowed; 18 and over counts as an adult.
"""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

import msgspec

from pipeline.sandbox.world import documented
from pipeline.sandbox.world.documented import Guests, Operation, Search
from pipeline.sandbox.world.fx import REFERENCE_RATES

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INT32: Final = 1 << 31
_INT64: Final = 1 << 63


def understand(operation: Operation, body: bytes, today: date, rate_type_required: bool = True) -> Search | list[int]:
    """Return the search that a body requests, or the sorted codes of its errors."""
    request = _decoded(body)
    codes: set[int] = set()
    property_ids = _property_ids(operation, request, codes)
    check_in, check_out = _dates(request, today, codes)
    market = _listed(request, "market", documented.MARKETS, 1004, 1018, codes)
    product_type = _listed(request, "productType", documented.PRODUCT_TYPES, 1005, 1019, codes)
    rate_type = request.get("rateType")
    if rate_type not in documented.RATE_TYPES and ("rateType" in request or rate_type_required):
        codes.add(1022)
    currency = request.get("currencyCode")
    if "currencyCode" in request and (not isinstance(currency, str) or currency not in REFERENCE_RATES):
        codes.add(1027)
    parties, product_ids = _room_stays(operation, request, codes)
    if codes or check_in is None or check_out is None:
        return sorted(codes)
    return Search(
        operation=operation,
        property_ids=tuple(property_ids),
        check_in=check_in,
        check_out=check_out,
        market=market,
        currency=currency,
        rate_type=rate_type,
        product_type=product_type,
        parties=tuple(parties),
        product_ids=tuple(product_ids),
    )


def _decoded(body: bytes) -> Mapping[str, Any]:
    try:
        request = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return request if isinstance(request, dict) else {}


def _integer(value: object, limit: int) -> int | None:
    """Return a JSON integer (2.0 is one, true is not) within the limit; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -limit <= value < limit else None


def _property_ids(operation: Operation, request: Mapping[str, Any], codes: set[int]) -> list[int]:
    if operation != "multi":
        identifier = _integer(request.get("propertyId"), _INT64)
        if identifier is None:
            codes.add(1020)
            return []
        return [identifier]
    given = request.get("propertyIds")
    if not isinstance(given, list) or not given:
        codes.add(1001)
        return []
    if len(given) > documented.MAX_PROPERTY_IDS:
        codes.add(1013)
        return []
    read = [_integer(item, _INT64) for item in given]
    if None in read:
        codes.add(1001)
    return [item for item in read if item is not None]


def _dates(request: Mapping[str, Any], today: date, codes: set[int]) -> tuple[date | None, date | None]:
    check_in = _date(request.get("checkIn"), 1002, codes)
    check_out = _date(request.get("checkOut"), 1003, codes)
    if check_in is not None and check_in <= today:
        codes.add(1014)
    if check_out is not None and check_out <= today:
        codes.add(1015)
    if check_in is not None and check_out is not None and check_out <= check_in:
        codes.add(1017)
    return check_in, check_out


def _date(value: object, missing: int, codes: set[int]) -> date | None:
    if value is None:
        codes.add(missing)
        return None
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass  # like 2031-02-30
    codes.add(1016)
    return None


def _listed(
    request: Mapping[str, Any], field: str, listed: tuple[str, ...], missing: int, unknown: int, codes: set[int]
) -> str:
    value = request.get(field)
    if value is None:
        codes.add(missing)
    elif value not in listed:
        codes.add(unknown)
    return value if isinstance(value, str) else ""


def _room_stays(operation: Operation, request: Mapping[str, Any], codes: set[int]) -> tuple[list[Guests], list[int]]:
    stays = request.get("roomStays")
    if not isinstance(stays, list) or not stays:
        codes.add(1006)
        return [], []
    if len(stays) > documented.MAX_ROOM_STAYS:
        codes.add(1012)
    parties, product_ids = [], []
    for position, given in enumerate(stays):
        stay = given if isinstance(given, dict) else {}
        if _integer(stay.get("id"), _INT32) != position:
            codes.add(1007)
        guests = _guests(stay.get("guestCount"), codes)
        if guests is not None:
            parties.append(guests)
        if operation == "quote":
            product_id = _integer(stay.get("productId"), _INT64)
            if product_id is None:
                codes.add(1021)
            else:
                product_ids.append(product_id)
    return parties, product_ids


def _guests(given: object, codes: set[int]) -> Guests | None:
    if not isinstance(given, dict):
        codes.add(1009)
        return None
    adults = _integer(given.get("adultCount"), _INT64)
    if adults is None or adults < 1:
        codes.add(1008)
    elif adults > documented.MAX_ADULTS:
        codes.add(1011)
    ages = given.get("childAges", [])
    if not isinstance(ages, list):
        codes.add(1009)
        return None
    if len(ages) > documented.MAX_CHILDREN:
        codes.add(1010)
    read = [_integer(age, _INT32) for age in ages]
    if None in read:
        codes.add(1009)
    return Guests(adults or 0, tuple(age for age in read if age is not None))
