"""Prices: what a product costs for a stay, this night.

The path of a price is cut into epochs of 16, 20 or 24 nights with a phase of its own for each room and block of
stay dates. Everything that may change with time (level, lead-time step, promotion) changes at the start of an
epoch only, so about 5 percent of the prices move a night, and night 1000 costs no more than night 1. That holds
where `today` moves on together with `night`.

    total before promotion = (nightly rate x season and weekday of each night x level x lead step x guests x policy
                              + board) x market x product type, then into the currency
"""

from datetime import date, timedelta
from functools import lru_cache
from math import ceil
from typing import Final, NamedTuple

import msgspec

from pipeline.sandbox.world import discounts, planted
from pipeline.sandbox.world.documented import MARKET_NUMBER, Guests, Search
from pipeline.sandbox.world.fx import minor_per_euro_cent, minor_units
from pipeline.sandbox.world.hashes import mix
from pipeline.sandbox.world.profiles import Profile, Room, Slot

# total, reference, stated percent, promotions as written
_Money = tuple[int, int | None, int | float | None, msgspec.Raw | None]

# By kind of property (city, beach, snow, country) and month, in percent.
_SEASON: Final = (
    (82, 84, 95, 102, 110, 112, 100, 98, 115, 108, 92, 101),
    (70, 70, 78, 90, 104, 122, 146, 150, 118, 94, 74, 80),
    (140, 150, 128, 90, 76, 78, 92, 96, 78, 74, 84, 142),
    (85, 86, 92, 100, 108, 110, 118, 120, 106, 100, 88, 96),
)
# By kind and weekday from Monday, in percent.
_WEEKDAY: Final = (
    (104, 108, 108, 104, 96, 98, 90),
    (96, 94, 94, 98, 108, 112, 98),
    (94, 94, 94, 98, 112, 118, 96),
    (92, 90, 92, 98, 112, 116, 96),
)
# Steps of the price with lead days: (below this many days, percent). City hotels dear late, beach hotels cheap late.
# The last one is that of a story: cheapest three weeks ahead, so that it pays to wait until then, and to book after.
_LEAD: Final = (
    ((4, 116), (12, 108), (35, 103), (80, 100), (160, 97), (10_000, 94)),
    ((4, 86), (12, 92), (35, 98), (80, 100), (160, 101), (10_000, 96)),
    ((4, 100), (12, 104), (35, 104), (80, 100), (160, 98), (10_000, 95)),
    ((4, 124), (9, 117), (16, 109), (30, 94), (45, 103), (10_000, 110)),
)
CHEAPEST_THREE_WEEKS_AHEAD: Final = len(_LEAD) - 1
_CHILD: Final = (
    # (age below, percent of an adult's extra bed)
    ((2, 0), (12, 50), (18, 80)),
    ((3, 0), (13, 40), (18, 100)),
    ((6, 0), (16, 60), (18, 90)),
)
_EXTRA_ADULT: Final = 26
_FLOOR_PERIOD: Final = 30


class Price(NamedTuple):
    """One product's money in minor units of the answer's currency. None = not stated."""

    slot: Slot
    total: int
    reference: int | None
    stated_percent: int | float | None
    floor: int | None
    promotions: msgspec.Raw | None


class RoomLevel(NamedTuple):
    """The state of a room's price path: its level and its running promotion."""

    level: float
    offer: discounts.Offer | None


@lru_cache(maxsize=4096)
def stay_units(kind: int, check_in: date, nights: int) -> float:
    """Return the sum over the nights of season x weekday (1.0 = an average night)."""
    season, weekday = _SEASON[kind], _WEEKDAY[kind]
    days = (check_in + timedelta(days=step) for step in range(nights))
    return sum(season[day.month - 1] * weekday[day.weekday()] for day in days) / 10_000


@lru_cache(maxsize=4096)
def guests_factor(children: int, guests: Guests) -> float:
    """Return the price of a party relative to two adults: one adult pays less, more pay more, children by age."""
    adults, extra = guests.adults, 0
    for age in guests.ages:
        share = next((percent for below, percent in _CHILD[children] if age < below), 100)
        # A child who replaces the second adult pays for an extra bed, and the room keeps its price.
        extra += share * _EXTRA_ADULT
    beds = 100 if adults >= 2 else 91
    return (beds + max(0, adults - 2) * _EXTRA_ADULT + extra / 100) / 100


