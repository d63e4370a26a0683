"""Reading one answer: strictly first, and part by part where that fails."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from pipeline.domain.codes import ERROR_CODES, NO_AVAILABILITY_CODES
from pipeline.domain.search import Operation
from pipeline.normalise import tolerant
from pipeline.normalise.complete import FieldCount
from pipeline.normalise.content import PropertyContent, content_of
from pipeline.normalise.interned import Interned
from pipeline.normalise.offers import Offers, collect_offers
from pipeline.normalise.parts import Deviation
from pipeline.normalise.refusals import MOST_REFUSALS, Refusal, TooManyRefusals, is_nameless, refusal
from pipeline.supplier import wire
from pipeline.supplier.envelope import Rest, rest_of
from pipeline.supplier.failure_signs import SERVER_CODES

_MULTI = msgspec.json.Decoder(wire.MultiAnswer)
_SINGLE = msgspec.json.Decoder(wire.SingleAnswer)

# Each object of an answer takes up to a kilobyte of memory here. The largest bodies that are allowed have fewer objects
# if they hold offers; a body of a few kilobytes can be inflated to many more.
_MOST_OBJECTS = 1_000_000
_MOST_ITEMS = 5_000_000


@dataclass(slots=True)
class Reading:
    """The content of one answer: its offers and codes, refusals and deviations."""

    offers: Offers | None = None
    returned: dict[int, int] = field(default_factory=dict)
    """Offers of each property of the answer; 0: it was listed without any."""
    codes: tuple[int, ...] = ()
    has_errors: bool = False
    """Whether the answer names errors, with or without a code."""
    rest: tuple[Rest, int | None] = (Rest.FAILURE, None)
    """What it says about the properties that it does not list, and the code for it."""
    unreadable: frozenset[int] = frozenset()
    """Properties with a part that was refused."""
    is_unreadable: bool = False
    """Nothing of the body could be read."""
    refusals: list[Refusal] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    messages: tuple[str, ...] = ()
    """Texts of the errors."""
    content: PropertyContent | None = None
    """Names and descriptions in a single answer."""

    @property
    def is_failure(self) -> bool:
        """Whether it leaves the properties that it does not list open, because the server failed."""
        return self.is_unreadable or self.rest[0] is Rest.FAILURE

    @property
    def doubt(self) -> str | None:
        """Why its list may be incomplete or empty; None: there is no reason to think so."""
        if self.is_unreadable:
            return "unreadable"
        if self.is_failure:
            return "server_error"
        says_why = self.rest[0] is Rest.NOT_LISTED or self.rest[1] in NO_AVAILABILITY_CODES
        return None if says_why or not any(self.returned.values()) else "error_beside_offers"

    def unanswered(self, asked: Iterable[int]) -> tuple[int, ...]:
        """Return the requested properties that a failure leaves open, to be requested again."""
        return tuple(each for each in asked if not self.returned.get(each)) if self.is_failure else ()

    def in_doubt(self, asked: Collection[int]) -> tuple[int, ...]:
        """Return the requested properties missing from the answer that a part without an id may belong to."""
        if self.is_failure or len(asked) == 1 or not any(map(is_nameless, self.refusals)):
            return ()
        return tuple(each for each in asked if each not in self.returned)


def read_answer(body: bytes, operation: Operation, asked: frozenset[int], interned: Interned) -> Reading:
    """Read an inflated 200 body. Never raises for anything that a supplier may send."""
    if len(body) > _MOST_OBJECTS and (body.count(b"{") > _MOST_OBJECTS or body.count(b",") > _MOST_ITEMS):
        return _unreadable(f"has more than {_MOST_OBJECTS:,} objects or {_MOST_ITEMS:,} items", body)
    try:
        return _read_strictly(body, operation, asked, interned)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        pass
    try:
        return _read_tolerantly(body, operation, asked, interned)
    except TooManyRefusals:
        return _unreadable(f"has more than {MOST_REFUSALS:,} unreadable parts", body)


def _unreadable(reason: str, body: bytes) -> Reading:
    return Reading(is_unreadable=True, refusals=[refusal("answer", None, "$", reason, body)])


class _Unexpected(ValueError):
    """A property without an id, not requested or listed twice; a repeated field; a part that may not be a product."""


def _read_strictly(body: bytes, operation: Operation, asked: frozenset[int], interned: Interned) -> Reading:
    answer: wire.MultiAnswer | wire.SingleAnswer
    properties: list[wire.Property]
    if operation is Operation.MULTI:
        answer = _MULTI.decode(body)
        properties = list[wire.Property](answer.properties or ())
    else:
        answer = _SINGLE.decode(body)
        properties = [answer.property] if answer.property else []
    errors = answer.errors or ()
    codes = tuple(error.number for error in errors if error.number is not None)
    is_listing = _is_listing(answer)
    refusals: list[Refusal] = []
    nameless = [found for found in properties if found.property_id is None]
    count = FieldCount()
    is_alone = operation is Operation.SINGLE or (len(asked) == len(properties) == 1 and _tells(properties[0]))
    if nameless and is_alone:
        # Only one property was requested, and every field is optional, so it must be that one.
        (nameless[0].property_id,) = asked
    elif len(nameless) > MOST_REFUSALS:
        raise _Unexpected
    elif nameless:
        refusals = [
            refusal("property", None, f"properties[{index}]", tolerant.NO_ID, msgspec.json.encode(found))
            for index, found in enumerate(properties)
            if found.property_id is None
        ]
        properties = [found for found in properties if found.property_id is not None]
        count.add(nameless, collect_offers(nameless, refused := Interned()), refused)
    ids = [found.property_id for found in properties if found.property_id is not None]
    if len(asked.intersection(ids)) != len(ids):
        raise _Unexpected
    offers = collect_offers(properties, interned)
    count.add(properties, offers, interned)
    if not count.is_all_of(body, more=1 - len(nameless) * is_alone) or _may_be_empty(properties, offers):
        raise _Unexpected
    returned = dict(zip(ids, offers.products_of_property, strict=True))
    return Reading(
        offers=offers,
        returned=returned,
        codes=codes,
        refusals=refusals,
        has_errors=bool(errors),
        rest=rest_of(
            codes,
            has_errors=bool(errors),
            is_listing=is_listing,
            failed_code=next((error.error_code for error in errors if error.error_code in SERVER_CODES), None),
        ),
        deviations=new_codes(codes) + _repeated_products(offers, operation),
        content=_content(properties),
    )


def _is_listing(answer: wire.MultiAnswer | wire.SingleAnswer) -> bool:
    """Return whether an answer lists properties: an empty list, or at least one with content."""
    if isinstance(answer, wire.SingleAnswer):
        return answer.property is not None and _tells(answer.property)
    return answer.properties is not None and (not answer.properties or any(map(_tells, answer.properties)))


def _tells(found: wire.Property) -> bool:
    return found.property_id is not None or found.room_stays is not None


def _may_be_empty(properties: Sequence[wire.Property], offers: Offers) -> bool:
    """Return whether a room or product may be empty. Cheap, as nearly all have ids."""
    is_room_bare = offers.room_stay_id.null_count > 0 and 0 in offers.products_of_room
    return (is_room_bare and _has_empty_room(properties)) or (
        offers.product_id.null_count > 0 and _has_empty_product(properties)
    )


def _has_empty_room(properties: Sequence[wire.Property]) -> bool:
    empty = (wire.ListRoomStay(), wire.DetailRoomStay())
    return any(room.id is None and room in empty for found in properties for room in found.room_stays or ())


def _has_empty_product(properties: Sequence[wire.Property]) -> bool:
    return any(
        product.product_id is None and (product.charges is None or product.charges.total is None)
        for found in properties
        for room in found.room_stays or ()
        for product in room.products or ()
    )


def new_codes(codes: Sequence[int]) -> list[Deviation]:
    """Return the codes that the document does not know."""
    return [Deviation("errors[].code", "new_value", str(code)) for code in codes if code not in ERROR_CODES]


def _repeated_products(offers: Offers, operation: Operation) -> list[Deviation]:
    """Return a deviation for each product that a room lists twice; both are kept as rows."""
    rooms = np.repeat(np.arange(len(offers.products_of_room)), offers.products_of_room)
    ids = offers.product_id
    if ids.null_count:
        rooms, ids = rooms[np.asarray(ids.is_valid())], ids.drop_null()
    numbers = ids.to_numpy()
    in_order = np.lexsort((numbers, rooms))
    is_same = (np.diff(rooms[in_order]) == 0) & (np.diff(numbers[in_order]) == 0)
    path = "properties[]" if operation is Operation.MULTI else "property"
    deviation = Deviation(f"{path}.roomStays[].products[].productId", "duplicate", "product")
    return [deviation] * int(np.count_nonzero(is_same))


def _read_tolerantly(body: bytes, operation: Operation, asked: frozenset[int], interned: Interned) -> Reading:
    second = tolerant.read(body, operation, asked, fits=lambda products: _fits(products, interned))
    offers = collect_offers(second.properties, interned, second.offer_nos)
    returned: dict[int, int] = {}
    for found, count in zip(second.properties, offers.products_of_property, strict=True):
        assert found.property_id is not None  # noqa: S101 - the tolerant reader refuses a property without an id
        returned[found.property_id] = returned.get(found.property_id, 0) + count
    return Reading(
        offers=offers,
        returned=returned,
        codes=second.codes,
        has_errors=second.has_errors,
        rest=second.rest,
        unreadable=frozenset(second.unreadable),
        is_unreadable=second.is_unreadable,
        refusals=second.refusals,
        deviations=second.deviations + new_codes(second.codes) + _repeated_products(offers, operation),
        content=_content(second.properties),
    )


def _content(properties: Sequence[wire.Property]) -> PropertyContent | None:
    if properties and isinstance(properties[0], wire.DetailProperty):
        return content_of(properties[0])
    return None


def _fits(products: Sequence[wire.Product], interned: Interned) -> None:
    """Raise what `collect_offers` raises if one of the products cannot be stored."""
    is_detail = bool(products) and isinstance(products[0], wire.DetailProduct)
    room, held = (wire.DetailRoomStay, wire.DetailProperty) if is_detail else (wire.ListRoomStay, wire.ListProperty)
    collect_offers([held(property_id=0, room_stays=[room(products=list(products))])], interned)  # type: ignore[list-item, arg-type]
