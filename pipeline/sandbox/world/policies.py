"""Cancellation policies: the steps of a policy, and how they are written in list and in detail answers."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.sandbox.world.hashes import Dice


class Step(NamedTuple):
    """One penalty: from `window_hours` before check-in on. None = the supplier does not say."""

    window_hours: int | None
    percentage: float | None
    nights: float | None
    refundable: bool | None


class Policy(NamedTuple):
    """A cancellation policy; `factor` is its price against the free-cancellation price."""

    steps: tuple[Step, ...]
    factor: float
    drifts: bool
    written: tuple[msgspec.Raw, msgspec.Raw]
    """The list form before and after a drift of the deadline by a day."""


_CHECK_IN_HOUR: Final = 15
_DRIFT_PERIOD: Final = 60

_REFUNDABLE: Final[tuple[tuple[tuple[Step, ...], float], ...]] = (
    ((Step(24, 100, 1, True),), 1.0),
    ((Step(48, 100, 1, True),), 0.99),
    ((Step(72, 50, 0, True), Step(24, 100, 0, True)), 0.97),
    ((Step(168, 30, 0, True), Step(48, 50, 2, True)), 0.95),
    ((Step(96, 33.33, 0, True), Step(24, 90.5, 0, True)), 0.98),
)
_NOT_REFUNDABLE: Final[tuple[tuple[tuple[Step, ...], float], ...]] = (
    ((Step(8760, 100, 0, False),), 0.9),
    ((Step(999_999, 100, 0, False),), 0.88),
)
_UNUSUAL: Final[tuple[tuple[tuple[Step, ...], float], ...]] = (
    ((Step(336, 50, 0, True), Step(24, 100, 0, False)), 0.93),
    ((Step(48, None, 1, True),), 0.94),
    ((), 0.96),
    ((Step(None, 100, 0, None),), 0.92),
    ((Step(240, 20, 0, True), Step(120, 40, None, True), Step(24, 100, 0, True)), 0.945),
)


def policies(dice: Dice) -> tuple[Policy, ...]:
    """Return one to three policies of a property."""
    chosen = [dice.pick(_REFUNDABLE)]
    count = 1 + dice.weighted((12, 75, 13))
    if count > 1:
        chosen.append(dice.pick(_NOT_REFUNDABLE))
    if count > 2:
        chosen.append(dice.pick(_UNUSUAL))
    elif dice.chance(60):
        chosen[0] = dice.pick(_UNUSUAL)
    return tuple(_policy(steps, factor, dice.chance(150)) for steps, factor in chosen)


def _policy(steps: tuple[Step, ...], factor: float, drifts: bool) -> Policy:
    before = _encode(list_form(steps, 0))
    return Policy(steps, factor, drifts, (before, _encode(list_form(steps, 24)) if drifts else before))


def _encode(form: list[dict[str, Any]]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(form))


def drifted(night: int, salt: int) -> bool:
    """Whether drifting deadlines are a day earlier on this night (they change about every 60 nights)."""
    return (night + salt % _DRIFT_PERIOD) // _DRIFT_PERIOD % 2 == 1


def list_form(steps: tuple[Step, ...], earlier_hours: int) -> list[dict[str, Any]]:
    """Return the penalties in the form of a multi-property answer."""
    return [
        {
            "penaltyWindow": None if step.window_hours is None else step.window_hours + earlier_hours,
            "penaltyPercentage": step.percentage,
            "penaltyNights": step.nights,
            "refundable": step.refundable,
        }
        for step in steps
    ]


def detail_form(
    steps: tuple[Step, ...],
    earlier_hours: int,
    check_in: date,
    nights: int,
    offset_minutes: int,
    total: float,
    units: int,
) -> list[dict[str, Any]]:
    """Return the penalties with their exact dates and amounts (in `1 / units` of the answer's currency)."""
    zone = timezone(timedelta(minutes=offset_minutes)) if offset_minutes else UTC
    arrival = datetime.combine(check_in, time(_CHECK_IN_HOUR), zone)
    # Windows like 999999 hours mean 'from the booking on'; a century has the same effect and stays a valid date.
    starts = [
        None
        if step.window_hours is None
        else arrival - timedelta(hours=min(step.window_hours + earlier_hours, 876_000))
        for step in steps
    ]
    form = list_form(steps, earlier_hours)
    for number, (step, item) in enumerate(zip(steps, form, strict=True)):
        following = starts[number + 1] if number + 1 < len(starts) else arrival
        if starts[number] is not None:
            item["penaltyStartDate"] = _written(starts[number])
        item["penaltyEndDate"] = _written(following)
        item["penaltyInAmount"] = _amount(step, nights, total, units)
    return form


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _amount(step: Step, nights: int, total: float, units: int) -> float | None:
    """Return the penalty as an amount: of its nights, otherwise of the total; None if the rule is undetermined."""
    if step.percentage is None:
        return None
    share = min(step.nights, nights) / nights if step.nights else 1.0
    return round(total * step.percentage / 100 * share * units) / units
