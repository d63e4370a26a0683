"""What a quote came to, from its intent and its answer alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from pipeline.domain.codes import NO_AVAILABILITY_CODES
from pipeline.domain.keys import policy_key
from pipeline.domain.search import Operation
from pipeline.domain.tables import MONEY_SCALE
from pipeline.quote.ledger import Entry, QuoteAnswer
from pipeline.quote.sample import ChosenOffer
from pipeline.supplier.answer import Failure
from pipeline.supplier.answers import DetailProduct, RoomStayQuoted, UnreadableAnswer, read_answer
from pipeline.supplier.answers import QuoteAnswer as AnswerBody
from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.outcomes import error_codes

# The request may have arrived, and a reservation may have been made, but nobody knows.
_MAY_HAVE_ARRIVED = frozenset(
    {Failure.CONNECTION, Failure.TIMEOUT, Failure.TRUNCATED, Failure.BODY_TOO_LARGE, Failure.NOT_JSON}
)
_INT32_MAX = 2**31 - 1
_UNIT = Decimal(1).scaleb(-MONEY_SCALE)
_LARGEST = Decimal(10) ** (18 - MONEY_SCALE)


class QuoteOutcome(StrEnum):
    """What came of a quote."""

    MATCHED = "matched"
    RAISED = "raised"
    LOWERED = "lowered"
    GONE = "gone"
    REFUSED = "refused"
    NOT_COMPARABLE = "not_comparable"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class QuoteResult:
    """The outcome of a quote with what its answer said."""

    outcome: QuoteOutcome
    is_reservation_possible: bool
    code: int | None = None
    failure: str | None = None
    currency: str | None = None
    total: Decimal | None = None
    room_id: int | None = None
    board_id: int | None = None
    policy_key: int | None = None
    rate_type: str | None = None
    property_remarks: str | None = None


def result_of(entry: Entry, max_body_bytes: int) -> QuoteResult:
    """Return what a quote came to. Never raises for what a supplier may send."""
    answer = entry.answer
    if answer is None:
        return QuoteResult(QuoteOutcome.UNKNOWN, True, failure="no answer was written down")
    if answer.failure:
        return _failed(answer)
    if answer.http_status != 200:
        codes = error_codes(answer.body, answer.content_encoding)
        return QuoteResult(QuoteOutcome.REFUSED, answer.reservation_id is not None, _int32(codes))
    try:
        body = inflate(answer.body, answer.content_encoding, limit_bytes=max_body_bytes)
        said = read_answer(Operation.QUOTE, body)
    except (UnreadableBody, UnreadableAnswer) as error:
        return QuoteResult(QuoteOutcome.UNKNOWN, True, failure=f"unreadable: {str(error)[:500]}")
    assert isinstance(said, AnswerBody)  # noqa: S101 - what a quote's body is read as
    return _compared(entry.intent.offer, said, is_reserved=answer.reservation_id is not None)


def _failed(answer: QuoteAnswer) -> QuoteResult:
    told = ": ".join(part for part in (answer.failure, answer.failure_detail) if part)
    if answer.failure in _MAY_HAVE_ARRIVED or answer.reservation_id is not None:
        return QuoteResult(QuoteOutcome.UNKNOWN, True, failure=told)
    codes = error_codes(answer.body, answer.content_encoding)
    # A server that fails does not say how far it had come.
    return QuoteResult(QuoteOutcome.FAILED, answer.failure == Failure.SERVER_ERROR, _int32(codes), told)


def _compared(offer: ChosenOffer, said: AnswerBody, *, is_reserved: bool) -> QuoteResult:
    codes = [error.number for error in said.errors or () if error.number is not None]
    room, product = _product(said)
    if product is None:
        if NO_AVAILABILITY_CODES.intersection(codes):
            return QuoteResult(QuoteOutcome.GONE, is_reserved, _int32(codes))
        outcome = QuoteOutcome.REFUSED if codes else QuoteOutcome.NOT_COMPARABLE
        return QuoteResult(outcome, is_reserved, _int32(codes))
    currency = said.property.currency_code if said.property else None
    total = _money(product.charges.total if product.charges else None)
    return QuoteResult(
        _outcome(offer, product, currency, total),
        is_reserved,
        _int32(codes),
        currency=currency,
        total=total,
        room_id=room.room_id if room else None,
        board_id=product.board_basis.id if product.board_basis else None,
        policy_key=_policy_key(product),
        rate_type=room.rate_type if room else None,
        property_remarks=said.property.property_remarks if said.property else None,
    )


def _outcome(offer: ChosenOffer, product: DetailProduct, currency: str | None, total: Decimal | None) -> QuoteOutcome:
    is_other = product.product_id is not None and product.product_id != offer.product_id
    if is_other or total is None or currency != offer.currency:
        return QuoteOutcome.NOT_COMPARABLE
    if total == offer.total:
        return QuoteOutcome.MATCHED
    return QuoteOutcome.RAISED if total > offer.total else QuoteOutcome.LOWERED


def _product(said: AnswerBody) -> tuple[RoomStayQuoted | None, DetailProduct | None]:
    rooms = (said.property.room_stays or []) if said.property else []
    return next(((room, room.product) for room in rooms if room.product is not None), (None, None))


def _money(value: Decimal | None) -> Decimal | None:
    """Return an amount that fits the tables exactly, or None."""
    if value is None or not value.is_finite() or abs(value) >= _LARGEST:
        return None
    try:
        fitted = value.quantize(_UNIT)
    except InvalidOperation:
        return None
    return fitted if fitted == value else None


def _policy_key(product: DetailProduct) -> int:
    return policy_key(
        (
            penalty.penalty_window,
            None if penalty.penalty_percentage is None else float(penalty.penalty_percentage),
            None if penalty.penalty_nights is None else float(penalty.penalty_nights),
            penalty.refundable,
        )
        for penalty in product.cancel_penalties or ()
    )


def _int32(codes: Iterable[int]) -> int | None:
    return next((code for code in codes if abs(code) <= _INT32_MAX), None)
