"""Requests to the supplier, checked against every rule of its document, so that none is sent that it would refuse.

Names on the wire are the supplier's; in Python they are ours. RequestRefused lists each broken rule in words, with the
error code that the supplier would have answered with, if the document has one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails, PydanticCustomError

from pipeline.domain.codes import ERROR_CODES, MARKETS
from pipeline.domain.errors import RequestRefused
from pipeline.domain.search import MAX_PROPERTIES_PER_SEARCH, Operation, ProductType, Search
from pipeline.domain.stay import MAX_ADULTS_PER_ROOM, MAX_CHILDREN_PER_ROOM, MAX_ROOMS
from pipeline.domain.texts import is_an_echo

# The code of a field that is missing, empty or null.
_MISSING = {
    "propertyIds": 1001,
    "checkIn": 1002,
    "checkOut": 1003,
    "market": 1004,
    "productType": 1005,
    "roomStays": 1006,
    "id": 1007,
    "adultCount": 1008,
    "guestCount": 1009,
    "propertyId": 1020,
    "productId": 1021,
}
# The code of a field that breaks a rule, by the kind of error. Fewer than one adult counts as none stated. Rules in
# neither table have no code: widths, types, the numbering of rooms.
_BROKEN = {
    ("propertyIds", "too_short"): 1001,
    ("propertyIds", "too_long"): 1013,
    ("roomStays", "too_short"): 1006,
    ("roomStays", "too_long"): 1012,
    ("adultCount", "greater_than_equal"): 1008,
    ("adultCount", "less_than_equal"): 1011,
    ("childAges", "too_long"): 1010,
    ("productType", "enum"): 1019,
    ("currencyCode", "string_pattern_mismatch"): 1027,
}
_MARKETS = frozenset(MARKETS)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _broken(*codes: int) -> PydanticCustomError:
    return PydanticCustomError("rule", "breaks a documented rule", {"codes": codes})


def _stay_date(value: object) -> object:
    if type(value) is date or value is None:
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise _broken(1016)


def _listed_market(value: str) -> str:
    if value not in _MARKETS:
        raise _broken(1018)
    return value


def _numbered(rooms: tuple[RoomStay, ...]) -> tuple[RoomStay, ...]:
    if [room.id for room in rooms] != list(range(len(rooms))):
        raise PydanticCustomError("numbering", "room ids start at 0 and go up by 1")
    return rooms


Int32 = Annotated[int, Field(strict=True, ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(strict=True, ge=-(2**63), le=2**63 - 1)]
StayDate = Annotated[date, BeforeValidator(_stay_date)]


class _Wire(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class GuestCount(_Wire):
    """The guests of one room."""

    adult_count: Annotated[int, Field(strict=True, ge=1, le=MAX_ADULTS_PER_ROOM)]
    child_ages: Annotated[tuple[Int32, ...], Field(max_length=MAX_CHILDREN_PER_ROOM)] | None = None


class RoomStay(_Wire):
    """One requested room; `id` counts the rooms of a request from 0."""

    id: Int32
    guest_count: GuestCount


class RoomStayQuote(RoomStay):
    """One room of a quote, with the product that is checked."""

    product_id: Int64


_Room = TypeVar("_Room", bound=RoomStay)
_Rooms = Annotated[tuple[_Room, ...], Field(min_length=1, max_length=MAX_ROOMS), AfterValidator(_numbered)]


class _Request(_Wire):
    """Fields of all three operations. Validated with `today` in the context, the dates must be after it."""

    check_in: StayDate
    check_out: StayDate
    market: Annotated[str, AfterValidator(_listed_market)]
    currency_code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None
    rate_type: Literal["BAR"] | None = "BAR"
    product_type: ProductType

    @model_validator(mode="after")
    def _dates_are_in_order(self, info: ValidationInfo) -> Self:
        today = info.context and info.context.get("today")
        codes = (
            *((1014,) if today and self.check_in <= today else ()),
            *((1015,) if today and self.check_out <= today else ()),
            *((1017,) if self.check_out <= self.check_in else ()),
        )
        if codes:
            raise _broken(*codes)
        return self

    def to_wire(self) -> bytes:
        """Return compact JSON: ids exact, and fields without a value left out."""
        return self.__pydantic_serializer__.to_json(self, by_alias=True, exclude_none=True)


class MultiRequest(_Request):
    """A search of up to 100 properties."""

    property_ids: Annotated[tuple[Int64, ...], Field(min_length=1, max_length=MAX_PROPERTIES_PER_SEARCH)]
    room_stays: _Rooms[RoomStay]


class SingleRequest(_Request):
    """A search of one property in detail."""

    property_id: Int64
    room_stays: _Rooms[RoomStay]


class QuoteRequest(_Request):
    """A quote of one property's products, one for each room. Sending it makes a reservation."""

    property_id: Int64
    room_stays: _Rooms[RoomStayQuote]


