"""The declaration of the wire as data: each field's name there and here, and the kind of its values."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from pipeline.domain.search import Operation
from pipeline.supplier.wire import ANSWERS

_KINDS = {int: "integer", float: "number", Decimal: "number", str: "text", bool: "flag"}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a wire type. `kind` is of its value, of a list of each item: a plain one, `date-time` or `object`.

    `type` is what msgspec reads that value by. Objects whose `is_raw` is true stay JSON.
    """

    name: str
    kind: str
    type: Any
    is_list: bool
    struct: type[msgspec.Struct] | None = None
    is_raw: bool = False


@cache
def fields_of(struct: type[msgspec.Struct]) -> dict[str, Field]:
    """Return the fields of a wire type by their names on the wire, in the order of declaration."""
    amounts = get_args(struct)
    return {info.encode_name: _field(info.name, info.type, amounts) for info in msgspec.structs.fields(struct)}


def _field(name: str, annotation: Any, amounts: tuple[Any, ...]) -> Field:  # noqa: ANN401 - an annotation
    """Read `X | None` or `X`, where X is a list, a wire type, JSON that holds some, or a plain type.

    The content of JSON has amounts of the same type as the object that contains it.
    """
    is_optional = get_origin(annotation) in {Union, types.UnionType}
    (wanted,) = [each for each in get_args(annotation) if each is not type(None)] if is_optional else [annotation]
    is_list = get_origin(wanted) is list
    value = get_args(wanted)[0] if is_list else wanted
    bare, *marks = get_args(value) if get_origin(value) is Annotated else (value,)
    extra = {key: held for mark in marks for key, held in (mark.extra or {}).items()}
    if "struct" in extra:
        struct = extra["struct"][amounts] if getattr(extra["struct"], "__parameters__", ()) else extra["struct"]
        return Field(name, "object", value, extra.get("is_list", False), struct, is_raw=True)
    if extra.get("is_date_time"):
        return Field(name, "date-time", annotation, is_list)
    kind = _KINDS.get(bare, "object")
    return Field(name, kind, value if is_list else annotation, is_list, value if kind == "object" else None)


def response_fields(operation: Operation) -> list[str]:
    """Return the path of every field that an answer may have, arrays as [], but for those that only hold others."""
    return list(_paths(ANSWERS[operation], ""))


def _paths(struct: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    for name, known in fields_of(struct).items():
        path = f"{prefix}{name}{'[]' * known.is_list}"
        if known.struct is None:
            yield path
        else:
            yield from _paths(known.struct, f"{path}.")
