"""Markets against each other, prices against floors, one currency against another: expected rows by relation.

Prices of one currency are compared as they are; where the same offer was answered in both currencies, at the rate of
those two answers; else at the reference rate of the last business day, at most seven days back. Never mixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import polars as pl
from history import CELL, OFFER, UNOBSERVED_NIGHTS, Row, key_of
from relations_of_prices import FAMILY_OF, MINOR_UNITS, PRODUCT, comparable, taken_off_by_promotions

TOLERANCE_PCT, REFERENCE_RATE_PCT = Decimal("0.5"), Decimal(3)
MEDIUM_PCT, HIGH_PCT = 2.0, 5.0
SAME = ("source", "sweep_id", "property_id", "product_type", "check_in", "nights", "party", "room_no")
BASES = ("same", "supplier_rate", "reference_rate")
"""Those that come first are counted in a market's score."""
SCORED = ("match_grade", "source", "product_type", "market", "currency", "currency_basis")
GRADES: Mapping[str, tuple[str, ...]] = {
    "exact": ("room_id", "board_id", "policy"),
    "board_family": ("family",),
    "cheapest": (),
}


class Rates:
    """Units of a currency for one euro, by day; a day without one has that of the last day, at most seven back."""

    def __init__(self, file_text: str) -> None:
        head, *lines = [line.split(",") for line in file_text.split()]
        self._by_day = {
            date.fromisoformat(day): {"EUR": Fraction(1)}
            | {name: Fraction(rate) for name, rate in zip(head[1:], rest, strict=True)}
            for day, *rest in lines
        }

    def of(self, currency: str, day: date) -> Fraction | None:
        """Return the rate of a currency on a day."""
        near = [known for known in self._by_day if day - timedelta(days=7) <= known <= day]
        return self._by_day[max(near)].get(currency) if near else None

    def is_of_one_day(self, currencies: Iterable[str], day: date) -> bool:
        """Whether rates of one day of the last 31 are all that is known of a currency other than the euro."""
        near = [rates for known, rates in self._by_day.items() if day - timedelta(days=31) < known <= day]
        return any(sum(currency in rates for rates in near) == 1 for currency in currencies if currency != "EUR")

    def range(self, currency: str, day: date, days: int = 8) -> tuple[Fraction, Fraction]:
        """Return the lowest and the highest rate of a currency over a number of days that end with the given one."""
        near = [
            rates[currency]
            for known, rates in self._by_day.items()
            if day - timedelta(days=days) < known <= day and currency in rates
        ]
        return min(near), max(near)


def market_parity(both: list[Row]) -> list[Row]:
    """`mart.market_parity`: T_b x fx / T_ref - 1; win, meet or lose."""
    return [{name: value for name, value in row.items() if name not in {"of", "against"}} for row in both]


def pairs(
    offers: pl.DataFrame, reference_market: str, rates: Rates, ranks: Mapping[Any, int], grades: Iterable[str] = GRADES
) -> list[Row]:
    """Return the same, and which offers they are: `of` the market `against` the reference market.

    `ranks` put equal prices into the lake's order.
    """
    rows = offers.with_columns(rank=pl.Series([ranks[key] for key in _keys(offers)], dtype=pl.Int64)).to_dicts()
    answered: dict[Any, set[tuple[str, str | None]]] = {}
    for row in rows:
        if row["currency"] is not None:
            place = row["source"], row["property_id"], row["market"]
            answered.setdefault(place, set()).add((row["currency"], row["currency_asked"]))
    found = []
    for grade in grades:
        key = GRADES[grade]
        sold = _standing(rows, grade, key)
        by_match: dict[Any, list[Row]] = {}
        for row in sold:
            by_match.setdefault(key_of(row, (*SAME, *key)), []).append(row)
        for group in by_match.values():
            for row in group:
                place = row["source"], row["property_id"]
                there = answered.get((*place, reference_market))
                if row["market"] == reference_market or not there:
                    continue
                here = {currency for currency, _ in answered[(*place, row["market"])]}
                currency, asked = min(there, key=lambda pair, row=row, here=here: _preference(pair, row, here))
                for other in group:
                    if (other["market"], other["currency"], other["currency_asked"]) == (
                        reference_market,
                        currency,
                        asked,
                    ):
                        found += _judged(grade, row, other, group, rates)
    return found


