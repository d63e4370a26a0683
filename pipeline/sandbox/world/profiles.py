"""Fixed traits of a property: rooms, boards, policies, fees, habits. Built on first use, from seed and index."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from pipeline.sandbox.world import descriptions
from pipeline.sandbox.world.discounts import gift_of
from pipeline.sandbox.world.documented import BOARD_BY_ID, BOARDS, Board
from pipeline.sandbox.world.fx import HOME_CURRENCIES
from pipeline.sandbox.world.hashes import Dice, mix
from pipeline.sandbox.world.identifiers import branded_index, lasting_product_id, property_id
from pipeline.sandbox.world.planted import Anomaly, anomaly_of
from pipeline.sandbox.world.policies import Policy, policies

# A slot's number encodes room, board, policy, and whether it is the dearer product.
BOARD_BITS, POLICY_BITS = 2, 2


@dataclass(frozen=True, slots=True)
class Slot:
    """One product of a room: a board with a policy. `dearer` ones appear only in detail answers."""

    number: int
    board: Board
    board_written: msgspec.Raw
    policy: Policy
    factor: float
    """Of the room's price: the policy's, and more for a dearer product."""
    lasting_id: int
    passing: bool
    dearer: bool
    takes_promotions: bool


@dataclass(frozen=True, slots=True)
class Room:
    """One room type."""

    room_id: int
    number: int
    salt: int
    capacity: int
    stock: int
    absurd_stock: bool
    rate: float
    """Relative to the property's nightly rate."""
    period: int
    """Nights between two moves of its price."""
    words: dict[str, Any]
    slots: tuple[Slot, ...]
    gift: msgspec.Raw | None
    """A value add that is always there."""
    cheapest: tuple[Slot, ...]
    """One slot per board and policy: what a multi-property answer shows."""


@dataclass(frozen=True, slots=True)
class Fees:
    """Paid at the property, in EUR cents."""

    resort_night: int
    child_resort_night: int
    city_adult_night: int
    service_stay: int
    optional_stay: int


class Conditions(NamedTuple):
    """Conditions that most properties do not have. `boards` None = those that it has anyway."""

    shortest_stay: int = 1
    """Fewest nights that it sells."""
    several_rooms: float = 1.0
    """What each of several rooms that are booked together costs, as a share of its price alone."""
    boards: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """One property."""

    index: int
    property_id: int
    salt: int
    name: str
    remarks: str
    home_currency: str
    kind: int
    nightly: int
    """EUR cents for two adults, one night, before every factor."""
    long_stay: tuple[float, float]
    lead_shape: int
    package_factor: float
    hotel_only: bool
    states_floor: int
    """0 always, 1 never (missing), 2 null, 3 zero."""
    floor_on_package: bool
    reference_style: int
    """Without promotion: 0 no reference fields, 1 the total repeated and 0 percent, 2 nulls."""
    whole_prices: bool
    point_zero: bool
    children: int
    offset_minutes: int
    tax_percent: int
    fees: Fees
    closed_length: int
    never_open: bool
    restricted: bool
    listed_empty: bool
    promotion_spelling: int
    rooms: tuple[Room, ...]
    anomaly: Anomaly | None
    conditions: Conditions


_BOARD_SETS: Final[tuple[tuple[int, ...], ...]] = (
    (14,), (14, 3), (14, 4), (14, 6), (3, 12), (14, 4, 12), (1,), (15,), (12, 10, 1), (3, 113), (14, 101, 112, 105),
)  # fmt: skip
_BOARD_WEIGHTS: Final = (30, 16, 8, 6, 8, 5, 10, 8, 3, 4, 2)
_OFFSETS: Final = (0, 60, 120, 120, 180, -300, -360, 330)
_PERIODS: Final = (16, 20, 24)
_DEARER: Final = 1.06
# Guests a room takes at most: mostly 2 to 4, a few suites up to 8.
_CAPACITY_WEIGHTS: Final = (0, 0, 46, 25, 22, 3, 3, 0, 1)


# Room only, half board and full board in one property, so that the prices of boards can be compared.
_MEALS: Final = (14, 12, 10)
_USUAL: Final = Conditions()


def conditions_of(seed: int, index: int, share: float) -> Conditions:
    """Return the conditions of a property, the usual ones in all but `share` of them. Twins share theirs."""
    dice = Dice(seed, index, 9)
    if dice.below(1_000_000) >= share * 1_000_000:
        return _USUAL
    return Conditions(
        shortest_stay=dice.between(1, 3),
        several_rooms=(100 + dice.between(-5, 15)) / 100,
        boards=_MEALS if dice.chance(500) else None,
    )


def room_number(slot_number: int) -> int:
    """Return the room of a slot's number."""
    return slot_number >> (BOARD_BITS + POLICY_BITS + 1)


