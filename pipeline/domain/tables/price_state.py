"""The state of prices from night to night: how they moved, and where they were dearer."""

from pipeline.domain.tables.declaration import (
    CELL_KEY,
    CHECK_IN,
    FLAG,
    INSTANT,
    INT,
    LONG,
    MARKET,
    MONEY,
    NUMBER,
    OFFER_NO,
    PROPERTY_ID,
    SEARCH_ID,
    SOLD_IN,
    SOURCE,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)

_BY_LEAD = (
    SWEEP_ID,
    SOURCE,
    *SOLD_IN,
    required("lead_days", INT, "Days from the snapshot to check-in."),
)

PRICE_MOVE = Table(
    "price_move",
    "One row per sweep, source, market, product type and lead days: how totals changed between two answers "
    "in a row that had the offer. Append-only.",
    ("sweep_id", "source", "market", "product_type", "lead_days"),
    (
        *_BY_LEAD,
        required("seen", LONG, "Offers seen, with a total."),
        required("pairs", LONG, "Number of these that also had a total in the previous answer."),
        required("raised", LONG, "Pairs whose total rose."),
        required("lowered", LONG, "Pairs whose total fell."),
        required("spanning", LONG, "Pairs of any lead days with one answer before and one after the end of this day."),
        required("drift", NUMBER, "Sum over these of ln(total / total before) for each day between the two answers."),
        required("squares", NUMBER, "Sum over the pairs of ln(total / total before) squared."),
    ),
)

PRICE_CHANGE = Table(
    "price_change",
    "One row per sweep, source, market, product type, currency, whether plain, and size of change: how many totals "
    "moved by it since offers were last seen. Append-only.",
    ("sweep_id", "source", "market", "product_type", "currency", "is_plain", "change_step"),
    (
        *_BY_LEAD[:4],
        Column("currency", TEXT, "ISO 4217 code of the totals."),
        required("is_plain", FLAG, "TRUE: neither price is promoted, so no total is below its pre_promo_total."),
        required("change_step", INT, "ln(total / total before) in thousandths."),
        required("pairs", LONG, "Offers that also had a total in the previous answer."),
        required("drift", NUMBER, "Sum over these of ln(total / total before)."),
    ),
)

WAITING = Table(
    "waiting",
    "One row per sweep that found stays begun, source, market, product type and lead days: the effect of waiting. "
    "Append-only.",
    ("sweep_id", "source", "market", "product_type", "lead_days"),
    (
        *_BY_LEAD,
        required("offers", LONG, "Offer keys that were on sale lead_days ahead, of stays that have begun."),
        required("answered_later", LONG, "Number of these that were answered again later: the comparable ones."),
        required("gone_later", LONG, "Number of comparable ones that were not on sale when last answered."),
        required("comparable", LONG, "Number of comparable ones that had a total again."),
        required("cheaper_later", LONG, "Comparable ones that were cheaper at some later time."),
        required("dearer_last", LONG, "Comparable ones that were dearer when last seen."),
        required("ln_lowest", NUMBER, "Sum over the comparable ones of ln(lowest later total / total)."),
        required("ln_last", NUMBER, "Sum over the comparable ones of ln(last total / total)."),
    ),
)

_SOURCE = required("source", TEXT, "`multi`: cheapest per board and policy; `detail`: every product. Never one series.")
_OF_OFFER = (
    _SOURCE,
    required("offer_key", LONG, "Stable hash of what identifies an offer, the same for all sources: mart.offer_key."),
    PROPERTY_ID,
    MARKET,
    CHECK_IN,
)
_REFERENCE_MARKET = required("reference_market", TEXT, "Market that it is compared with.")
_BEGAN = (
    required(
        "currency_basis",
        TEXT,
        "Currency basis of the comparison: `same`, `supplier_rate` or `reference_rate`; one per episode.",
    ),
    required("began_at", INSTANT, "Start of the first sweep of the episode."),
)
_SNAPSHOTS = required("snapshots", INT, "Consecutive snapshots in which it was dearer, not counting unanswered sweeps.")
_PARITY_COLUMNS = (
    *_OF_OFFER,
    _REFERENCE_MARKET,
    required("reference_offer_key", LONG, "Offer key of the offer that it was compared with."),
    *_BEGAN,
    required("last_losing_at", INSTANT, "Start of the last sweep that found it dearer."),
    _SNAPSHOTS,
    required("last_gap_pct", NUMBER, "Gap to the reference market at last_losing_at, in percent of its total."),
    required("largest_gap_pct", NUMBER, "Largest gap of the episode, in percent of the reference market's total."),
)

