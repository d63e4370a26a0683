"""What is open: properties that close and re-open, stop sales by stay date, and rooms that fill towards check-in."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from pipeline.sandbox.world.documented import MARKET_NUMBER
from pipeline.sandbox.world.hashes import mix
from pipeline.sandbox.world.profiles import Profile, Room

INT32_MAX: Final = 2_147_483_647
MAX_NIGHTS: Final = 60
MAX_LEAD_DAYS: Final = 540
BLOCK_DAYS: Final = 28
"""Check-ins are grouped into blocks of so many days that share a price level and a demand."""

_CLOSED_PERIOD: Final = 53
_STOP_SALE_NIGHTS: Final = 6
_RELEASE_NIGHTS: Final = 20
# Share of the rooms sold, in permille, by lead days, at full demand.
_SOLD: Final = ((0, 1000), (3, 930), (7, 820), (14, 660), (30, 470), (60, 280), (120, 130), (240, 40), (540, 0))


def is_open(profile: Profile, night: int, market: str, block: int) -> bool:
    """Tell whether a property sells at all to this market, this night, for stays of this block of dates."""
    salt = profile.salt
    return not (
        profile.never_open
        or (night + salt) % _CLOSED_PERIOD < profile.closed_length
        or mix(salt, MARKET_NUMBER[market], 31) % 100 < 1
        or mix(salt, block, (night + salt % _STOP_SALE_NIGHTS) // _STOP_SALE_NIGHTS, 32) % 100 < 3
    )


def rooms_left(room: Room, key: int, night: int, sold_per_mille: int) -> int:
    """Return how many rooms of a type are open: fewer as check-in nears, now and then more by cancellations.

    `key` stands for room and block of dates, `sold_per_mille` is that of the lead days.
    """
    if room.absurd_stock:
        return INT32_MAX
    demand = 350 + (key >> 20) % 800
    release = mix(key, (night + (key >> 32) % _RELEASE_NIGHTS) // _RELEASE_NIGHTS, 34) % 4
    sold = room.stock * demand * sold_per_mille // 1_000_000
    return max(0, min(room.stock, room.stock - sold + release - 1))


def sold_per_mille(lead_days: int) -> int:
    """Return the share of the rooms sold so many days before check-in where demand is full."""
    for (near, at_near), (far, at_far) in pairwise(_SOLD):
        if lead_days < far:
            return at_near + (at_far - at_near) * (lead_days - near) // (far - near)
    return 0
