"""Bounds from earlier nights: robust, wide enough for chance, and none at all while there are too few nights.

The middle is the median of the trailing nights. The band around it is a multiple of the median absolute deviation
(scaled to a standard deviation) or of the counting error, whichever is larger, and at least twice the largest deviation
that passed its check. A share may always differ by one point.

A value that failed its check does not count, even if its night was published: an override is for that night. A value
that was not judged, as in a cold start, counts, but does not widen the band if it lies outside. Once as many nights in
a row have failed as a cold start takes, they are the new level and earlier nights no longer count. Shares are compared
directly; levels and rare shares by their logarithm, so that double and half are equally far.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from pipeline.audit.results import Measure, rounded

# Turns a median absolute deviation into the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826
# A share may always differ by this much: a problem with fewer offers is no reason to withhold all others.
_POINT = 0.01


class Seen(NamedTuple):
    """A value measured in a published night, and the outcome of its check."""

    observed: float
    is_failed: bool = False
    is_judged: bool = True


History = Mapping[tuple[str, str, str], Sequence[Seen]]


@dataclass(frozen=True, slots=True)
class Limits:
    """The settings of an audit, under their own names."""

    deviations: float = 6.0
    nights: int = 28
    cold_nights: int = 5
    quarantined_share: float = 0.01


def with_bounds(measures: Iterable[Measure], history: History, limits: Limits) -> list[Measure]:
    """Give each measure that is judged by history its bounds; it has none while there are too few nights."""
    return [
        _bounded(measure, history.get(measure.key, ()), limits) if measure.basis == "history" else measure
        for measure in measures
    ]


def usual(before: Iterable[Seen], cold_nights: int) -> list[Seen]:
    """Return the earlier nights that count, oldest first: see above."""
    counted: list[Seen] = []
    failed_in_a_row: list[Seen] = []
    for seen in before:
        failed_in_a_row = [*failed_in_a_row, seen] if seen.is_failed else []
        if len(failed_in_a_row) == cold_nights:
            counted, failed_in_a_row = failed_in_a_row, []
        elif not seen.is_failed:
            counted.append(seen)
    return counted


def _bounded(measure: Measure, seen: Sequence[Seen], limits: Limits) -> Measure:
    before = usual(seen, limits.cold_nights)
    if len(before) < limits.cold_nights:
        return replace(measure, nights=len(before))
    lowest, highest = bounds(before, measure.kind, measure.of, limits.deviations)
    return replace(
        measure,
        lowest=rounded(lowest) if measure.side in {"both", "low"} else None,
        highest=rounded(max(highest, measure.harmless))
        if measure.side in {"both", "high"} and highest is not None
        else None,
        nights=len(before),
    )


def bounds(before: Sequence[Seen], kind: str, of: float, deviations: float) -> tuple[float, float | None]:
    """Return the lowest and the highest value that earlier nights make plausible; None: no upper bound.

    `of` is how many tonight's value is made of: cells of a share, properties behind a median. Kinds are `share`
    (0 to 1), `level` (positive) and `rare` (a share near 0 that matters when it vanishes).
    """
    values = [seen.observed for seen in before]
    middle, count = median(values), max(of, 1.0)
    if kind == "share":
        least, most = _by_chance(middle, count, deviations)
        low, high = _halves(before, values, (min(least, middle - _POINT), max(most, middle + _POINT)), deviations)
        return max(middle - low, 0.0), min(middle + high, 1.0)
    if middle <= 0:
        # Usually there are none: then none is fine, and how many to expect is unknown.
        return 0.0, None
    logs = [math.log(max(value, 1e-9)) for value in values]
    level = median(logs)
    if kind == "rare":
        least, most = _by_chance(math.exp(level), count, deviations)
        chance = (math.log(least) if least > 0 else -math.inf, math.log(most))
    else:
        chance = (level - deviations / math.sqrt(count), level + deviations / math.sqrt(count))
    low, high = _halves(before, logs, chance, deviations)
    return math.exp(level - low), math.exp(level + high)


def _by_chance(share: float, count: float, deviations: float) -> tuple[float, float]:
    """Return how far chance can move a share of `count`: some deviations, corrected for the skew of small counts."""
    away = deviations * math.sqrt(max(share * (1 - share), 0.0) / count)
    skew = max(deviations**2 - 1, 0.0) * (1 - 2 * share) / (6 * count)
    # With so few, zero is plausible too, and the correction does not apply.
    few = deviations**2 / 4
    return (
        0.0 if share * count < few else share - away + skew,
        1.0 if (1 - share) * count < few else share + away + skew,
    )


def _halves(
    before: Sequence[Seen], values: Sequence[float], chance: tuple[float, float], deviations: float
) -> tuple[float, float]:
    """Return how far below and above the middle a value may lie. `chance` is the range that chance explains."""
    middle = median(values)
    spread = deviations * _MAD_TO_SIGMA * median(abs(value - middle) for value in values)
    low, high = max(spread, middle - chance[0]), max(spread, chance[1] - middle)
    # A value that was never judged may be a fault, and must not widen the band for the next one.
    without_complaint = [
        abs(value - middle)
        for value, seen in zip(values, before, strict=True)
        if seen.is_judged or middle - low <= value <= middle + high
    ]
    passed = 2 * max(without_complaint, default=0.0)
    return max(low, passed), max(high, passed)
