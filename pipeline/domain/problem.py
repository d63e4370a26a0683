"""A problem: cases that one call is about."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipeline.domain.texts import printable, shortened

# Characters of a property's name, which may be of any length.
_NAME = 120


@dataclass(frozen=True, slots=True)
class Problem:
    """Cases of one rule at one property, or a case of a market or the supplier, in the words of the digest.

    `cases` has the market and cost of each case by its id, the most costly first. `finding`, `cost` and `since` are
    about all of them. `why_it_ended` is empty while the problem is open.
    """

    cases: Mapping[str, str]
    status: str
    title: str
    whom: str
    markets: str
    finding: str
    cost: str | None
    since: date
    why_it_ended: str = ""


def whom_of(case: Mapping[str, Any]) -> str:
    """Return whom a case of `report.finding_case` is about, with the property's name from `mart.property`."""
    if case["scope"] == "property":
        name = case["property_name"] and printable(shortened(case["property_name"], _NAME))
        return f"property {case['property_id']}{f' ({name})' if name else ''}"
    pair = f", {case['base_currency']} to {case['currency']}" if case["base_currency"] else ""
    return f"market {case['market']}{pair}" if case["scope"] == "market" else f"the supplier{pair}"


def markets_of(case: Mapping[str, Any]) -> str:
    """Return the markets of a case of `report.finding_case` in words."""
    return case["market"] or ", ".join(case["markets"]) or "all markets"


def status_of(case: Mapping[str, Any]) -> str:
    """Return the status of a case of `report.finding_case` in words: `back` if it is new, but had ended before.

    A case of a market or the supplier is first seen when the first of its properties is, as a case of its own: this
    does not tell whether it had ended. A mark-up is the market's from the start.
    """
    is_own = case.get("scope", "property") == "property" or case.get("rule") == "fx_markup"
    # Files of earlier versions lack the time at which a case opened.
    opened_at = case.get("opened_at") or case["first_seen_at"]
    had_ended = is_own and opened_at > case["first_seen_at"]
    return "back" if case["status"] == "new" and had_ended else str(case["status"])


# Columns of a case with what people have noted about it, and their labels.
NOTED = {"acknowledged_at": "Acknowledged", "muted_until": "Muted until", "owner": "Owner", "note": "Note"}

# Returns the problems of some cases by their ids, the most urgent first.
Problems = Callable[[Collection[str]], Sequence[Problem]]
