"""The outcome of a quote, from its intent and its answer alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from pipeline.domain.codes import NO_AVAILABILITY_CODES, storable_code
from pipeline.quote.ledger import Entry, QuoteAnswer
from pipeline.quote.products import money, total_of
from pipeline.quote.read_answer import UnreadableAnswer, read_answer
from pipeline.quote.sample import ChosenOffer, ChosenRoom
from pipeline.supplier import wire
from pipeline.supplier.answer import Failure
from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.error_bodies import error_codes

# Failures after which the request may have arrived and made a reservation.
_MAY_HAVE_ARRIVED = frozenset(
    {Failure.CONNECTION, Failure.TIMEOUT, Failure.TRUNCATED, Failure.BODY_TOO_LARGE, Failure.NOT_JSON}
)
_RESERVATION = "reservationId"
# Without these it is unknown whether the price is that of the requested product.
_IDENTIFYING = ("property.propertyId", ".roomId", ".product.productId")


class QuoteOutcome(StrEnum):
    """The outcome of a quote."""

    MATCHED = "matched"
    RAISED = "raised"
    LOWERED = "lowered"
    GONE = "gone"
    REFUSED = "refused"
    NOT_COMPARABLE = "not_comparable"
    FAILED = "failed"
    UNKNOWN = "unknown"


_COMPARED = frozenset({QuoteOutcome.MATCHED, QuoteOutcome.RAISED, QuoteOutcome.LOWERED})


@dataclass(frozen=True, slots=True)
class QuoteResult:
    """The outcome of a quote and the content of its answer.

    `rooms` holds the answered room for each room of the party, or None; it is empty without any product.
    """

    outcome: QuoteOutcome
    is_reservation_possible: bool
    code: int | None = None
    failure: str | None = None
    codes: tuple[int, ...] = ()
    messages: tuple[str, ...] = ()
    property_id: int | None = None
    currency: str | None = None
    total: Decimal | None = None
    property_remarks: str | None = None
    rooms: tuple[wire.QuotedRoomStay | None, ...] = ()


def result_of(entry: Entry, max_body_bytes: int) -> QuoteResult:
    """Return the result of a quote. Never raises for anything that a supplier may send."""
    answer = entry.answer
    if answer is None:
        return QuoteResult(QuoteOutcome.UNKNOWN, True, failure="no answer was written down")
    if answer.failure:
        return _failed(answer, max_body_bytes)
    if answer.http_status != 200:
        return _with_errors(
            QuoteResult(QuoteOutcome.REFUSED, answer.reservation_id is not None), answer, max_body_bytes
        )
    try:
        said, left_out = _read(answer, max_body_bytes)
    except (UnreadableBody, UnreadableAnswer) as error:
        return QuoteResult(QuoteOutcome.UNKNOWN, True, failure=f"unreadable: {str(error)[:500]}")
    is_reserved = answer.reservation_id is not None
    compared = _compared(entry.intent.offer, said, is_reserved=is_reserved)
    if left_out:
        compared = _in_part(compared, left_out, is_reserved=is_reserved)
    return _with_codes(compared, said.errors or ())


def _read(answer: QuoteAnswer, max_body_bytes: int) -> tuple[wire.QuoteAnswer, dict[str, str]]:
    return read_answer(inflate(answer.body, answer.content_encoding, limit_bytes=max_body_bytes))


def _in_part(result: QuoteResult, left_out: dict[str, str], *, is_reserved: bool) -> QuoteResult:
    """Return the result of a partly unreadable answer: those parts are reported, and nothing is guessed from them."""
    parts = "; ".join(f"{place}: {reason}" for place, reason in left_out.items())
    result = replace(result, failure=f"left out: {parts[:500]}")
    is_unseen = not any(result.rooms) and any(place.startswith("property") for place in left_out)
    if not is_reserved and (_RESERVATION in left_out or is_unseen):
        return replace(result, outcome=QuoteOutcome.UNKNOWN, is_reservation_possible=True)
    if result.outcome in _COMPARED and any(place.endswith(_IDENTIFYING) for place in left_out):
        return replace(result, outcome=QuoteOutcome.NOT_COMPARABLE)
    return result


def _failed(answer: QuoteAnswer, max_body_bytes: int) -> QuoteResult:
    failure = ": ".join(part for part in (answer.failure, answer.failure_detail) if part)
    if answer.failure in _MAY_HAVE_ARRIVED or answer.reservation_id is not None:
        return QuoteResult(QuoteOutcome.UNKNOWN, True, failure=failure)
    # A server may fail after it has made a reservation.
    result = QuoteResult(QuoteOutcome.FAILED, answer.failure == Failure.SERVER_ERROR, failure=failure)
    return _with_errors(result, answer, max_body_bytes)


def _with_errors(result: QuoteResult, answer: QuoteAnswer, max_body_bytes: int) -> QuoteResult:
    try:
        return _with_codes(result, _read(answer, max_body_bytes)[0].errors or ())
    except (UnreadableBody, UnreadableAnswer):
        codes = error_codes(answer.body, answer.content_encoding)
        return replace(result, code=storable_code(codes), codes=tuple(codes))


def _with_codes(result: QuoteResult, errors: Sequence[wire.ErrorItem]) -> QuoteResult:
    codes = tuple(error.number for error in errors if error.number is not None)
    messages = tuple(error.text for error in errors if error.text is not None)
    return replace(result, code=storable_code(codes), codes=codes, messages=messages)


def _compared(offer: ChosenOffer, said: wire.QuoteAnswer, *, is_reserved: bool) -> QuoteResult:
    codes = [error.number for error in said.errors or () if error.number is not None]
    rooms = _rooms(said, len(offer.rooms))
    has_product = said.property is not None and any(room.product for room in said.property.room_stays or ())
    # Only an answer with nothing but errors means that no reservation was made.
    is_possible = is_reserved or has_product or not codes
    if not any(rooms):
        if NO_AVAILABILITY_CODES.intersection(codes):
            return QuoteResult(QuoteOutcome.GONE, is_possible)
        return QuoteResult(QuoteOutcome.REFUSED if codes else QuoteOutcome.NOT_COMPARABLE, is_possible)
    assert said.property is not None  # noqa: S101 - it holds the rooms
    currency = said.property.currency
    total = _total(rooms)
    return QuoteResult(
        _outcome(offer, rooms, currency, total)
        if said.property.property_id in {None, offer.sent_property_id}
        else QuoteOutcome.NOT_COMPARABLE,
        is_possible,
        property_id=said.property.property_id,
        currency=currency,
        total=total,
        property_remarks=said.property.remarks,
        rooms=rooms,
    )


def _outcome(
    offer: ChosenOffer, rooms: Sequence[wire.QuotedRoomStay | None], currency: str | None, total: Decimal | None
) -> QuoteOutcome:
    is_other = any(
        room is not None and room.product is not None and _is_other(offer, asked, room, room.product)
        for asked, room in zip(offer.rooms, rooms, strict=True)
    )
    # Rooms of different types are not sold together (error 1026): their sum would not be a real price.
    room_ids = {room.room_id for room in rooms if room is not None and room.room_id is not None}
    # The audit puts search results with such totals in quarantine.
    is_absurd = any(room and room.product and (total_of(room.product) or 0) <= 0 for room in rooms)
    if is_other or is_absurd or len(room_ids) > 1 or total is None or currency != offer.currency:
        return QuoteOutcome.NOT_COMPARABLE
    if total == offer.total:
        return QuoteOutcome.MATCHED
    return QuoteOutcome.RAISED if total > offer.total else QuoteOutcome.LOWERED


def _is_other(
    offer: ChosenOffer, asked: ChosenRoom, room: wire.QuotedRoomStay, product: wire.DetailProduct[Decimal]
) -> bool:
    """Whether an answer states another product, room or board than the requested one; what it omits may be equal."""
    board = wire.decode_board(product.board)
    pairs = (
        (asked.product_id, product.product_id),
        (offer.room_id, room.room_id),
        (offer.board_id, board.id if board else None),
    )
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _rooms(said: wire.QuoteAnswer, asked: int) -> tuple[wire.QuotedRoomStay | None, ...]:
    """Return the answered room for each requested room: by id if all have one, else by position."""
    found = [room for room in (said.property.room_stays or ()) if room.product is not None] if said.property else []
    by_id = {room.id: room for room in found}
    if asked > 1 and None not in by_id and len(by_id) == len(found):
        return tuple(by_id.get(number) for number in range(asked))
    return tuple(found[number] if number < len(found) else None for number in range(asked))


def _total(rooms: Sequence[wire.QuotedRoomStay | None]) -> Decimal | None:
    totals = [total_of(room.product) if room is not None and room.product is not None else None for room in rooms]
    known = [total for total in totals if total is not None]
    return money(sum(known, Decimal(0))) if len(known) == len(totals) else None
