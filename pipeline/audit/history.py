"""Bounds from the nights before: robust, wide enough for chance, and none at all while there are too few nights.

The middle is the median of the trailing nights. Around it lies a band: some times the median absolute deviation (as
a standard deviation), or the uncertainty of counting where that is larger, and at least twice the largest deviation
that was published without complaint. A share may always differ by a point.

A value that failed its check does not count, although its night was published: an override is for that night. One that
was not judged, as in a cold start, counts, and makes no room where it lies outside the band. Once so many nights in a
row have failed as a cold start needs, theirs is the new level, and what was before does not count any more. Shares are
compared as they are, levels and rare shares by their logarithm, so that twice as much and half as much are equally far.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from pipeline.audit.results import Measure, rounded

# Turns a median absolute deviation into the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826
# By so much a share may always differ: what concerns fewer offers is no reason to withhold all others.
_POINT = 0.01


class Seen(NamedTuple):
    """What was measured in a published night, and what its check said then."""

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
    """Give each measure that is judged by history its bounds; it keeps none while there are too few nights."""
    return [
        _bounded(measure, history.get(measure.key, ()), limits) if measure.basis == "history" else measure
        for measure in measures
    ]


def usual(before: Iterable[Seen], cold_nights: int) -> list[Seen]:
    """Return what counts of the nights before, oldest first: see above."""
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
        highest=rounded(highest) if measure.side in {"both", "high"} and highest is not None else None,
        nights=len(before),
    )


def bounds(before: Sequence[Seen], kind: str, of: float, deviations: float) -> tuple[float, float | None]:
    """Return the least and the most that the nights before make plausible; None: no most.

    `of` is what tonight's value counts: cells of a share, properties behind a median. Kinds are `share` (0 to 1),
    `level` (positive) and `rare` (a share near 0 whose vanishing matters).
    """
    values = [seen.observed for seen in before]
    middle, count = median(values), max(of, 1.0)
    if kind == "share":
        least, most = _by_chance(middle, count, deviations)
        low, high = _halves(before, values, (min(least, middle - _POINT), max(most, middle + _POINT)), deviations)
        return max(middle - low, 0.0), min(middle + high, 1.0)
    if middle <= 0:
        # Where there usually is none, none is no fault, and how much may come is unknown.
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
    """Return how far chance takes a share of so many: some deviations, corrected for how skewed small counts are."""
    away = deviations * math.sqrt(max(share * (1 - share), 0.0) / count)
    skew = max(deviations**2 - 1, 0.0) * (1 - 2 * share) / (6 * count)
    # Of so few, none is plausible as well, and the correction holds no longer.
    few = deviations**2 / 4
    return (
        0.0 if share * count < few else share - away + skew,
        1.0 if (1 - share) * count < few else share + away + skew,
    )


def _halves(
    before: Sequence[Seen], values: Sequence[float], chance: tuple[float, float], deviations: float
) -> tuple[float, float]:
    """Return how far below and above the middle a value may lie. `chance` is what counting makes plausible."""
    middle = median(values)
    spread = deviations * _MAD_TO_SIGMA * median(abs(value - middle) for value in values)
    low, high = max(spread, middle - chance[0]), max(spread, chance[1] - middle)
    # What was never judged may be a fault: it must not make room for the next one.
    without_complaint = [
        abs(value - middle)
        for value, seen in zip(values, before, strict=True)
        if seen.is_judged or middle - low <= value <= middle + high
    ]
    passed = 2 * max(without_complaint, default=0.0)
    return max(low, passed), max(high, passed)
