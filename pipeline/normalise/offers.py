"""The offers of one answer as columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise, repeat
from operator import is_

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.normalise.interned import Indexes, Interned
from pipeline.normalise.money import money_columns
from pipeline.supplier import wire

_EMPTY_LIST_CHARGES, _EMPTY_CHARGES, _EMPTY_EXCLUDED = wire.ChargeTotal(), wire.Charge(), wire.ExcludedCharges()


@dataclass(slots=True)
class Offers:
    """The offers of one answer, by level: properties hold room stays, room stays hold products.

    `products_of_room` and `products_of_property` count the products of each; the other fields have one value per room
    stay, property or product.
    """

    property_id: pa.Array
    currency: list[str | None]
    products_of_property: list[int]
    room_stay_id: pa.Array
    room_id: pa.Array
    room_name: list[str | None]
    rate_type: list[str | None]
    available_rooms: pa.Array
    products_of_room: list[int]
    offer_no: npt.NDArray[np.int32]
    product_id: pa.Array
    threes: Indexes
    money: dict[str, pa.Array]
    discount_pct: pa.Array
    holders: int
    """Number of fields that hold room stays, products or charges."""


MONEY_OF_LIST = ("total", "floor", "pre_promo_total")
MONEY_OF_DETAIL = (*MONEY_OF_LIST, "included_charges", "excluded_charges")
MONEY_OF_EXCLUDED = ("resort_fee", "child_resort_fee", "city_taxes", "hotel_service_fee")


def collect_offers(
    properties: Sequence[wire.Property], interned: Interned, offer_nos: Sequence[int] | None = None
) -> Offers:
    """Turn the objects of an answer into columns.

    Raises OverflowError for an id outside int64, UnfitMoney for money that would have to be rounded, and
    msgspec's errors for a board, promotion or penalty of another shape.
    """
    rooms_of_property = [found.room_stays or () for found in properties]
    rooms: list[wire.ListRoomStay | wire.DetailRoomStay] = list(chain.from_iterable(rooms_of_property))
    products_of_room = [len(room.products) if room.products else 0 for room in rooms]
    products_before = list(accumulate(products_of_room, initial=0))
    first_rooms = accumulate(map(len, rooms_of_property), initial=0)
    products: list[wire.Product] = [product for room in rooms for product in room.products or ()]
    count = len(products)
    is_detail = bool(products) and isinstance(products[0], wire.DetailProduct)
    empty = _EMPTY_CHARGES if is_detail else _EMPTY_LIST_CHARGES
    charges = [product.charges or empty for product in products]
    amounts = {
        "total": [charge.total for charge in charges],
        "floor": [charge.floor for charge in charges],
        "pre_promo_total": [charge.pre_promo_total for charge in charges],
    }
    if is_detail:
        excluded = [charge.excluded or _EMPTY_EXCLUDED for charge in charges]  # type: ignore[union-attr]
        for name in MONEY_OF_DETAIL[len(MONEY_OF_LIST) :]:
            amounts[name] = [getattr(charge, name) for charge in charges]
        for name in MONEY_OF_EXCLUDED:
            amounts[name] = [getattr(charge, name) for charge in excluded]
    return Offers(
        property_id=pa.array([found.property_id for found in properties], pa.int64()),
        currency=[found.currency for found in properties],
        products_of_property=[products_before[stop] - products_before[first] for first, stop in pairwise(first_rooms)],
        room_stay_id=pa.array([room.id for room in rooms], pa.int32()),
        room_id=pa.array([room.room_id for room in rooms], pa.int64()),
        room_name=[room.room_name for room in rooms],
        rate_type=[room.rate_type for room in rooms],
        available_rooms=pa.array([room.available_rooms for room in rooms], pa.int32()),
        products_of_room=products_of_room,
        offer_no=np.arange(count, dtype=np.int32) if offer_nos is None else np.array(offer_nos, dtype=np.int32),
        product_id=pa.array([product.product_id for product in products], pa.int64()),
        threes=interned.threes_of(products),
        money=dict(zip(amounts, money_columns([*amounts.values()]), strict=True)),
        discount_pct=pa.array([charge.discount_pct for charge in charges], pa.float64()),
        holders=sum(found.room_stays is not None for found in properties)
        + sum(room.products is not None for room in rooms)
        + count
        - sum(map(is_, charges, repeat(empty))),
    )
