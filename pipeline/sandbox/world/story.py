"""Anomalies that begin and end, counted back from a story's last night, and prices that say when to book.

A world with a story of 45 nights has nights 0 to 44; what lasts beyond its end never ends. Only properties
with nothing else planted take part, so that each cell has a single truth.
"""

from dataclasses import replace
from datetime import date, timedelta
from typing import Final, NamedTuple

from pipeline.sandbox.world import planted
from pipeline.sandbox.world.planted import Anomaly
from pipeline.sandbox.world.prices import CHEAPEST_THREE_WEEKS_AHEAD
from pipeline.sandbox.world.profiles import Profile

_FOREVER: Final = -(10**9)
_ALL_YEAR: Final = frozenset(range(1, 13))
# An inverted ladder shows in other months: those of the second span of days, not of the first.
_NEAR, _FAR = range(1, 31), range(31, 61)


class Chapter(NamedTuple):
    """One anomaly. `begins` and `ends` are nights before the last one, `ends` included.

    `number` is that of the property in its world, None: all that have nothing else planted.
    """

    number: int | None
    kind: str
    size: float
    market: str | None
    begins: int
    ends: int = _FOREVER
    product_type: str | None = None


CHAPTERS: Final = (
    Chapter(3, planted.MARKET_DISPARITY, -0.12, "US", 9),
    Chapter(4, planted.MARKET_DISPARITY, 0.10, "NL", 30, 16),
    Chapter(11, planted.MARKET_DISPARITY, -0.15, "DE", 0),
    Chapter(22, planted.GONE_QUIET, 1.0, None, 3),
    # On the last night, one property stops selling and another one sells again.
    Chapter(33, planted.GONE_QUIET, 1.0, None, 0),
    Chapter(16, planted.GONE_QUIET, 1.0, None, 5, 1),
    Chapter(5, planted.PHANTOM_PROMOTION, 0.20, None, 25, 8),
    Chapter(10, planted.PHANTOM_PROMOTION, 0.15, None, 1),
    # One ends on the last night, so that the digest shows a finding that ended.
    Chapter(12, planted.PHANTOM_PROMOTION, 0.12, None, 12, 1),
    Chapter(17, planted.FLOOR_BREACH, 0.30, None, 6, product_type="Hotel"),
    Chapter(24, planted.FLOOR_BREACH, 0.35, None, 20, 10, product_type="Hotel"),
    Chapter(21, planted.MARKET_FEES, 0.10, "US", 35),
    Chapter(31, planted.ROOM_LADDER, 0.12, None, 40),
    # A market that is dear for a week. The last one: for properties without another anomaly.
    Chapter(None, planted.MARKET_DISPARITY, 0.08, "SE", 12, 6),
)


def reported(profile: Profile, night: int, nights: int, opened: date) -> Profile:
    """Return a property on one night of a story of `nights` nights that began on `opened`."""
    # One shape for all: those that are dear late and those that are cheap late would cancel out in a market.
    profile = replace(profile, lead_shape=CHEAPEST_THREE_WEEKS_AHEAD)
    if profile.anomaly is not None:
        return profile
    left = nights - 1 - night
    for chapter in CHAPTERS:
        if chapter.number in {None, profile.index} and chapter.begins >= left >= chapter.ends:
            return replace(profile, anomaly=_anomaly(chapter, opened + timedelta(days=nights - 1)))
    return profile


def _anomaly(chapter: Chapter, last_day: date) -> Anomaly:
    is_ladder = chapter.kind == planted.ROOM_LADDER
    months = _months(last_day, _FAR) - _months(last_day, _NEAR) if is_ladder else _ALL_YEAR
    return Anomaly(chapter.kind, chapter.size, chapter.product_type, chapter.market, months)


def _months(day: date, ahead: range) -> frozenset[int]:
    return frozenset((day + timedelta(days=days)).month for days in ahead)
