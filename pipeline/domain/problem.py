"""A problem: cases that one call is about."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date


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


# Returns the problems of some cases by their ids, the most urgent first.
Problems = Callable[[Collection[str]], Sequence[Problem]]
