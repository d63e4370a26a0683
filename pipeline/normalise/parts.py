"""Parts of a decoded answer, read by the wire's declaration.

Unknown fields, numbers written as texts and the like are noted and never cost a part. A value that even a lenient
reading cannot use raises `Unfit`.
"""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import msgspec

from pipeline.domain.texts import storable
from pipeline.supplier import wire
from pipeline.supplier.envelope import Repeated
from pipeline.supplier.fields import Field, fields_of

S = TypeVar("S", bound=msgspec.Struct)

# Names and descriptions: an unreadable one costs nothing else.
_CONTENT = frozenset({"propertyName", "roomDescription", "bedTypeInfo", "images", "roomAmenities"})
# Exact dates and amounts of penalties are kept in list answers too.
_READ_AS: dict[type[msgspec.Struct], type[msgspec.Struct]] = {wire.ListPenalty: wire.Penalty[float]}
# Fields of a room that its offers do not depend on: an unreadable one costs only itself.
_OWN_COST: dict[type[msgspec.Struct], frozenset[str]] = dict.fromkeys(
    (wire.ListRoomStay, wire.DetailRoomStay), frozenset({"roomName", "rateType", "availableRooms"})
)
# Texts of a product that no price depends on: an unreadable one is noted and left out.
_WORDS: dict[type[msgspec.Struct], frozenset[str]] = {
    wire.Board: frozenset({"detail"}),
    wire.Promotion: frozenset({"promoType", "description"}),
}


@dataclass(frozen=True, slots=True)
class Deviation:
    """A deviation from the document; the value was kept."""

    path: str
    kind: str
    detail: str


# Different ones of an answer or a segment. A supplier changes its document in dozens of places; one answer can name
# millions.
MOST_DEVIATIONS = 10_000
MORE_DEVIATIONS = Deviation("$", "new_value", f"more than {MOST_DEVIATIONS:,} deviations")


class Unfit(ValueError):
    """A value that no lenient reading makes fit."""


@cache
def _nested(kind: type[msgspec.Struct]) -> list[tuple[str, Field, type[msgspec.Struct]]]:
    """Return the fields that hold objects, with the types to read them as; those that stay JSON first."""
    nested = [
        (name, known, _READ_AS.get(known.struct, known.struct))
        for name, known in fields_of(kind).items()
        if known.struct is not None and name not in _CONTENT
    ]
    return sorted(nested, key=lambda each: not each[1].is_raw)


