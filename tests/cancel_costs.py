"""What cancelling costs, at any moment: the rules of domain.md, exact to the ten-thousandth.

A penalty applies in a time and costs an amount; each of the two is computed from what was stated.

    time    its exact dates, where it has any and they are in order: from the start (or ever) to the end (or forever)
            else its window: from that many hours before check-in on
            else always: nothing says when it begins
    amount  `amount`         the stated amount wins
            `nights`         else percentage / 100 x nights x total / nights of the stay, where nights > 0
            `percentage`     else percentage / 100 x total
            `not_refundable` else the whole total, where all that is said is that nothing is refunded
            `undetermined`   else unknown: nights without a percentage, no total, nothing at all

Dates of which the end is not after the start are in no order and are ignored; the window then counts. Of penalties that
apply at one time the larger one counts, and one that is undetermined makes the time undetermined: it may be the larger
one. A time that no penalty covers is `free`. An offer without any penalty is `not_stated`, which is not free. Nor is
one of which nothing is refunded: where its penalties come to nothing, or none covers the time, it is undetermined.

Everything is computed in integers. Only a division can leave more than four decimals, and is then rounded half up. A
percentage of more than six decimals, or nights of more than three, is undetermined and not rounded first. The macros
`mart.penalty_step` and `mart.penalty_at` of the published file are compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from pipeline.domain.penalties import MOST_HOURS, Penalty, refundability

_MONEY_UNIT = 10**4
_PCT_UNIT, _MOST_PCT = 10**6, 10**6
_NIGHTS_UNIT, _MOST_NIGHTS = 10**3, 10**4
_MOST_UNITS = 10**18


class Rule(StrEnum):
    """How an amount came about."""

    AMOUNT = "amount"
    NIGHTS = "nights"
    PERCENTAGE = "percentage"
    NOT_REFUNDABLE = "not_refundable"
    UNDETERMINED = "undetermined"
    FREE = "free"
    NOT_STATED = "not_stated"


@dataclass(frozen=True, slots=True)
class Cost:
    """What cancelling costs; `penalty_no` is the penalty that counts, None if none does."""

    amount: Decimal | None
    rule: Rule
    penalty_no: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of time in which cancelling costs the same. `from_at` None: ever since; it ends with the next step."""

    from_at: datetime | None
    cost: Cost


def period(penalty: Penalty, check_in_at: datetime) -> tuple[datetime | None, datetime | None]:
    """Return from when (inclusive) and until when (exclusive) it applies; None: without bound."""
    if penalty.has_ordered_dates:
        return penalty.start_at, penalty.end_at
    if penalty.is_never:
        return check_in_at, check_in_at
    if penalty.window_hours is None or penalty.window_hours > MOST_HOURS:
        return None, None
    return check_in_at - timedelta(hours=penalty.window_hours), None


def penalty_at(
    penalties: Sequence[Penalty], total: Decimal | None, nights: int, check_in_at: datetime, at: datetime
) -> Cost:
    """Return what cancelling at a moment costs. `check_in_at` is what windows are counted from."""
    if not penalties:
        return Cost(None, Rule.NOT_STATED)
    active = [
        _cost(number, penalty, total, nights)
        for number, penalty in enumerate(penalties)
        if _covers(period(penalty, check_in_at), at)
    ]
    return _counting(active, penalties)


def steps(penalties: Sequence[Penalty], total: Decimal | None, nights: int, check_in_at: datetime) -> list[Step]:
    """Return what cancelling costs over time, in order; neighbours differ."""
    if not penalties:
        return [Step(None, Cost(None, Rule.NOT_STATED))]
    costs = [_cost(number, penalty, total, nights) for number, penalty in enumerate(penalties)]
    periods = [period(penalty, check_in_at) for penalty in penalties]
    moments = sorted({moment for times in periods for moment in times if moment is not None})
    found: list[Step] = []
    for moment in (None, *moments):
        active = [cost for cost, times in zip(costs, periods, strict=True) if _covers(times, moment)]
        cost = _counting(active, penalties)
        if not found or found[-1].cost != cost:
            found.append(Step(moment, cost))
    return found


def _covers(times: tuple[datetime | None, datetime | None], at: datetime | None) -> bool:
    """Whether a period covers a moment; None is the time before all moments."""
    start, end = times
    if at is None:
        return start is None
    return (start is None or start <= at) and (end is None or at < end)


def _counting(active: Sequence[Cost], penalties: Sequence[Penalty]) -> Cost:
    cost = _largest(active)
    if cost.amount == 0 and refundability(penalty.is_refundable for penalty in penalties) == "non_refundable":
        return Cost(None, Rule.UNDETERMINED, cost.penalty_no)
    return cost


def _largest(active: Sequence[Cost]) -> Cost:
    if not active:
        return Cost(Decimal(0), Rule.FREE)
    for cost in active:
        if cost.amount is None:
            return cost
    # The first of the largest, so that equal penalties name the same one every time.
    return max(active, key=lambda cost: cost.amount or Decimal(0))


def _cost(number: int, penalty: Penalty, total: Decimal | None, nights: int) -> Cost:
    if penalty.amount is not None:
        return Cost(penalty.amount, Rule.AMOUNT, number)
    is_silent = penalty.penalty_pct is None and not penalty.penalty_nights
    if is_silent and penalty.is_refundable is False and total is not None:
        return Cost(total, Rule.NOT_REFUNDABLE, number)
    share, rule = _share(penalty)
    if share is None or total is None:
        return Cost(None, Rule.UNDETERMINED, number)
    divisor = share[1] * (nights if rule is Rule.NIGHTS else 1)
    units = _rounded(int(total * _MONEY_UNIT) * share[0], divisor)
    if abs(units) >= _MOST_UNITS:
        return Cost(None, Rule.UNDETERMINED, number)
    return Cost(Decimal(units) / _MONEY_UNIT, rule, number)


def _share(penalty: Penalty) -> tuple[tuple[int, int] | None, Rule]:
    """Return the share of the total as a fraction, for `nights` still to be divided by those of the stay."""
    pct = None if penalty.penalty_pct is None else _units(penalty.penalty_pct, _PCT_UNIT, _MOST_PCT)
    if penalty.penalty_nights is None or penalty.penalty_nights <= 0:
        return (None if pct is None else (pct, 100 * _PCT_UNIT)), Rule.PERCENTAGE
    charged = _units(penalty.penalty_nights, _NIGHTS_UNIT, _MOST_NIGHTS)
    if pct is None or charged is None:
        return None, Rule.UNDETERMINED
    return (pct * charged, 100 * _PCT_UNIT * _NIGHTS_UNIT), Rule.NIGHTS


def _units(value: float, unit: int, below: int) -> int | None:
    """Return a number in units; None if it has more decimals than these, or is out of bounds."""
    units = Decimal(repr(value)) * unit
    if abs(value) >= below or units != units.to_integral_value():
        return None
    return int(units)


def _rounded(dividend: int, divisor: int) -> int:
    """Divide, and round halves away from zero."""
    units = (2 * abs(dividend) + divisor) // (2 * divisor)
    return units if dividend >= 0 else -units
