"""Bounds from the nights before: robust, wide enough for chance, and none at all while there are too few nights.

The middle is the median of the trailing nights. Around it lies a band: some times the median absolute deviation (as
a standard deviation), or the uncertainty of counting where that is larger, and at least twice the largest deviation
that was published without complaint. A value that failed its check does not count, although its night was published:
an override is for that night. Once so many nights in a row have failed as a cold start needs, theirs is the new level,
and what was before does not count any more. Shares are compared as they are, levels and rare shares by their logarithm,
so that twice as much and half as much are equally far.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from pipeline.audit.findings import Measure, rounded

# Turns a median absolute deviation into the standard deviation of a normal distribution.
_MAD_TO_SIGMA = 1.4826


class Seen(NamedTuple):
    """What was measured in a published night, and whether it failed its check then."""

    observed: float
    is_failed: bool = False


History = Mapping[tuple[str, str, str], Sequence[Seen]]


@dataclass(frozen=True, slots=True)
class Limits:
    """What an audit may be told: see the settings of the same names."""

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


def usual(before: Iterable[Seen], cold_nights: int) -> list[float]:
    """Return what counts of the nights before, oldest first: see above."""
    counted: list[float] = []
    failed_in_a_row: list[float] = []
    for seen in before:
        failed_in_a_row = [*failed_in_a_row, seen.observed] if seen.is_failed else []
        if len(failed_in_a_row) == cold_nights:
            counted, failed_in_a_row = failed_in_a_row, []
        elif not seen.is_failed:
            counted.append(seen.observed)
    return counted


def _bounded(measure: Measure, seen: Sequence[Seen], limits: Limits) -> Measure:
    before = usual(seen, limits.cold_nights)
    if len(before) < limits.cold_nights:
        return replace(measure, nights=len(before))
    lowest, highest = bounds(before, measure.kind, measure.of, limits.deviations)
    return replace(
        measure,
        lowest=rounded(lowest) if measure.side in {"both", "low"} else None,
        highest=rounded(highest) if measure.side in {"both", "high"} else None,
        nights=len(before),
    )


def bounds(before: Sequence[float], kind: str, of: float, deviations: float) -> tuple[float, float]:
    """Return the least and the most that the nights before make plausible.

    `of` is what tonight's value counts: cells of a share, cells behind a median. Kinds are `share` (0 to 1), `level`
    (positive) and `rare` (a share near 0 whose vanishing matters).
    """
    if kind == "share":
        middle = median(before)
        count = max(of, 1.0)
        chance = math.sqrt(max(middle * (1 - middle), 1 / count) / count)
        half = _half(before, middle, chance, deviations)
        return max(middle - half, 0.0), min(middle + half, 1.0)
    logs = [math.log(max(value, 1e-9)) for value in before]
    middle = median(logs)
    count = max(of * math.exp(middle) if kind == "rare" else of, 1.0)
    half = _half(logs, middle, 1 / math.sqrt(count), deviations)
    return math.exp(middle - half), math.exp(middle + half)


def _half(values: Sequence[float], middle: float, chance: float, deviations: float) -> float:
    away = [abs(value - middle) for value in values]
    return max(deviations * max(_MAD_TO_SIGMA * median(away), chance), 2 * max(away))