class PartReader:
    """Reads parts; `noted` has their deviations, and `unread` the fields that were read as missing."""

    def __init__(self) -> None:
        self.noted: list[Deviation] = []
        self._known: dict[tuple[str, str, str], Deviation] = {}
        self.unread: list[tuple[str, str, Any]] = []

    def note(self, path: str, kind: str, detail: str) -> None:
        """Note a deviation. One that a million parts have is held once, and so are further ones beyond the limit."""
        what = path, kind, detail
        found = self._known.get(what)
        if found is None:
            if len(self._known) >= MOST_DEVIATIONS:
                self.noted.append(MORE_DEVIATIONS)
                return
            found = self._known[what] = Deviation(*what)
        self.noted.append(found)

    def struct(self, value: Any, kind: type[S], path: str) -> S:
        """Return an object with its nested objects; those that stay JSON are encoded again."""
        fields = self.object(value, kind, path)
        for name, known, struct in _nested(kind):
            given, place = value.get(name), f"{path}.{name}"
            held: Any
            if known.is_list:
                held = [self.struct(item, struct, f"{place}[]") for item in self.items(given, place)]
            else:
                held = None if given is None else self.struct(given, struct, place)
            fields[known.name] = msgspec.Raw(msgspec.json.encode(held)) if known.is_raw else held
        return kind(**fields)

    def object(self, value: Any, kind: type[S], path: str) -> dict[str, Any]:
        """Return the plain fields of an object, and its names and descriptions, by our names."""
        if not isinstance(value, dict):
            raise Unfit(f"{path} is {kind_of(value)}, not an object")
        known_fields = fields_of(kind)
        own_cost = _OWN_COST.get(kind, frozenset())
        repeated = value.names & known_fields.keys() if isinstance(value, Repeated) else frozenset()
        if grave := repeated - _CONTENT - own_cost:
            raise Unfit(f"{path} has {', '.join(sorted(grave))} twice")
        self.unknown_fields(value, known_fields, path)
        plain = {}
        for name, known in known_fields.items():
            given = value.get(name)
            if given is None:
                continue
            if name in _CONTENT:
                plain[known.name] = self._content(given, known, f"{path}.{name}")
            elif known.struct is None:
                try:
                    if name in repeated:
                        raise Unfit(f"{path} has {name} twice")
                    plain[known.name] = self.scalar(given, known, f"{path}.{name}")
                except Unfit as error:
                    if name in own_cost:
                        self.unread.append((name, str(error), given))
                    elif name in _WORDS.get(kind, ()) and name not in repeated:
                        self.note(f"{path}.{name}", "changed_type", kind_of(given))
                    else:
                        raise
        return plain

    def _content(self, value: Any, known: Field, path: str) -> Any:
        """Return the readable part of a content field; the rest is noted and left out."""
        try:
            if known.is_list:
                return list(self._readable(self.items(value, path), known, f"{path}[]"))
            return self.scalar(value, known, path)
        except Unfit:
            self.note(path, "changed_type", kind_of(value))
            return None

    def _readable(self, items: list[Any], known: Field, path: str) -> Iterator[Any]:
        for item in items:
            try:
                if known.struct is None:
                    yield self.scalar(item, known, path)
                else:
                    yield known.struct(**self.object(item, known.struct, path))
            except Unfit:
                self.note(path, "changed_type", kind_of(item))

    def scalar(self, value: Any, known: Field, path: str) -> Any:
        """Return a plain value; a deviating spelling is noted."""
        # Numbers too: msgspec fails on a text that cannot be encoded, instead of reporting a wrong type.
        if isinstance(value, str) and not _is_text(value):
            raise Unfit(f"{path} is not UTF-8")
        try:
            read = msgspec.convert(value, known.type)
        except msgspec.ValidationError:
            read = self._leniently(value, known, path)
        if isinstance(read, int) and read not in wire.INT64:
            raise Unfit(f"{path} {read} is not an int64")
        if isinstance(read, float) and not math.isfinite(read):
            raise Unfit(f"{path} {read} is not a number that can be kept")
        return read

    def _leniently(self, value: Any, known: Field, path: str) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(value, float) and value.is_integer() and known.kind == "integer":
            # From 2^53 on, a double no longer represents exactly one integer.
            if abs(value) >= 2**53:
                raise Unfit(f"{path} {value} is not an exact integer")
            read: Any = self.scalar(int(value), known, path)
        elif is_number and known.kind in {"text", "date-time"} and not known.is_list:
            read = str(value)
        else:
            try:
                read = msgspec.convert(value, known.type, strict=False)
            except msgspec.ValidationError as error:
                raise Unfit(f"{path}: {error}") from None
        self.note(path, "changed_type", kind_of(value))
        return read

    def items(self, value: Any, path: str) -> list[Any]:
        """Return the items of an array, none of null."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise Unfit(f"{path} is {kind_of(value)}, not an array")
        return value

    def unknown_fields(self, value: dict[str, Any], known: Collection[str], path: str) -> None:
        """Note the fields of an object that are not among `known`."""
        for name, held in value.items():
            if name not in known:
                shown = storable(name)
                place = f"{path}.{shown}" if path else shown
                self.note(place[:300], "unknown_field", kind_of(held))


_KINDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def kind_of(value: object) -> str:
    """Return what JSON calls a value."""
    return _KINDS.get(type(value), "null")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
