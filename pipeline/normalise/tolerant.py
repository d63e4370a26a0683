"""The second try: an answer that the strict types refuse, read part by part.

Unknown fields, numbers written as texts and the like are recorded and never cost an offer. A part that cannot be
read is refused by itself, with its path and reason; its neighbours are kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import msgspec

from pipeline.domain.search import Operation
from pipeline.normalise import wire

S = TypeVar("S", bound=msgspec.Struct)

NO_ID = "has no propertyId"

_SAMPLE_CHARACTERS = 500
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Words beside the prices: whatever stands in them costs nothing else.
_CONTENT = frozenset({"propertyName", "roomDescription", "bedTypeInfo", "images", "roomAmenities"})
_WHOLE_NUMBERS = (int | None, wire.Int32 | None)
# More digits than any integer that we could keep; reading far more of them takes quadratic time.
_MOST_DIGITS = 40
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
    has_errors: bool = False
    unreadable: set[int] = field(default_factory=set)
    is_unreadable: bool = False
    refusals: list[Refusal] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)


@dataclass(slots=True)
class _Candidate:
    """A product that was read, and may still turn out not to fit into the tables."""

    products: list[wire.Product]
    product: wire.Product
    offer_no: int
    property_id: int
    place: str
    value: Any
    deviations: list[Deviation]


class _Unfit(ValueError):
    """A value that no lenient reading makes fit."""


def read(
    body: bytes, operation: Operation, asked: frozenset[int], fits: Callable[[Sequence[wire.Product]], None]
) -> SecondReading:
    """Read a body part by part. `fits` raises where one of some products cannot be stored. Never raises itself."""
    reader = _Reader(operation, asked, fits)
    try:
        document = _decoded(body.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reader.found.refusals.append(refusal("answer", None, "$", _reason(error), body))
        reader.found.is_unreadable = True
        return reader.found
    if body.startswith(_BYTE_ORDER_MARK):
        reader.found.deviations.append(Deviation("$", "changed_type", "byte order mark"))
    reader.answer(document)
    return reader.found


def _decoded(body: bytes) -> Any:
    """Decode a body. Raises msgspec's errors, ValueError or RecursionError where it is no JSON.

    NaN, numbers beyond a double and bytes that are no UTF-8 end msgspec's reading of a whole body. The standard
    library leaves them where they stand, so that they cost the part that they stand in.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        try:
            return json.loads(body.decode("utf-8", "surrogateescape"), parse_int=_integer)
        except ValueError:
            pass
        raise


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def refusal(part: str, property_id: int | None, place: str, reason: str, value: bytes) -> Refusal:
    """Return a refusal with its reason and the value as sent cut to what a row holds."""
    sample = value[: 4 * _SAMPLE_CHARACTERS].decode("utf-8", "replace")[:_SAMPLE_CHARACTERS]
    return Refusal(part, property_id, place, reason[:300], sample)


