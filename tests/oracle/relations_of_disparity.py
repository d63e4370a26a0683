"""Which market's price deviates: `report.market_disparity`, from exact pairs and from what the cells were answered.

A gap counts above a percent, and at a reference rate only beyond every rate of 31 days; where other markets were
answered in its currency, of eight, and only if the price deviates from these too. Offers in one currency speak before
converted ones. Where most markets deviate alike, it is the reference market that does (with no other one in its
currency, those at the level of one that deviates count too, though a rate may explain them; and those on their side
that neither deviate nor agree with it are not among the voters): of lists and details of
a sweep, those with more markets say so, if its price is the same in both, and if one has two prices only, those of the
other at the level of one of them; and converted prices do, where a single market shares its currency. Where one
was compared and another could still be heard, nothing is said. Of converted prices, one that deviates does not agree
with the reference market's, and one that is closer to the level of those that deviate agrees with neither. A
converted disparity is as severe as its distance from the closest rate of eight days; where all markets in a currency
are beyond every rate of 31 days, as its distance from the middle one of these, if that is less. With rates of one day
only, what a rate allows counts twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from history import ANSWERED, OFFER, Row, key_of
from relations_of_pairs import (
    HIGH_PCT,
    MEDIUM_PCT,
    REFERENCE_RATE_PCT,
    SAME,
    TOLERANCE_PCT,
    Rates,
    to_cents,
)

DISPARITY_PCT = 1.0
ALIKE_PCT = DISPARITY_PCT + float(TOLERANCE_PCT)
ALLOWED_PCT = float(TOLERANCE_PCT + REFERENCE_RATE_PCT)
_OFFER = (*SAME, "room_id", "board_id", "policy")
_STAY = ("source", "property_id", "product_type", "check_in", "nights", "party")


def market_disparity(pairs: list[Row], cells: list[Row], reference_market: str, rates: Rates) -> list[Row]:
    """`report.market_disparity`; `cells` as they were requested last."""
    found = disparities(pairs, cells, reference_market, rates)
    apart = {"offer", "evidence", "compared_offers", "is_undecided"}
    return [{name: value for name, value in row.items() if name not in apart} for row in found]


def disparities(parity: list[Row], cells: list[Row], reference_market: str, rates: Rates) -> list[Row]:
    """Return the same, with the offer that deviates, all offers that show it, and whether these leave that open."""
    found: list[Row] = []
    by_reference: dict[Any, list[Row]] = {}
    for row in parity:
        if row["match_grade"] == "exact" and row["currency_basis"] != "supplier_rate":
            by_reference.setdefault(key_of(row, (*_OFFER, "reference_currency")), []).append(row)
    votes: dict[Any, list[_Vote]] = {}
    for pairs in by_reference.values():
        votes.setdefault(_reference_of(pairs), []).append(_vote(pairs, rates))
    of_stay: dict[Any, list[Row]] = {}
    for cell in cells:
        of_stay.setdefault(key_of(cell, _STAY), []).append(cell)
    for of_offer in votes.values():
        for vote in of_offer:
            others = [other for other in of_offer if other is not vote]
            is_reference_apart, are_halves, other = vote.is_outvoted, vote.are_halves, None
            if others:
                is_reference_apart, are_halves, other = _with_other(vote, others[0], rates)
            cells_of_stay = of_stay[key_of(vote.pairs[0], _STAY)]
            judged = (is_reference_apart, are_halves, other)
            found += _judged(vote, cells_of_stay, reference_market, rates, *judged)
    return found


def _reference_of(pairs: list[Row]) -> Any:
    """Return what identifies the reference offer, in lists and details of a sweep alike."""
    names = [name for name in _OFFER if name != "source"]
    return key_of(pairs[0], (*names, "reference_currency", "sweep_id"))


@dataclass(frozen=True)
class _Vote:
    """What the prices of one source say about an offer of the reference market."""

    pairs: list[Row]
    compared: int
    side: int
    is_outvoted: bool
    agreed: int
    voters: int

    @property
    def are_halves(self) -> bool:
        return self.agreed >= 2 and 2 * self.agreed > self.voters and not self.is_outvoted


def _with_other(vote: _Vote, other: _Vote, rates: Rates) -> tuple[bool, bool, _Vote | None]:
    """Return whether the reference market deviates if the other source is heard, or that is open, and who says so."""
    said = _of_two(vote, other, rates)
    if said is not None:
        return said, False, other
    if (
        other.compared > vote.compared
        and _is_near(other.pairs[0]["reference_total"], vote.pairs[0]["reference_total"])
        and not (other.is_outvoted and other.side != vote.side)
    ):
        decides = other.are_halves or other.is_outvoted is not vote.is_outvoted
        return other.is_outvoted, other.are_halves, other if decides else None
    return vote.is_outvoted, vote.are_halves, None


def _of_two(vote: _Vote, other: _Vote, rates: Rates) -> bool | None:
    """Return which of two prices alone deviates, by those of the other source at the level of one of them."""
    (row, *_), there = _best(vote.pairs), vote.pairs[0]["reference_total"]
    if vote.compared != 1 or row["currency_basis"] != "same" or not _is_apart(row, vote.pairs, rates):
        return None
    same = [each for each in other.pairs if each["currency_basis"] == "same"]
    said = {(each["market"], each["total"]) for each in same}
    said |= {(each["against"]["market"], each["reference_total"]) for each in same}
    here, of_reference = row["total"], row["against"]["market"]
    nearer = [(market, here if abs(total - here) < abs(total - there) else there, total) for market, total in said]
    beside = {market for market, one, total in nearer if one == here and _is_near(total, one)} - {row["market"]}
    against = {market for market, one, total in nearer if one == there and _is_near(total, one)} - {of_reference}
    return None if len(beside) == len(against) else len(beside) > len(against)


def _is_near(total: int, other: int) -> bool:
    return 100 * abs(total / other - 1) <= ALIKE_PCT


def _vote(pairs: list[Row], rates: Rates) -> _Vote:
    best = _best(pairs)
    apart = [row for row in best if _is_apart(row, pairs, rates)]
    compared = len({row["market"] for row in best})
    leaning = _leaning(best, apart)
    by_side = [[row for row in apart if _is_dearer(row) is side] for side in (True, False)]
    agreed = (
        max(
            _agreed(rows, [row for row in leaning if _is_dearer(row) is _is_dearer(rows[0])])
            for rows in by_side
            if rows
        )
        if apart
        else 0
    )
    dearer, cheaper = (len(_markets(leaning, lambda row, side=side: _is_dearer(row) is side)) for side in (True, False))
    most, side = max(dearer, cheaper), (dearer > cheaper) - (dearer < cheaper)
    # What rates may explain, and is closer to those that deviate, says nothing for the reference market.
    standing = [row for row in best if _is_standing(row, pairs, rates) and _is_clear(row, best, apart)]
    heard = [row for row in best if row in leaning or row in standing or side * row["gap"] <= 0]
    voters = len({row["market"] for row in heard})
    is_outvoted = (agreed >= 2 and 2 * agreed > voters + 1) or (compared >= 2 and most == compared)
    is_outvoted = is_outvoted or (compared == most == 1 and _is_confirmed(apart[0], pairs, best, rates))
    return _Vote(pairs, compared, side, is_outvoted, agreed, voters)


def _is_confirmed(row: Row, pairs: list[Row], best: list[Row], rates: Rates) -> bool:
    """Whether more converted prices deviate as the only one in the reference market's currency than do not."""
    others = [each for each in pairs if each not in best]
    alike = _alike(row, pairs, best, rates)

    def is_for_it(each: Row) -> bool:
        if not _is_standing(each, pairs, rates):
            return False
        away = abs((100 + each["gap_pct"]) / (100 + row["gap_pct"]) - 1)
        return _is_dearer(each) is not _is_dearer(row) or 100 * away > abs(each["gap_pct"])

    return len(_markets(alike, bool)) > len(_markets(others, is_for_it))


