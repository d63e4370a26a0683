"""The offers of a segment with their penalties and promotions, as Arrow tables.

Most offers share their board, policy and promotions with others: each distinct text is read once and repeated here.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipeline.domain import tables
from pipeline.domain.search import Operation
from pipeline.normalise.columns import (
    AskedSearches,
    Index,
    concatenated,
    constant,
    in_declared_order,
    joined,
    spread,
    spread_array,
)
from pipeline.normalise.interned import Interned, PenaltyRow
from pipeline.normalise.money import money_columns
from pipeline.normalise.offers import Offers

_SOURCES = {Operation.MULTI: "multi", Operation.SINGLE: "detail"}


class JoinedOffers:
    """The offers of all answers of a segment, each column one array as long as there are offers."""

    def __init__(self, held: Sequence[tuple[int, Offers]], interned: Interned) -> None:
        offers = [found for _, found in held]
        per_room = np.array([n for found in offers for n in found.products_of_room], dtype=np.int64)
        per_property = np.array([n for found in offers for n in found.products_of_property], dtype=np.int64)
        per_answer = np.array([len(found.offer_no) for found in offers], dtype=np.int64)
        room = np.repeat(np.arange(len(per_room), dtype=np.int32), per_room)
        prop = np.repeat(np.arange(len(per_property), dtype=np.int32), per_property)
        self.search: Index = np.repeat(np.array([position for position, _ in held], dtype=np.int32), per_answer)
        self.count = len(self.search)
        self.property_id = spread_array(joined([o.property_id for o in offers], pa.int64()), prop)
        self.currency = spread([c for o in offers for c in o.currency], pa.string(), prop)
        self.room_stay_id = spread_array(joined([o.room_stay_id for o in offers], pa.int32()), room)
        self.room_id = spread_array(joined([o.room_id for o in offers], pa.int64()), room)
        self.room_name = spread([n for o in offers for n in o.room_name], pa.string(), room)
        self.rate_type = spread([r for o in offers for r in o.rate_type], pa.string(), room)
        self.available_rooms = spread_array(joined([o.available_rooms for o in offers], pa.int32()), room)
        self.offer_no: Index = concatenated([o.offer_no for o in offers])
        self.product_id = joined([o.product_id for o in offers], pa.int64())
        self.board, self.promotions, self.policy = interned.apart(concatenated([o.threes for o in offers]))
        self.discount_pct = joined([o.discount_pct for o in offers], pa.float64())
        names = {name: None for o in offers for name in o.money}
        self.money = {
            name: joined([o.money.get(name, pa.nulls(len(o.offer_no), tables.MONEY)) for o in offers], tables.MONEY)
            for name in names
        }


def offer_table(operation: Operation, searches: AskedSearches, offers: JoinedOffers, interned: Interned) -> pa.Table:
    """Return the offers of a segment, one row each."""
    boards = interned.boards.values_in_order
    policies = interned.policies.values_in_order
    promotions = interned.promotions.values_in_order
    columns = searches.columns(offers.search) | {
        "offer_no": pa.array(offers.offer_no),
        "source": constant(_SOURCES[operation], offers.count),
        "property_id": offers.property_id,
        "currency": offers.currency,
        "room_stay_id": offers.room_stay_id,
        "room_id": offers.room_id,
        "room_name": offers.room_name,
        "rate_type": offers.rate_type,
        "available_rooms": offers.available_rooms,
        "product_id": offers.product_id,
        "board_id": spread([b.id for b in boards], pa.int32(), offers.board),
        "board_name": spread([b.name for b in boards], pa.string(), offers.board),
        "board_detail": spread([b.detail for b in boards], pa.string(), offers.board),
        "policy_key": spread([p.key for p in policies], pa.int64(), offers.policy),
        "refundability": spread([p.refundability for p in policies], pa.string(), offers.policy),
        "free_cancel_hours": spread([p.free_cancel_hours for p in policies], pa.int32(), offers.policy),
        "free_cancel_until": spread([p.free_cancel_until for p in policies], tables.INSTANT, offers.policy),
        "promotion_key": spread([p.key for p in promotions], pa.int64(), offers.promotions),
        "discount_pct": offers.discount_pct,
        **offers.money,
    }
    return in_declared_order(tables.OFFER, columns, offers.count)


def penalty_table(market: str, searches: AskedSearches, offers: JoinedOffers, interned: Interned) -> pa.Table:
    """Return the penalties of a segment's offers, in the order of each offer."""
    return _child_table(tables.PENALTY, "penalty_no", market, searches, offers, offers.policy, _penalties(interned))


def promotion_table(market: str, searches: AskedSearches, offers: JoinedOffers, interned: Interned) -> pa.Table:
    """Return the promotions of a segment's offers, in the order of each offer."""
    children = _promotions(interned)
    return _child_table(tables.PROMOTION, "promotion_no", market, searches, offers, offers.promotions, children)


def _child_table(
    table: tables.Table,
    number_column: str,
    market: str,
    searches: AskedSearches,
    offers: JoinedOffers,
    owner: Index,
    children: tuple[list[int], dict[str, pa.Array]],
) -> pa.Table:
    """Spread the rows of each distinct text over the offers that carry it."""
    sizes, values = children
    size_of = np.array(sizes, dtype=np.int64)
    start_of = np.cumsum(size_of) - size_of
    counts = size_of[owner] if len(owner) else np.zeros(0, dtype=np.int64)
    total = int(counts.sum())
    parent = np.repeat(np.arange(offers.count), counts)
    position = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    row = np.repeat(start_of[owner], counts) + position
    columns = {
        "sweep_id": constant(searches.sweep_id, total),
        "search_id": searches.search_id(offers.search[parent]),
        "offer_no": pa.array(offers.offer_no[parent]),
        number_column: pa.array(position.astype(np.int16)),
        "property_id": offers.property_id.take(pa.array(parent)),
        "market": constant(market, total),
        **{name: spread_array(value, row) for name, value in values.items()},
    }
    return in_declared_order(table, columns, total)


def _penalties(interned: Interned) -> tuple[list[int], dict[str, pa.Array]]:
    policies = interned.policies.values_in_order
    rows: list[PenaltyRow] = [row for policy in policies for row in policy.rows]
    return [len(policy.rows) for policy in policies], {
        "window_hours": pa.array([row.terms.window_hours for row in rows], pa.int32()),
        "penalty_pct": pa.array([row.terms.penalty_pct for row in rows], pa.float64()),
        "penalty_nights": pa.array([row.terms.penalty_nights for row in rows], pa.float64()),
        "is_refundable": pa.array([row.terms.is_refundable for row in rows], pa.bool_()),
        "start_at": pa.array([row.start_at for row in rows], tables.INSTANT),
        "start_offset": pa.array([row.start_offset for row in rows], pa.string()),
        "end_at": pa.array([row.end_at for row in rows], tables.INSTANT),
        "end_offset": pa.array([row.end_offset for row in rows], pa.string()),
        "amount": money_columns([[row.terms.amount for row in rows]])[0],
    }


def _promotions(interned: Interned) -> tuple[list[int], dict[str, pa.Array]]:
    held = interned.promotions.values_in_order
    rows = [row for promotions in held for row in promotions.rows]
    return [len(promotions.rows) for promotions in held], {
        "promo_type": pa.array([row.promo_type for row in rows], pa.string()),
        "description": pa.array([row.description for row in rows], pa.string()),
    }
