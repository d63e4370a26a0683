"""Offers on sale, with their penalties, promotions and changes."""

from pipeline.domain.tables.declaration import (
    ASKED,
    FLAG,
    INSTANT,
    INT,
    LONG,
    MARKET,
    MONEY,
    MOST_MONEY,
    NUMBER,
    OFFER_NO,
    PROPERTY_ID,
    SEARCH_ID,
    SMALL,
    SOURCE,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    amount,
    required,
)

FREE_CANCEL = (
    Column(
        "free_cancel_hours",
        INT,
        "Hours before check-in until which cancelling is free, by penalty windows; NULL: not all are stated.",
    ),
    Column(
        "free_cancel_until",
        INSTANT,
        "Time until which cancelling is free, by exact dates; NULL: not all are stated. Detail only.",
    ),
)

OFFER = Table(
    "offer",
    "One row per product of a room stay in an observation.",
    ("sweep_id", "search_id", "offer_no"),
    (
        *(SWEEP_ID, SEARCH_ID, OFFER_NO),
        required(
            "source",
            TEXT,
            "`multi`: cheapest per board and policy; `detail`: every product. Never one series.",
            ("multi", "detail"),
        ),
        required("searched_at", INSTANT, "When the search was sent."),
        PROPERTY_ID,
        *ASKED,
        Column("room_stay_id", INT, "Requested room that this offer is for, from 0."),
        Column("room_id", LONG, "The supplier's room id."),
        Column("room_name", TEXT, "Room name as sent."),
        Column("rate_type", TEXT, "Rate type as sent."),
        Column("product_id", LONG, "The supplier's product id; it may change from search to search."),
        Column("board_id", INT, "Board basis id as sent."),
        Column("board_name", TEXT, "Board basis name as sent."),
        Column("board_detail", TEXT, "Board basis text as sent."),
        required("policy_key", LONG, "Stable hash of the sorted cancellation penalties; 0: none stated."),
        required("promotion_key", LONG, "Stable hash of the promotions in order; 0: none."),
        Column("currency", TEXT, "ISO 4217 code of all money of this row, as sent; NULL: not comparable."),
        Column("total", MONEY, "Room cost for the whole stay after promotions, in currency.", highest=MOST_MONEY),
        amount("pre_promo_total", "Room cost for the whole stay before promotions, in currency."),
        Column("discount_pct", NUMBER, "Discount as stated, in percent of pre_promo_total.", lowest=0, highest=100),
        amount("floor", "minSellablePrice: the lowest price to sell a hotel-only product at; NULL: none stated."),
        Column(
            "available_rooms",
            INT,
            "Rooms of this type still bookable; repeated in each room stay, so never add them up.",
            lowest=0,
        ),
        amount("included_charges", "Taxes and fees inside total. Detail only."),
        amount("excluded_charges", "Amounts outside total. Detail only."),
        amount("resort_fee", "Resort fee, paid at the property. Detail only."),
        amount("child_resort_fee", "Resort fee for children, paid at the property. Detail only."),
        amount("city_taxes", "City taxes, paid at the property. Detail only."),
        amount("hotel_service_fee", "Service fee, paid at the property. Detail only."),
        required(
            "refundability",
            TEXT,
            "`refundable`, `non_refundable`, `mixed` or `unknown` (no penalty says).",
            ("refundable", "non_refundable", "mixed", "unknown"),
        ),
        *FREE_CANCEL,
    ),
)

PENALTY = Table(
    "penalty",
    "One row per cancellation penalty of an offer, in the order of the answer.",
    ("sweep_id", "search_id", "offer_no", "penalty_no"),
    (
        *(SWEEP_ID, SEARCH_ID, OFFER_NO),
        required("penalty_no", SMALL, "Position in the offer, from 0."),
        PROPERTY_ID,
        MARKET,
        Column("window_hours", INT, "Hours before check-in in which the penalty applies."),
        Column("penalty_pct", NUMBER, "Percentage of the total, or of the nights of penalty_nights."),
        Column("penalty_nights", NUMBER, "Nights charged, read together with penalty_pct.", lowest=0, highest=1000),
        Column("is_refundable", FLAG, "False: cannot be refunded."),
        Column("start_at", INSTANT, "Exact start. Detail only."),
        Column("start_offset", TEXT, "Offset of the start as sent. Detail only."),
        Column("end_at", INSTANT, "Exact end. Detail only."),
        Column("end_offset", TEXT, "Offset of the end as sent. Detail only."),
        amount("amount", "Fixed amount, in the offer's currency. Detail only."),
    ),
)

PROMOTION = Table(
    "promotion",
    "One row per promotion of an offer, in the order of the answer.",
    ("sweep_id", "search_id", "offer_no", "promotion_no"),
    (
        *(SWEEP_ID, SEARCH_ID, OFFER_NO),
        required("promotion_no", SMALL, "Position in the offer, from 0."),
        PROPERTY_ID,
        MARKET,
        Column("promo_type", TEXT, "Kind as sent: value add, discount off or free night."),
        Column("description", TEXT, "Text as sent."),
    ),
)

OFFER_CHANGE = Table(
    "offer_change",
    "One row per change of a source and offer key. Append-only, kept forever.",
    ("sweep_id", "source", "offer_key", "property_id"),
    (
        SWEEP_ID,
        required("changed_at", INSTANT, "Start of the sweep that saw the change."),
        required("change", TEXT, "`first` seen, `value` changed, `gone`, or `back`."),
        Column("previous_seen_at", INSTANT, "Last sweep that saw the offer before; the change was between the two."),
        # Half of a row's bytes, if it were stored: no two keys have anything in common.
        Column(
            "offer_key",
            LONG,
            "Stable hash of what identifies an offer: everything requested, room, board, policy. The same in list, "
            "detail and quote; a price series is one key and one source. Computed when read, not stored in the files.",
            is_required=True,
            derived="mart.offer_key("
            "mart.cell_key(property_id, market, product_type, check_in, nights, party, currency_asked), "
            "room_stay_id, room_id, board_id, policy_key, currency)",
        ),
        PROPERTY_ID,
        *ASKED,
        Column("currency", TEXT, "ISO 4217 code of all money of this row."),
        Column("room_stay_id", INT, "Requested room that this offer is for, from 0."),
        Column("room_id", LONG, "The supplier's room id."),
        Column("board_id", INT, "Board basis id."),
        required("policy_key", LONG, "Stable hash of the cancellation penalties; see offer."),
        Column("promotion_key", LONG, "Stable hash of the promotions; NULL: gone."),
        Column("total", MONEY, "Room cost for the whole stay after promotions; NULL: gone or not stated."),
        Column("pre_promo_total", MONEY, "Room cost before promotions; NULL: gone or not stated."),
        Column("discount_pct", NUMBER, "Discount as stated; NULL: gone or not stated."),
        Column("floor", MONEY, "minSellablePrice; NULL: gone or not stated."),
        Column("available_rooms", INT, "Rooms still bookable; NULL: gone or not stated."),
        SOURCE,
    ),
)