def _alike(row: Row, pairs: list[Row], best: list[Row], rates: Rates) -> list[Row]:
    """Return converted prices that deviate as one in the reference market's currency does."""
    return [
        each
        for each in pairs
        if each not in best and _is_apart(each, pairs, rates) and _is_beyond(each, 31, rates) and _is_alike(each, row)
    ]


def _is_alike(row: Row, other: Row) -> bool:
    """Whether two prices, one of them converted, deviate from the reference market by about the same share."""
    share = (100 + row["gap_pct"]) / (100 + other["gap_pct"])
    return _is_dearer(row) is _is_dearer(other) and abs(share - 1) <= (DISPARITY_PCT + ALLOWED_PCT) / 100


def _is_alike_in_basis(row: Row, other: Row) -> bool:
    """Whether two prices deviate from the reference market by about the same share; rates cost nothing in one basis."""
    share = (100 + row["gap_pct"]) / (100 + other["gap_pct"])
    allowed = ALIKE_PCT if other["currency_basis"] == "same" else DISPARITY_PCT + ALLOWED_PCT
    return _is_dearer(row) is _is_dearer(other) and abs(share - 1) <= allowed / 100


def _is_standing(row: Row, pairs: list[Row], rates: Rates) -> bool:
    """Whether a price agrees with the reference market's: one that only a rate of the month explains does not."""
    if row["verdict"] == "meet":
        return True
    if _is_apart(row, pairs, rates):
        return False
    allowed = 0 if row["currency_basis"] == "same" else _allowed_pct(row, rates)
    return abs(_unexplained(row, 8, rates)) <= allowed + DISPARITY_PCT


