"""Thresholds of the analytics: settings, and columns of `ref.analysis`, under the same names."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def _compared(default: object, meaning: str, **bounds: float) -> Any:  # noqa: ANN401 - the type of the field
    """Return a field with the meaning of setting and column, and the bounds of the setting."""
    return field(default=default, metadata={"meaning": meaning, "bounds": bounds})


@dataclass(frozen=True, slots=True)
class Analysis:
    """The one row of `ref.analysis`, which every comparing relation of `mart` and `report` reads.

    It is kept with each published sweep, so that a rebuild gives the same results.
    """

    reference_market: str | None = _compared(
        None,
        "Market that others are compared with. "
        "Unset, or NULL: the one that shares its currency with the most offers of other markets, in the first sweep.",
    )
    tolerance_pct: float = _compared(0.5, "Difference in percent up to which two prices count as equal.", ge=0, le=100)
    reference_rate_pct: float = _compared(
        3.0, "Percent added to the tolerance if prices can be compared only at a reference rate.", ge=0, le=100
    )
    what_if_markup_pct: float | None = _compared(
        None, "Mark-up on `total`, in percent, to compare with the floor. Unset, or NULL: none.", ge=0, le=1000
    )
    total_role: str = _compared(
        "unknown", "What `total` means: `unknown`, `net` or `sell`. No report shows margins while unknown."
    )
    medium_pct: float = _compared(2.0, "Size in percent from which a finding has medium severity.", ge=0, le=1000)
    high_pct: float = _compared(5.0, "Size in percent from which a finding has high severity.", ge=0, le=1000)
    price_days: int = _compared(7, "Maximum days between a selling price and the compared floor.", ge=0, le=365)
    disparity_pct: float = _compared(1.0, "Gap between markets, in percent, from which it is a finding.", ge=0, le=100)
    reference_days: int = _compared(
        30,
        "Days before a promotion whose lowest total is its reference price; also the history that a verdict needs.",
        ge=1,
        le=365,
    )
    plausible_rooms: int = _compared(10000, "Available rooms above this number are a placeholder and ignored.", ge=1)
    quiet_nights: int = _compared(3, "Days without an offer after which a property counts as gone quiet.", ge=1, le=60)
    unobserved_nights: int = _compared(
        2,
        "Days after which an offer is dropped if partly unreadable answers lack it or its currency is not requested.",
        ge=1,
        le=60,
    )
    unrequested_days: int = _compared(
        14,
        "Days after which an offer counts as no longer requested if other stays of its property still are. Set it "
        "above the longest time between two requests of the same stay.",
        ge=1,
        le=365,
    )
    silent_nights: int = _compared(
        2,
        "Days without any offer in a market, or without one that a finding was compared with, during which findings "
        "do not end and no property counts as quiet; without any offer in a market, parity episodes do not end either.",
        ge=0,
        le=60,
    )
    ladder_stays: int = _compared(
        5, "Minimum number of stays needed to decide which of two rooms is the better one.", ge=1, le=1000
    )
    ladder_pct: float = _compared(
        90.0, "Percent of these stays in which the better room must be dearer.", ge=50, le=100
    )
    discount_rounding: float = _compared(
        0.51,
        "Percentage points, and currency units, by which a stated discount may differ from the prices.",
        ge=0,
        le=100,
    )
    cancel_horizon_days: int = _compared(
        30, "Days before check-in over which the strictness of a cancellation policy is measured.", ge=1, le=365
    )
    check_in_hour: int = _compared(
        15, "Hour of check-in that penalty windows count back from; the properties file can override it.", ge=0, le=23
    )
    reference_gone_days: int = _compared(
        14, "Days without an offer after which another market replaces the reference market.", ge=1, le=365
    )
    check_in_time_zone: str = _compared(
        "UTC", "Time zone of that hour, such as `Europe/Stockholm`; the properties file can override it."
    )


def analysis_columns() -> dict[str, tuple[str, str]]:
    """Return SQL type and meaning of each column of `ref.analysis`."""
    kinds = {"str": "VARCHAR", "float": "DOUBLE", "int": "INTEGER"}
    return {
        item.name: (kinds[str(item.type).removesuffix(" | None")], item.metadata["meaning"])
        for item in fields(Analysis)
    }
