"""Requesting quotes one after the other: each is recorded, sent once, and recorded again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from pipeline.domain.errors import LakeError, NightauditError, SupplierDown
from pipeline.domain.search import Operation
from pipeline.lake import Lake
from pipeline.process.signals import finished_first
from pipeline.quote import ledger
from pipeline.quote.ledger import Intent, QuoteAnswer
from pipeline.quote.read_answer import reservation_id_of
from pipeline.quote.sample import ChosenOffer
from pipeline.supplier.answer import Answer, Ask
from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.requests import quote_request_for

# Each quote without an answer may have made an unknown reservation.
GIVE_UP_AFTER = 3


@dataclass(frozen=True, slots=True)
class Asking:
    """How quotes are requested: at most `cap` of them, however many were chosen."""

    cap: int
    today: date
    send_rate_type: bool
    max_body_bytes: int


async def ask_quotes(
    lake: Lake,
    run_id: str,
    offers: Sequence[ChosenOffer],
    ask: Ask,
    asking: Asking,
    *,
    now: Callable[[], datetime],
    watch: Callable[[int], None] = lambda _: None,
) -> int:
    """Request a quote for each offer and return how many were requested.

    A quote whose intent is in the ledger is not requested again. Raises what ends a run: the supplier's errors,
    SupplierDown after `GIVE_UP_AFTER` quotes in a row without an answer, and LakeError, which names a reservation that
    could not be recorded.
    """
    asked = unanswered = 0
    for quote_no, offer in enumerate(offers[: asking.cap]):
        request = quote_request_for(
            offer.search(),
            [room.product_id for room in offer.rooms],
            today=asking.today,
            send_rate_type=asking.send_rate_type,
        ).to_wire()
        # Without its answer, the reservation that it makes would be unknown.
        with finished_first():
            if not ledger.intend(lake, run_id, Intent(quote_no, now(), offer, request.decode())):
                continue
            asked += 1
            try:
                answer = await ask(Operation.QUOTE, request, attempts=1)
            except NightauditError as error:
                # Refused before it could make a reservation, or never sent.
                at = now()
                not_sent = QuoteAnswer(None, "", b"", at, at, type(error).__name__, error.message, None)
                ledger.answered(lake, run_id, quote_no, not_sent)
                raise
            _write_down(lake, run_id, quote_no, answer, asking.max_body_bytes)
        watch(asked)
        unanswered = unanswered + 1 if answer.failure is not None else 0
        if unanswered >= GIVE_UP_AFTER:
            raise SupplierDown(
                f"The supplier did not answer {GIVE_UP_AFTER} quotes in a row; the last failure: {answer.failure}.",
                kept="Every quote is in the ledger, and none is sent again automatically.",
                hint="Check the supplier (nightaudit doctor) before you request more quotes.",
            )
    return asked


def _write_down(lake: Lake, run_id: str, quote_no: int, answer: Answer, max_body_bytes: int) -> None:
    try:
        reservation_id = reservation_id_of(inflate(answer.body, answer.content_encoding, limit_bytes=max_body_bytes))
    except UnreadableBody:
        reservation_id = None
    written = QuoteAnswer(
        answer.http_status,
        answer.content_encoding,
        answer.body,
        answer.started_at,
        answer.ended_at,
        answer.failure or "",
        answer.failure_detail,
        reservation_id,
    )
    try:
        ledger.answered(lake, run_id, quote_no, written)
    except LakeError as error:
        # The error is now the only record of the reservation.
        made = "was answered without the id of a reservation"
        if reservation_id is not None:
            made = f"made the reservation {reservation_id}"
        error.kept = f"The quote {quote_no} of {run_id} {made}. {error.kept}"
        raise
