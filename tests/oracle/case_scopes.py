"""When findings of properties have one cause in their market, and which of these properties have a cause of their own.

A market is a case if at least five of its properties show a rule in one direction, and these are clearly more than half
of those on sale; or clearly more than a quarter, or five of a common size, and clearly more than in the other markets
together, all of them or those without a common size. It closes on the second day on which they are not more than half,
nor more than a quarter (or three of a common size) and more than elsewhere; at once if one or two were found that day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from flags import Night
from history import Row
from relations_of_disparity import ALLOWED_PCT, DISPARITY_PCT
from relations_of_pairs import TOLERANCE_PCT
from shares import share_bound

Scopes = dict[tuple[str, str], Row]
Outliers = dict[tuple[str, str, int], float]


@dataclass
class Wider:
    """Markets that are or were a case, by rule and market, and properties apart from them, with their market's size."""

    scopes: Scopes = field(default_factory=dict)
    outliers: Outliers = field(default_factory=dict)


def wider(nights: list[Night]) -> Wider:
    """Return the state after all nights."""
    found = Wider()
    for night in nights:
        standing = _in_markets(night)
        _move_on(found.scopes, night, standing)
        found.outliers = _apart(found, night)
    return found


def allowed_pct(is_converted: bool) -> float:
    """Return how far apart two sizes may be and still be the same, in percent of a price."""
    return DISPARITY_PCT + (ALLOWED_PCT if is_converted else float(TOLERANCE_PCT))


def _in_markets(night: Night) -> dict[tuple[str, str], Row]:
    flags: dict[tuple[str, str], list[Row]] = {}
    for flag in night.open:
        if flag["rule"] != "fx_markup":
            flags.setdefault((flag["rule"], flag["market"]), []).append(flag)
    found = {}
    for (rule, market), its in flags.items():
        higher = {flag["property_id"] for flag in its if flag["size_pct"] is not None and flag["size_pct"] >= 0}
        lower = {flag["property_id"] for flag in its if flag["size_pct"] is None or flag["size_pct"] < 0}
        alike = max(len(higher), len(lower))
        agreed = _of_one_size(its) if rule == "market_disparity" else 0
        found[rule, market] = {
            True: len(higher),
            False: len(lower),
            "is_higher": len(higher) >= len(lower),
            "alike": alike,
            "judged": max(alike, night.on_sale.get(market, 0)),
            "found": len({flag["property_id"] for flag in its if flag["last_flagged_at"] == night.at}),
            "agreed": agreed if 5 * agreed >= 4 * alike else 0,
        }
    return found


def _of_one_size(flags: list[Row]) -> int:
    sizes = _sizes(flags)
    middle = median(size for size, _ in sizes.values())
    return sum(abs(size - middle) <= (1 + middle / 100) * allowed_pct(converted) for size, converted in sizes.values())


def _sizes(flags: list[Row]) -> dict[int, tuple[float, bool]]:
    """Return the median size of each property's findings, and whether any is at a reference rate."""
    by_property: dict[int, list[Row]] = {}
    for flag in flags:
        if flag["size_pct"] is not None:
            by_property.setdefault(flag["property_id"], []).append(flag)
    return {
        property_id: (median(flag["size_pct"] for flag in its), any(map(is_converted, its)))
        for property_id, its in by_property.items()
    }


def is_converted(flag: Row) -> bool:
    """Whether a finding compares prices at a reference rate."""
    return bool(flag.get("currency_basis") == "reference_rate")


def _move_on(scopes: Scopes, night: Night, standing: Mapping[tuple[str, str], Row]) -> None:
    on_sale = sum(night.on_sale.values())
    for key in {*scopes, *standing}:
        before, here = scopes.get(key), standing.get(key)
        is_open = before is not None and before["ended_at"] is None
        if here is not None and _is_met(
            here, [row for other, row in standing.items() if other[0] == key[0]], on_sale, is_open
        ):
            since = before["opened_at"] if before and is_open else night.at
            scopes[key] = {"opened_at": since, "last_met_at": night.at, "below_since": None, "ended_at": None}
        elif before is not None:
            if is_open and (
                (before["below_since"] is not None and before["below_since"] < night.day)
                or (here is not None and here["found"] < 3)
            ):
                before["ended_at"] = night.at
            before["below_since"] = before["below_since"] or night.day


def _is_met(here: Row, of_rule: list[Row], on_sale: int, is_open: bool) -> bool:
    side, alike, judged = here["is_higher"], here["alike"], here["judged"]
    elsewhere = (sum(row[side] for row in of_rule) - alike, on_sale - judged)
    others = [row for row in of_rule if row is not here and row["agreed"] < 5]
    of_one_size = [row for row in of_rule if row is not here and row["agreed"] >= 5]
    beside = (
        sum(row[side] for row in others),
        on_sale - judged - sum(row["judged"] for row in of_one_size),
    )
    if is_open:
        return 2 * alike > judged or (
            (4 * alike > judged or here["agreed"] >= 3)
            and any(alike * max(whole, part) > part * judged for part, whole in (elsewhere, beside))
        )
    surely = share_bound(alike, judged, -1)
    bounds = [share_bound(part, max(part, whole), 1) for part, whole in (elsewhere, beside) if max(part, whole) > 0]
    return alike >= 5 and (
        surely > 0.5 or ((surely > 0.25 or here["agreed"] >= 5) and bool(bounds) and surely > min(bounds))
    )


def _apart(found: Wider, night: Night) -> Outliers:
    """Return the properties whose size is far from most of their market's, which are one case."""
    flags: dict[tuple[str, str], list[Row]] = {}
    for flag in night.open:
        key = (flag["rule"], flag["market"])
        if flag.get("is_lagging"):
            # A late rate is the supplier's, whichever property shows it.
            continue
        if flag["rule"] == "fx_markup" or (key in found.scopes and found.scopes[key]["ended_at"] is None):
            flags.setdefault(key, []).append(flag)
    apart = {}
    for key, its in flags.items():
        is_markup = key[0] == "fx_markup"
        sizes = _sizes(its)
        # By the currency that a property is priced in, the same mark-up is above or below the rate.
        compared = _sizes([flag | {"size_pct": abs(flag["size_pct"])} for flag in its]) if is_markup else sizes
        middle, of_market = (median(size for size, _ in each.values()) for each in (compared, sizes))
        away = {property_id: abs(size - middle) for property_id, (size, _) in compared.items()}
        usual = sorted(away.values())[math.ceil(0.8 * len(away)) - 1]
        for property_id, distance in away.items():
            allowed = allowed_pct(not is_markup and sizes[property_id][1])
            bound = max(3 * usual, (1 + of_market / 100) * allowed)
            if (2 if (*key, property_id) in found.outliers else 1) * distance > bound:
                apart[*key, property_id] = of_market
    return apart


def places(found: Wider, flag: Row) -> dict[str, Any]:
    """Return what the case of a finding's market is, and whether its property is apart."""
    scope = found.scopes.get((flag["rule"], flag["market"]))
    is_markup = flag["rule"] == "fx_markup"
    return {
        "was_of_market": is_markup or scope is not None,
        "is_of_market": is_markup or (scope is not None and scope["ended_at"] is None),
        "is_outlier": (flag["rule"], flag["market"], flag["property_id"]) in found.outliers,
        "scope": scope or {"opened_at": None, "last_met_at": None, "ended_at": None},
    }