def _best(pairs: list[Row]) -> list[Row]:
    has_same = any(row["currency_basis"] == "same" for row in pairs)
    return [row for row in pairs if not has_same or row["currency_basis"] == "same"]


def _judged(
    vote: _Vote,
    cells: list[Row],
    reference_market: str,
    rates: Rates,
    is_reference_apart: bool,
    are_halves: bool,
    other: _Vote | None,
) -> list[Row]:
    """Return the findings; `other`: the other source, if it says which market's price it is, or that this is open."""
    pairs, best = vote.pairs, _best(vote.pairs)
    shown_by = _best(other.pairs) if other else []
    apart = [row for row in pairs if _is_apart(row, pairs, rates)]
    if not apart:
        return []
    best_apart = [row for row in best if row in apart]
    all_apart, apart_of_best = apart, best_apart
    compared = len({row["market"] for row in best})
    leaning = _leaning(best, best_apart)
    sides = {True: _markets(leaning, _is_dearer), False: _markets(leaning, lambda row: not _is_dearer(row))}
    if compared == 1 and len(best_apart) == len(best):
        apart = [row for row in apart if not _may_belong_to_another(row, cells, reference_market)]

    def is_to_blame(row: Row) -> bool:
        return is_reference_apart and 2 * len(sides[_is_dearer(row)]) > vote.voters

    blamed = [row for row in apart if is_to_blame(row) and row in best]
    middle = _least_apart(blamed, best_apart) if blamed else None
    found: list[Row] = []
    for row in apart:
        alike = len(sides[_is_dearer(row)])
        if not is_to_blame(row) or _is_between(row, best_apart, vote):
            peer = _peer(row, pairs, all_apart, middle, rates)
            if peer is None or (peer is not middle and peer in all_apart and _is_beyond(peer, 31, rates)):
                if _is_beyond(row, 31, rates):
                    least = _least_unexplained(row, peer, pairs, all_apart, rates)
                    heard = [*pairs, *(other.pairs if other else [])]
                    is_split = _is_split(row, heard, rates, are_halves)
                    others = [_witness(pairs, best, apart_of_best, rates)] if peer is None and not is_split else pairs
                    if peer is None and not is_split and _is_alone(pairs, best, apart_of_best, rates):
                        others = [each for each in pairs if each["market"] != row["market"]]
                    shown = _shown_by(row, others)
                    is_unheard = other is None and _is_alone(pairs, best, apart_of_best, rates)
                    shown["is_undecided"] = is_split or is_unheard
                    is_of_both = row["currency_basis"] == "same" and not is_reference_apart
                    shown["evidence"] |= _both(shown_by if is_of_both else [])
                    found.append(_finding(row, reference_market, compared, alike) | _severity(least) | shown)
            elif (
                peer["market"] != row["market"]
                and abs(row["total"] / peer["total"] - 1) > (DISPARITY_PCT + float(TOLERANCE_PCT)) / 100
            ):
                witness = _witness(pairs, best, apart_of_best, rates)
                others = [peer, None if witness and witness["market"] == peer["market"] else witness]
                found.append(_finding_beside(row, peer, compared, alike) | _shown_by(row, others))
    if middle is not None and any(_is_beyond(row, 31, rates) for row in blamed):
        level = _level([row for row in best_apart if _is_dearer(row) is _is_dearer(middle)])
        finding = _finding_of_reference(middle, reference_market, compared, len(sides[_is_dearer(middle)]), rates)
        others = [*blamed, *(row for row in leaning if row not in best_apart)]
        others += _alike(blamed[0], pairs, best, rates) if compared == 1 else []
        others += _defending(middle, leaning, vote, level, rates) if not shown_by else []
        of_reference = {
            "offer": key_of(middle["against"], OFFER),
            "compared_offers": [key_of(row["of"], OFFER) for row in blamed],
        }
        shown = _shown_by(middle, others)
        shown["evidence"] |= _both(shown_by)
        found.append(finding | shown | of_reference)
    return found


