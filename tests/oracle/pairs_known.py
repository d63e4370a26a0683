"""Two prices that no third one decides and that say nothing new: others show that the reference market's deviates.

Those of the property do, tonight or still; or those of five properties, and of clearly more than half of its properties
that can show it, or by a common size. They must differ by as much, in the direction that the reference market's price
makes them differ. Where as many offers of the property show that the other market's price deviates as much, the two say
something new; so they do beside a common size, where it is shown at as many properties.
"""

from __future__ import annotations

from datetime import date
from statistics import median

from history import Row
from relations_of_disparity import ALLOWED_PCT, DISPARITY_PCT
from relations_of_pairs import TOLERANCE_PCT
from shares import share_bound


def known(told: list[Row], decided: list[Row], held: list[Row], market: str, on_sale: int, day: date) -> list[Row]:
    """Return those of tonight's disparities; `held`: open ones of before, `market`: the reference market."""
    said = [row for row in decided if not _is_lone(row)]
    again = {row["offer"] for row in said}
    said += [flag for flag in held if not _is_lone(flag) and flag["offer"] not in again and flag["check_in"] > day]
    shown = [row for row in said if row["market"] == market]
    lone = [row for row in told if _is_lone(row)]
    found, its_own = [], []
    for row in lone:
        of_reference = sum(_is_of_one(row, other) and _is_explained(row, other) for other in shown)
        of_market = sum(
            row["market"] == other["market"] and _is_of_one(row, other) and _is_repeated(row, other) for other in said
        )
        if of_reference > of_market:
            found.append(row)
        elif of_market:
            its_own.append(row)
    for is_dearer in (True, False):
        sizes: dict[int, list[Row]] = {}
        for row in shown:
            if (row["size_pct"] > 0) is is_dearer:
                sizes.setdefault(row["property_id"], []).append(row)
        if len(sizes) < 5:
            continue
        middle = {
            "size_pct": median(median(row["size_pct"] for row in its) for its in sizes.values()),
            "is_converted": any(_is_converted(row) for its in sizes.values() for row in its),
        }
        alike = [row for row in lone if row not in its_own and _is_explained(row, middle)]
        others = {row["property_id"] for row in alike} - sizes.keys()
        if share_bound(len(sizes), max(len(sizes), on_sale - len(others)), -1) > 0.5:
            found += alike
            continue
        common = sum(_is_repeated(_typical(its), middle) for its in sizes.values())
        if common >= 5 and common / len(sizes) >= 0.8:
            found += [row for row in alike if _properties_like(row, said) < common]
    return found


def _typical(its: list[Row]) -> Row:
    """Return the middle size of a property's findings."""
    return {
        "size_pct": median(row["size_pct"] for row in its),
        "is_converted": any(_is_converted(row) for row in its),
    }


def _properties_like(row: Row, said: list[Row]) -> int:
    """Return how many properties show that the market of a finding deviates as much as it does there."""
    its: dict[int, list[Row]] = {}
    for other in said:
        if other["market"] == row["market"] and (other["size_pct"] > 0) is (row["size_pct"] > 0):
            its.setdefault(other["property_id"], []).append(other)
    return sum(_is_repeated(row, _typical(of_property)) for of_property in its.values())


def _is_lone(row: Row) -> bool:
    """Whether no price shows which of two deviates: there is no other one, or none agrees with either."""
    return len(row["evidence"]) == 2 or bool(row.get("is_undecided"))


def _is_of_one(row: Row, other: Row) -> bool:
    return all(row[name] == other[name] for name in ("property_id", "product_type"))


def _is_explained(row: Row, other: Row) -> bool:
    """Whether a price differs from the reference market's by what that one differs from others."""
    together = (1 + row["size_pct"] / 100) * (1 + other["size_pct"] / 100)
    return (row["size_pct"] > 0) is not (other["size_pct"] > 0) and 100 * abs(together - 1) <= _allowed(row, other)


def _is_repeated(row: Row, other: Row) -> bool:
    """Whether a price differs by what another one of its market does."""
    share = (1 + row["size_pct"] / 100) / (1 + other["size_pct"] / 100)
    return (row["size_pct"] > 0) is (other["size_pct"] > 0) and 100 * abs(share - 1) <= _allowed(row, other)


def _allowed(row: Row, other: Row) -> float:
    is_converted = _is_converted(row) or _is_converted(other)
    return DISPARITY_PCT + (ALLOWED_PCT if is_converted else float(TOLERANCE_PCT))


def _is_converted(row: Row) -> bool:
    return bool(row.get("currency_basis") == "reference_rate" or row.get("is_converted"))
