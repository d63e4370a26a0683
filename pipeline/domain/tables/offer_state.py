"""The state of offers from night to night, the files that hold all state, and the reference market."""

from pipeline.domain.tables.declaration import (
    ASKED,
    CELL_KEY,
    FLAG,
    INSTANT,
    INT,
    LONG,
    MONEY,
    NUMBER,
    PROPERTY_ID,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)
from pipeline.domain.tables.offer import FREE_CANCEL

_OPEN_COLUMNS = (
    required("source", TEXT, "`multi`: cheapest per board and policy; `detail`: every product. Never one series."),
    required("offer_key", LONG, "Stable hash of what identifies an offer, the same for all sources: mart.offer_key."),
    CELL_KEY,
    PROPERTY_ID,
    *ASKED,
    Column("currency", TEXT, "ISO 4217 code of all money of this row, as sent; NULL: not comparable."),
    Column("room_stay_id", INT, "Requested room that this offer is for, from 0."),
    Column("room_id", LONG, "The supplier's room id."),
    Column("room_name", TEXT, "Room name as last sent."),
    Column("board_id", INT, "Board basis id."),
    Column("board_name", TEXT, "Board basis name as last sent."),
    required("policy_key", LONG, "Stable hash of the sorted cancellation penalties; 0: none stated."),
    required("refundability", TEXT, "`refundable`, `non_refundable`, `mixed` or `unknown`."),
    *FREE_CANCEL,
    Column("product_id", LONG, "The supplier's product id as last sent; it may change from search to search."),
    required("is_offered", FLAG, "FALSE: the cell was answered without this offer."),
    Column("total", MONEY, "Room cost for the whole stay after promotions; NULL: gone or not stated."),
    Column("pre_promo_total", MONEY, "Room cost for the whole stay before promotions; NULL: gone or not stated."),
    Column("discount_pct", NUMBER, "Discount as stated, in percent of pre_promo_total."),
    Column("floor", MONEY, "minSellablePrice: the lowest price to sell a hotel-only product at; NULL: none stated."),
    Column("available_rooms", INT, "Rooms of this type still bookable; repeated in each room stay: never add them up."),
    Column("promotion_key", LONG, "Stable hash of the promotions in order; 0: none; NULL: gone."),
    Column("included_charges", MONEY, "Taxes and fees inside total, as last sent. Detail only."),
    Column("excluded_charges", MONEY, "Amounts outside total, as last sent. Detail only."),
    Column("resort_fee", MONEY, "Resort fee, paid at the property, as last sent. Detail only."),
    Column("child_resort_fee", MONEY, "Resort fee for children, paid at the property, as last sent. Detail only."),
    Column("city_taxes", MONEY, "City taxes, paid at the property, as last sent. Detail only."),
    Column("hotel_service_fee", MONEY, "Service fee, paid at the property, as last sent. Detail only."),
    required(
        "change",
        TEXT,
        "What began this state: `first` seen, `value` changed, `gone`, or `back`.",
        ("first", "value", "gone", "back"),
    ),
    required("valid_from", INSTANT, "Start of the first sweep that saw this state."),
    required("first_seen_at", INSTANT, "Start of the first sweep that saw the offer key."),
    required("last_seen_at", INSTANT, "Start of the last sweep that confirmed this state."),
    required("snapshots", INT, "Number of sweeps that saw this state; sweeps without an answer do not count."),
    required(
        "longest_unseen_days",
        INT,
        "Longest time between two sweeps in a row that saw this state, in days; 0: never more than a day.",
    ),
    Column("unobserved_since", INSTANT, "First sweep after last_seen_at that got no answer about it; NULL: none."),
    Column(
        "doubted_since",
        INSTANT,
        "First later sweep that left open whether it is on sale: a partly unreadable answer lacked it, or the stay was "
        "requested in another currency only, or the property not at all in the market (then unobserved_since is NULL); "
        "NULL: none.",
    ),
    required("began_sweep_id", TEXT, "Sweep of the observation that began this state."),
    required("began_search_id", LONG, "Search of that observation; with the sweep, it identifies the raw answer."),
    Column("began_offer_no", INT, "Offer of that observation; NULL: gone."),
    required("seen_sweep_id", TEXT, "Sweep of the last observation of this state."),
    required("seen_search_id", LONG, "Search of that observation; with the sweep, it identifies the raw answer."),
    Column("seen_offer_no", INT, "Offer of that observation; NULL: gone."),
    required("is_whole", FLAG, "FALSE: the answer's part about the property was partly unreadable, or refused."),
)

OFFER_OPEN = Table(
    "offer_open",
    "One row per source and offer key whose stay is in the future: its last known state.",
    ("source", "property_id", "offer_key"),
    _OPEN_COLUMNS,
)

OFFER_CLOSED = Table(
    "offer_closed",
    "One row per ended interval of a source and offer key. Append-only.",
    ("source", "property_id", "offer_key", "valid_from"),
    (
        *_OPEN_COLUMNS,
        required("valid_to", INSTANT, "Start of the sweep that saw the next state, or the day of check-in."),
        required("ended_by", TEXT, "What ended it: `value`, `gone`, `back`, or `stay_began`."),
    ),
)

STATE_FILE = Table(
    "file",
    "One row per Parquet file of the state: one table, one sweep and one range of properties.",
    ("path",),
    (
        required("table_name", TEXT, "Table of schema `state` that its rows belong to."),
        SWEEP_ID,
        required("path", TEXT, "Address within the lake."),
        required("rows", LONG, "Rows in it."),
        required("bytes", LONG, "Size of it."),
        required("first_property_id", LONG, "Lowest property id of its range."),
        required("last_property_id", LONG, "Highest property id of its range."),
    ),
)

REFERENCE_CHOICE = Table(
    "reference_choice",
    "One row: the reference market, if the settings name none.",
    ("market",),
    (
        Column("market", TEXT, "Market code; NULL: no offer has been seen yet."),
        required("chosen_sweep_id", TEXT, "Sweep in which it was chosen."),
        Column("last_offered_at", INSTANT, "Start of the last sweep with an offer in it."),
    ),
)
