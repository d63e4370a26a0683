"""What an offer's cancellation penalties mean together: whether it is refundable, and until when cancelling is free.

A penalty applies by its exact dates, if it has any and they are in order, else by its window, else always. The macros
`mart.penalty_step` and `mart.penalty_at` of the published file compute what it costs at a given time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

# A window of more than a century before check-in means always; one of a century after it means never.
MOST_HOURS = 10**6
# A number of nights with more decimals, or a larger one, is not usable.
_NIGHTS_DECIMALS, _MOST_NIGHTS = 3, 10**4


@dataclass(frozen=True, slots=True)
class Penalty:
    """One cancellation penalty as stored; None: not stated."""

    window_hours: int | None = None
    penalty_pct: float | None = None
    penalty_nights: float | None = None
    is_refundable: bool | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    amount: Decimal | None = None

    @property
    def has_ordered_dates(self) -> bool:
        """Whether it has exact dates that say when it applies."""
        if self.start_at is None and self.end_at is None:
            return False
        return self.start_at is None or self.end_at is None or self.start_at < self.end_at

    @property
    def is_never(self) -> bool:
        """Whether its window starts so long after check-in that it never applies."""
        return not self.has_ordered_dates and self.window_hours is not None and self.window_hours < -MOST_HOURS


def refundability(penalties: Iterable[bool | None]) -> str:
    """Return the refundability of an offer from those of its penalties; None: a penalty does not state it."""
    stated = {is_refundable for is_refundable in penalties if is_refundable is not None}
    if not stated:
        return "unknown"
    if len(stated) == 2:
        return "mixed"
    return "refundable" if True in stated else "non_refundable"


def free_cancel_until(penalties: Sequence[Penalty]) -> datetime | None:
    """Return the earliest exact start of the penalties that may cost something: before it, cancelling is free.

    None: no such time is stated. No penalty costs anything, one always applies, one that may cost something has only
    a window, or the offer is not refundable.
    """
    starts = [penalty.start_at if penalty.has_ordered_dates else None for penalty in _costly(penalties)]
    known = [start for start in starts if start is not None]
    return min(known) if known and len(known) == len(starts) else None


def free_cancel_hours(penalties: Sequence[Penalty]) -> int | None:
    """Return the widest window, in hours before check-in, of the penalties that may cost something.

    None: as above, or a penalty that may cost something has no window. Windows of penalties with exact dates are
    assumed to agree with the dates.
    """
    costly = _costly(penalties)
    windows = [
        penalty.window_hours
        for penalty in costly
        if penalty.window_hours is not None
        and penalty.window_hours <= MOST_HOURS
        and not (penalty.has_ordered_dates and penalty.start_at is None)
    ]
    return max(windows) if windows and len(windows) == len(costly) else None


def _costly(penalties: Sequence[Penalty]) -> list[Penalty]:
    """Return the penalties that may cost something at some time; none if the offer is not refundable."""
    if refundability(penalty.is_refundable for penalty in penalties) == "non_refundable":
        return []
    return [penalty for penalty in penalties if _may_cost(penalty) and not penalty.is_never]


def _may_cost(penalty: Penalty) -> bool:
    """Whether a penalty may cost something while it applies."""
    if penalty.amount is not None:
        return penalty.amount != 0
    nights = penalty.penalty_nights
    if penalty.penalty_pct != 0:
        return True
    if nights is None or nights <= 0:
        return False
    # Zero percent of an unusable number of nights is undetermined.
    exact = Decimal(repr(nights))
    return nights >= _MOST_NIGHTS or round(exact, _NIGHTS_DECIMALS) != exact
