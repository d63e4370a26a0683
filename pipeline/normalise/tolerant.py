"""Reads an answer that the strict types refuse, part by part.

Unknown fields, numbers written as texts and the like are recorded and never cost an offer. An unreadable part is
refused with its path and reason; its neighbours are kept.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pipeline.domain.search import Operation
from pipeline.domain.texts import storable
from pipeline.normalise.parts import Deviation, PartReader, Unfit, kind_of
from pipeline.normalise.refusals import (
    MOST_REFUSALS,
    Refusal,
    TooManyRefusals,
    beside,
    check_product,
    check_room,
    names_error,
    reason_of,
    refusal,
)
from pipeline.supplier import wire
from pipeline.supplier.bodies import BYTE_ORDER_MARK
from pipeline.supplier.envelope import (
    LISTING,
    Repeated,
    Rest,
    beside_listing,
    decoded_with_repeats,
    repeats_its_envelope,
    rest_of,
    speaks_of_other_errors,
    tells_of_a_property,
)
from pipeline.supplier.failure_signs import has_message, server_code, speaks_of_failure
from pipeline.supplier.fields import fields_of

NO_ID = "has no propertyId"


@dataclass(slots=True)
class SecondReading:
    """The readable parts of an answer, and its refusals."""

    properties: list[wire.Property] = field(default_factory=list)
    offer_nos: list[int] = field(default_factory=list)
    codes: tuple[int, ...] = ()
    has_errors: bool = False
    unreadable: set[int] = field(default_factory=set)
    rest: tuple[Rest, int | None] = (Rest.FAILURE, None)
    is_unreadable: bool = False
    refusals: list[Refusal] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)


@dataclass(slots=True)
class _Candidate:
    """A product that was read but may not fit into the tables."""

    products: list[wire.Product]
    product: wire.Product
    offer_no: int
    property_id: int
    place: str
    value: Any
    deviations: list[Deviation]


def read(
    body: bytes, operation: Operation, asked: frozenset[int], fits: Callable[[Sequence[wire.Product]], None]
) -> SecondReading:
    """Read a body part by part. `fits` raises if one of some products cannot be stored.

    Raises TooManyRefusals alone.
    """
    reader = _Reader(operation, asked, fits)
    try:
        document = decoded_with_repeats(body.removeprefix(BYTE_ORDER_MARK))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reader.found.refusals.append(refusal("answer", None, "$", reason_of(error), body))
        reader.found.is_unreadable = True
        return reader.found
    if body.startswith(BYTE_ORDER_MARK):
        reader.found.deviations.append(Deviation("$", "changed_type", "byte order mark"))
    reader.answer(document, is_repetitive=repeats_its_envelope(document, operation))
    return reader.found


class _Reader:
    """Walks a decoded body and fills a SecondReading."""

    def __init__(
        self, operation: Operation, asked: frozenset[int], fits: Callable[[Sequence[wire.Product]], None]
    ) -> None:
        self.found = SecondReading()
        self._operation = operation
        self._is_multi = operation is Operation.MULTI
        self._room_kind = wire.ListRoomStay if self._is_multi else wire.DetailRoomStay
        self._product_kind: type[wire.Product] = wire.ListProduct if self._is_multi else wire.DetailProduct[float]
        self._asked = asked
        self._fits = fits
        self._seen: set[int] = set()
        # Whether there is an error in place of a property or its rooms, and its code.
        self._failed_code: int | None = None
        self._is_failure = False
        self._is_listing = False
        # Whether the answer can only be about the one requested property, with or without its id.
        self._is_alone = not self._is_multi
        self._next_offer_no = 0
        self._candidates: list[_Candidate] = []
        # Its notes about a part count only if the part is kept.
        self._parts = PartReader()

    def answer(self, body: Any, *, is_repetitive: bool = False) -> None:
        if not isinstance(body, dict):
            self._refuse("answer", None, "$", f"is {kind_of(body)}, not an object", body)
            self.found.is_unreadable = True
            return
        name = LISTING[self._operation]
        self._parts.unknown_fields(body, {name, "errors"}, "")
        self.found.codes = self._codes(body.get("errors"))
        listed = body.get(name)
        if self._is_multi and listed is not None and not isinstance(listed, list):
            self._refuse("answer", None, name, f"is {kind_of(listed)}, not an array", listed)
            self.found.is_unreadable = True
            return
        held = (listed or []) if self._is_multi else [listed] if listed is not None else []
        self._is_alone |= len(self._asked) == len(held) == 1 and tells_of_a_property(held[0])
        for index, value in enumerate(held):
            place, path = (f"properties[{index}]", "properties[]") if self._is_multi else (name, name)
            self._property(value, place, path)
        self._keep_fitting()
        self._flush()
        around = beside_listing(body, self._operation)
        is_without_offers = not any(room.products for found in self.found.properties for room in found.room_stays or ())
        self.found.rest = rest_of(
            self.found.codes,
            has_errors=self.found.has_errors,
            is_listing=self._is_listing or (self._is_multi and listed == []),
            failed_code=server_code(around) or self._failed_code,
            is_failure=is_repetitive
            or self._is_failure
            or speaks_of_other_errors(around, is_without_offers=is_without_offers),
        )

    def _codes(self, errors: Any) -> tuple[int, ...]:
        """Return the error codes, in either item shape, in their order."""
        if errors is None:
            return ()
        self.found.has_errors = errors != []
        if not isinstance(errors, list):
            self._parts.note("errors", "changed_type", kind_of(errors))
            errors = [errors]
        codes = []
        for item in errors:
            try:
                fields = self._parts.object(item, wire.ErrorItem, "errors[]")
            except Unfit:
                self._parts.note("errors[]", "changed_type", kind_of(item))
                continue
            code = fields.get("code", fields.get("error_code"))
            if code is not None:
                codes.append(code)
        return tuple(codes)

    def _property(self, value: Any, place: str, path: str) -> None:
        kind = wire.ListProperty if self._is_multi else wire.DetailProperty
        property_id: int | None = None
        try:
            fields = self._parts.object(value, kind, path)
            property_id = fields.get("property_id")
            if property_id is None and self._is_alone:
                # Only one property was requested, and every field is optional, so it must be that one.
                (property_id,) = self._asked
                fields["property_id"] = property_id
            if property_id is None:
                raise Unfit(NO_ID)
            if property_id not in self._asked:
                self.found.deviations.append(Deviation(f"{path}.propertyId", "not_asked", "property"))
                raise Unfit("was not asked for")
            room_stays = self._parts.items(value.get("roomStays"), f"{path}.roomStays")
        except Unfit as error:
            known_id = self._id_of(value)
            self._refuse("property", known_id, place, str(error), value)
            self._note_failure(value, kind)
            # It is not known which of its repeated fields is meant.
            self._is_failure |= isinstance(value, Repeated)
            self._is_listing |= known_id in self._asked or (known_id is None and tells_of_a_property(value))
            if not self._is_multi or (self._is_alone and known_id is None):
                # Nothing else was requested, so this is all that the answer says about it.
                self.found.unreadable |= self._asked
            return
        if property_id in self._seen:
            self._parts.note(f"{path}.propertyId", "duplicate", "property")
        self._seen.add(property_id)
        self._is_listing |= tells_of_a_property(value)
        kept: list[Any] = [
            room
            for index, item in enumerate(room_stays)
            if (room := self._room_stay(item, property_id, f"{place}.roomStays[{index}]", f"{path}.roomStays[]"))
        ]
        self.found.properties.append(kind(**fields, room_stays=kept))
        self._flush()
        unknown = beside(value, kind)
        if not any(room.products for room in kept):
            self._note_failure(value, kind)
            for room in room_stays:
                self._note_failure(room, self._room_kind)
        elif names_error(unknown):
            self._refuse("property", property_id, place, "names an error beside its rooms", unknown)

    def _note_failure(self, value: Any, kind: type[msgspec.Struct]) -> None:
        """Note an error or a message in place of a property or its offers."""
        self._failed_code = self._failed_code or server_code(value)
        self._is_failure |= speaks_of_failure(value)
        self._is_failure |= isinstance(value, dict) and has_message(beside(value, kind))

    def _id_of(self, value: Any) -> int | None:
        """Return the id of a refused property, if it can be read."""
        given, before = value.get("propertyId") if isinstance(value, dict) else None, self._parts.noted.copy()
        try:
            known = fields_of(wire.ListProperty)["propertyId"]
            return None if given is None else self._parts.scalar(given, known, "propertyId")
        except Unfit:
            return None
        finally:
            self._parts.noted = before

    def _room_stay(
        self, value: Any, property_id: int, place: str, path: str
    ) -> wire.ListRoomStay | wire.DetailRoomStay | None:
        kind = self._room_kind
        self._parts.unread.clear()
        try:
            fields = self._parts.object(value, kind, path)
            products = self._parts.items(value.get("products"), f"{path}.products")
            check_room(value, products, kind)
        except Unfit as error:
            self._refuse("room_stay", property_id, place, str(error), value)
            return None
        for name, reason, given in self._parts.unread:
            self._refuse("room_stay", property_id, f"{place}.{name}", reason, given)
        if products and names_error(unknown := beside(value, kind)):
            # Its products are kept, but some may be missing because of the error.
            self._refuse("room_stay", property_id, place, "names an error beside its products", unknown)
        kept: list[Any] = []
        for index, item in enumerate(products):
            self._product(item, property_id, f"{place}.products[{index}]", f"{path}.products[]", kept)
        return kind(**fields, products=kept)

    def _product(self, value: Any, property_id: int, place: str, path: str, kept: list[wire.Product]) -> None:
        offer_no, self._next_offer_no = self._next_offer_no, self._next_offer_no + 1
        before, self._parts.noted = self._parts.noted, []
        try:
            product = self._parts.struct(value, self._product_kind, path)
            check_product(value, product, self._product_kind)
        except Unfit as error:
            self._refuse("offer", property_id, place, reason_of(error), value)
        else:
            kept.append(product)
            candidate = _Candidate(kept, product, offer_no, property_id, place, value, self._parts.noted)
            self._candidates.append(candidate)
        self._parts.noted = before

    def _keep_fitting(self) -> None:
        """Refuse the products that cannot be stored; all are tried at once first, as they nearly always fit."""
        try:
            self._fits([candidate.product for candidate in self._candidates])
            fitting = self._candidates
        except (msgspec.MsgspecError, OverflowError, ValueError):
            fitting = [candidate for candidate in self._candidates if self._does_fit(candidate)]
            # By identity: a list may contain equal products.
            kept = {id(candidate.product) for candidate in fitting}
            for products in {id(candidate.products): candidate.products for candidate in self._candidates}.values():
                products[:] = [product for product in products if id(product) in kept]
        for candidate in fitting:
            self.found.offer_nos.append(candidate.offer_no)
            self._parts.noted += candidate.deviations

    def _does_fit(self, candidate: _Candidate) -> bool:
        try:
            self._fits([candidate.product])
        except (msgspec.MsgspecError, OverflowError, ValueError) as error:
            self._refuse("offer", candidate.property_id, candidate.place, reason_of(error), candidate.value)
            return False
        return True

    def _refuse(self, part: str, property_id: int | None, place: str, reason: str, value: Any) -> None:
        if len(self.found.refusals) >= MOST_REFUSALS:
            raise TooManyRefusals
        try:
            sent = storable(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()
        except RecursionError:
            sent = b""
        self.found.refusals.append(refusal(part, property_id, place, reason, sent))
        if property_id is not None:
            self.found.unreadable.add(property_id)

    def _flush(self) -> None:
        self.found.deviations.extend(self._parts.noted)
        self._parts.noted = []
