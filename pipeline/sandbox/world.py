"""The simulated supplier without its network: which products there are, at what price, this night. Pure."""

from __future__ import annotations

from datetime import date
from typing import Any, Final, NamedTuple

from pipeline.sandbox import documented, identifiers, planted
from pipeline.sandbox.availability import BLOCK_DAYS, MAX_LEAD_DAYS, MAX_NIGHTS, is_open, rooms_left
from pipeline.sandbox.hashing import mix
from pipeline.sandbox.prices import Price, RoomLevel, price_room, room_level
from pipeline.sandbox.profiles import BOARD_BITS, POLICY_BITS, Profile, Room, Slot, build
from pipeline.sandbox.search import Guests, Search

DEFAULT_PROPERTIES: Final = 3000
DEFAULT_PLANT_SHARE: Final = 0.02
DEFAULT_MISSING_SHARE: Final = 0.05

# How prices move between search and quote, in permille of the products.
RAISED, LOWERED, GONE = 30, 10, 10


class RoomOffers(NamedTuple):
    """The products of one room type for one room stay."""

    stay_id: int
    room: Room
    left: int
    prices: list[Price]


class PropertyOffers(NamedTuple):
    """What a property offers to a search, in one currency."""

    profile: Profile
    currency: str
    rooms: list[RoomOffers]


