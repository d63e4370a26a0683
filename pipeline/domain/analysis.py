"""What the analytics compare with: the numbers that a user may want otherwise, in one place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


def _meaning(text: str) -> dict[str, str]:
    return {"meaning": text}


@dataclass(frozen=True, slots=True)
class Analysis:
    """One row of `ref.analysis`: every relation of `mart` and `report` that compares reads it there.

    Kept with each published sweep, so that a rebuilt file says what it said.
    """

    reference_market: str | None = field(
        default=None,
        metadata=_meaning(
            "Market that others are compared with; NULL: the one chosen by its offers, see mart.reference_market."
        ),
    )
    tolerance_pct: float = field(
        default=0.5, metadata=_meaning("Percent within which two prices meet; never less than one minor unit.")
    )
    reference_rate_pct: float = field(
        default=3.0,
        metadata=_meaning(
            "Percent added to the tolerance where two currencies are compared at the reference rate alone: what a "
            "supplier may add to it."
        ),
    )
    what_if_markup_pct: float | None = field(
        default=None, metadata=_meaning("Mark-up on total, in percent, of the what-if; NULL: none.")
    )
    total_role: str = field(default="unknown", metadata=_meaning("What total is: `unknown`, `net` or `sell`."))
    medium_pct: float = field(
        default=2.0, metadata=_meaning("Percent from which a finding is of medium severity; below it is low.")
    )
    high_pct: float = field(default=5.0, metadata=_meaning("Percent from which a finding is of high severity."))
    price_days: int = field(
        default=7, metadata=_meaning("Maximum days between a selling price and the floor it is compared with.")
    )
    disparity_pct: float = field(
        default=1.0,
        metadata=_meaning("Percent from which a gap between markets is a finding; smaller ones only count in scores."),
    )
    reference_days: int = field(
        default=30, metadata=_meaning("Days before a promotion in which its reference price must have been charged.")
    )
    plausible_rooms: int = field(
        default=10_000, metadata=_meaning("Available rooms above which the number is a placeholder and ignored.")
    )
    quiet_nights: int = field(
        default=3, metadata=_meaning("Days without an offer after which a property counts as gone quiet.")
    )
    unobserved_nights: int = field(
        default=2,
        metadata=_meaning(
            "Days of answers that leave an offer out, with a part that could not be read, until it is not on sale."
        ),
    )
    silent_nights: int = field(
        default=2,
        metadata=_meaning(
            "Days for which findings of a market stay open that has no offer at all: a failure is likelier than that."
        ),
    )
    ladder_stays: int = field(
        default=5, metadata=_meaning("Stays in which two rooms must be compared before one of them is the better room.")
    )
    ladder_pct: float = field(
        default=90.0, metadata=_meaning("Percent of those stays in which the better room must be dearer.")
    )
    discount_rounding: float = field(
        default=0.51,
        metadata=_meaning(
            "Points and units of money by which a stated discount may miss that of the prices: each may be rounded."
        ),
    )
    cancel_horizon_days: int = field(
        default=30, metadata=_meaning("Days before check-in over which the strictness of a cancel policy is measured.")
    )
    check_in_hour: int = field(
        default=15,
        metadata=_meaning("Hour of check-in that windows of penalties are counted from, where a property states none."),
    )
    reference_gone_days: int = field(
        default=14,
        metadata=_meaning("Days without any offer after which another market takes the place of the reference market."),
    )
    check_in_time_zone: str = field(
        default="UTC", metadata=_meaning("Time zone of the time of check-in, where a property states none.")
    )


def analysis_columns() -> dict[str, tuple[str, str]]:
    """Return SQL type and meaning of each column of `ref.analysis`."""
    kinds = {"str": "VARCHAR", "float": "DOUBLE", "int": "INTEGER"}
    return {
        item.name: (kinds[str(item.type).removesuffix(" | None")], item.metadata["meaning"])
        for item in fields(Analysis)
    }
