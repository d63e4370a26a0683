"""Reads the answer to a quote field by field; an unreadable field is left out and costs no other.

An answer may confirm a reservation, so it is read as far as possible. Amounts are Decimals with exactly the digits
that were sent, and ids are exact.
"""

import json
import math
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

import msgspec

from pipeline.domain.texts import storable
from pipeline.supplier import wire
from pipeline.supplier.date_times import instant_of
from pipeline.supplier.envelope import Repeated, object_of, whole_number
from pipeline.supplier.fields import Field, fields_of

# More than any double has.
_MOST_EXPONENT = 400

_encode = msgspec.json.Encoder(decimal_format="number").encode


class UnreadableAnswer(ValueError):
    """A body is not a JSON object, so none of it can be read."""


class _LeftOut(ValueError):
    """A value that does not fit the document."""


def read_answer(body: bytes) -> tuple[wire.QuoteAnswer, dict[str, str]]:
    """Return the readable parts of an inflated body of any status, and the reason for each part left out, by place.

    An unreadable field counts as not given, and an unreadable item of an array as missing. Raises UnreadableAnswer if
    nothing can be read.
    """
    document = _document(body)
    if not isinstance(document, dict):
        raise UnreadableAnswer("the answer is no object")
    if isinstance(document.get("errors"), dict):
        document["errors"] = [document["errors"]]
    reader = _Reader()
    return reader.struct(document, wire.QuoteAnswer, ""), reader.left_out


def reservation_id_of(body: bytes) -> int | None:
    """Return the reservation id of a quote's inflated body, even if nothing else of it can be read."""
    try:
        return read_answer(body)[0].reservation_id
    except UnreadableAnswer:
        return None


class _Reader:
    """Reads objects by the wire's declaration; `left_out` has the reasons of parts left out, by place."""

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}

    def struct(self, value: dict[str, Any], kind: type[msgspec.Struct], place: str) -> Any:  # noqa: ANN401 - of `kind`
        given = {}
        for name, known in fields_of(kind).items():
            if isinstance(value, Repeated) and name in value.names:
                # It is not known which one is meant.
                self._leave_out(f"{place}{name}", "comes twice, with two values")
            elif value.get(name) is not None:
                given[known.name] = self._field(value[name], known, f"{place}{name}")
        return kind(**{name: read for name, read in given.items() if read is not None})

    def _field(self, value: Any, known: Field, place: str) -> Any:  # noqa: ANN401 - any JSON
        if not known.is_list:
            read = self._value(value, known, place)
        elif not isinstance(value, list):
            read = self._leave_out(place, "is no array")
        elif known.is_raw and len(value) > wire.MOST_CHILDREN:
            read = self._leave_out(place, f"has {len(value)} items; at most {wire.MOST_CHILDREN} are read")
        else:
            items = [self._value(item, known, f"{place}.{number}") for number, item in enumerate(value)]
            read = [item for item in items if item is not None]
        return msgspec.Raw(_encode(read)) if known.is_raw and read is not None else read

    def _value(self, value: Any, known: Field, place: str) -> Any:  # noqa: ANN401 - any JSON
        try:
            if known.struct is None:
                return _READ[known.kind](value, known)
            if isinstance(value, dict):
                return self.struct(value, known.struct, f"{place}.")
        except _LeftOut as error:
            return self._leave_out(place, str(error))
        return self._leave_out(place, "is no object")

    def _leave_out(self, place: str, reason: str) -> Any:  # noqa: ANN401 - None, in place of what was left out
        self.left_out[place] = reason
        return None


def _number(value: object, known: Field) -> Decimal | float:
    """Read a number, or a text of one: an amount exactly, any other as a double."""
    read: Decimal | float = msgspec.convert(_finite(value, known), known.type)
    return read if math.isfinite(read) else _refuse(value, known)


def _integer(value: object, known: Field) -> int:
    number = _finite(value, known)
    if number != number.to_integral_value():
        _refuse(value, known)
    try:
        read: int = msgspec.convert(int(number), known.type)
    except msgspec.ValidationError:
        _refuse(value, known)
    return read if read in wire.INT64 else _refuse(value, known)


def _finite(value: object, known: Field) -> Decimal:
    try:
        number = None if isinstance(value, bool | list | dict) else Decimal(str(value))
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or abs(number.adjusted()) > _MOST_EXPONENT:
        _refuse(value, known)
    return number


def _text(value: object, known: Field) -> str:
    return storable(value) if isinstance(value, str) else _refuse(value, known)


def _date_time(value: object, known: Field) -> str:
    return value if isinstance(value, str) and instant_of(value) is not None else _refuse(value, known)


def _flag(value: object, known: Field) -> bool:
    try:
        return msgspec.convert(value, bool, strict=False)
    except msgspec.ValidationError:
        _refuse(value, known)


def _refuse(value: object, known: Field) -> NoReturn:
    raise _LeftOut(f"{str(value)[:100]!a} is no {known.kind} that can be kept")


_READ = {"number": _number, "integer": _integer, "text": _text, "date-time": _date_time, "flag": _flag}


def _document(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Decode a body. NaN, endless numbers, bytes that are not UTF-8 and repeated fields cost only their own part."""
    try:
        text = body.decode(json.detect_encoding(body), "surrogateescape")
        return json.loads(text, parse_float=_decimal, parse_int=whole_number, object_pairs_hook=object_of)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise UnreadableAnswer(f"not JSON: {error}") from None


def _decimal(digits: str) -> Decimal | float:
    # An integer with a huge exponent takes forever to compute; such numbers count as not finite.
    number = Decimal(digits)
    return number if abs(number.adjusted()) <= _MOST_EXPONENT else float("nan")
