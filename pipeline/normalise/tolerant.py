"""The second try: an answer that the strict types refuse, read part by part.

Unknown fields, numbers written as texts and the like are recorded and never cost an offer. A part that cannot be
read is refused by itself, with its path and reason; its neighbours are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from pipeline.domain.search import Operation
from pipeline.normalise import wire

S = TypeVar("S", bound=msgspec.Struct)

_SAMPLE_CHARACTERS = 500
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A part that could not be read."""

    part: str
    property_id: int | None
    path: str
    reason: str
    sample: str


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something that the document does not say; the value was kept."""

    path: str
    kind: str
    detail: str


@dataclass(slots=True)
class SecondReading:
    """What could be read of an answer, and what not."""

    properties: list[wire.Property] = field(default_factory=list)
    offer_nos: list[int] = field(default_factory=list)
    codes: tuple[int, ...] = ()
    unreadable: set[int] = field(default_factory=set)
    is_unreadable: bool = False
    refusals: list[Refusal] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)


class _Unfit(ValueError):
    """A value that no lenient reading makes fit."""


def read(
    body: bytes, operation: Operation, asked: frozenset[int], fits: Callable[[wire.Product], None]
) -> SecondReading:
    """Read a body part by part. `fits` raises where a product cannot be stored. Never raises itself."""
    reader = _Reader(operation, asked, fits)
    try:
        reader.answer(msgspec.json.decode(body))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        sample = body[:_SAMPLE_CHARACTERS].decode("utf-8", "replace")
        reader.found.refusals.append(Refusal("answer", None, "$", _reason(error), sample))
        reader.found.is_unreadable = True
    return reader.found


def codes_of(answer: Any) -> tuple[int, ...]:
    """Return the error codes of a decoded body, in either item shape, in their order."""
    errors = answer.get("errors") if isinstance(answer, dict) else None
    items = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
    found = (item.get("code", item.get("errorCode")) for item in items)
    return tuple(code for code in map(_whole_number, found) if code is not None)


def _whole_number(value: object) -> int | None:
    try:
        number = msgspec.convert(value, int, strict=False)
    except msgspec.ValidationError:
        return None
    return None if isinstance(value, bool) else number


class _Reader:
    """Walks a decoded body and fills a SecondReading."""

    def __init__(self, operation: Operation, asked: frozenset[int], fits: Callable[[wire.Product], None]) -> None:
        self.found = SecondReading()
        self._is_multi = operation is Operation.MULTI
        self._asked = asked
        self._fits = fits
        self._seen: set[int] = set()
        self._next_offer_no = 0
        # Deviations of a part count only if the part is kept.
        self._pending: list[Deviation] = []

    def answer(self, body: Any) -> None:
        if not isinstance(body, dict):
            self._refuse("answer", None, "$", f"is {_kind(body)}, not an object", body)
            self.found.is_unreadable = True
            return
        name = "properties" if self._is_multi else "property"
        self._unknown_fields(body, {name, "errors"}, "")
        self.found.codes = codes_of(body)
        listed = body.get(name)
        if self._is_multi and listed is not None and not isinstance(listed, list):
            self._refuse("answer", None, name, f"is {_kind(listed)}, not an array", listed)
            self.found.is_unreadable = True
            return
        held = (listed or []) if self._is_multi else [listed] if listed is not None else []
        for index, value in enumerate(held):
            place, path = (f"properties[{index}]", "properties[]") if self._is_multi else (name, name)
            self._property(value, place, path)
        self._flush()

    def _property(self, value: Any, place: str, path: str) -> None:
        kind = wire.ListProperty if self._is_multi else wire.DetailProperty
        property_id: int | None = None
        try:
            fields = self._object(value, kind, path, children=("roomStays",))
            property_id = fields.get("property_id")
            if property_id is None and not self._is_multi:
                # One property was asked for, and every field is optional: it can only be that one.
                (property_id,) = self._asked
                fields["property_id"] = property_id
            if property_id is None:
                raise _Unfit("has no propertyId")
            if property_id not in self._asked:
                self.found.deviations.append(Deviation(f"{path}.propertyId", "not_asked", "property"))
                raise _Unfit("was not asked for")
            room_stays = self._list(value.get("roomStays"), f"{path}.roomStays")
        except _Unfit as error:
            self._refuse("property", property_id, place, str(error), value)
            return
        if property_id in self._seen:
            self._pending.append(Deviation(f"{path}.propertyId", "duplicate", "property"))
        self._seen.add(property_id)
        kept: list[Any] = [
            room
            for index, item in enumerate(room_stays)
            if (room := self._room_stay(item, property_id, f"{place}.roomStays[{index}]", f"{path}.roomStays[]"))
        ]
        self.found.properties.append(kind(**fields, room_stays=kept))
        self._flush()

    def _room_stay(
        self,
        value: Any,
        property_id: int,
        place: str,
        path: str,
    ) -> wire.ListRoomStay | wire.DetailRoomStay | None:
        kind = wire.ListRoomStay if self._is_multi else wire.DetailRoomStay
        children = ("products",) if self._is_multi else ("products", "images", "roomAmenities")
        try:
            fields = self._object(value, kind, path, children=children)
            products = self._list(value.get("products"), f"{path}.products")
        except _Unfit as error:
            self._refuse("room_stay", property_id, place, str(error), value)
            return None
        kept: list[Any] = []
        for index, item in enumerate(products):
            offer_no, self._next_offer_no = self._next_offer_no, self._next_offer_no + 1
            product = self._product(item, property_id, f"{place}.products[{index}]", f"{path}.products[]")
            if product is not None:
                kept.append(product)
                self.found.offer_nos.append(offer_no)
        return kind(**fields, products=kept)

    def _product(self, value: Any, property_id: int, place: str, path: str) -> wire.Product | None:
        kept, self._pending = self._pending, []
        try:
            product = self._readable_product(value, path)
            self._fits(product)
        except (_Unfit, msgspec.MsgspecError, OverflowError, ValueError) as error:
            self._pending = kept
            self._refuse("offer", property_id, place, _reason(error), value)
            return None
        self._pending = kept + self._pending
        return product

    def _readable_product(self, value: Any, path: str) -> wire.Product:
        kind, charge = (wire.ListProduct, wire.ChargeTotal) if self._is_multi else (wire.DetailProduct, wire.Charge)
        fields = self._object(value, kind, path, ("boardBasis", "charges", "promotions", "cancelPenalties"))
        board = self._optional(value.get("boardBasis"), wire.Board, f"{path}.boardBasis")
        promotions = [
            wire.Promotion(**self._object(item, wire.Promotion, f"{path}.promotions[]"))
            for item in self._list(value.get("promotions"), f"{path}.promotions")
        ]
        penalties = [
            wire.Penalty(**self._object(item, wire.Penalty, f"{path}.cancelPenalties[]"))
            for item in self._list(value.get("cancelPenalties"), f"{path}.cancelPenalties")
        ]
        charges = None
        if (stated := value.get("charges")) is not None:
            amounts = self._object(
                stated, charge, f"{path}.charges", () if self._is_multi else ("excludedChargeDetails",)
            )
            if not self._is_multi:
                detail = f"{path}.charges.excludedChargeDetails"
                amounts["excluded"] = self._optional(stated.get("excludedChargeDetails"), wire.ExcludedCharges, detail)
            charges = charge(**amounts)
        return kind(
            **fields,
            board=msgspec.Raw(msgspec.json.encode(board)),
            promotions=msgspec.Raw(msgspec.json.encode(promotions)),
            penalties=msgspec.Raw(msgspec.json.encode(penalties)),
            charges=charges,  # type: ignore[arg-type] # the kind of charge goes with the kind of product
        )

    # Values -----------------------------------------------------------------------------------------------

    def _optional(self, value: Any, kind: type[S], path: str) -> S | None:
        return None if value is None else kind(**self._object(value, kind, path))

    def _object(self, value: Any, kind: type[S], path: str, children: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the plain fields of an object by our names; `children` are read by the caller."""
        if not isinstance(value, dict):
            raise _Unfit(f"{path} is {_kind(value)}, not an object")
        known = {info.encode_name: info for info in msgspec.structs.fields(kind)}
        self._unknown_fields(value, known, path)
        plain = {}
        for name, info in known.items():
            if name not in children and (given := value.get(name)) is not None:
                plain[info.name] = self._scalar(given, info.type, f"{path}.{name}")
        return plain

    def _scalar(self, value: Any, kind: Any, path: str) -> Any:
        try:
            read = msgspec.convert(value, kind)
        except msgspec.ValidationError:
            read = self._leniently(value, kind, path)
        if isinstance(read, int) and read not in _INT64:
            raise _Unfit(f"{path} {read} is not an int64")
        return read

    def _leniently(self, value: Any, kind: Any, path: str) -> Any:
        if isinstance(value, float) and value.is_integer() and kind == (int | None):
            # Above 2^53 a double no longer names one integer.
            if abs(value) > 2**53:
                raise _Unfit(f"{path} {value} is not an exact integer")
            read: Any = int(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and kind == (str | None):
            read = str(value)
        else:
            try:
                read = msgspec.convert(value, kind, strict=False)
            except msgspec.ValidationError as error:
                raise _Unfit(f"{path}: {error}") from None
        self._pending.append(Deviation(path, "changed_type", _kind(value)))
        return read

    def _list(self, value: Any, path: str) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise _Unfit(f"{path} is {_kind(value)}, not an array")
        return value

    def _unknown_fields(self, value: dict[str, Any], known: Any, path: str) -> None:
        for name, held in value.items():
            if name not in known:
                place = f"{path}.{name}" if path else name
                self._pending.append(Deviation(place[:300], "unknown_field", _kind(held)))

    def _refuse(self, part: str, property_id: int | None, place: str, reason: str, value: Any) -> None:
        sample = msgspec.json.encode(value).decode()[:_SAMPLE_CHARACTERS]
        self.found.refusals.append(Refusal(part, property_id, place, reason[:300], sample))
        if property_id is not None:
            self.found.unreadable.add(property_id)

    def _flush(self) -> None:
        self.found.deviations.extend(self._pending)
        self._pending = []


_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "null")


def _reason(error: Exception) -> str:
    return str(error)[:300] or type(error).__name__