class World:
    """The properties of a seed as they are on one night.

    The same arguments give the same answers to the byte. `night` counts nights from an arbitrary 0 and moves
    prices and availability; `today` is the date that decides which check-ins lie in the future and how near they
    are. Let both advance together. Nothing is built before it is asked for.
    """

    def __init__(
        self,
        seed: int,
        night: int,
        today: date,
        properties: int = DEFAULT_PROPERTIES,
        plant_share: float = DEFAULT_PLANT_SHARE,
        missing_share: float = DEFAULT_MISSING_SHARE,
    ) -> None:
        if night < 0:
            raise ValueError(f"a night is 0 or later, not {night}")
        if not 0 <= properties <= identifiers.MAX_PROPERTIES:
            raise ValueError(f"a world has 0 to {identifiers.MAX_PROPERTIES} properties, not {properties}")
        self.seed = seed
        self.night = night
        self.today = today
        self.properties = properties
        self.plant_share = plant_share
        self.missing_share = missing_share
        self._profiles: dict[int, Profile] = {}

    def at(self, night: int, today: date) -> World:
        """Return the same properties on another night; what was built is kept."""
        moved = World(self.seed, night, today, self.properties, self.plant_share, self.missing_share)
        moved._profiles = self._profiles
        return moved

    def property_ids(self) -> list[int]:
        """Return the id of every property."""
        return identifiers.property_ids(self.seed, self.properties)

    def opaque_pairs(self) -> list[tuple[int, int]]:
        """Return (branded id, unbranded id) of every opaque pair."""
        return identifiers.opaque_pairs(self.seed, self.properties)

    def planted(self) -> list[dict[str, Any]]:
        """Return every planted anomaly with the cells that carry it."""
        return planted.planted(self.seed, self.properties, self.plant_share)

    def find(self, property_id: int) -> Profile | None:
        """Return the property with this id, None where the world has none."""
        index = identifiers.property_index(self.seed, property_id, self.properties)
        if index is None:
            return None
        profile = self._profiles.get(index)
        if profile is None:
            profile = self._profiles[index] = build(self.seed, index, self.plant_share)
        return profile

    def product_id(self, slot: Slot, prefix: int) -> int:
        """Return the id a product has in a search; `prefix` is the search's `passing_prefix`."""
        return prefix | slot.lasting_id if slot.passing else slot.lasting_id

    def passing_prefix(self, search: Search) -> int:
        """Return what makes the unstable product ids of a search."""
        return identifiers.passing_prefix(self.night, search.fingerprint())

    def offers(self, profile: Profile, search: Search) -> PropertyOffers | int:
        """Return what a property offers to a search, or the code that says why it offers nothing."""
        refusal = self._refusal(profile, search)
        if refusal:
            return refusal
        lead_days, block = self._position(search)
        left = [rooms_left(room, self.night, block, lead_days) for room in profile.rooms]
        chosen = _bookable(profile, search.parties, left)
        if isinstance(chosen, int):
            return chosen
        currency = search.currency or profile.home_currency
        levels = [self._level(profile, room, block, lead_days, search.nights) for room in chosen]
        rooms = [
            RoomOffers(stay_id, room, left[room.number], price_room(
                profile, room, search, guests, level, self.night, currency,
                room.cheapest if search.operation == "multi" else room.slots,
            ))
            for stay_id, guests in enumerate(search.parties)
            for room, level in zip(chosen, levels, strict=True)
            if room.capacity >= guests.people
        ]  # fmt: skip
        return PropertyOffers(profile, currency, rooms)

    def quote(self, profile: Profile, search: Search) -> PropertyOffers | int:
        """Return the one product asked for in each room stay, at its price now, or the code of a refusal.

        A product id of another property, of another night (where the id is a passing one) or of nothing at all is
        answered like a product that is gone: 1023. The document names no other code for it.
        """
        refusal = self._refusal(profile, search)
        if refusal:
            return refusal
        lead_days, block = self._position(search)
        currency = search.currency or profile.home_currency
        quoted = []
        for stay_id, (guests, product_id) in enumerate(zip(search.parties, search.product_ids, strict=True)):
            found = self._product(profile, product_id)
            if found is None:
                return documented.NO_OFFER
            room, slot = found
            left = rooms_left(room, self.night, block, lead_days)
            factor = self._quote_factor(slot, search)
            if factor is None or left < len(search.parties) or room.capacity < guests.people:
                return documented.NO_OFFER
            level = self._level(profile, room, block, lead_days, search.nights)
            prices = price_room(profile, room, search, guests, level, self.night, currency, (slot,), factor)
            quoted.append(RoomOffers(stay_id, room, left, prices))
        if len({offers.room.number for offers in quoted}) > 1:
            return documented.DIFFERENT_ROOMS
        return PropertyOffers(profile, currency, quoted)

    def _position(self, search: Search) -> tuple[int, int]:
        return (search.check_in - self.today).days, search.check_in.toordinal() // BLOCK_DAYS

    def _level(self, profile: Profile, room: Room, block: int, lead_days: int, nights: int) -> RoomLevel:
        return room_level(profile, room, block, self.night, lead_days, nights)

    def _refusal(self, profile: Profile, search: Search) -> int:
        """Return the code of a property that sells nothing to this search whatever the rooms; 0 otherwise."""
        lead_days, block = self._position(search)
        if lead_days > MAX_LEAD_DAYS or search.nights > MAX_NIGHTS:
            return documented.NO_OFFER
        if not is_open(profile, self.night, search.market, block):
            return documented.NO_OFFER
        if profile.hotel_only and search.product_type == "Package":
            return documented.NO_OFFER
        return documented.RESTRICTED if profile.restricted else 0

    def _product(self, profile: Profile, product_id: int) -> tuple[Room, Slot] | None:
        address = identifiers.read_product_id(self.seed, product_id)
        if address is None or address.property_index != profile.index:
            return None
        if address.night_tag not in {None, identifiers.night_tag(self.night)}:
            return None
        number = address.slot >> (BOARD_BITS + POLICY_BITS + 1)
        if number >= len(profile.rooms):
            return None
        room = profile.rooms[number]
        slot = next((slot for slot in room.slots if slot.number == address.slot), None)
        # A product whose id is a passing one has never been served under its lasting id.
        if slot is None or slot.passing is (address.night_tag is None):
            return None
        return room, slot

    def _quote_factor(self, slot: Slot, search: Search) -> float | None:
        """Return what a quote does to the price of the search, None where the product is gone by then."""
        drawn = mix(slot.lasting_id, self.night, search.fingerprint(), 51)
        share = drawn % 1000
        if share < RAISED:
            return 1 + (2 + (drawn >> 20) % 7) / 100
        if share < RAISED + LOWERED:
            return 1 - (2 + (drawn >> 20) % 4) / 100
        return None if share < RAISED + LOWERED + GONE else 1.0


def _bookable(profile: Profile, parties: tuple[Guests, ...], left: list[int]) -> tuple[Room, ...] | int:
    """Return the room types to offer. Several rooms are booked in one type only, which must take every party."""
    largest = max(guests.people for guests in parties)
    rooms = tuple(room for room in profile.rooms if room.capacity >= largest and left[room.number] >= len(parties))
    if rooms:
        return rooms
    each_party_has_one = all(
        any(room.capacity >= guests.people and left[room.number] for room in profile.rooms) for guests in parties
    )
    return documented.DIFFERENT_ROOMS if len(parties) > 1 and each_party_has_one else documented.NO_OFFER