_ENDED = (
    required("ended_at", INSTANT, "Start of the sweep that saw the end, or the day of check-in."),
    required(
        "ended_by",
        TEXT,
        "`resolved`: it was compared and not dearer; `gone`: one of the two was no longer on sale; "
        "`not_asked`: the property, or the currency of one of them, is no longer requested; "
        "`reference_changed`: it is compared with another offer; `basis_changed`: on another currency_basis; or "
        "`stay_began`.",
    ),
)

PARITY_OPEN = Table(
    "parity_open",
    "One row per source and offer key that was dearer than in the reference market when last compared.",
    ("source", "property_id", "offer_key"),
    _PARITY_COLUMNS,
)

PARITY_CLOSED = Table(
    "parity_closed",
    "One row per ended episode in which an offer was dearer than in the reference market. Append-only.",
    ("source", "property_id", "offer_key", "began_at"),
    (*_PARITY_COLUMNS, *_ENDED),
)

_GROUP_KEY = ("match_grade", "source", "property_id", "cell_key", "room_no", "board_family", "currency")
_GROUP_COLUMNS = (
    required("match_grade", TEXT, "`board_family` or `cheapest`."),
    _SOURCE,
    PROPERTY_ID,
    CELL_KEY,
    required("room_no", INT, "Requested room that the group is for, from 0."),
    required("board_family", TEXT, "Family of the boards of the group; '': all boards, of the grade `cheapest`."),
    required("currency", TEXT, "ISO 4217 code of the group's totals."),
    CHECK_IN,
    required("reference_cell_key", LONG, "Cell of the reference market that it was compared with."),
    required("reference_currency", TEXT, "ISO 4217 code of the totals there."),
    *_BEGAN,
    _SNAPSHOTS,
)

PARITY_GROUP_OPEN = Table(
    "parity_group_open",
    "One row per match grade below exact, source and group of offers whose cheapest one was dearer than the reference "
    "market's when last compared.",
    _GROUP_KEY,
    _GROUP_COLUMNS,
)

PARITY_GROUP_CLOSED = Table(
    "parity_group_closed",
    "One row per ended episode in which the cheapest offer of a group was dearer than the reference market's. "
    "Append-only.",
    (*_GROUP_KEY, "began_at"),
    (*_GROUP_COLUMNS, MARKET, _REFERENCE_MARKET, *_ENDED),
)

FLOOR_MOVE = Table(
    "floor_move",
    "One row per source, hotel-only offer key and sweep in which the floor changed and the total did not. Append-only.",
    ("source", "property_id", "offer_key", "moved_at"),
    (
        *_OF_OFFER,
        Column("currency", TEXT, "ISO 4217 code of all money of this row, as sent; NULL: not comparable."),
        required("total", MONEY, "Room cost for the whole stay after promotions; the same before and after the move."),
        Column("floor_before", MONEY, "Floor when the offer was last seen before; NULL: none stated."),
        Column("floor", MONEY, "Floor after the move; NULL: none stated."),
        required("previous_seen_at", INSTANT, "Start of the last sweep that saw floor_before."),
        required("moved_at", INSTANT, "Start of the sweep that saw the new floor."),
        required("before_sweep_id", TEXT, "Sweep of the observation of floor_before."),
        required("before_search_id", LONG, "Search of that observation."),
        required("before_offer_no", INT, "Offer of that observation."),
        SWEEP_ID,
        SEARCH_ID,
        OFFER_NO,
    ),
)