def market_factor(profile: Profile, market: str) -> float:
    """Return the small difference between points of sale: at most 0.4 percent either way.

    Properties with whole prices have none, as rounding would turn it into several percent; nor do those that are
    planted with a difference in fees.
    """
    is_even = profile.whole_prices or (profile.anomaly is not None and profile.anomaly.kind == planted.MARKET_FEES)
    return 1.0 if is_even else 1 + (mix(profile.salt, MARKET_NUMBER[market], 41) % 9 - 4) / 1000


class Terms(NamedTuple):
    """The terms of one search at one property, the same for all of its rooms."""

    profile: Profile
    night: int
    nights: int
    stay_price: float
    """EUR cents of the plainest room for the stay, two adults, at level 1."""
    to_minor: float
    """From EUR cents to the minor units of the answer, market included."""
    step: int
    states_floor: bool
    is_package: bool
    anomaly: planted.Anomaly | None


def terms_of(profile: Profile, search: Search, currency: str, night: int) -> Terms:
    """Return the terms of a search at a property."""
    nights = search.nights
    anomaly = profile.anomaly
    if anomaly and not anomaly.covers(search.market, search.product_type, search.check_in.month):
        anomaly = None
    abroad = market_factor(profile, search.market)
    if anomaly and anomaly.kind == planted.MARKET_DISPARITY:
        abroad *= 1 + anomaly.size
    if anomaly and anomaly.kind == planted.LIST_AGAINST_DETAIL and search.operation != "multi":
        abroad *= 1 + anomaly.size
    if len(search.parties) > 1:
        abroad *= profile.conditions.several_rooms
    is_hotel = search.product_type == "Hotel"
    stay_price = profile.nightly * stay_units(profile.kind, search.check_in, nights)
    # Longer stays have a discount.
    long_stay = 1.0 if nights < 3 else profile.long_stay[0] if nights < 7 else profile.long_stay[1]
    return Terms(
        profile=profile,
        night=night,
        nights=nights,
        stay_price=stay_price * long_stay,
        to_minor=minor_per_euro_cent(currency, profile.home_currency) * abroad,
        step=minor_units(currency) if profile.whole_prices else 1,
        states_floor=profile.states_floor == 0 and (is_hotel or profile.floor_on_package),
        is_package=not is_hotel,
        anomaly=anomaly,
    )


def room_level(terms: Terms, room: Room, key: int, lead_days: int) -> RoomLevel:
    """Return level x lead step and the running promotion of a room; `key` stands for room and block of dates.

    A promoted epoch takes the lower of the two levels before it as its reference: that price has been charged.
    If a plant compares two prices, no other move may come between them.
    """
    if terms.profile.anomaly is not None and terms.profile.anomaly.kind in _STEADY:
        return RoomLevel(1.0, None)
    period, shape = room.period, terms.profile.lead_shape
    epoch, into = divmod(terms.night + key % period, period)
    lead_at_start = lead_days + into
    if not discounts.is_running(key, epoch):
        return RoomLevel(_level(key, epoch, shape, lead_at_start), None)
    level = min(
        _level(key, epoch - 1, shape, lead_at_start + period), _level(key, epoch - 2, shape, lead_at_start + 2 * period)
    )
    spelling = terms.profile.promotion_spelling
    return RoomLevel(level, discounts.price_offer(key, epoch, terms.nights, spelling, with_gift=key % 5 == 0))


def _level(key: int, epoch: int, shape: int, lead_days: int) -> float:
    for below, percent in _LEAD[shape]:
        if lead_days < below:
            return (930 + mix(key, epoch, 43) % 141) * percent / 100_000
    raise AssertionError("the last step of a lead table has no end")