def _peer(row: Row, pairs: list[Row], apart: list[Row], middle: Row | None, rates: Rates) -> Row | None:
    """Return what a price is compared with in its own currency, if not with the reference market's.

    `middle`: where the reference market deviates, the price that is closest to the level of those that show it.
    """
    if row["currency_basis"] == "same":
        return middle if middle is not None and middle["currency_basis"] == "same" else None
    peer = _in_the_middle(row, pairs, rates)
    if peer is not None and _is_off(peer, pairs, apart, rates) and _is_dearer(peer) is not _is_dearer(row):
        return None
    return peer


def _is_between(row: Row, best_apart: list[Row], vote: _Vote) -> bool:
    """Whether a price deviates from the reference market's, and as well from those that most others agree on."""
    if row["currency_basis"] != "same" or vote.agreed < 2 or 2 * vote.agreed <= vote.voters:
        return False
    level = _level([each for each in best_apart if _is_dearer(each) is _is_dearer(row)])
    return abs((100 + row["gap_pct"]) / level - 1) > ALIKE_PCT / 100


def _least_apart(blamed: list[Row], apart: list[Row]) -> Row:
    """Return the price that is closest to the level of those that show the reference market to deviate."""
    level = _level([row for row in apart if _is_dearer(row) is _is_dearer(blamed[0])])
    return min(blamed, key=lambda row: (abs(100 + row["gap_pct"] - level), row["market"], row["currency"]))


def _is_off(peer: Row, pairs: list[Row], apart: list[Row], rates: Rates) -> bool:
    """Whether a converted price deviates and no rate that is late explains it: others meet at tonight's rates."""
    if peer not in apart:
        return False
    elsewhere = [row for row in pairs if row["currency"] != peer["currency"] and row["currency_basis"] != "same"]
    return _is_beyond(peer, 31, rates) or any(_is_standing(row, pairs, rates) for row in elsewhere)


def _is_alone(pairs: list[Row], best: list[Row], apart: list[Row], rates: Rates) -> bool:
    """Whether no price agrees with the reference market's."""
    others = [row for row in pairs if row not in best and _is_standing(row, pairs, rates)]
    return _witness(pairs, best, apart, rates) is None and not [row for row in others if _is_clear(row, best, apart)]


def _is_clear(row: Row, best: list[Row], apart: list[Row]) -> bool:
    """Whether a converted price is not closer to the level of those that deviate."""
    alike = [each for each in apart if each in best and _is_dearer(each) is _is_dearer(row)]
    if row["gap"] == 0 or row["currency_basis"] == "same" or not alike:
        return True
    return bool(100 * abs((100 + row["gap_pct"]) / _level(alike) - 1) > abs(row["gap_pct"]))


def _shown_by(row: Row, others: list[Row | None]) -> Row:
    offers = [row["of"], row["against"], *(other["of"] for other in others if other)]
    return {"offer": key_of(row["of"], OFFER), "evidence": frozenset(key_of(offer, OFFER) for offer in offers)}


def _both(pairs: list[Row]) -> frozenset[Any]:
    return frozenset(key_of(row[of], OFFER) for row in pairs for of in ("of", "against"))


def _witness(pairs: list[Row], best: list[Row], apart: list[Row], rates: Rates) -> Row | None:
    """Return a price that agrees with the one of the reference market."""
    standing = [row for row in best if _is_standing(row, pairs, rates) and _is_clear(row, best, apart)]
    return min(standing, key=lambda row: row["market"], default=None)


def _defending(row: Row, leaning: list[Row], vote: _Vote, level: float, rates: Rates) -> list[Row]:
    """Return the other prices, if with the reference market as many markets stand by it as deviate from it alike."""
    if row["currency_basis"] != "same" or vote.agreed < 2:
        return []
    pairs, best = vote.pairs, _best(vote.pairs)

    def away(each: Row) -> float:
        return 100 * abs((100 + each["gap_pct"]) / level - 1)

    converted = [each for each in pairs if each not in best]
    alike = [
        each
        for each in converted
        if _is_apart(each, pairs, rates)
        and _is_beyond(each, 31, rates)
        and _is_dearer(each) is _is_dearer(row)
        and away(each) <= DISPARITY_PCT + ALLOWED_PCT
    ]
    agreed = [each for each in leaning if _is_dearer(each) is _is_dearer(row) and away(each) <= ALIKE_PCT]
    standing = [each for each in pairs if _is_standing(each, pairs, rates)]
    clear = [
        each
        for each in standing
        if each in best or _is_dearer(each) is not _is_dearer(row) or away(each) > abs(each["gap_pct"])
    ]
    against = _markets([*agreed, *alike], bool)
    return [*standing, *alike] if 1 + len(_markets(clear, bool) - against) >= len(against) else []


