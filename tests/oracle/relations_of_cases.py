"""Findings by what to call about: `report.finding_case`, from the findings of all nights.

A case is a rule, a property and a market, or a market where most of its properties show the rule alike. A mark-up is
one case a market and pair of currencies, and a property's own only as a part of it, unless it is the only one that has
had it and no rate of 31 days explains it. No market of the lake is one of three that make the supplier a case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from statistics import median, median_low
from typing import Any

from case_scopes import Wider, places, share_bound
from flags import Flags, Night
from history import UNREQUESTED_DAYS, Row, key_of
from relations_of_disparity import DISPARITY_PCT
from relations_of_pairs import TOLERANCE_PCT

FOREVER = datetime.max.replace(tzinfo=UTC)
RANKS = {"high": 1, "medium": 2, "low": 3}
# Days for which a reference market without an offer is kept.
REFERENCE_GONE_DAYS = 14


def finding_case(found: Flags, wider: Wider, last: Night) -> list[Row]:
    """`report.finding_case`, without sentences, evidence and notes."""
    flags = [row | places(wider, row) | {"is_open": row["resolved_at"] is None} for row in every(found)]
    showing: dict[Any, set[int]] = {}
    had_markup: dict[str, set[int]] = {}
    for flag in flags:
        if flag["is_open"]:
            showing.setdefault((flag["rule"], flag["market"]), set()).add(flag["property_id"])
        if flag["rule"] == "fx_markup":
            had_markup.setdefault(flag["market"], set()).add(flag["property_id"])
    cases: dict[Any, list[Row]] = {}
    for flag in flags:
        is_part = flag["is_of_market"] and not flag["is_outlier"]
        place = (flag["rule"], flag["market"], flag.get("base_currency"))
        if flag["rule"] != "fx_markup" or len(had_markup[flag["market"]]) > 1:
            cases.setdefault((*place, "property", flag["property_id"]), []).append(
                flag | {"wider": flag["is_open"] and is_part}
            )
        # What is found after the end is of other cases.
        if flag["was_of_market"] and flag["first_flagged_at"] < (flag["scope"]["ended_at"] or FOREVER):
            cases.setdefault((*place, "market", None), []).append(
                flag | {"is_open": flag["is_open"] and is_part, "wider": False}
            )
    return [_case(place, its, showing, last) for place, its in cases.items()]


def every(found: Flags) -> list[Row]:
    """Return all findings, those that have ended too."""
    return [*found.closed, *found.open.values()]


def _case(place: Any, flags: list[Row], showing: Mapping[Any, set[int]], last: Night) -> Row:
    rule, market, base_currency, scope, property_id = place
    open_ones = [flag for flag in flags if flag["is_open"]]
    said = open_ones or flags
    market_scope = flags[0]["scope"] if scope == "market" else dict.fromkeys(("opened_at", "last_met_at", "ended_at"))
    sizes = [flag["size_pct"] for flag in said if flag["size_pct"] is not None]
    properties = {flag["property_id"] for flag in flags}
    is_lagging = any(flag.get("is_lagging") for flag in said)
    if scope == "market" and rule == "fx_markup" and len(properties) == 1 and not is_lagging:
        scope, (property_id,) = "property", properties
    shown = len(showing.get((rule, market), ()))
    judged = max(shown, last.on_sale.get(market, 0)) if shown else None
    lowest, highest = (share_bound(shown, judged, side) if judged else None for side in (-1, 1))
    opened_at = _opened_at(flags, market_scope["opened_at"])
    ended = [flag["resolved_at"] or FOREVER for flag in flags]
    return {
        "rule": rule,
        "scope": scope,
        "property_id": property_id,
        "market": market,
        "base_currency": base_currency,
        "currency": flags[0]["currency"] if base_currency else None,
        "status": "closed"
        if not open_ones
        else "part_of"
        if any(flag["wider"] for flag in open_ones)
        else "new"
        if opened_at == last.at
        else "open",
        "is_part": any(flag["wider"] for flag in open_ones),
        "severity": min((flag["severity"] for flag in said), key=RANKS.__getitem__),
        "flags": len(open_ones),
        "offers": _offers(open_ones),
        # A mark-up is of all stays of a property, not of its example.
        "stays": len(
            {key_of(flag, ("check_in", "nights", "party")) for flag in open_ones if flag["rule"] != "fx_markup"}
        ),
        "properties": len({flag["property_id"] for flag in open_ones}),
        "lowest_pct": min(sizes, default=None),
        "median_pct": median(sizes) if sizes else None,
        "highest_pct": max(sizes, default=None),
        "exposure_weight": float(len({flag["property_id"] for flag in open_ones})),
        "amounts": _amounts(said),
        "first_seen_at": min(flag["first_flagged_at"] for flag in flags),
        "opened_at": opened_at,
        "last_seen_at": max(flag["last_flagged_at"] for flag in flags)
        if market_scope["ended_at"] is None
        else market_scope["last_met_at"],
        "closed_at": None if open_ones else min(market_scope["ended_at"] or FOREVER, max(ended)),
        "markets": sorted({flag["market"] for flag in said}),
        "properties_judged": judged,
        "share_pct": 100 * shown / judged if judged else None,
        "share_lowest_pct": 100 * lowest if lowest is not None else None,
        "share_highest_pct": 100 * highest if highest is not None else None,
        "spread": "systematic"
        if lowest is not None and lowest > 0.5
        else "isolated"
        if highest is not None and highest < 0.5
        else "undecided",
    }


def _opened_at(flags: list[Row], since: datetime | None) -> datetime:
    """Return when the case opened: after the last time without any finding, or as the market's.

    A finding that was only not compared or not requested, and is as far off when it is again, was there in between. One
    whose stay has begun was there until the night that ended it, not until midnight.
    """
    opened, until = None, None
    for flag in sorted(flags, key=lambda flag: flag["first_flagged_at"]):
        if until is None or until < flag["first_flagged_at"]:
            opened = flag["first_flagged_at"]
        until = max(
            until or flag["first_flagged_at"], _compared_again(flag, flags) or flag.get("open_until") or FOREVER
        )
    assert opened is not None
    return max(opened, since or opened)


def _compared_again(flag: Row, flags: list[Row]) -> datetime | None:
    """Return when a finding that ended without a comparison or a request was back, as far off; None: it was not."""
    days = {"not_compared": REFERENCE_GONE_DAYS, "not_asked": UNREQUESTED_DAYS}.get(flag["ended_by"])
    if days is None:
        return None
    later = [
        other
        for other in flags
        if other["offer"] == flag["offer"]
        and other["first_flagged_at"] > flag["first_flagged_at"]
        and (other["size_pct"] > 0) is (flag["size_pct"] > 0)
    ]
    back = min(later, key=lambda other: other["first_flagged_at"], default=None)
    if back is None or back["first_flagged_at"] > flag["resolved_at"] + timedelta(days=days, hours=12):
        return None
    is_as_far = abs(flag["size_pct"]) >= abs(back["size_pct"]) - DISPARITY_PCT - float(TOLERANCE_PCT)
    return back["first_flagged_at"] if is_as_far else None


def _offers(flags: list[Row]) -> int:
    """Return how many offers there are, those of a stay in the currency in which they are the most."""
    stays: dict[tuple[Any, ...], dict[Any, set[Any]]] = {}
    for flag in flags:
        by_currency = stays.setdefault(key_of(flag, ("property_id", "market", "check_in", "nights", "party")), {})
        by_currency.setdefault(flag["currency"], set()).add(flag["first_shown"])
    return sum(max(map(len, by_currency.values())) for by_currency in stays.values())


def _amounts(flags: list[Row]) -> tuple[tuple[str, int], ...]:
    """Return what the stays come to, each with its middle offer, be it in a list or a detail answer, in one currency.

    It is the one with the most stays; among equals the euro, then the first by its code.
    """
    of_stay: dict[tuple[Any, ...], dict[Any, int]] = {}
    for flag in flags:
        if flag["amount"] is not None and flag["currency"] is not None:
            # A mark-up has added up its stays: of its list and its details, the larger amount counts.
            is_added_up = flag["rule"] == "fx_markup"
            key = (
                flag["currency"],
                flag["property_id"],
                flag["market"],
                *((None, None, None) if is_added_up else key_of(flag, ("check_in", "nights", "party"))),
            )
            offers = of_stay.setdefault(key, {})
            offer = None if is_added_up else flag["first_shown"]
            offers[offer] = max(offers.get(offer, 0), abs(flag["amount"]))
    stays = Counter(currency for currency, *_ in of_stay)
    chosen: dict[tuple[Any, ...], str] = {}
    for currency, *stay in sorted(of_stay, key=lambda key: (-stays[key[0]], key[0] != "EUR", key[0])):
        chosen.setdefault(tuple(stay), currency)
    found: dict[str, int] = {}
    for (currency, *stay), offers in of_stay.items():
        if chosen[tuple(stay)] == currency:
            found[currency] = found.get(currency, 0) + median_low(offers.values())
    return tuple(sorted(found.items()))