def parity_scores(parity: list[Row], weights: Mapping[int, float]) -> list[Row]:
    """`report.market_parity`, rows that compare something: by pairs, by properties and by weight; bases never mixed."""
    by_row: dict[Any, list[Row]] = {}
    for row in parity:
        by_row.setdefault(key_of(row, SCORED), []).append(row)
    best: dict[Any, int] = {}
    for place in by_row:
        market = place[:4]
        best[market] = min(best.get(market, 3), BASES.index(place[-1]))
    found = []
    for place, pairs in by_row.items():
        of_each: dict[int, list[Row]] = {}
        for row in pairs:
            of_each.setdefault(row["property_id"], []).append(row)
        kept = {number: _kept(rows) for number, rows in of_each.items()}
        weighed = sum(weights.get(row["property_id"], 1.0) for row in pairs)
        counts = {verdict: sum(row["verdict"] == verdict for row in pairs) for verdict in ("win", "meet", "lose")}
        counted = [
            row for other, rows in by_row.items() for row in rows
            if other[:4] == place[:4] and BASES.index(other[-1]) == best[place[:4]]
        ]  # fmt: skip
        found.append(
            dict(zip(SCORED, place, strict=True))
            | counts
            | {
                "pairs": len(pairs),
                "properties": len(of_each),
                "parity_score": 100 * _kept(pairs),
                "property_score": sum(100 * share for share in kept.values()) / len(kept),
                "weighted_parity_score": 100
                * sum(weights.get(row["property_id"], 1.0) for row in pairs if row["verdict"] != "lose")
                / weighed,
                "is_counted": BASES.index(place[-1]) == best[place[:4]],
                "market_score": 100 * _kept(counted),
            }
        )
    return found


def _kept(pairs: list[Row]) -> float:
    return sum(row["verdict"] != "lose" for row in pairs) / len(pairs)


def _keys(offers: pl.DataFrame) -> list[Any]:
    columns = ("property_id", "market", "product_type", "check_in", "nights", "party", "currency_asked", "room_stay_id")
    return list(offers.select(*columns, *("room_id", "board_id", "policy", "currency")).iter_rows())


def _preference(pair: tuple[str, str | None], row: Row, here: set[str]) -> Any:
    """The same currency before one that the market was answered in too, before any other."""
    currency, asked = pair
    return currency != row["currency"], currency not in here, asked != row["currency_asked"], currency, asked or ""


def _standing(rows: list[Row], grade: str, key: tuple[str, ...]) -> list[Row]:
    """Return what stands for its group: each offer, or the cheapest of a family, or of a cell."""
    if grade == "exact":
        return [
            row
            for row in rows
            if row["priced"]
            and row["currency"] is not None
            and row["room_id"] is not None
            and row["board_id"] is not None
            and (row["is_whole"] or row["source"] == "multi")
        ]
    cheapest: dict[Any, Row] = {}
    for row in rows:
        if row["priced"] and row["currency"] is not None and row["is_whole"]:
            group = key_of(row, (*SAME, "market", "currency_asked", "currency", *key))
            best = cheapest.get(group)
            if best is None or (row["total"], row["rank"]) < (best["total"], best["rank"]):
                cheapest[group] = row
    return list(cheapest.values())


def _judged(grade: str, row: Row, other: Row, group: list[Row], rates: Rates) -> list[Row]:
    basis, rate = "same", None
    if row["currency"] != other["currency"]:
        twins = [each for each in group if each["market"] == row["market"] and each["currency"] == other["currency"]]
        day = date.fromisoformat(f"{row['sweep_id'][:4]}-{row['sweep_id'][4:6]}-{row['sweep_id'][6:8]}")
        here, there = rates.of(row["currency"], day), rates.of(other["currency"], day)
        if twins:
            basis, rate = "supplier_rate", Fraction(row["total"], min(twins, key=lambda each: each["rank"])["total"])
        elif here is None or there is None:
            return []
        else:
            basis, rate = "reference_rate", here / there
    converted = other["total"] if rate is None else to_cents(other["total"] * rate)
    allowed = TOLERANCE_PCT + (REFERENCE_RATE_PCT if basis == "reference_rate" else 0)
    gap = row["total"] - converted
    return [
        {name: row[name] for name in (*SAME, "market", "currency_asked", *PRODUCT, "total")}
        | {
            "match_grade": grade,
            "currency_basis": basis,
            "reference_currency": other["currency"],
            "reference_total": other["total"],
            "reference_converted": converted,
            "gap": gap,
            "gap_pct": 100 * gap / converted,
            "of": row,
            "against": other,
            "verdict": "meet" if abs(gap) <= tolerance(converted, allowed) else "win" if gap < 0 else "lose",
        }
    ]