def _is_split(row: Row, heard: list[Row], rates: Rates, are_halves: bool) -> bool:
    """Whether as many markets deviate alike as stand by the reference market.

    Of a converted price, in several currencies; of another, where those in the reference market's are split in halves.
    """
    is_same = row["currency_basis"] == "same"

    def of_source(each: Row) -> list[Row]:
        return [other for other in heard if other["source"] == each["source"]]

    alike = [
        each
        for each in heard
        if (are_halves or not is_same)
        and _is_apart(each, of_source(each), rates)
        and _is_beyond(each, 31, rates)
        and _is_alike_in_basis(each, row)
    ]
    standing = {each["market"] for each in heard if _is_standing(each, of_source(each), rates)}
    standing -= {each["market"] for each in alike}
    return (
        len({each["market"] for each in alike}) > len(standing)
        and (len({each["currency"] for each in alike}) > 1 or (is_same and len({each["market"] for each in alike}) > 1))
        and (are_halves or any(each["currency_basis"] == "same" for each in heard))
    )


def _least_unexplained(row: Row, peer: Row | None, pairs: list[Row], apart: list[Row], rates: Rates) -> float:
    """Return how far a price is from the closest rate, or from the middle one if its currency may have another rate."""
    alike = [each for each in pairs if each["currency"] == row["currency"]]
    is_shared = all(
        each in apart and _is_beyond(each, 31, rates) and _is_dearer(each) is _is_dearer(row) for each in alike
    )
    lasting = _unexplained(row, 8, rates)
    if peer is None or not is_shared:
        return lasting
    return min(lasting, 100 * (row["total"] - peer["total"]) / peer["total"], key=abs)


def _is_dearer(row: Row) -> bool:
    return bool(row["gap"] > 0)


def _markets(rows: list[Row], wanted: Callable[[Row], bool]) -> set[str]:
    return {row["market"] for row in rows if wanted(row)}


