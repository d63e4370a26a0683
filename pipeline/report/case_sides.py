"""Two answers side by side: their fields, those that a finding rests on, and their differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from pipeline.domain.codes import ERROR_CODES
from pipeline.lake.relations import finding_rules
from pipeline.report.case_evidence import Answer, Piece, Row
from pipeline.report.page import cut, percent, shown
from pipeline.report.words import said

_Value = str | int | float | Decimal | None

# Columns of an offer in the order in which people compare them, with their labels.
_FIELDS: Final = {
    "room_name": "Room",
    "board_name": "Board",
    "rate_type": "Rate type",
    "currency": "Currency",
    "total": "Total for the stay",
    "pre_promo_total": "Before promotions",
    "discount_pct": "Stated discount",
    "promotions": "Promotions",
    "floor": "Floor",
    "included_charges": "Included charges",
    "excluded_charges": "Excluded charges",
    "resort_fee": "Resort fee",
    "child_resort_fee": "Resort fee, children",
    "city_taxes": "City taxes",
    "hotel_service_fee": "Service fee",
    "penalties": "Cancellation",
    "refundability": "Refundable",
    "free_cancel_hours": "Free cancellation until",
    "available_rooms": "Rooms left",
}

# Longer windows, such as 999,999 hours, stand for penalties that apply from booking.
_TEN_YEARS_OF_HOURS: Final = 87_600
# From here on, people count days.
_WEEK_OF_HOURS: Final = 168
# Statuses of an answer without an offer.
_STATUSES: Final = {"offered": "on sale", "absent": "not in the answer"}


@dataclass(frozen=True, slots=True)
class Line:
    """A field of the compared answers: its values, those that the finding rests on, and their difference."""

    label: str
    values: Sequence[str]
    marked: Sequence[bool]
    difference: str


def lines_of(piece: Piece) -> list[Line]:
    """Return the fields of a finding's answers side by side, without those that no answer states."""
    rule = finding_rules().get(piece.flag["rule"])
    rests_on = set(rule.numbers) if rule else set()
    lines = []
    for name, label in {"status": "Answer", **_FIELDS}.items():
        values = [_value(answer, name) for answer in piece.answers]
        texts = [_text(answer, name, value) for answer, value in zip(piece.answers, values, strict=True)]
        if any(texts):
            marked = [f"{answer.role}.{name}" in rests_on for answer in piece.answers]
            compared = _terms(piece.answers) if name == "penalties" else texts
            difference = _difference(values, compared, _rate(piece))
            lines.append(Line(label, [cut(text) or "–" for text in texts], marked, difference))
    # Fields that the finding rests on come first.
    rested_on = [line for line in lines if any(line.marked)]
    return [*rested_on, *_prices(piece), *(line for line in lines if not any(line.marked))]


def _prices(piece: Piece) -> list[Line]:
    """Return the selling price that a finding is about, if any, and the newer one below it."""
    if piece.price is None:
        return []
    # They are in the column of the answer that the finding is about.
    empty = [""] * (len(piece.answers) - 1)
    unmarked = [False for _ in empty]
    seen, below = _sold(piece.price.found), _below(piece.answers[0], piece.price.found)
    # With a single answer there is no column for differences.
    seen = f"{seen}: {below}" if below and not empty else seen
    lines = [Line("Your selling price", [seen, *empty], [True, *unmarked], below)]
    if newer := piece.price.newer:
        # It is compared with the floor of its own time, so the floor on this page decides nothing.
        later = "" if piece.price.is_judged else ": loaded since, judged with the next night"
        lines.append(Line("Newer selling price", [f"{_sold(newer)}{later}", *empty], [False, *unmarked], ""))
    return lines


def _sold(price: Row) -> str:
    seen = f"{shown(price['observed_at'])} UTC"
    return f"{as_sent(price['price'])} {price['currency']}, {price['channel'] or 'no channel'}, {seen}"


def _below(answer: Answer, price: Row) -> str:
    """Return how a selling price differs from the floor of the answer that it is compared with."""
    offer = answer.offer
    floor = offer["floor"] if offer else None
    if not offer or not floor or offer["currency"] != price["currency"]:
        return ""
    return f"{_difference([price['price'], floor], ['price', 'floor'], 1)} against the floor"


def _rate(piece: Piece) -> Decimal | float | None:
    """Return the units of the first answer's currency for one of the second's; None: unknown, 1: one currency."""
    currencies = [answer.offer["currency"] for answer in piece.answers if answer.offer]
    if len(set(currencies)) <= 1:
        return 1
    rate = piece.flag["fx"]
    if not rate or not rate["rate"]:
        return None
    pair = rate["to_currency"], rate["from_currency"]
    return {pair: rate["rate"], pair[::-1]: 1 / rate["rate"]}.get(tuple(currencies))


