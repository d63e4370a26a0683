"""The supplier's own exchange rate: `report.fx_markup`, from offers answered in two currencies.

Most of the offers of a property that tell anything must deviate to one side, from every reference rate of eight days,
by more than the tolerance and by more than rounding of the two totals explains. Where all totals are whole, or come of
whole prices, a step of rounding is a whole unit. The lake's reference rates are of a few days: what would fit one of 31
days fits one of eight, so nothing is found against the reference market.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

import polars as pl
from history import OFFER, Row, key_of
from relations_of_pairs import HIGH_PCT, MEDIUM_PCT, MINOR_UNITS, SAME, TOLERANCE_PCT, Rates, to_cents, tolerance
from relations_of_prices import comparable

UNIT = 10_000
_SAME_OFFER = (*SAME, "market", "room_id", "board_id", "policy")
_OF = ("source", "property_id", "market", "currency")


def markups(offers: pl.DataFrame, rates: Rates, ranks: Mapping[Any, int]) -> list[Row]:
    """Return the findings, each with the two offers of its largest price."""
    by_place: dict[Any, list[Row]] = {}
    by_offer: dict[Any, list[Row]] = {}
    for row in comparable(offers).to_dicts():
        by_offer.setdefault(key_of(row, _SAME_OFFER), []).append(row)
    for group in by_offer.values():
        base = next((row for row in group if row["currency"] == "EUR"), None)
        for row in group if base else ():
            pair = _pair(row, base, rates) if row["currency"] != "EUR" else None
            if pair is not None:
                by_place.setdefault(key_of(row, _OF), []).append(pair)
    return [finding for pairs in by_place.values() for finding in _found(pairs, ranks)]


def _pair(row: Row, base: Row, rates: Rates) -> Row | None:
    day = date.fromisoformat(f"{row['sweep_id'][:4]}-{row['sweep_id'][4:6]}-{row['sweep_id'][6:8]}")
    rate = rates.of(row["currency"], day)
    if rate is None:
        return None
    low, high = rates.range(row["currency"], day)
    total = row["total"]
    closest = min(max(total, base["total"] * low), base["total"] * high)
    converted = to_cents(base["total"] * rate)
    step = UNIT if _is_whole(row) and _is_whole(base) else MINOR_UNITS
    rounding, allowed = step * (1 + rate), tolerance(converted, TOLERANCE_PCT)
    is_off = abs(total - closest) > max(Fraction(allowed), rounding)
    return {
        "of": row,
        "base": base,
        "converted": converted,
        "lasting_pct": float(100 * (total - closest) / closest),
        "side": 0 if not is_off else 1 if total > closest else -1,
        "is_lagging": _is_of_the_month(row, converted, rates, day),
        "is_telling": is_off or rounding <= Fraction(allowed),
    }


def _is_of_the_month(row: Row, converted: int, rates: Rates, day: date) -> bool:
    """Whether a rate of 31 days explains a price, so that the supplier may follow rates late."""
    low, high = rates.range(row["currency"], day, 31)
    rate = rates.of(row["currency"], day)
    assert rate is not None
    charged = rate * Fraction(row["total"], converted)
    return bool(low * (1 - Fraction(TOLERANCE_PCT) / 100) <= charged <= high * (1 + Fraction(TOLERANCE_PCT) / 100))


def _is_whole(row: Row) -> bool:
    return any(amount is not None and amount % UNIT == 0 for amount in (row["total"], row["pre_promo_total"]))


def _found(pairs: list[Row], ranks: Mapping[Any, int]) -> list[Row]:
    telling = sum(pair["is_telling"] for pair in pairs)
    found = []
    for side in (1, -1):
        off = [pair for pair in pairs if pair["side"] == side]
        if 2 * len(off) > telling:
            largest = max(off, key=lambda pair: (pair["base"]["total"], ranks[key_of(pair["of"], OFFER[1:])]))
            row, base = largest["of"], largest["base"]
            lasting = abs(largest["lasting_pct"])
            found.append(
                {name: row[name] for name in ("source", "property_id", "market", "currency", "product_type")}
                | {name: row[name] for name in ("check_in", "nights", "party")}
                | {
                    "rule": "fx_markup",
                    "subject": (*key_of(row, _OF), "EUR"),
                    "base_currency": "EUR",
                    "is_lagging": largest["is_lagging"],
                    "offer": key_of(row, OFFER),
                    "evidence": frozenset([key_of(row, OFFER), key_of(base, OFFER)]),
                    "size_pct": 100 * (row["total"] - largest["converted"]) / largest["converted"],
                    "amount": side * _amount(off),
                    "severity": "high" if lasting >= HIGH_PCT else "medium" if lasting >= MEDIUM_PCT else "low",
                }
            )
    return found


def _amount(pairs: list[Row]) -> int:
    """Add up the middle mark-up of each stay, the lower of two: a room costs a stay once."""
    stays: dict[Any, list[int]] = {}
    for pair in pairs:
        markup = abs(pair["of"]["total"] - pair["converted"])
        stays.setdefault(key_of(pair["of"], ("check_in", "nights", "party")), []).append(markup)
    return sum(sorted(markups)[(len(markups) - 1) // 2] for markups in stays.values())