def build(seed: int, index: int, plant_share: float, conditions_share: float = 0) -> Profile:
    """Return the property with this index. A twin without brand is its branded twin at a lower price."""
    twin_of = branded_index(index)
    shared = index if twin_of is None else twin_of
    # `dice` decides what both twins share, `own` what differs.
    dice = Dice(seed, shared, 1)
    own = Dice(seed, index, 2)
    branded_name = descriptions.property_name(dice)
    conditions = conditions_of(seed, shared, conditions_share)
    boards = _boards(dice, conditions.boards)
    steps = policies(dice)
    nightly = dice.between(45, 220) * 100 + dice.between(0, 99)
    # An opaque offer gives up its name for a price 15 to 30 percent lower.
    nightly = nightly if twin_of is None else nightly * own.between(70, 85) // 100
    spelling = own.weighted((85, 8, 7))
    return Profile(
        index=index,
        property_id=property_id(seed, index),
        salt=mix(seed, index, 3),
        name=branded_name if twin_of is None else descriptions.unbranded_name(own),
        remarks=descriptions.remarks(dice),
        home_currency=dice.pick(HOME_CURRENCIES),
        kind=dice.below(4),
        nightly=nightly,
        long_stay=(1 - dice.below(6) / 100, 1 - dice.between(6, 14) / 100),
        lead_shape=dice.below(3),
        package_factor=dice.between(84, 95) / 100,
        hotel_only=own.chance(30),
        states_floor=own.weighted((88, 8, 2, 2)),
        floor_on_package=own.chance(30),
        reference_style=own.weighted((50, 35, 15)),
        whole_prices=dice.chance(120),
        point_zero=own.chance(500),
        children=dice.below(3),
        offset_minutes=dice.pick(_OFFSETS),
        tax_percent=dice.pick((7, 10, 12, 19, 21)),
        fees=_fees(dice),
        closed_length=max(0, own.between(-5, 5)),
        never_open=own.chance(15),
        restricted=own.chance(10),
        listed_empty=own.chance(60),
        promotion_spelling=spelling,
        rooms=tuple(_rooms(seed, index, shared, dice, own, boards, steps, spelling)),
        anomaly=anomaly_of(seed, index, plant_share),
        conditions=conditions,
    )


def _boards(dice: Dice, instead: tuple[int, ...] | None) -> tuple[Board, ...]:
    chosen = list(_BOARD_SETS[dice.weighted(_BOARD_WEIGHTS)])
    if dice.chance(220):
        # Every id of the table occurs somewhere, including the rare ones.
        chosen[-1] = dice.pick(BOARDS).id
    return tuple(BOARD_BY_ID[identifier] for identifier in dict.fromkeys(instead or chosen))


def _fees(dice: Dice) -> Fees:
    return Fees(
        resort_night=dice.between(500, 3500) if dice.chance(250) else 0,
        child_resort_night=dice.between(200, 1200) if dice.chance(150) else 0,
        city_adult_night=dice.between(80, 700) if dice.chance(600) else 0,
        service_stay=dice.between(500, 2500) if dice.chance(200) else 0,
        optional_stay=dice.between(1000, 6000) if dice.chance(150) else 0,
    )


def _rooms(
    seed: int,
    index: int,
    shared: int,
    dice: Dice,
    own: Dice,
    boards: tuple[Board, ...],
    steps: tuple[Policy, ...],
    spelling: int,
) -> list[Room]:
    count = 1 + dice.weighted((5, 15, 40, 30, 8, 2))
    rooms = []
    for number in range(count):
        capacity = dice.weighted(_CAPACITY_WEIGHTS)
        salt = mix(seed, shared, number, 5)
        slots = tuple(_slots(seed, index, number, dice, own, boards, steps))
        rooms.append(
            Room(
                room_id=(100_000 + index) * 100 + number + 1,
                number=number,
                salt=salt,
                capacity=capacity,
                stock=own.between(2, 24),
                absurd_stock=own.chance(4),
                rate=(100 + number * dice.between(6, 22)) / 100,
                period=dice.pick(_PERIODS),
                words=descriptions.room_words(dice, number, capacity),
                slots=slots,
                gift=gift_of(salt, spelling),
                cheapest=tuple(slot for slot in slots if not slot.dearer),
            )
        )
    return rooms


def _slots(
    seed: int, index: int, room: int, dice: Dice, own: Dice, boards: tuple[Board, ...], steps: tuple[Policy, ...]
) -> list[Slot]:
    slots = []
    for board_number, board in enumerate(boards):
        written = _board_written(board, own)
        for policy_number, policy in enumerate(steps):
            # One promotion for both; otherwise it could make the dearer product the cheaper one.
            takes_promotions = dice.chance(800)
            for dearer in (False, True) if dice.chance(250) else (False,):
                number = (room << BOARD_BITS | board_number) << POLICY_BITS | policy_number
                number = number << 1 | dearer
                slots.append(
                    Slot(
                        number=number,
                        board=board,
                        board_written=written,
                        policy=policy,
                        factor=policy.factor * (_DEARER if dearer else 1.0),
                        lasting_id=lasting_product_id(seed, index, number),
                        passing=own.chance(250),
                        dearer=dearer,
                        takes_promotions=takes_promotions,
                    )
                )
    return slots


def _board_written(board: Board, own: Dice) -> msgspec.Raw:
    form: dict[str, Any] = {"id": board.id, "name": board.name}
    style = own.weighted((70, 20, 5, 5))
    if style == 0:
        form["detail"] = f"{board.name} ({board.qualifier})" if board.qualifier else board.name
    elif style == 1:
        form["detail"] = f"{board.name} {board.qualifier}".strip() + "; offered: " + ", ".join(_MAIN_BOARDS)
    elif style == 2:
        form["detail"] = None
    return msgspec.Raw(msgspec.json.encode(form))


_MAIN_BOARDS: Final = ("Room Only", "Bed and Breakfast", "Half Board", "Full Board", "All Inclusive")