def _terms(answers: Sequence[Answer]) -> list[str]:
    """Return cancellation terms to compare: amounts count where both answers state them, in one currency."""
    is_in_one = len({answer.offer["currency"] for answer in answers if answer.offer}) == 1
    counts = is_in_one and all(any(row["amount"] is not None for row in answer.penalties) for answer in answers)
    return ["; ".join(_penalty(row, answer, with_amount=counts) for row in answer.penalties) for answer in answers]


def stated(answer: Answer, name: str) -> str:
    """Return a field of an answer in words; empty if not stated."""
    return _text(answer, name, _value(answer, name))


def _value(answer: Answer, name: str) -> _Value:
    if name == "status":
        return None if answer.offer else answer.status["status"] if answer.status else None
    if name == "promotions":
        named = (row["description"] or row["promo_type"] for row in answer.promotions)
        return "; ".join(filter(None, named)) or ("none" if answer.offer else None)
    if name == "penalties":
        return "; ".join(_penalty(row, answer) for row in answer.penalties) or None
    return answer.offer[name] if answer.offer else None


def _text(answer: Answer, name: str, value: _Value) -> str:
    """Return a value in words; empty for None."""
    if value is None:
        return ""
    if name == "status" and isinstance(value, str):
        code = answer.status["code"] if answer.status else None
        meaning = f" ({code}: {ERROR_CODES[code].meaning})" if code in ERROR_CODES else ""
        return f"{_STATUSES.get(value) or said('status', value)}{meaning}"
    if isinstance(value, Decimal):
        return f"{as_sent(value)} {(answer.offer or {}).get('currency') or ''}".strip()
    if name == "discount_pct":
        return f"{value:g}%"
    if name == "free_cancel_hours":
        return _moment(value)
    return str(value).replace("_", "-") if name == "refundability" else str(value)


def _moment(hours: _Value) -> str:
    if isinstance(hours, int) and hours >= _TEN_YEARS_OF_HOURS:
        return "booking"
    if isinstance(hours, int) and hours >= _WEEK_OF_HOURS and hours % 24 == 0:
        return f"{hours // 24} days before check-in"
    return f"{hours} hours before check-in"


def _penalty(row: Row, answer: Answer, *, with_amount: bool = True) -> str:
    of = (
        f" of {row['penalty_nights']:g} {'night' if row['penalty_nights'] == 1 else 'nights'}"
        if row["penalty_nights"]
        else ""
    )
    parts = [
        f"from {_moment(row['window_hours'])}" if row["window_hours"] is not None else "",
        f"{row['penalty_pct']:g}%{of}" if row["penalty_pct"] is not None else "",
        f"stated amount {as_sent(row['amount'])} {answer.offer['currency'] or ''}".strip()
        if with_amount and row["amount"] is not None and answer.offer
        else "",
        {True: "refundable", False: "not refundable", None: ""}[row["is_refundable"]],
    ]
    return ", ".join(part for part in parts if part)


def _difference(values: Sequence[_Value], texts: Sequence[str], rate: Decimal | float | None) -> str:
    """Return how the first of two values differs from the second; empty if it does not, or there is only one.

    `rate` is what `_rate` returns. Money in two currencies differs by a share, as a rate does not tell the last cent.
    """
    if len(values) < 2 or texts[0] == texts[1]:
        return ""
    one, other = values
    if one is None or other is None:
        return "only in one"
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        if rate != 1:
            return _difference_at(one, other, rate)
        size = f" ({percent(float(100 * (one - other) / other), is_change=True)})" if other else ""
        return f"{'+' if one > other else '−'}{as_sent(abs(one - other))}{size}"
    if isinstance(one, str) or isinstance(other, str):
        return "differs"
    return f"{'+' if one > other else '−'}{abs(float(one) - float(other)):g}"


def _difference_at(one: Decimal, other: Decimal, rate: Decimal | float | None) -> str:
    if not one or not other:
        # Zero is zero in any currency.
        return "only in one" if one or other else ""
    if rate is None:
        return "differs"
    size = percent(100 * (float(one) / (float(other) * float(rate)) - 1), is_change=True)
    return "" if size.strip("+−") == percent(0.0) else f"{size} at the reference rate"


def as_sent(value: Decimal) -> str:
    """Return money with at least two decimals and all digits that were sent."""
    digits = -int(value.normalize().as_tuple().exponent)
    return shown(value, max(2, digits))