def price_room(
    terms: Terms, room: Room, guests: Guests, at: RoomLevel, slots: tuple[Slot, ...], quote_factor: float = 1.0
) -> list[Price]:
    """Return the prices of the given products of a room for one party.

    `quote_factor` moves the price between search and quote; the floor is that of the search.
    """
    profile, anomaly, step, to_minor = terms.profile, terms.anomaly, terms.step, terms.to_minor
    room_price = terms.stay_price * _rate(room, terms) * at.level * guests_factor(profile.children, guests)
    board_nights = guests.people * terms.nights
    floor_share = _floor_share(room, terms.night) if terms.states_floor else None
    package_share = _package_share(room, terms) if terms.is_package else 1.0
    prices = []
    for slot in slots:
        before = (room_price * slot.factor + slot.board.price * board_nights) * to_minor
        full = max(step, round(before / step) * step)
        if terms.is_package:
            full = max(step, ceil(full * package_share / step) * step)
        offer = at.offer if slot.takes_promotions else None
        if anomaly and anomaly.kind in _RESHAPED:
            money: _Money = _reshaped(full, anomaly, profile)
        elif anomaly and anomaly.kind == planted.RAISED_REFERENCE:
            money = _raised(full, anomaly.size, profile, terms.night)
        elif offer is None:
            money = (full, None, None, room.gift)
        else:
            money = (round(full * (1 - offer.share)), full, offer.stated_percent, offer.written)
        total, reference, percent, written = money
        floor = None if floor_share is None else _floor(total, full, floor_share, anomaly)
        if quote_factor != 1.0:
            total = round(total * quote_factor)
            reference = None if reference is None else round(reference * quote_factor)
        prices.append(Price(slot, total, reference, percent, floor, written))
    return prices


def _rate(room: Room, terms: Terms) -> float:
    anomaly, rooms = terms.anomaly, terms.profile.rooms
    if anomaly and anomaly.kind == planted.ROOM_LADDER and room is max(rooms, key=lambda other: other.rate):
        return min(other.rate for other in rooms) * (1 - anomaly.size)
    return room.rate


def _package_share(room: Room, terms: Terms) -> float:
    """Return the price of a package relative to the hotel alone; below the price floor only if that is planted."""
    profile, anomaly = terms.profile, terms.anomaly
    if profile.states_floor != 0:
        return profile.package_factor
    floor = _floor_share(room, terms.night)
    if anomaly and anomaly.kind == planted.PACKAGE_LEAK:
        return floor * (1 - anomaly.size)
    return max(profile.package_factor, floor)


def _floor_share(room: Room, night: int) -> float:
    """Return floor / total, 0.85 to 0.99; it moves about every 30 nights, on different nights from the total."""
    epoch = (night + room.salt % _FLOOR_PERIOD) // _FLOOR_PERIOD
    return (85 + mix(room.salt, epoch, 45) % 15) / 100


def _floor(total: int, full: int, share: float, anomaly: planted.Anomaly | None) -> int:
    if anomaly and anomaly.kind == planted.FLOOR_BREACH:
        return round(total * (1 + anomaly.size))
    if anomaly and anomaly.kind == planted.FLOOR_EATS_PROMOTION:
        return full
    return round(total * share)


_RESHAPED: Final = frozenset(
    {
        planted.PHANTOM_PROMOTION,
        planted.UNNAMED_PROMOTION,
        planted.INFLATED_REFERENCE,
        planted.WRONG_DISCOUNT,
        planted.TOTAL_ABOVE_REFERENCE,
        planted.FLOOR_EATS_PROMOTION,
    }
)
_STEADY: Final = frozenset({planted.RAISED_REFERENCE, planted.ROOM_LADDER})


def _reshaped(full: int, anomaly: planted.Anomaly, profile: Profile) -> _Money:
    """Return the prices of a product whose promotion is a planted anomaly; `full` is the true full price."""
    percent = round(anomaly.size * 100)
    named = discounts.discount(percent, profile.promotion_spelling, f"{percent}% off").written
    reduced = round(full * (1 - anomaly.size))
    if anomaly.kind == planted.PHANTOM_PROMOTION:
        return full, full, 0, named
    if anomaly.kind == planted.UNNAMED_PROMOTION:
        return reduced, full, percent, None
    if anomaly.kind == planted.INFLATED_REFERENCE:
        return full, round(full / (1 - anomaly.size)), percent, named
    if anomaly.kind == planted.WRONG_DISCOUNT:
        given = discounts.discount(10, profile.promotion_spelling, "10% off")
        return round(full * 0.9), full, 10 + percent, given.written
    if anomaly.kind == planted.TOTAL_ABOVE_REFERENCE:
        return round(full * (1 + anomaly.size)), full, 0, named
    return reduced, full, percent, named


def _raised(full: int, size: float, profile: Profile, night: int) -> _Money:
    """Return the prices of a product that is dear, then cheap, then shown as reduced from its dear price."""
    dear, percent = round(full * (1 + size)), round(size * 100)
    if night < planted.PROMOTED_FROM:
        return dear if night < planted.CHEAPER_FROM else full, None, None, None
    named = discounts.discount(percent, profile.promotion_spelling, f"{percent}% off").written
    return round(dear * (1 - size)), dear, percent, named
