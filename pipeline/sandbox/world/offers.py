"""What a world offers to one search: the products of each room of each property, at tonight's prices. Pure."""

from itertools import pairwise
from typing import Final, NamedTuple

from pipeline.sandbox.world import documented, identifiers, planted
from pipeline.sandbox.world.documented import MARKET_NUMBER, Guests, Search
from pipeline.sandbox.world.hashes import mix
from pipeline.sandbox.world.prices import Price, price_room, room_level, terms_of
from pipeline.sandbox.world.profiles import Profile, Room, Slot, room_number
from pipeline.sandbox.world.world import World

INT32_MAX: Final = 2_147_483_647
MAX_NIGHTS: Final = 60
MAX_LEAD_DAYS: Final = 540
BLOCK_DAYS: Final = 28
"""Check-ins are grouped into blocks of this many days, which share a price level and a demand."""

_CLOSED_PERIOD: Final = 53
_STOP_SALE_NIGHTS: Final = 6
_RELEASE_NIGHTS: Final = 20
# Share of the rooms sold, in permille, by lead days, at full demand.
_SOLD: Final = ((0, 1000), (3, 930), (7, 820), (14, 660), (30, 470), (60, 280), (120, 130), (240, 40), (540, 0))


def is_open(profile: Profile, night: int, market: str, block: int) -> bool:
    """Whether a property sells to this market on this night, for stays in this block of dates."""
    salt = profile.salt
    return not (
        profile.never_open
        or (night + salt) % _CLOSED_PERIOD < profile.closed_length
        or mix(salt, MARKET_NUMBER[market], 31) % 100 < 1
        or mix(salt, block, (night + salt % _STOP_SALE_NIGHTS) // _STOP_SALE_NIGHTS, 32) % 100 < 3
    )


def rooms_left(room: Room, key: int, night: int, sold_per_mille: int) -> int:
    """Return how many rooms of a type are open: fewer as check-in approaches, sometimes more after cancellations.

    `key` stands for room and block of dates, `sold_per_mille` is that of the lead days.
    """
    if room.absurd_stock:
        return INT32_MAX
    demand = 350 + (key >> 20) % 800
    release = mix(key, (night + (key >> 32) % _RELEASE_NIGHTS) // _RELEASE_NIGHTS, 34) % 4
    sold = room.stock * demand * sold_per_mille // 1_000_000
    return max(0, min(room.stock, room.stock - sold + release - 1))


def sold_per_mille(lead_days: int) -> int:
    """Return the share of the rooms that are sold `lead` days before check-in at full demand."""
    for (near, at_near), (far, at_far) in pairwise(_SOLD):
        if lead_days < far:
            return at_near + (at_far - at_near) * (lead_days - near) // (far - near)
    return 0


# How prices move between search and quote of one night, in permille of the products. Quoted on a later night, products
# with a temporary id (a quarter of them: see profiles) are all gone, and the others have the prices of that night.
RAISED: Final = 30
LOWERED: Final = 10
GONE: Final = 10


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


class Offering:
    """A world seen through one search. What is the same for all properties is computed once."""

    def __init__(self, world: World, search: Search) -> None:
        self.world = world
        self.search = search
        self._night = world.night
        self._lead_days = (search.check_in - world.today).days
        self._block = search.check_in.toordinal() // BLOCK_DAYS
        self._price_lead_days = world.price_lead_days(search.check_in)
        self._sold = sold_per_mille(self._lead_days)
        self._on_sale = self._lead_days <= MAX_LEAD_DAYS and search.nights <= MAX_NIGHTS
        self._fingerprint = search.fingerprint()
        self._prefix = identifiers.passing_prefix(world.night, self._fingerprint)

    def product_id(self, slot: Slot) -> int:
        """Return the id of a product in the answer to this search; some products have a different id in each answer."""
        return self._prefix | slot.lasting_id if slot.passing else slot.lasting_id

    def offers(self, profile: Profile) -> PropertyOffers | int:
        """Return the offers of a property, or the code for why there are none."""
        refusal = self._refusal(profile)
        if refusal:
            return refusal
        search, multi = self.search, self.search.operation == "multi"
        keys = [self._key(room) for room in profile.rooms]
        left = [rooms_left(room, key, self._night, self._sold) for room, key in zip(profile.rooms, keys, strict=True)]
        chosen = _bookable(profile, search.parties, left)
        if isinstance(chosen, int):
            return chosen
        currency = search.currency or profile.home_currency
        terms = terms_of(profile, search, currency, self._night)
        levels = [room_level(terms, room, keys[room.number], self._price_lead_days) for room in chosen]
        rooms = []
        for stay_id, guests in enumerate(search.parties):
            for room, level in zip(chosen, levels, strict=True):
                prices = price_room(terms, room, guests, level, room.cheapest if multi else room.slots)
                rooms.append(RoomOffers(stay_id, room, left[room.number], prices))
        return PropertyOffers(profile, currency, rooms)

    def quote(self, profile: Profile) -> PropertyOffers | int:
        """Return the one product asked for in each room stay, at its price now, or the code of a refusal.

        A product id of another property, of another night (if the id is temporary) or of nothing at all is
        answered like a product that is gone: 1023. The document names no other code for it.
        """
        refusal = self._refusal(profile)
        if refusal:
            return refusal
        search = self.search
        currency = search.currency or profile.home_currency
        terms = terms_of(profile, search, currency, self._night)
        quoted = []
        for stay_id, (guests, product_id) in enumerate(zip(search.parties, search.product_ids, strict=True)):
            found = self._product(profile, product_id)
            if found is None:
                return documented.NO_OFFER
            room, slot = found
            key = self._key(room)
            left = rooms_left(room, key, self._night, self._sold)
            factor = self._quote_factor(slot)
            if factor is None or left < len(search.parties) or room.capacity < guests.people:
                return documented.NO_OFFER
            level = room_level(terms, room, key, self._price_lead_days)
            quoted.append(RoomOffers(stay_id, room, left, price_room(terms, room, guests, level, (slot,), factor)))
        if len({offers.room.number for offers in quoted}) > 1:
            return documented.DIFFERENT_ROOMS
        return PropertyOffers(profile, currency, quoted)

    def _key(self, room: Room) -> int:
        return mix(room.salt, self._block, 42)

    def _refusal(self, profile: Profile) -> int:
        """Return the code if a property sells nothing to this search, whatever the rooms; otherwise 0."""
        search = self.search
        if not self._on_sale or (profile.hotel_only and search.product_type == "Package"):
            return documented.NO_OFFER
        anomaly = profile.anomaly
        if anomaly and anomaly.kind == planted.GONE_QUIET and self._night >= planted.QUIET_FROM:
            return documented.NO_OFFER
        if search.nights < profile.conditions.shortest_stay:
            return documented.NO_OFFER
        if not is_open(profile, self._night, search.market, self._block):
            return documented.NO_OFFER
        return documented.RESTRICTED if profile.restricted else 0

    def _product(self, profile: Profile, product_id: int) -> tuple[Room, Slot] | None:
        address = identifiers.read_product_id(self.world.seed, product_id)
        if address is None or address.property_index != profile.index:
            return None
        if address.night_tag not in {None, identifiers.night_tag(self._night)}:
            return None
        number = room_number(address.slot)
        if number >= len(profile.rooms):
            return None
        room = profile.rooms[number]
        slot = next((slot for slot in room.slots if slot.number == address.slot), None)
        # A product with a temporary id was never served under its permanent id.
        if slot is None or slot.passing is (address.night_tag is None):
            return None
        return room, slot

    def _quote_factor(self, slot: Slot) -> float | None:
        """Return by how much a quote changes the price of the search; None if the product is gone by then."""
        drawn = mix(slot.lasting_id, self._night, self._fingerprint, 51)
        share = drawn % 1000
        if share < RAISED:
            return 1 + (2 + (drawn >> 20) % 7) / 100
        if share < RAISED + LOWERED:
            return 1 - (2 + (drawn >> 20) % 4) / 100
        return None if share < RAISED + LOWERED + GONE else 1.0


def _bookable(profile: Profile, parties: tuple[Guests, ...], left: list[int]) -> list[Room] | int:
    """Return the room types to offer. Several rooms must have the same type, which must fit every party."""
    largest = max(guests.people for guests in parties)
    rooms = [room for room in profile.rooms if room.capacity >= largest and left[room.number] >= len(parties)]
    if rooms:
        return rooms
    each_party_has_one = all(
        any(room.capacity >= guests.people and left[room.number] for room in profile.rooms) for guests in parties
    )
    return documented.DIFFERENT_ROOMS if len(parties) > 1 and each_party_has_one else documented.NO_OFFER
