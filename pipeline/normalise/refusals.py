"""Refusals: unreadable parts of an answer, and objects with an error or a message instead of content."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec

from pipeline.normalise.parts import Unfit
from pipeline.supplier import wire
from pipeline.supplier.failure_signs import has_message, server_code, speaks_of_failure
from pipeline.supplier.fields import fields_of

_SAMPLE_CHARACTERS = 500

MOST_REFUSALS = 20_000
"""Refusals of one answer; one with more is refused as a whole, and its properties are requested again in halves."""


class TooManyRefusals(Exception):
    """An answer has more than MOST_REFUSALS unreadable parts."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A part that could not be read, or that may be incomplete."""

    part: str
    property_id: int | None
    path: str
    reason: str
    sample: str


def refusal(part: str, property_id: int | None, place: str, reason: str, value: bytes) -> Refusal:
    """Return a refusal, with its reason and the value as sent cut to the size of a row."""
    sample = value[: 4 * _SAMPLE_CHARACTERS].decode("utf-8", "replace")[:_SAMPLE_CHARACTERS]
    return Refusal(part, property_id, place, reason[:300], sample)


def is_nameless(refused: Refusal) -> bool:
    """Return whether a part is a property whose id is unknown."""
    return refused.part == "property" and refused.property_id is None


def reason_of(error: Exception) -> str:
    """Return why a part could not be read."""
    return str(error)[:300] or type(error).__name__


def beside(value: dict[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the fields of an object that its type does not have."""
    known = fields_of(kind)
    return {name: held for name, held in value.items() if name not in known}


def names_error(value: object) -> bool:
    """Return whether a tree of JSON has an error anywhere."""
    return speaks_of_failure(value) or server_code(value) is not None


def check_product(value: dict[str, Any], product: wire.Product, kind: type[msgspec.Struct]) -> None:
    """Raise Unfit if an object is not a product. One with a price is a product, whatever else it holds."""
    if product.charges is not None and product.charges.total is not None:
        return
    if all(value.get(name) in (None, {}, []) for name in fields_of(kind)):
        raise Unfit("has no field of a product")
    _refuse_place_taken(value, kind, "price")


def check_room(value: dict[str, Any], products: Collection[object], kind: type[msgspec.Struct]) -> None:
    """Raise Unfit if an object without products is not a room stay either; rooms may have nothing on sale."""
    if products:
        return
    if not value.keys() & fields_of(kind).keys():
        raise Unfit("has no field of a room stay")
    _refuse_place_taken(value, kind, "products")


def _refuse_place_taken(value: dict[str, Any], kind: type[msgspec.Struct], what: str) -> None:
    if names_error(value):
        raise Unfit(f"has an error in the place of its {what}")
    if has_message(beside(value, kind)):
        raise Unfit(f"has a message in the place of its {what}")