def tolerance(amount: int, allowed_pct: Decimal) -> Decimal:
    """Return how far from an amount another one may lie and still meet it: a share, and at least the smallest coin."""
    return max(amount * allowed_pct / 100, Decimal(MINOR_UNITS))


def to_cents(amount: Fraction) -> int:
    """Return an amount in ten-thousandths to its smallest coin: half a coin is a coin, whatever its sign."""
    coins = math.floor(abs(amount) / MINOR_UNITS + Fraction(1, 2)) * MINOR_UNITS
    return coins if amount > 0 else -coins


def fx_markup(offers: pl.DataFrame, rates: Rates) -> list[Row]:
    """`mart.fx_markup`: T_c1 / T_c2 of one market against the reference rate, from the euro."""
    same = ("source", "sweep_id", "property_id", "market", "product_type", "check_in", "nights", "party", "room_no")
    found = []
    for group in comparable(offers).partition_by([*same, "room_id", "board_id", "policy"]):
        rows = group.to_dicts()
        base = next((row for row in rows if row["currency"] == "EUR"), None)
        for row in rows if base else ():
            if row["currency"] == "EUR":
                continue
            day = date.fromisoformat(f"{row['sweep_id'][:4]}-{row['sweep_id'][4:6]}-{row['sweep_id'][6:8]}")
            rate = rates.of(row["currency"], day)
            if rate is not None:
                converted = to_cents(base["total"] * rate)
                found.append(
                    {name: row[name] for name in (*same, *PRODUCT, "total")}
                    | {
                        "base_total": base["total"],
                        "base_converted": converted,
                        "markup": row["total"] - converted,
                        "markup_pct": 100 * (row["total"] - converted) / converted,
                        "reference_rate": float(rate),
                        "supplier_rate": row["total"] / base["total"],
                    }
                )
    return found


class Price(NamedTuple):
    """A selling price and what it may be of."""

    row: Mapping[str, Any]
    family: str | None
    grade: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Price:
        """Return a price with how complete its key is."""
        is_exact = None not in {row["room_id"], row["board_id"], row["policy"]}
        family = None if row["board_id"] is None else FAMILY_OF.get(row["board_id"], "other")
        return cls(row, family, "exact" if is_exact else "board_family" if family else "cheapest")

    def may_be_of(self, offer: Row) -> bool:
        """Whether an offer may be the one that the price is of."""
        wanted = self.row
        is_board = (
            offer["board_id"] == wanted["board_id"]
            if self.grade == "exact"
            else self.family in {None, FAMILY_OF.get(offer["board_id"], "other")}
        )
        return (
            is_board
            and wanted["room_id"] in {None, offer["room_id"]}
            and wanted["policy"] in {None, offer["policy"]}
            and (offer["is_whole"] or (offer["source"] == "multi" and self.grade == "exact"))
        )


def price_against_floor(
    prices: list[Row], past: list[Row], cells: list[Row], latest: datetime, rates: Rates
) -> list[Row]:
    """`mart.price_against_floor`: p < M - tolerance, against the floor in force when the price was seen.

    Where the floor moved between the answers before and after a price, either may have been in force: it breaks the
    floor if it is below both, and keeps it if it is below neither. `latest` is the start of the latest sweep.
    """
    stay = ("property_id", "market", "product_type", "check_in", "nights", "party")
    by_stay: dict[Any, list[Row]] = {}
    for row in past:
        if row["ended_by"] != "stay_began" and row["check_in"] > latest.date():
            by_stay.setdefault((row["source"], *key_of(row, stay)), []).append(row)
    looked_at = {(cell["property_id"], cell["market"]) for cell in cells if cell["source"] == "detail"}
    return [
        _held(Price.of(price), source, by_stay.get((source, *key_of(price, stay)), []), latest, rates)
        for price in prices
        for source in ("multi", "detail")
        if source == "multi" or (price["property_id"], price["market"]) in looked_at
    ]