class _Reader:
    """Walks a decoded body and fills a SecondReading."""

    def __init__(
        self, operation: Operation, asked: frozenset[int], fits: Callable[[Sequence[wire.Product]], None]
    ) -> None:
        self.found = SecondReading()
        self._is_multi = operation is Operation.MULTI
        self._asked = asked
        self._fits = fits
        self._seen: set[int] = set()
        self._next_offer_no = 0
        self._candidates: list[_Candidate] = []
        # Deviations of a part count only if the part is kept.
        self._pending: list[Deviation] = []

    def answer(self, body: Any) -> None:
        if not isinstance(body, dict):
            self._refuse("answer", None, "$", f"is {_kind(body)}, not an object", body)
            self.found.is_unreadable = True
            return
        name = "properties" if self._is_multi else "property"
        self._unknown_fields(body, {name, "errors"}, "")
        self.found.codes = self._codes(body.get("errors"))
        listed = body.get(name)
        if self._is_multi and listed is not None and not isinstance(listed, list):
            self._refuse("answer", None, name, f"is {_kind(listed)}, not an array", listed)
            self.found.is_unreadable = True
            return
        held = (listed or []) if self._is_multi else [listed] if listed is not None else []
        for index, value in enumerate(held):
            place, path = (f"properties[{index}]", "properties[]") if self._is_multi else (name, name)
            self._property(value, place, path)
        self._keep_fitting()
        self._flush()

    def _codes(self, errors: Any) -> tuple[int, ...]:
        """Return the error codes, in either item shape, in their order."""
        if errors is None:
            return ()
        self.found.has_errors = errors != []
        if not isinstance(errors, list):
            self._pending.append(Deviation("errors", "changed_type", _kind(errors)))
            errors = [errors]
        codes = []
        for item in errors:
            try:
                fields = self._object(item, wire.ErrorItem, "errors[]")
            except _Unfit:
                self._pending.append(Deviation("errors[]", "changed_type", _kind(item)))
                continue
            code = fields.get("code", fields.get("error_code"))
            if code is not None:
                codes.append(code)
        return tuple(codes)

    def _property(self, value: Any, place: str, path: str) -> None:
        kind = wire.ListProperty if self._is_multi else wire.DetailProperty
        property_id: int | None = None
        try:
            fields = self._object(value, kind, path, ("roomStays",))
            property_id = fields.get("property_id")
            if property_id is None and not self._is_multi:
                # One property was asked for, and every field is optional: it can only be that one.
                (property_id,) = self._asked
                fields["property_id"] = property_id
            if property_id is None:
                raise _Unfit(NO_ID)
            if property_id not in self._asked:
                self.found.deviations.append(Deviation(f"{path}.propertyId", "not_asked", "property"))
                raise _Unfit("was not asked for")
            room_stays = self._list(value.get("roomStays"), f"{path}.roomStays")
        except _Unfit as error:
            self._refuse("property", self._id_of(value), place, str(error), value)
            if not self._is_multi:
                # Nothing else was asked for: what the answer says of it is in here, or nowhere.
                self.found.unreadable |= self._asked
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

    def _id_of(self, value: Any) -> int | None:
        """Return the id of a property that is refused, if at least that can be read."""
        given, before = value.get("propertyId") if isinstance(value, dict) else None, self._pending.copy()
        try:
            return None if given is None else self._scalar(given, int | None, "propertyId")
        except _Unfit:
            return None
        finally:
            self._pending = before

    def _room_stay(
        self,
        value: Any,
        property_id: int,
        place: str,
        path: str,
    ) -> wire.ListRoomStay | wire.DetailRoomStay | None:
        kind = wire.ListRoomStay if self._is_multi else wire.DetailRoomStay
        try:
            fields = self._object(value, kind, path, ("products",))
            products = self._list(value.get("products"), f"{path}.products")
        except _Unfit as error:
            self._refuse("room_stay", property_id, place, str(error), value)
            return None
        kept: list[Any] = []
        for index, item in enumerate(products):
            self._product(item, property_id, f"{place}.products[{index}]", f"{path}.products[]", kept)
        return kind(**fields, products=kept)

    def _product(self, value: Any, property_id: int, place: str, path: str, kept: list[wire.Product]) -> None:
        offer_no, self._next_offer_no = self._next_offer_no, self._next_offer_no + 1
        before, self._pending = self._pending, []
        try:
            product = self._readable_product(value, path)
        except _Unfit as error:
            self._refuse("offer", property_id, place, _reason(error), value)
        else:
            kept.append(product)
            candidate = _Candidate(kept, product, offer_no, property_id, place, value, self._pending)
            self._candidates.append(candidate)
        self._pending = before

    def _keep_fitting(self) -> None:
        """Refuse the products that cannot be stored. Nearly always all can, which one look tells."""
        try:
            self._fits([candidate.product for candidate in self._candidates])
            fitting = self._candidates
        except (msgspec.MsgspecError, OverflowError, ValueError):
            fitting = [candidate for candidate in self._candidates if self._does_fit(candidate)]
        for candidate in fitting:
            self.found.offer_nos.append(candidate.offer_no)
            self._pending += candidate.deviations

    def _does_fit(self, candidate: _Candidate) -> bool:
        try:
            self._fits([candidate.product])
        except (msgspec.MsgspecError, OverflowError, ValueError) as error:
            # By identity: equal products may stand beside each other.
            candidate.products[:] = [product for product in candidate.products if product is not candidate.product]
            self._refuse("offer", candidate.property_id, candidate.place, _reason(error), candidate.value)
            return False
        return True

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
        known = _fields_of(kind)
        self._unknown_fields(value, known, path)
        plain = {}
        for name, info in known.items():
            given = value.get(name)
            if given is None or name in children:
                continue
            if name in _CONTENT:
                plain[info.name] = self._content(name, given, info.type, f"{path}.{name}")
            else:
                plain[info.name] = self._scalar(given, info.type, f"{path}.{name}")
        return plain

    def _content(self, name: str, value: Any, kind: Any, path: str) -> Any:
        """Return a content field as far as it can be read; what cannot is noted and left out."""
        try:
            if name == "images":
                return list(self._readable(self._list(value, path), f"{path}[]", self._image))
            if name == "roomAmenities":
                return list(self._readable(self._list(value, path), f"{path}[]", self._amenity))
            return self._scalar(value, kind, path)
        except _Unfit:
            self._pending.append(Deviation(path, "changed_type", _kind(value)))
            return None

    def _readable(self, items: list[Any], path: str, read: Callable[[Any, str], Any]) -> Iterator[Any]:
        for item in items:
            try:
                yield read(item, path)
            except _Unfit:
                self._pending.append(Deviation(path, "changed_type", _kind(item)))

    def _image(self, value: Any, path: str) -> Any:
        return self._scalar(value, str, path)

    def _amenity(self, value: Any, path: str) -> Any:
        return wire.Amenity(**self._object(value, wire.Amenity, path))

    def _scalar(self, value: Any, kind: Any, path: str) -> Any:
        # Where a number belongs too: a text that cannot be encoded is more than a wrong type to msgspec.
        if isinstance(value, str) and not _is_text(value):
            raise _Unfit(f"{path} is not UTF-8")
        try:
            read = msgspec.convert(value, kind)
        except msgspec.ValidationError:
            read = self._leniently(value, kind, path)
        if isinstance(read, int) and read not in _INT64:
            raise _Unfit(f"{path} {read} is not an int64")
        if isinstance(read, float) and not math.isfinite(read):
            raise _Unfit(f"{path} {read} is not a number that can be kept")
        return read

    def _leniently(self, value: Any, kind: Any, path: str) -> Any:
        if isinstance(value, float) and value.is_integer() and kind in _WHOLE_NUMBERS:
            # From 2^53 on a double no longer names one integer.
            if abs(value) >= 2**53:
                raise _Unfit(f"{path} {value} is not an exact integer")
            read: Any = self._scalar(int(value), kind, path)
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
                shown = _shown(name)
                place = f"{path}.{shown}" if path else shown
                self._pending.append(Deviation(place[:300], "unknown_field", _kind(held)))

    def _refuse(self, part: str, property_id: int | None, place: str, reason: str, value: Any) -> None:
        try:
            sent = _shown(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()
        except RecursionError:
            sent = b""
        self.found.refusals.append(refusal(part, property_id, place, reason, sent))
        if property_id is not None:
            self.found.unreadable.add(property_id)

    def _flush(self) -> None:
        self.found.deviations.extend(self._pending)
        self._pending = []


@cache
def _fields_of(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {info.encode_name: info for info in msgspec.structs.fields(kind)}


_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "null")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(text: str) -> str:
    """Return a text that can be stored, whatever bytes it was read from."""
    return text.encode("utf-8", "backslashreplace").decode()


def _reason(error: Exception) -> str:
    return str(error)[:300] or type(error).__name__
