"""The state of cells from night to night: whether anything is on sale, and how many rooms."""

from pipeline.domain.tables.declaration import (
    ASKED,
    CELL_KEY,
    DAY,
    FLAG,
    INSTANT,
    INT,
    LONG,
    OPERATION,
    PROPERTY_ID,
    SEARCH_ID,
    SMALL,
    SOLD_IN,
    SOURCE,
    STAY_SOLD_IN,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)
from pipeline.domain.tables.sweep import NOT_ANSWERED, ONE_STATUS, PLANNED_AND_OFFERED

CELL_STATE = Table(
    "cell",
    "One row per cell whose stay is in the future: its latest request.",
    ("operation", "property_id", "cell_key"),
    (
        CELL_KEY,
        OPERATION,
        PROPERTY_ID,
        *ASKED,
        required("status", TEXT, ONE_STATUS),
        Column("code", INT, "Error code behind the status; NULL: the supplier gave none."),
        Column("searched_at", INSTANT, "When the search was sent; NULL: not swept."),
        required("offers", INT, "Offers stored for this cell."),
        SWEEP_ID,
        SEARCH_ID,
        required("asked_at", INSTANT, "Start of the last sweep that requested it."),
        required("is_whole", FLAG, "TRUE: it was answered, and its part of the answer could be read completely."),
        Column("answered_at", INSTANT, "When the last answered search was sent; NULL: never answered."),
        Column("answered_status", TEXT, "Status of that answer; NULL: never answered."),
        Column(
            "known_status",
            TEXT,
            "`offered`, `no_offer` or `absent` of the last answer that was read completely; NULL: none.",
        ),
        Column("known_code", INT, "Error code behind known_status; NULL: none was given, or it is offered."),
        Column("known_from", INSTANT, "Start of the first sweep that saw known_status with known_code."),
        Column("known_seen_at", INSTANT, "Start of the last sweep that confirmed it."),
        required("spells", SMALL, "How often the cell has come on sale: 1 the first time, more if it re-opened."),
        required(
            "parts_in_doubt",
            INT,
            "Number of parts without a property id in its last answer that may belong to it; 0: not in doubt.",
        ),
    ),
)

CELL_CLOSED = Table(
    "cell_closed",
    "One row per ended interval in which the answers for a cell had the same status and code. Append-only.",
    ("operation", "property_id", "cell_key", "known_from"),
    (
        CELL_KEY,
        OPERATION,
        PROPERTY_ID,
        *STAY_SOLD_IN,
        required("known_status", TEXT, "`offered`, `no_offer` or `absent`."),
        Column("known_code", INT, "Error code behind known_status; NULL: none was given, or it is offered."),
        required("known_from", INSTANT, "Start of the first sweep that saw it."),
        required("known_seen_at", INSTANT, "Start of the last sweep that confirmed it."),
        required("spells", SMALL, "How often the cell had come on sale by then, including re-openings."),
        required("known_to", INSTANT, "Start of the sweep that saw the next status, or the day of check-in."),
        required("next_status", TEXT, "Status that followed: `offered`, `no_offer`, `absent` or `stay_began`."),
        Column("next_code", INT, "Error code behind next_status; NULL: none."),
    ),
)

CELL_COUNT = Table(
    "cell_count",
    "One row per sweep, operation, market, product type, number of rooms and lead days: its cells by status. "
    "Append-only.",
    ("sweep_id", "operation", "market", "product_type", "rooms", "lead_days"),
    (
        SWEEP_ID,
        required("snapshot_date", DAY, "The day that lead days are counted from: start of the sweep in UTC."),
        OPERATION,
        *SOLD_IN,
        required("rooms", SMALL, "Rooms of the party."),
        required("lead_days", INT, "Days from the snapshot to check-in."),
        *PLANNED_AND_OFFERED,
        required("no_offer_1023", LONG, "Cells answered with 1023: no offers available."),
        required("no_offer_1024", LONG, "Cells answered with 1024: restricted rates requested."),
        required("no_offer_1025", LONG, "Cells answered with 1025: none of the requested properties is available."),
        required("no_offer_1026", LONG, "Cells answered with 1026: several rooms of different types."),
        required("no_offer_other", LONG, "Cells answered without an offer and with no such code."),
        *NOT_ANSWERED,
    ),
)

STOCK_CHANGE = Table(
    "stock_change",
    "One row per room of a cell and sweep in which the number of bookable rooms differs from the previous answer. "
    "Append-only.",
    ("sweep_id", "source", "property_id", "cell_key", "room_id"),
    (
        SWEEP_ID,
        required("changed_at", INSTANT, "Start of the sweep that saw the change."),
        required("previous_seen_at", INSTANT, "Last sweep that saw the room before; the change was between the two."),
        SOURCE,
        CELL_KEY,
        PROPERTY_ID,
        *STAY_SOLD_IN,
        Column("room_id", LONG, "The supplier's room id."),
        Column("rooms_before", INT, "Rooms still bookable before; NULL: the room was gone and has re-opened."),
        required("rooms_after", INT, "Rooms still bookable after."),
    ),
)

PROPERTY_SALE = Table(
    "property_sale",
    "One row per operation, property, market and product type that has ever had an offer: when it last had one, and "
    "its quiet days since.",
    ("operation", "property_id", "market", "product_type"),
    (
        OPERATION,
        PROPERTY_ID,
        *SOLD_IN,
        required("last_offered_at", INSTANT, "Start of the last sweep that found an offer."),
        required("offered_sweep_id", TEXT, "Last sweep that found an offer."),
        required("offered_search_id", LONG, "A search of that sweep that found an offer."),
        required("last_answered_at", INSTANT, "Start of the last sweep with an answer about it."),
        Column("quiet_date", DAY, "Last day on which it was answered without any offer; NULL: offered since."),
        Column("quiet_sweep_id", TEXT, "Last sweep that was answered without any offer; NULL: offered since."),
        Column("quiet_search_id", LONG, "A search of that sweep that was answered; NULL: offered since."),
        required("quiet_nights", INT, "Days since its last offer on which it was answered, and without any offer."),
        required("quiet_cells", LONG, "Cells that were answered on those days."),
    ),
)

QUIET_SEARCH = Table(
    "quiet_search",
    "One row per search that was answered without an offer of a property that had offers before, while it counts "
    "towards its quiet days. Append-only.",
    ("operation", "property_id", "sweep_id", "search_id"),
    (
        SWEEP_ID,
        SEARCH_ID,
        required("asked_at", INSTANT, "Start of the sweep."),
        OPERATION,
        PROPERTY_ID,
        *SOLD_IN,
    ),
)