def _held(price: Price, source: str, past: list[Row], latest: datetime, rates: Rates) -> Row:
    row = price.row
    reported = {
        name: row[name] for name in ("property_id", "market", "product_type", "check_in", "nights", "party", "price")
    }
    reported |= {name: row[name] for name in PRODUCT} | {"source": source, "match_grade": price.grade}
    nothing = {"floor": None, "price_converted": None, "below_floor": None, "floor_now": None, "offers": 0}
    if row["product_type"] != "Hotel":
        return reported | nothing | {"verdict": "not_hotel"}
    if row["check_in"] <= latest.date():
        return reported | nothing | {"verdict": "stay_began"}
    if not past:
        return reported | nothing | {"verdict": "no_offer"}
    judged_at = max(row["observed_at"], min(offer["valid_from"] for offer in past))
    is_in_force: Callable[[Row], bool] = lambda offer: (  # noqa: E731 - one condition, used in several places
        offer["valid_from"] <= judged_at
        and (offer["valid_to"] is None or offer["valid_to"] > judged_at)
        and not _has_left(offer, judged_at)
    )
    is_now: Callable[[Row], bool] = lambda offer: (  # noqa: E731 - one condition, used twice
        offer["valid_to"] is None and not _has_left(offer, latest)
    )
    may_be_meant = [
        offer for offer in past if offer["is_offered"] and offer["currency"] is not None and price.may_be_of(offer)
    ]
    candidates = [offer for offer in may_be_meant if is_in_force(offer) or is_now(offer)]
    if not candidates:
        return reported | nothing | {"verdict": "no_offer"}
    requested_then = {offer["currency"] for offer in candidates if is_in_force(offer)}
    currency = min(
        (offer["currency"] for offer in candidates),
        key=lambda each: (each not in requested_then, each != row["currency"], each),
    )
    offers = [offer for offer in candidates if offer["currency"] == currency]
    rooms = row["party"].count("+") + 1
    then = _floors([offer for offer in offers if is_in_force(offer)], rooms)
    now = _floors([offer for offer in offers if is_now(offer)], rooms)
    answered_next = _answered_next(past, judged_at)
    after = _floors(
        [
            offer
            for offer in may_be_meant
            if offer["currency"] == currency
            and id(offer) in answered_next
            and (is_in_force(offer) or offer["valid_from"] > judged_at)
        ],
        rooms,
    )
    day = row["observed_at"].date()
    here, there = rates.of(currency, day), rates.of(row["currency"], day)
    converted: int | None = row["price"]
    if not any(_is_of_a_room(offer, rooms) for offer in offers):
        # There is no floor, so no currency to convert into.
        converted = None
    elif currency != row["currency"]:
        converted = to_cents(row["price"] * here / there) if here and there else None
    floor_before = _lowest(then)
    of_both = [floor_before, *([] if (floor_next := _lowest(after)) is None else [floor_next])]
    floor = None if floor_before is None else min(of_both)
    if not then:
        verdict = "no_offer"
    elif any(None in floors for rooms_of_type in [*then, *after] for floors in rooms_of_type):
        verdict = "none_stated"
    elif converted is None:
        verdict = "no_rate"
    elif row["observed_at"] < min(offer["valid_from"] for offer in past):
        verdict = "before_answers"
    else:
        allowed = TOLERANCE_PCT + (REFERENCE_RATE_PCT if currency != row["currency"] else 0)
        is_below = {each - converted > tolerance(each, allowed) for each in of_both}
        verdict = "between_floors" if len(is_below) > 1 else "breach" if is_below == {True} else "kept"
    return reported | {
        "verdict": verdict,
        "offers": sum(len(floors) for rooms_of_type in then for floors in rooms_of_type),
        "floor": floor,
        "price_converted": converted,
        "below_floor": floor - converted if verdict in {"breach", "kept"} else None,
        "floor_now": None
        if any(None in floors for rooms_of_type in now for floors in rooms_of_type)
        else min((sum(lows) for lows in map(_lows, now)), default=None),
    }


def _answered_next(past: list[Row], at: datetime) -> set[int]:
    """Return which states of offers, by `id`, the first answer after a time tells of, or are the last that is known.

    An offer that has no state before it is new: it counts unless its cell was answered completely in between.
    """
    by_offer: dict[Any, list[Row]] = {}
    by_cell: dict[Any, list[Row]] = {}
    for row in sorted(past, key=lambda row: row["valid_from"]):
        by_offer.setdefault(key_of(row, OFFER), []).append(row)
        by_cell.setdefault(key_of(row, CELL), []).append(row)
    found = set()
    for rows in by_offer.values():
        before = [row for row in rows if row["valid_from"] <= at]
        later = [row for row in rows if row["valid_from"] > at]
        last = before[-1] if before else None
        if last is not None and (last["last_seen_at"] >= at or not later):
            found.add(id(last))
        elif later:
            new = later[0]
            seen = [
                seen_at
                for row in by_cell[key_of(new, CELL)]
                if row["is_whole"]
                for seen_at in (row["valid_from"], row["last_seen_at"])
            ]
            if last is not None or not any(at <= seen_at < new["valid_from"] for seen_at in seen):
                found.add(id(new))
    return found


