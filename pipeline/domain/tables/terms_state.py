"""The state of what offers promise: their promotions and cancellation policies, from night to night."""

from pipeline.domain.tables.declaration import (
    CHECK_IN,
    INSTANT,
    INT,
    LONG,
    MONEY,
    NUMBER,
    PROPERTY_ID,
    SMALL,
    SOURCE,
    STAY_SOLD_IN,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)
from pipeline.domain.tables.offer import PENALTY, PROMOTION
from pipeline.domain.tables.offer_state import OFFER_OPEN

_POLICY_TERMS = ("window_hours", "penalty_pct", "penalty_nights", "is_refundable")

PROMOTION_STATE = Table(
    "promotion",
    "One row per promotion of a promotion key, in order.",
    ("promotion_key", "promotion_no"),
    (
        required("promotion_key", LONG, "Stable hash of the promotions of an offer, in order."),
        required("promotion_no", SMALL, "Position in the offer, from 0."),
        *PROMOTION.pick("promo_type", "description"),
        Column(
            "promotion_kind",
            TEXT,
            "`value_add`, `discount_off` or `free_night`, however it is spelled, or `other`; NULL: not stated.",
        ),
    ),
)

_DEPTHS = (
    Column(
        "least_depth_pct", NUMBER, "Smallest depth of the promotion, 100 x (1 - total / pre_promo_total); NULL: none."
    ),
    Column("most_depth_pct", NUMBER, "Largest depth of it; NULL: none."),
)

PROMOTION_OPEN = Table(
    "promotion_open",
    "One row per source and offer key that has changed since it was first seen, and has a promotion, no price, or is "
    "gone.",
    ("source", "property_id", "offer_key"),
    (
        *OFFER_OPEN.pick("source", "offer_key", "property_id", "check_in"),
        Column("promoted_from", INSTANT, "First sighting of the promotion; NULL: last seen without one."),
        Column("plain_seen_at", INSTANT, "Last sighting without a promotion before that, or so far; NULL: none."),
        Column(
            "promoted_seen_at",
            INSTANT,
            "Last sighting with the promotion before the offer went, or lost its price; NULL: it has it now, or none.",
        ),
        Column("promotion_key", LONG, "Stable hash of the promotions named then; NULL: see state.offer_open, or none."),
        *_DEPTHS,
    ),
)

PROMOTION_CLOSED = Table(
    "promotion_closed",
    "One row per source, offer key and promotion that has ended, or whose stay has begun. Append-only.",
    ("source", "property_id", "offer_key", "began_at"),
    (
        *OFFER_OPEN.pick("source", "offer_key", "property_id", "market", "product_type", "check_in", "nights", "party"),
        *OFFER_OPEN.pick("currency", "room_id", "board_id", "policy_key"),
        required("began_at", INSTANT, "First sighting of the offer with the promotion."),
        Column("plain_seen_at", INSTANT, "Last sighting without it before that; NULL: none, so it may be older."),
        required("promoted_seen_at", INSTANT, "Last sighting with the promotion."),
        Column("ended_at", INSTANT, "First sighting without it afterwards; NULL: the stay began before."),
        *_DEPTHS,
        Column("promotion_key", LONG, "Stable hash of the promotions named last, in order; 0: none named."),
    ),
)

POLICY_STATE = Table(
    "policy",
    "One row per cancellation penalty of a policy key.",
    ("policy_key", "penalty_no"),
    (
        required("policy_key", LONG, "Stable hash of the sorted cancellation penalties of an offer."),
        required("penalty_no", SMALL, "Position among the distinct penalties of the policy, from 0."),
        *PENALTY.pick(*_POLICY_TERMS),
    ),
)

POLICY_DRIFT = Table(
    "policy_drift",
    "One row per change of a cancellation policy: in one sweep, one policy of a room, board and stay replaced another. "
    "Append-only.",
    ("source", "property_id", "offer_key_after", "drifted_at"),
    (
        SOURCE,
        PROPERTY_ID,
        *STAY_SOLD_IN,
        required("currency", TEXT, "ISO 4217 code of all money of this row, as sent."),
        Column("room_stay_id", INT, "Requested room that the offers are for, from 0."),
        required("room_id", LONG, "The supplier's room id."),
        required("board_id", INT, "Board basis id."),
        required("drifted_at", INSTANT, "Start of the sweep that saw it."),
        required("policy_key_before", LONG, "Hash of the old policy's penalties."),
        required("policy_key_after", LONG, "Hash of the new policy's penalties."),
        Column("free_hours_before", INT, "free_cancel_hours of the old policy; NULL: none stated."),
        Column("free_hours_after", INT, "free_cancel_hours of the new policy; NULL: none stated."),
        required("refundability_before", TEXT, "Refundability under the old policy."),
        required("refundability_after", TEXT, "Refundability under the new policy."),
        Column("total_before", MONEY, "Total under the old policy; NULL: not stated."),
        Column("total_after", MONEY, "Total under the new policy; NULL: not stated."),
        required("offer_key_before", LONG, "Offer key under the old policy."),
        required("offer_key_after", LONG, "Offer key under the new policy."),
        required("before_sweep_id", TEXT, "Sweep that last observed the old policy."),
        required("before_search_id", LONG, "Search of that observation."),
        required("before_offer_no", INT, "Offer of that observation."),
        required("after_sweep_id", TEXT, "Sweep that first observed the new policy."),
        required("after_search_id", LONG, "Search of that observation."),
        required("after_offer_no", INT, "Offer of that observation."),
    ),
)

DETAIL_PENALTY = Table(
    "detail_penalty",
    "One row per cancellation penalty of an offer key, whose stay is in the future, in its last detail answer.",
    ("property_id", "offer_key", "penalty_no"),
    (
        PROPERTY_ID,
        required("offer_key", LONG, "Stable hash of what identifies an offer: mart.offer_key."),
        CHECK_IN,
        SWEEP_ID,
        *PENALTY.pick("penalty_no", *_POLICY_TERMS, "start_at", "end_at", "amount"),
    ),
)
