"""What comes back, as contract types: for quotes, for `doctor`, for people and for the contract tests.

Not for sweeps: the bulk path decodes raw answers with msgspec. Here every field is optional and may be null, and
unknown fields are kept. Money and percentages are Decimals of exactly the digits that were sent, ids are exact, and
date-times keep their offset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, NoReturn, get_args, get_origin

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from pipeline.domain.search import Operation

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
_INT64: TypeAdapter[int] = TypeAdapter(Int64)


def _storable(text: str) -> str:
    # Half a surrogate pair is a text in JSON and in no file: it is written out as JSON writes it.
    return text.encode("utf-8", "backslashreplace").decode()


Text = Annotated[str, AfterValidator(_storable)]

# More digits than any integer that could be kept; reading far more of them takes quadratic time.
_MOST_DIGITS = 40
# More than any double has.
_MOST_EXPONENT = 400
# What the tables can number within one product.
_MOST_CHILDREN = 2**15


class UnreadableAnswer(ValueError):
    """A body is not the JSON of the operation's answer. The message names each field that cannot be read."""


class _Part(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class ErrorItem(_Part):
    """One error: `code` and `message` with a 200, `errorCode` and `errorDescription` with a 400 or 500."""

    code: Int32 | None = None
    message: Text | None = None
    error_code: Int32 | None = None
    error_description: Text | None = None

    @property
    def number(self) -> int | None:
        """The code, whichever of the two names it came under."""
        return self.error_code if self.code is None else self.code

    @property
    def text(self) -> str | None:
        """The text, whichever of the two names it came under."""
        return self.error_description if self.message is None else self.message


class BoardBasis(_Part):
    """A meal plan."""

    id: Int32 | None = None
    name: Text | None = None
    detail: Text | None = None


class Promotion(_Part):
    """A promotion: value add, discount off and free night are named."""

    promo_type: Text | None = None
    description: Text | None = None


class CancelPenalty(_Part):
    """What cancelling costs inside a window of hours before check-in."""

    penalty_window: Int32 | None = None
    penalty_percentage: Decimal | None = None
    penalty_nights: Decimal | None = None
    refundable: bool | None = None


class DetailCancelPenalty(CancelPenalty):
    """A penalty with its exact times and amount."""

    penalty_start_date: AwareDatetime | None = None
    penalty_end_date: AwareDatetime | None = None
    penalty_in_amount: Decimal | None = None


class ChargeTotal(_Part):
    """The price of a product, in the currency of its property."""

    total: Decimal | None = None
    min_sellable_price: Decimal | None = None
    pre_promo_total: Decimal | None = None
    discount_percentage: Decimal | None = None


class ExcludedChargeDetails(_Part):
    """What is paid at the property."""

    resort_fee: Decimal | None = None
    child_resort_fee: Decimal | None = None
    city_taxes: Decimal | None = None
    hotel_service_fee: Decimal | None = None


class Charge(ChargeTotal):
    """The price of a product with its charges."""

    included_charges: Decimal | None = None
    excluded_charges: Decimal | None = None
    excluded_charge_details: ExcludedChargeDetails | None = None


class ListProduct(_Part):
    """The cheapest product of a room, board basis and cancellation policy."""

    product_id: Int64 | None = None
    board_basis: BoardBasis | None = None
    charges: ChargeTotal | None = None
    promotions: list[Promotion] | None = None
    cancel_penalties: list[CancelPenalty] | None = None


class DetailProduct(_Part):
    """A product in detail."""

    product_id: Int64 | None = None
    board_basis: BoardBasis | None = None
    charges: Charge | None = None
    promotions: list[Promotion] | None = Field(None, max_length=_MOST_CHILDREN)
    cancel_penalties: list[DetailCancelPenalty] | None = Field(None, max_length=_MOST_CHILDREN)


class RoomAmenity(_Part):
    """What a room has."""

    id: Int64 | None = None
    name: Text | None = None


class RoomStayList(_Part):
    """A room that answers one requested room; `id` says which."""

    id: Int32 | None = None
    room_id: Int64 | None = None
    room_name: Text | None = None
    rate_type: Text | None = None
    products: list[ListProduct] | None = None
    available_rooms: Int32 | None = None


class RoomStayDetail(_Part):
    """A room with all its products and its content."""

    id: Int32 | None = None
    room_id: Int64 | None = None
    room_name: Text | None = None
    room_description: Text | None = None
    bed_type_info: Text | None = None
    rate_type: Text | None = None
    products: list[DetailProduct] | None = None
    available_rooms: Int32 | None = None
    images: list[Text] | None = None
    room_amenities: list[RoomAmenity] | None = None


class RoomStayQuoted(_Part):
    """A room with the one product that was checked."""

    id: Int32 | None = None
    room_id: Int64 | None = None
    rate_type: Text | None = None
    product: DetailProduct | None = None


class Property(_Part):
    """A property of a multi answer."""

    property_id: Int64 | None = None
    currency_code: Text | None = None
    room_stays: list[RoomStayList] | None = None


class PropertyDetail(_Part):
    """The property of a single answer."""

    property_id: Int64 | None = None
    property_name: Text | None = None
    currency_code: Text | None = None
    room_stays: list[RoomStayDetail] | None = None


class PropertyQuote(_Part):
    """The property of a quote."""

    property_id: Int64 | None = None
    currency_code: Text | None = None
    room_stays: list[RoomStayQuoted] | None = None
    property_remarks: Text | None = None


class _Envelope(_Part):
    """Both 200 shapes and all error shapes in one: its content says which it is, and it may be two of them."""

    errors: list[ErrorItem] | None = None


class MultiAnswer(_Envelope):
    """Answer of a multi search."""

    properties: list[Property] | None = None


class SingleAnswer(_Envelope):
    """Answer of a single search."""

    property: PropertyDetail | None = None


class QuoteAnswer(_Envelope):
    """Answer of a quote. `reservation_id` guarantees the price."""

    reservation_id: Int64 | None = None
    property: PropertyQuote | None = None


ANSWERS: Mapping[Operation, type[MultiAnswer | SingleAnswer | QuoteAnswer]] = {
    Operation.MULTI: MultiAnswer,
    Operation.SINGLE: SingleAnswer,
    Operation.QUOTE: QuoteAnswer,
}


def response_fields(operation: Operation) -> list[str]:
    """Return the path of every field that an answer may have, arrays as [], but for those that only hold others."""
    return list(_fields_below(ANSWERS[operation], ""))


def _fields_below(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        (wanted,) = [each for each in get_args(field.annotation) if each is not type(None)]
        is_list = get_origin(wanted) is list
        inner = get_args(wanted)[0] if is_list else wanted
        path = f"{prefix}{field.alias or name}{'[]' * is_list}"
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields_below(inner, f"{path}.")
        else:
            yield path


def read_answer(operation: Operation, body: bytes) -> MultiAnswer | SingleAnswer | QuoteAnswer:
    """Return the answer in an inflated body of any status. Raises UnreadableAnswer."""
    try:
        return ANSWERS[operation].model_validate(_document(body), by_alias=True, by_name=False)
    except ValidationError as error:
        broken = [f"{place or 'answer'}: {reason}" for place, reason in _broken(error)]
    raise UnreadableAnswer("; ".join(broken))


def read_parts(operation: Operation, body: bytes) -> tuple[MultiAnswer | SingleAnswer | QuoteAnswer, dict[str, str]]:
    """Return what can be read of an answer, and why each part is left out that cannot, by its place.

    A field that cannot be read is as if it were not given; an item of an array that cannot be, as if it were not
    there. Raises UnreadableAnswer where nothing can be read.
    """
    document = _lenient_document(body)
    if isinstance(document, dict) and isinstance(document.get("errors"), dict):
        document["errors"] = [document["errors"]]
    try:
        return ANSWERS[operation].model_validate(document, by_alias=True, by_name=False), {}
    except ValidationError as error:
        left_out = dict(_broken(error))
        places = [item["loc"] for item in error.errors(include_url=False, include_input=False)]
    if not all(places):
        raise UnreadableAnswer("; ".join(left_out.values()))
    # From the end, so that the places before it stay where they are.
    for place in reversed(places):
        _leave_out(document, place)
    return ANSWERS[operation].model_validate(document, by_alias=True, by_name=False), left_out


def _broken(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield the place and the reason of each thing that cannot be read."""
    for item in error.errors(include_url=False, include_input=False):
        yield ".".join(map(str, item["loc"])), item["msg"]


def _leave_out(document: Any, place: Sequence[Any]) -> None:  # noqa: ANN401 - any JSON
    for step in place[:-1]:
        document = document[step]
    if isinstance(document, list):
        del document[place[-1]]
    else:
        document[place[-1]] = None


def reservation_id_of(body: bytes) -> int | None:
    """Return the reservation id of a quote's inflated body, whatever else of it cannot be read.

    A reservation that was made must be written down even if the price beside it makes no sense.
    """
    try:
        document = _lenient_document(body)
    except UnreadableAnswer:
        return None
    value = document.get("reservationId") if isinstance(document, dict) else None
    try:
        return None if value is None or isinstance(value, bool) else _INT64.validate_python(value)
    except ValidationError:
        return None


def _document(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    # Not pydantic's own JSON reader: it takes each number with a point through a double.
    try:
        return json.loads(body, parse_float=Decimal, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise UnreadableAnswer(msg) from None


def _lenient_document(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Decode a body in which NaN, endless numbers and bytes that are no UTF-8 cost no more than where they stand."""
    try:
        text = body.decode(json.detect_encoding(body), "surrogateescape")
        return json.loads(text, parse_float=_decimal, parse_int=_integer)
    except (ValueError, RecursionError, ArithmeticError) as error:
        msg = f"not JSON: {error}"
        raise UnreadableAnswer(msg) from None


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _decimal(digits: str) -> Decimal | float:
    # An integer of an endless exponent takes for ever to make; what is out of reach is no finite number.
    number = Decimal(digits)
    return number if abs(number.adjusted()) <= _MOST_EXPONENT else float("nan")


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not a number of JSON"
    raise ValueError(msg)