_AnyRequest = TypeVar("_AnyRequest", bound=_Request)


def request_for(search: Search, *, today: date, send_rate_type: bool = True) -> MultiRequest | SingleRequest:
    """Return the request of a planned search. Raises RequestRefused if the supplier would refuse it.

    `today` is the day after which a stay may begin.
    """
    rooms = [_room(number, room.adults, room.child_ages) for number, room in enumerate(search.party.rooms)]
    asked = _asked(search, rooms, send_rate_type=send_rate_type)
    if search.operation is Operation.MULTI:
        return checked(MultiRequest, asked | {"propertyIds": search.property_ids}, today)
    if search.operation is Operation.SINGLE:
        return checked(SingleRequest, asked | _one_property(search), today)
    raise RequestRefused("This request was not sent: a quote needs a product per room (error 1021).", codes=(1021,))


def quote_request_for(
    search: Search, product_ids: Sequence[int], *, today: date, send_rate_type: bool = True
) -> QuoteRequest:
    """Return the quote of `product_ids`, one for each room of the search's party in their order.

    Raises RequestRefused if the supplier would refuse it.
    """
    if len(product_ids) != len(search.party.rooms):
        codes = (1021,) if len(product_ids) < len(search.party.rooms) else ()
        raise RequestRefused(
            f"This request was not sent: it has {len(product_ids)} products for the {len(search.party.rooms)} rooms of "
            f"the party {search.party}.",
            codes=codes,
        )
    rooms = [
        _room(number, room.adults, room.child_ages) | {"productId": product_id}
        for number, (room, product_id) in enumerate(zip(search.party.rooms, product_ids, strict=True))
    ]
    asked = _asked(search, rooms, send_rate_type=send_rate_type)
    return checked(QuoteRequest, asked | _one_property(search), today)


def _asked(search: Search, rooms: list[dict[str, Any]], *, send_rate_type: bool) -> dict[str, Any]:
    return {
        "checkIn": search.stay.check_in,
        "checkOut": search.stay.check_out,
        "market": search.market,
        "currencyCode": search.currency,
        "rateType": "BAR" if send_rate_type else None,
        "productType": search.product_type,
        "roomStays": rooms,
    }


def _room(number: int, adults: int, child_ages: tuple[int, ...]) -> dict[str, Any]:
    return {"id": number, "guestCount": {"adultCount": adults, "childAges": child_ages or None}}


def _one_property(search: Search) -> dict[str, int]:
    if len(search.property_ids) > 1:
        raise RequestRefused(
            f"This request was not sent: a {search.operation} asks for one property, not {len(search.property_ids)}."
        )
    return dict(zip(("propertyId",), search.property_ids, strict=False))


def checked(model: type[_AnyRequest], fields: Mapping[str, Any], today: date) -> _AnyRequest:
    """Return a request from fields in the supplier's names. Raises RequestRefused if a documented rule is broken."""
    try:
        return model.model_validate(fields, by_alias=True, by_name=False, context={"today": today})
    except ValidationError as error:
        broken = [(item, _codes(item)) for item in error.errors(include_url=False) if not is_an_echo(item)]
    raise RequestRefused(
        "This request was not sent, because the supplier would refuse it:\n"
        + "\n".join(_explain(item, codes) for item, codes in broken),
        hint="Correct the sweep spec or the quote sample that it comes from.",
        codes=tuple(sorted({code for _, codes in broken for code in codes})),
    )


def _codes(error: ErrorDetails) -> tuple[int, ...]:
    if error["type"] == "rule":
        return tuple(error["ctx"]["codes"])
    field = _field(error)
    if error["type"] == "missing" or error["input"] is None:
        code = _MISSING.get(field)
    else:
        code = _BROKEN.get((field, error["type"]))
    return () if code is None else (code,)


def _explain(error: ErrorDetails, codes: tuple[int, ...]) -> str:
    where = ".".join(map(str, error["loc"])) or "dates"
    rules = "; ".join(f"{ERROR_CODES[code].meaning} (error {code})" for code in codes)
    return f"  {where}: {rules or error['msg']}"


def _field(error: ErrorDetails) -> str:
    named = [part for part in error["loc"] if isinstance(part, str)]
    return named[-1] if named else ""