def _lowest(floors: list[list[list[int | None]]]) -> int | None:
    return min((sum(lows) for lows in map(_lows, floors) if None not in lows), default=None)


def _has_left(offer: Row, at: datetime) -> bool:
    """Whether an offer had been in doubt for too long at a time."""
    since = offer["doubted_since"]
    return since is not None and since <= at and (at.date() - since.date()).days >= UNOBSERVED_NIGHTS


def _floors(offers: list[Row], rooms: int) -> list[list[list[int | None]]]:
    """Return the floors of each room asked for, by room type; types that are not offered to each room are left out."""
    by_type: dict[Any, dict[int, list[int | None]]] = {}
    for offer in offers:
        room_no = offer["room_stay_id"] if rooms > 1 else 0
        if _is_of_a_room(offer, rooms):
            by_type.setdefault(offer["room_id"], {}).setdefault(room_no, []).append(offer["floor"] or None)
    return [list(by_room.values()) for by_room in by_type.values() if len(by_room) == rooms]


def _is_of_a_room(offer: Row, rooms: int) -> bool:
    return rooms == 1 or (offer["room_id"] is not None and offer["room_stay_id"] in range(rooms))


def _lows(floors_of_rooms: list[list[int | None]]) -> list[int | None]:
    return [min((each for each in floors if each is not None), default=None) for floors in floors_of_rooms]


def gap_decomposition(parity: list[Row], offers: pl.DataFrame, reference_market: str, rates: Rates) -> list[Row]:
    """`mart.gap_decomposition` of exact pairs: tax and fee + promotion + FX + residual = the gap, to the cent."""
    identity = (*SAME, "market", "currency_asked", *PRODUCT)
    by_offer = {key_of(row, identity): row for row in comparable(offers).to_dicts()}
    in_currency: dict[Any, Row] = {}
    for row in by_offer.values():
        in_currency.setdefault(key_of(row, (*SAME, "market", *PRODUCT)), row)
    found = []
    for pair in parity:
        if pair["match_grade"] != "exact":
            continue
        day = date.fromisoformat(f"{pair['sweep_id'][:4]}-{pair['sweep_id'][4:6]}-{pair['sweep_id'][6:8]}")
        here, there = rates.of(pair["currency"], day), rates.of(pair["reference_currency"], day)
        if pair["currency"] != pair["reference_currency"] and (here is None or there is None):
            continue
        factor = Fraction(1) if pair["currency"] == pair["reference_currency"] else here / there
        convert = (lambda amount: amount) if factor == 1 else _converted_by(factor)
        base = convert(pair["reference_total"])
        gap = pair["total"] - base
        if pair["verdict"] == "meet":
            continue
        mine = by_offer[key_of(pair, identity)]
        theirs = in_currency[
            key_of(
                pair | {"market": reference_market, "currency": pair["reference_currency"]}, (*SAME, "market", *PRODUCT)
            )
        ]
        step = None
        if pair["currency"] != pair["reference_currency"]:
            step = in_currency.get(key_of(pair | {"currency": pair["reference_currency"]}, (*SAME, "market", *PRODUCT)))
        last, last_factor = (step, convert) if step else (mine, lambda amount: amount)
        parts = {
            "tax_and_fee": _less(_of(last_factor, last["included_charges"]), _of(convert, theirs["included_charges"])),
            "promotion": _less(_of(convert, _taken_off(theirs)), _of(last_factor, _taken_off(last))),
            "fx": 0
            if pair["currency"] == pair["reference_currency"]
            else pair["total"] - convert(step["total"])
            if step
            else None,
        }
        found.append(
            {name: pair[name] for name in (*SAME, "market", "currency_asked", *PRODUCT, "total")}
            | parts
            | {"gap": gap, "residual": gap - sum(part or 0 for part in parts.values())}
        )
    return found


def _converted_by(factor: Fraction) -> Callable[[int], int]:
    return lambda amount: to_cents(amount * factor)


def _taken_off(offer: Row) -> int | None:
    if offer["pre_promo_total"] is not None:
        return taken_off_by_promotions(offer)
    return None if offer["promotion"] else 0


def _of(convert: Callable[[int], int], amount: int | None) -> int | None:
    return None if amount is None else convert(amount)


def _less(amount: int | None, other: int | None) -> int | None:
    return None if amount is None or other is None else amount - other