def _level(rows: list[Row]) -> float:
    """Return the lower median of prices for 100 in the reference market."""
    levels = sorted(100 + row["gap_pct"] for row in rows)
    return float(levels[(len(levels) - 1) // 2])


def _leaning(best: list[Row], apart: list[Row]) -> list[Row]:
    """Return prices that deviate, and converted ones at the level of those that do though a rate may explain them."""
    found = list(apart)
    for row in best:
        alike = [each for each in apart if _is_dearer(each) is _is_dearer(row)]
        if row not in apart and row["currency_basis"] != "same" and row["gap"] != 0 and alike:
            away = abs((100 + row["gap_pct"]) / _level(alike) - 1)
            found += [row] if away <= (DISPARITY_PCT + float(TOLERANCE_PCT)) / 100 else []
    return found


def _agreed(apart: list[Row], leaning: list[Row]) -> int:
    """Return how many markets are as far from the reference market as the lower median of those that deviate."""
    middle = _level(apart)
    return len(
        {
            row["market"]
            for row in leaning
            if abs((100 + row["gap_pct"]) / middle - 1)
            <= (DISPARITY_PCT + (float(TOLERANCE_PCT) if row["currency_basis"] == "same" else ALLOWED_PCT)) / 100
        }
    )


def _is_apart(row: Row, pairs: list[Row], rates: Rates) -> bool:
    if row["verdict"] == "meet" or abs(row["gap_pct"]) <= DISPARITY_PCT:
        return False
    if row["currency_basis"] == "same":
        return True
    has_others = len({each["market"] for each in pairs if each["currency"] == row["currency"]}) > 1
    return _is_beyond(row, 8 if has_others else 31, rates)


def _is_beyond(row: Row, days: int, rates: Rates) -> bool:
    if row["currency_basis"] == "same":
        return True
    return abs(_unexplained(row, days, rates)) > _allowed_pct(row, rates)


def _allowed_pct(row: Row, rates: Rates) -> float:
    # One day's rate does not tell how far rates move.
    is_new = rates.is_of_one_day((row["currency"], row["reference_currency"]), _day(row))
    return ALLOWED_PCT + (float(REFERENCE_RATE_PCT) if is_new else 0)


def _unexplained(row: Row, days: int, rates: Rates) -> float:
    """Return the distance from the closest price that the rates of a number of days allow, in percent of that price."""
    if row["currency_basis"] == "same":
        return float(row["gap_pct"])
    day = _day(row)
    (low, high), (low_there, high_there) = (
        rates.range(row["currency"], day, days),
        rates.range(row["reference_currency"], day, days),
    )
    lowest, highest = row["reference_total"] * low / high_there, row["reference_total"] * high / low_there
    closest = min(max(row["total"], lowest), highest)
    return float(100 * (row["total"] - closest) / closest)


def _may_belong_to_another(row: Row, cells: list[Row], reference_market: str) -> bool:
    """Whether a third market was requested later, or in the same sweep without an answer that says all.

    A market that the supplier refuses says nothing later either.
    """
    return any(
        cell["market"] not in {row["market"], reference_market}
        and (
            cell["sweep_id"] > row["sweep_id"]
            or (
                cell["sweep_id"] == row["sweep_id"]
                and cell["status"] != "rejected"
                and not (cell["status"] in ANSWERED and cell["is_whole"])
            )
        )
        for cell in cells
    )


def _finding(row: Row, reference_market: str, compared: int, alike: int) -> Row:
    return (
        _reported(row, compared, alike)
        | {
            "market": row["market"],
            "currency": row["currency"],
            "total": row["total"],
            "compared_with": reference_market,
            "compared_total": row["reference_converted"],
            "compared_answered": row["reference_total"],
            "compared_currency": row["reference_currency"],
            "compared_offers": [key_of(row["against"], OFFER)],
        }
        | _size(row["total"], row["reference_converted"])
    )


def _in_the_middle(row: Row, pairs: list[Row], rates: Rates) -> Row | None:
    """Return the one in the middle of those in the currency of a converted price, if there are several markets.

    Of two, it is the one that rates explain better.
    """
    alike = [each for each in pairs if each["currency"] == row["currency"]]
    if row["currency_basis"] != "reference_rate" or len({each["market"] for each in alike}) < 2:
        return None
    alike.sort(key=lambda each: (each["gap"], each["market"]))
    middle = alike[(len(alike) - 1) // 2 : len(alike) // 2 + 1]

    def away(each: Row) -> tuple[bool, float, int, str]:
        return _is_beyond(each, 31, rates), abs(_unexplained(each, 8, rates)), abs(each["gap"]), each["market"]

    return min(middle, key=away)


def _finding_beside(row: Row, peer: Row, compared: int, alike: int) -> Row:
    return (
        _finding(row, peer["market"], compared, alike)
        | {
            "currency_basis": "same",
            "compared_total": peer["total"],
            "compared_answered": peer["total"],
            "compared_currency": row["currency"],
            "compared_offers": [key_of(peer["of"], OFFER)],
        }
        | _size(row["total"], peer["total"])
    )


def _finding_of_reference(row: Row, reference_market: str, compared: int, alike: int, rates: Rates) -> Row:
    there = row["total"]
    if row["currency"] != row["reference_currency"]:
        here, other = rates.of(row["currency"], _day(row)), rates.of(row["reference_currency"], _day(row))
        assert here is not None
        assert other is not None
        there = to_cents(row["total"] * other / here)
    return (
        _reported(row, compared, alike)
        | {
            "market": reference_market,
            "currency": row["reference_currency"],
            "total": row["reference_total"],
            "compared_with": row["market"],
            "compared_total": there,
            "compared_answered": row["total"],
            "compared_currency": row["currency"],
        }
        | _size(row["reference_total"], there)
        | ({} if row["currency_basis"] == "same" else _severity(100 / (1 + _unexplained(row, 8, rates) / 100) - 100))
    )


def _reported(row: Row, compared: int, alike: int) -> Row:
    return {name: row[name] for name in _OFFER if name != "room_no"} | {
        "currency_basis": row["currency_basis"],
        "markets_compared": compared,
        "markets_apart": alike,
    }


def _size(total: int, other: int) -> Row:
    size = 100 * (total - other) / other
    return {"amount": total - other, "size_pct": size} | _severity(size)


def _severity(size: float) -> Row:
    return {"severity": "high" if abs(size) >= HIGH_PCT else "medium" if abs(size) >= MEDIUM_PCT else "low"}


def _day(row: Row) -> date:
    return date.fromisoformat(f"{row['sweep_id'][:4]}-{row['sweep_id'][4:6]}-{row['sweep_id'][6:8]}")
