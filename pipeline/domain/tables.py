"""The lake's tables, declared once: columns, types, units, grain and keys.

Everything that writes, checks, documents or publishes a table reads these declarations. Money is
DECIMAL(18,4) in the currency that stands beside it; instants are UTC; `_pct` is 0 to 100.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

TEXT = pa.string()
SMALL = pa.int16()
INT = pa.int32()
LONG = pa.int64()
NUMBER = pa.float64()
FLAG = pa.bool_()
DAY = pa.date32()
INSTANT = pa.timestamp("us", tz="UTC")
MONEY_SCALE = 4
MONEY = pa.decimal128(18, MONEY_SCALE)
# Reference rates are stated with up to six or seven decimals.
RATE_SCALE = 8
RATE = pa.decimal128(18, RATE_SCALE)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its meaning goes into the published comments word for word.

    `values`, `lowest` and `highest` are what the quality gate holds its values to; NULL is a matter of `is_required`.
    `derived` is the SQL that works the column out of the others where the table is read; it is then in no file.
    """

    name: str
    type: pa.DataType
    meaning: str
    is_required: bool = False
    values: tuple[str, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    derived: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the lake. `key` is unique over the whole table."""

    name: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """The columns that its files have."""
        return tuple(column for column in self.columns if not column.derived)

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of its files, in the order of declaration."""
        return pa.schema([pa.field(c.name, c.type, nullable=not c.is_required) for c in self.stored])


def _required(
    name: str,
    kind: pa.DataType,
    meaning: str,
    values: tuple[str, ...] = (),
    lowest: float | None = None,
    highest: float | None = None,
) -> Column:
    return Column(name, kind, meaning, True, values, lowest, highest)


_SOURCES = ("multi", "detail")
_STATUSES = ("offered", "no_offer", "absent", "rejected", "failed", "not_swept")


SWEEP_ID = _required("sweep_id", TEXT, "Sweep: start in UTC and a short hash of what was asked.")
SEARCH_ID = _required(
    "search_id",
    LONG,
    "HTTP search of the sweep: planned number x 256 + 1, or a higher remainder for halves of a batch.",
)
PROPERTY_ID = _required("property_id", LONG, "The supplier's property id.")
MARKET = _required("market", TEXT, "Market code asked for: the point of sale.")
ASKED = (
    MARKET,
    _required("product_type", TEXT, "`Hotel` or `Package`, as asked for.", ("Hotel", "Package")),
    _required("check_in", DAY, "First night of the stay."),
    _required("nights", SMALL, "Nights of the stay; the day of departure is check_in + nights.", lowest=1),
    _required("party", TEXT, "Guests of all rooms: rooms joined by +, 2c5-9 is two adults with children of 5 and 9."),
    Column("currency_asked", TEXT, "ISO 4217 code asked for; NULL: none was named."),
)
OFFER_NO = _required("offer_no", INT, "Position of the offer in the answer, from 0.", lowest=0)
RAW_ADDRESS = Column("raw_address", TEXT, "Where the raw answer lies: object of the lake, #, row.")

SWEEP = Table(
    "sweep",
    "One row per finished sweep.",
    ("sweep_id",),
    (
        SWEEP_ID,
        _required("snapshot_date", DAY, "The day that lead days are counted from: started_at in UTC."),
        _required("started_at", INSTANT, "Start of the sweep."),
        _required("finished_at", INSTANT, "End of the collection."),
        _required(
            "state", TEXT, "`complete`: each search was answered or failed; `closed`: ended early, the rest not swept."
        ),
        _required("is_simulated", FLAG, "True if the answers come from the sandbox."),
        _required("supplier", TEXT, "Host of the supplier."),
        _required("spec", TEXT, "The sweep's spec in canonical JSON."),
        _required("nightaudit_version", TEXT, "Version of the code that collected."),
        _required("contract_version", TEXT, "Version of the supplier's document."),
        _required("rules_version", INT, "Version of the rules of normalisation."),
        _required("planned", LONG, "Planned cells: the sum of the six statuses."),
        _required("offered", LONG, "Cells with at least one offer."),
        _required("no_offer", LONG, "Cells answered without an offer."),
        _required("absent", LONG, "Cells asked for in a multi search and not in its answer; not the same as sold out."),
        _required("rejected", LONG, "Cells refused by the supplier (400)."),
        _required("failed", LONG, "Cells whose retries were used up or whose answer could not be read."),
        _required("not_swept", LONG, "Cells not asked: stopped, or out of budget."),
        _required("searches", LONG, "HTTP searches that ended, halves included."),
        _required("requests", LONG, "HTTP requests sent: every attempt."),
        _required("offers", LONG, "Offers stored."),
        _required("rejects", LONG, "Parts of answers that could not be read."),
        _required("wire_bytes", LONG, "Bytes of bodies as they came over the wire."),
    ),
)

SEARCH = Table(
    "search",
    "One row per HTTP search that ended, halves of split batches included.",
    ("sweep_id", "search_id"),
    (
        SWEEP_ID,
        SEARCH_ID,
        _required("operation", TEXT, "`multi`, `single` or `quote`.", ("multi", "single", "quote")),
        *ASKED,
        _required("properties", INT, "Properties asked for.", lowest=1),
        _required(
            "outcome",
            TEXT,
            "`answered`, `rejected` (400), `failed`, or `split`: the batch failed and its halves were asked instead.",
            ("answered", "rejected", "failed", "split"),
        ),
        Column(
            "sent_property_id",
            LONG,
            "Property id that was sent instead of the cell's own: the unbranded one of the map; NULL: its own.",
        ),
        Column("http_status", SMALL, "HTTP status of the last attempt; NULL: there was no answer."),
        Column("codes", TEXT, "Documented or unknown error codes of the answer, joined by commas."),
        Column("messages", TEXT, "Texts of the errors of the answer, each on a line of its own; NULL: none."),
        Column("failure", TEXT, "Why the search failed."),
        _required("attempts", SMALL, "Requests sent for this search.", lowest=0),
        _required("started_at", INSTANT, "Start of the last attempt."),
        _required("ended_at", INSTANT, "End of the last attempt."),
        _required("latency_ms", INT, "Milliseconds from the start to the end of the last attempt."),
        _required("wire_bytes", LONG, "Bytes of the body as it came."),
        Column("body_bytes", LONG, "Bytes of the body once inflated."),
        Column("body_sha256", TEXT, "SHA-256 of the wire bytes of the body, in hex."),
        _required("offers", INT, "Offers stored from this answer."),
        _required("rejects", INT, "Parts of this answer that could not be read."),
        RAW_ADDRESS,
    ),
)

CELL = Table(
    "cell",
    "One row per planned cell and sweep, with its one status.",
    ("sweep_id", "operation", "property_id", "market", "product_type", "check_in", "nights", "party", "currency_asked"),
    (
        SWEEP_ID,
        SEARCH_ID,
        _required("operation", TEXT, "`multi` or `single`.", ("multi", "single")),
        PROPERTY_ID,
        *ASKED,
        _required("status", TEXT, "`offered`, `no_offer`, `absent`, `rejected`, `failed` or `not_swept`.", _STATUSES),
        Column("code", INT, "Error code behind the status, where the supplier gave one."),
        Column("searched_at", INSTANT, "When the search was sent; NULL: not swept."),
        _required("offers", INT, "Offers stored for this cell.", lowest=0),
    ),
)

OFFER = Table(
    "offer",
    "One row per product of a room of a room stay in an observation.",
    ("sweep_id", "search_id", "offer_no"),
    (
        SWEEP_ID,
        SEARCH_ID,
        OFFER_NO,
        _required(
            "source",
            TEXT,
            "`multi`: cheapest per board and policy; `detail`: every product. Never one series.",
            _SOURCES,
        ),
        _required("searched_at", INSTANT, "When the search was sent."),
        PROPERTY_ID,
        *ASKED,
        Column("room_stay_id", INT, "Which requested room this answers, from 0."),
        Column("room_id", LONG, "The supplier's room id."),
        Column("room_name", TEXT, "Room name as sent."),
        Column("rate_type", TEXT, "Rate type as sent."),
        Column("product_id", LONG, "The supplier's product id; it may change from search to search."),
        Column("board_id", INT, "Board basis id as sent."),
        Column("board_name", TEXT, "Board basis name as sent."),
        Column("board_detail", TEXT, "Board basis text as sent."),
        _required("policy_key", LONG, "Stable hash of the sorted cancel penalties; 0: none stated."),
        _required("promotion_key", LONG, "Stable hash of the promotions in order; 0: none."),
        Column("currency", TEXT, "ISO 4217 code of all money of this row, as sent; NULL: not comparable."),
        Column("total", MONEY, "Room cost for the whole stay after promotions."),
        Column("pre_promo_total", MONEY, "Room cost for the whole stay before promotions.", lowest=0),
        Column("discount_pct", NUMBER, "Discount as stated, in percent of pre_promo_total.", lowest=0, highest=100),
        Column(
            "floor",
            MONEY,
            "minSellablePrice: the lowest price to sell a hotel-only product at; NULL: none stated.",
            lowest=0,
        ),
        Column("available_rooms", INT, "Rooms of this type still bookable; repeats per room stay.", lowest=0),
        Column("included_charges", MONEY, "Taxes and fees inside total. Detail only.", lowest=0),
        Column("excluded_charges", MONEY, "Amounts outside total. Detail only.", lowest=0),
        Column("resort_fee", MONEY, "Resort fee, paid at the property. Detail only.", lowest=0),
        Column("child_resort_fee", MONEY, "Resort fee for children, paid at the property. Detail only.", lowest=0),
        Column("city_taxes", MONEY, "City taxes, paid at the property. Detail only.", lowest=0),
        Column("hotel_service_fee", MONEY, "Service fee, paid at the property. Detail only.", lowest=0),
        _required(
            "refundability",
            TEXT,
            "`refundable`, `non_refundable`, `mixed` or `unknown` (no penalty says).",
            ("refundable", "non_refundable", "mixed", "unknown"),
        ),
        Column(
            "free_cancel_hours",
            INT,
            "Hours before check-in until which cancelling is free, by the windows; NULL: not stated of all that costs.",
        ),
        Column(
            "free_cancel_until",
            INSTANT,
            "Until when cancelling is free, by exact dates; NULL: not stated of all that costs. Detail only.",
        ),
    ),
)

_PENALTY_TERMS = (
    "penalty_no", "window_hours", "penalty_pct", "penalty_nights", "is_refundable", "start_at", "end_at", "amount"
)  # fmt: skip
PENALTY = Table(
    "penalty",
    "One row per cancel penalty of an offer, in the order of the answer.",
    ("sweep_id", "search_id", "offer_no", "penalty_no"),
    (
        SWEEP_ID,
        SEARCH_ID,
        OFFER_NO,
        _required("penalty_no", SMALL, "Position in the offer, from 0."),
        PROPERTY_ID,
        MARKET,
        Column("window_hours", INT, "Hours before check-in in which the penalty applies."),
        Column("penalty_pct", NUMBER, "Percentage of the total, or of the nights of penalty_nights."),
        Column("penalty_nights", NUMBER, "Nights charged, read together with penalty_pct.", lowest=0),
        Column("is_refundable", FLAG, "False: cannot be refunded."),
        Column("start_at", INSTANT, "Exact start. Detail only."),
        Column("start_offset", TEXT, "Offset of the start as sent. Detail only."),
        Column("end_at", INSTANT, "Exact end. Detail only."),
        Column("end_offset", TEXT, "Offset of the end as sent. Detail only."),
        Column("amount", MONEY, "Fixed amount, in the offer's currency. Detail only.", lowest=0),
    ),
)

PROMOTION = Table(
    "promotion",
    "One row per promotion of an offer, in the order of the answer.",
    ("sweep_id", "search_id", "offer_no", "promotion_no"),
    (
        SWEEP_ID,
        SEARCH_ID,
        OFFER_NO,
        _required("promotion_no", SMALL, "Position in the offer, from 0."),
        PROPERTY_ID,
        MARKET,
        Column("promo_type", TEXT, "Kind as sent: value add, discount off or free night."),
        Column("description", TEXT, "Text as sent."),
    ),
)

REJECT = Table(
    "reject",
    "One row per answer, or part of one, that could not be read, and per offer that the audit has put in quarantine.",
    ("sweep_id", "search_id", "reject_no"),
    (
        SWEEP_ID,
        SEARCH_ID,
        _required("reject_no", INT, "Position in the answer, from 0; of offers in quarantine 1,000,000 + offer_no."),
        MARKET,
        Column("property_id", LONG, "Property of the part, where it could be read."),
        _required(
            "part",
            TEXT,
            "`answer`, `property`, `room_stay` or `offer`; in quarantine also `penalty` or `promotion` without "
            "an offer.",
            ("answer", "property", "room_stay", "offer", "penalty", "promotion"),
        ),
        _required("path", TEXT, "Where in the body the part stands."),
        _required("reason", TEXT, "Why it could not be read, or how it breaks the rule."),
        Column("sample", TEXT, "The part as sent, cut to 500 characters."),
        RAW_ADDRESS,
        Column("rule", TEXT, "Rule of the audit that the offer breaks, several joined by commas; NULL: unreadable."),
        Column("offer_no", INT, "Offer in quarantine, or that the part names; NULL: unreadable."),
    ),
)

DRIFT = Table(
    "drift",
    "One row per deviation from the supplier's document, sweep, market and segment.",
    ("sweep_id", "operation", "market", "segment", "path", "kind", "detail"),
    (
        SWEEP_ID,
        _required("operation", TEXT, "`multi`, `single` or `quote`."),
        MARKET,
        _required("segment", INT, "Part of the sweep's market that was normalised at one time."),
        _required("path", TEXT, "Path of the field, arrays as []."),
        _required("kind", TEXT, "`unknown_field`, `changed_type`, `new_value`, `not_asked` or `duplicate`."),
        _required("detail", TEXT, "The type or value met."),
        _required("occurrences", LONG, "How often."),
        _required("example_raw_address", TEXT, "Raw address of one example."),
    ),
)

OFFER_CHANGE = Table(
    "offer_change",
    "One row per change of a source and offer key. Append-only, kept for ever.",
    ("sweep_id", "source", "offer_key", "property_id"),
    (
        SWEEP_ID,
        _required("changed_at", INSTANT, "Start of the sweep that saw the change."),
        _required("change", TEXT, "`first` seen, `value` changed, `gone`, or `back`."),
        Column("previous_seen_at", INSTANT, "Last sweep that saw the offer before; the change lies between the two."),
        # Half of a row's bytes, if it were stored: no two keys have anything in common.
        Column(
            "offer_key",
            LONG,
            "Stable hash of what makes an offer the same: all that was asked, room, board, policy. One in list, detail "
            "and quote; a price series is a key and a source. Worked out on reading: the files do not have it.",
            is_required=True,
            derived="mart.offer_key("
            "mart.cell_key(property_id, market, product_type, check_in, nights, party, currency_asked), "
            "room_stay_id, room_id, board_id, policy_key, currency)",
        ),
        PROPERTY_ID,
        *ASKED,
        Column("currency", TEXT, "ISO 4217 code of all money of this row."),
        Column("room_stay_id", INT, "Which requested room this answers, from 0."),
        Column("room_id", LONG, "The supplier's room id."),
        Column("board_id", INT, "Board basis id."),
        _required("policy_key", LONG, "Stable hash of the cancel penalties; see offer."),
        Column("promotion_key", LONG, "Stable hash of the promotions; NULL: gone."),
        Column("total", MONEY, "Room cost for the whole stay after promotions; NULL: gone or not stated."),
        Column("pre_promo_total", MONEY, "Room cost before promotions; NULL: gone or not stated."),
        Column("discount_pct", NUMBER, "Discount as stated; NULL: gone or not stated."),
        Column("floor", MONEY, "minSellablePrice; NULL: gone or not stated."),
        Column("available_rooms", INT, "Rooms still bookable; NULL: gone or not stated."),
        _required("source", TEXT, "`multi` or `detail`: two series that are never mixed."),
    ),
)

_CONTENT_CHANGE = (
    SWEEP_ID,
    _required("search_id", LONG, "Search that shows the change: the first of the sweep that says so, or says no more."),
    _required("changed_at", INSTANT, "Start of the sweep that saw the change."),
    _required("change", TEXT, "`first` seen, `value` changed, `gone`, or `back`.", ("first", "value", "gone", "back")),
    PROPERTY_ID,
)
ROOM_ID = Column("room_id", LONG, "The supplier's room id; NULL: sent without one.")
_PROPERTY_NAME = Column("property_name", TEXT, "Name as sent; NULL: never stated.")
_ROOM_WORDS = (
    ROOM_ID,
    Column("room_name", TEXT, "Room name as sent; NULL: never stated."),
    Column("room_description", TEXT, "Description as sent; NULL: never stated."),
    Column("bed_type", TEXT, "Beds as sent; NULL: never stated."),
)

PROPERTY = Table(
    "property",
    "One row per change of what single answers say of a property. Append-only.",
    ("sweep_id", "property_id"),
    (*_CONTENT_CHANGE, _PROPERTY_NAME),
)

ROOM = Table(
    "room",
    "One row per change of what single answers say of a room; `gone`: its property was on sale, and not this room.",
    ("sweep_id", "property_id", "room_id"),
    (*_CONTENT_CHANGE, *_ROOM_WORDS),
)

ROOM_AMENITY = Table(
    "room_amenity",
    "One row per change of an amenity of a room; `gone`: the room was listed without it.",
    ("sweep_id", "property_id", "room_id", "amenity_key"),
    (
        *_CONTENT_CHANGE,
        ROOM_ID,
        _required("amenity_key", TEXT, "The amenity's id, or ~ and its name where it has none."),
        Column("amenity_id", LONG, "The supplier's amenity id; NULL: sent without one."),
        Column("amenity_name", TEXT, "Name as sent; NULL: never stated."),
    ),
)

ROOM_IMAGE = Table(
    "room_image",
    "One row per change of an image of a room; `gone`: the room was listed without it.",
    ("sweep_id", "property_id", "room_id", "image_url"),
    (
        *_CONTENT_CHANGE,
        ROOM_ID,
        _required("image_url", TEXT, "Address of the image as sent."),
        _required(
            "image_no", INT, "Position among the images of the room, from 0; as last seen where it is gone.", lowest=0
        ),
    ),
)

CONTENT_TABLES = (PROPERTY, ROOM, ROOM_AMENITY, ROOM_IMAGE)

# What a loaded sweep says of content, until it is published: then only what it changed is kept.
PROPERTY_CONTENT = Table(
    "property_content",
    "One row per distinct content of a property in a segment.",
    ("sweep_id", "search_id", "property_id"),
    (SWEEP_ID, SEARCH_ID, PROPERTY_ID, _PROPERTY_NAME),
)
ROOM_CONTENT = Table(
    "room_content",
    "One row per distinct content of a room in a segment.",
    ("sweep_id", "search_id", "property_id", "room_no"),
    (
        SWEEP_ID,
        SEARCH_ID,
        _required("room_no", INT, "Position in the answer, from 0."),
        PROPERTY_ID,
        *_ROOM_WORDS,
        Column(
            "amenities",
            pa.list_(pa.struct([pa.field("amenity_id", LONG), pa.field("amenity_name", TEXT)])),
            "Amenities in the order of the answer; NULL: not stated.",
        ),
        Column("images", pa.list_(TEXT), "Addresses of images in the order of the answer; NULL: not stated."),
    ),
)
WORKING_TABLES = {table.name: table for table in (PROPERTY_CONTENT, ROOM_CONTENT)}

QUALITY = Table(
    "quality",
    "One row per sweep, audit, market, table and check.",
    ("sweep_id", "audit_no", "market", "table_name", "check_name"),
    (
        SWEEP_ID,
        _required("audit_no", INT, "Audit of the sweep, from 1; the highest counts."),
        _required("audited_at", INSTANT, "When the audit was made."),
        _required("market", TEXT, "Market code asked for; `all`: the sweep as a whole."),
        _required("table_name", TEXT, "Table that was looked at."),
        _required("check_name", TEXT, "What was checked."),
        _required("severity", TEXT, "`critical` keeps the sweep from being published, `warning` is told."),
        _required("outcome", TEXT, "`passed`, `failed`, or `not_judged`: too few nights to compare with."),
        _required("basis", TEXT, "`rule`: the same for each night; `history`: the nights before; `rows`: an SQL rule."),
        Column("observed", NUMBER, "What was found; NULL: nothing to measure."),
        Column("lowest", NUMBER, "Least that passes; NULL: no bound."),
        Column("highest", NUMBER, "Most that passes; NULL: no bound."),
        _required("nights_before", INT, "Nights that the bounds come from; 0: a rule."),
        _required(
            "violations",
            LONG,
            "Rows, keys or cells that break a rule; of a check by history that counts none, 1 or 0: failed or not.",
        ),
        _required("meaning", TEXT, "The check in words."),
        Column("examples", TEXT, "Up to three rows that break it, as JSON, with their raw address."),
    ),
)


TABLES = {
    table.name: table
    for table in (
        *(SWEEP, SEARCH, CELL, OFFER, PENALTY, PROMOTION, REJECT, DRIFT, OFFER_CHANGE, QUALITY),
        *CONTENT_TABLES,
    )
}

# What the user feeds in, and what is asked outside sweeps. Their files lie in one folder an input or a run.

INPUT_ID = _required("input_id", TEXT, "File that was loaded: its number among those of its kind, and its SHA-256.")
LOADED_AT = _required("loaded_at", INSTANT, "When the file was loaded.")
LINE_NO = _required("line_no", LONG, "Row of that file, as a spreadsheet counts: the header is row 1.")

FX_RATE = Table(
    "fx_rate",
    "One row per currency, day and file that states its reference rate. The file loaded last wins: mart.fx_rate_on.",
    ("input_id", "rate_date", "currency"),
    (
        INPUT_ID,
        LOADED_AT,
        LINE_NO,
        _required("rate_date", DAY, "Business day that the reference rate was set for."),
        _required("currency", TEXT, "ISO 4217 code of the currency that the rate is of."),
        _required("rate", RATE, "Units of the currency for one euro."),
    ),
)

SELLING_PRICE = Table(
    "selling_price",
    "One row per selling price that a file states. The file loaded last wins: mart.selling_price.",
    ("input_id", "line_no"),
    (
        INPUT_ID,
        LOADED_AT,
        LINE_NO,
        PROPERTY_ID,
        MARKET,
        _required("product_type", TEXT, "`Hotel` or `Package`."),
        _required("check_in", DAY, "First night of the stay."),
        _required("nights", SMALL, "Nights of the stay; the day of departure is check_in + nights."),
        _required("party", TEXT, "Guests of all rooms: rooms joined by +, 2c5-9 is two adults with children."),
        _required("currency", TEXT, "ISO 4217 code of price."),
        _required("price", MONEY, "What the whole stay is sold at, in currency."),
        _required("observed_at", INSTANT, "When this price was on sale."),
        Column("room_id", LONG, "The supplier's room id; NULL: not given, so any room may be meant."),
        Column("board_id", INT, "Board basis id; NULL: not given."),
        Column("policy_key", LONG, "Hash of the cancel penalties, as in offer; NULL: not given."),
        Column("channel", TEXT, "Where it was sold or seen; NULL: not given."),
    ),
)

PROPERTY_MAP = Table(
    "property_map",
    "One row per opaque pair and file. The file loaded last is the map: mart.property_map.",
    ("input_id", "branded_id"),
    (
        INPUT_ID,
        LOADED_AT,
        LINE_NO,
        _required("branded_id", LONG, "Property id under which the offer is shown with its brand."),
        _required("unbranded_id", LONG, "Property id that single searches and quotes of it are sent with."),
    ),
)

WEIGHT = Table(
    "weight",
    "One row per property or market and file. The file loaded last holds: mart.weight.",
    ("input_id", "line_no"),
    (
        INPUT_ID,
        LOADED_AT,
        LINE_NO,
        Column("property_id", LONG, "Property that the weight is of; NULL: it is a market's."),
        Column("market", TEXT, "Market that the weight is of; NULL: it is a property's."),
        _required("weight", NUMBER, "Weight in scores, 0 or more; what is not listed weighs 1."),
    ),
)

QUOTE = Table(
    "quote",
    "One row per quote that was about to be asked, with what came of it.",
    ("run_id", "quote_no"),
    (
        _required("run_id", TEXT, "Run of quotes: start in UTC and a short hash of what was chosen."),
        _required("quote_no", INT, "Position in the run, from 0."),
        _required("is_simulated", FLAG, "True if the answer comes from the sandbox."),
        SWEEP_ID,
        SEARCH_ID,
        _required("offer_no", INT, "Position of the quoted offer in that search's answer, from 0: of its first room."),
        _required("source", TEXT, "Answer that the offer was in: `multi` (list) or `detail`."),
        _required("offer_key", LONG, "Stable hash of what makes an offer the same: of its first room."),
        PROPERTY_ID,
        _required("sent_property_id", LONG, "Property id that was sent: the unbranded one where the map has one."),
        *ASKED,
        _required("rooms", SMALL, "Rooms of the party, each quoted with a product of its own: quote_offer.", lowest=1),
        Column("room_stay_id", INT, "Which requested room the offer answers, from 0: of its first room."),
        Column("room_id", LONG, "The supplier's room id, as the search said."),
        Column("board_id", INT, "Board basis id, as the search said."),
        _required("policy_key", LONG, "Stable hash of the cancel penalties, as the search said."),
        _required("product_id", LONG, "The product that the quote named for its first room."),
        _required("searched_at", INSTANT, "When the search was sent that gave the offer."),
        _required("currency", TEXT, "ISO 4217 code of search_total."),
        _required("search_total", MONEY, "Cost of all rooms for the whole stay as the search said."),
        _required("intended_at", INSTANT, "When the intent was written down, before the call."),
        Column("quoted_at", INSTANT, "When the quote was sent; NULL: nothing is known of the call."),
        Column("answered_at", INSTANT, "When its answer had come, or failed to; NULL: nothing is known of the call."),
        Column("age_seconds", LONG, "Seconds from the search to the quote: the age of the price."),
        _required(
            "outcome",
            TEXT,
            "`matched`, `raised`, `lowered`, `gone`, `refused` (400), `not_comparable` (answered without a price, in "
            "another currency, or for another property or product), `failed` (no reservation was made or told), or "
            "`unknown`.",
        ),
        Column("code", INT, "Error code behind the outcome, where the supplier gave one."),
        Column("codes", TEXT, "Error codes of the answer, joined by commas; NULL: none."),
        Column("messages", TEXT, "Texts of the errors of the answer, each on a line of its own; NULL: none."),
        Column("failure", TEXT, "Why there is no answer, or which parts of it could not be read and are left out."),
        Column("http_status", SMALL, "HTTP status of the answer; NULL: there was none."),
        _required("is_reservation_possible", FLAG, "True where a reservation was made, or cannot be ruled out."),
        Column("reservation_id", LONG, "Reservation that guarantees the price."),
        Column("quote_property_id", LONG, "Property id, as the quote said."),
        Column("quote_currency", TEXT, "ISO 4217 code of quote_total, as sent."),
        Column(
            "quote_total", MONEY, "Cost of all rooms for the whole stay as the quote said; NULL: not known of each."
        ),
        Column("property_remarks", TEXT, "Restrictions or special terms of the property, as the quote said."),
        RAW_ADDRESS,
    ),
)

_QUOTED = (
    _required("run_id", TEXT, "Run of quotes: start in UTC and a short hash of what was chosen."),
    _required("quote_no", INT, "Position in the run, from 0."),
    _required("room_no", SMALL, "Room of the party, from 0."),
)
# A quoted product has all that an offer has, but for what a quote's answer does not tell of a room.
_ASKED_OR_UNTOLD = frozenset(column.name for column in (SWEEP_ID, SEARCH_ID, OFFER_NO, PROPERTY_ID, *ASKED)) | {
    "source", "searched_at", "room_stay_id", "room_name", "available_rooms",
}  # fmt: skip

QUOTE_OFFER = Table(
    "quote_offer",
    "One row per room of a quote: the offer that was asked for, and the product that came back, NULL where none did.",
    ("run_id", "quote_no", "room_no"),
    (
        *_QUOTED,
        PROPERTY_ID,
        MARKET,
        _required("offer_key", LONG, "Stable hash of what makes an offer the same: of the offer that was asked for."),
        _required("offer_no", INT, "Position of that offer in the answer of the quote's search, from 0."),
        _required("asked_product_id", LONG, "The product that the quote named for this room."),
        _required("search_total", MONEY, "Room cost for the whole stay as the search said."),
        Column("room_stay_id", INT, "Which requested room the product answers, as the quote said."),
        *(
            replace(column, is_required=False, meaning=column.meaning.removesuffix(" Detail only."))
            for column in OFFER.columns
            if column.name not in _ASKED_OR_UNTOLD
        ),
    ),
)

_OF_AN_OFFER = (SWEEP_ID, SEARCH_ID, OFFER_NO)
QUOTE_PENALTY = Table(
    "quote_penalty",
    "One row per cancel penalty of a quoted product, in the order of the answer.",
    ("run_id", "quote_no", "room_no", "penalty_no"),
    (*_QUOTED, *(column for column in PENALTY.columns if column not in _OF_AN_OFFER)),
)
QUOTE_PROMOTION = Table(
    "quote_promotion",
    "One row per promotion of a quoted product, in the order of the answer.",
    ("run_id", "quote_no", "room_no", "promotion_no"),
    (*_QUOTED, *(column for column in PROMOTION.columns if column not in _OF_AN_OFFER)),
)

INPUT_TABLES = {table.name: table for table in (FX_RATE, SELLING_PRICE, PROPERTY_MAP, WEIGHT)}
# All that is not made by sweeps.
QUOTE_TABLES = {table.name: table for table in (QUOTE, QUOTE_OFFER, QUOTE_PENALTY, QUOTE_PROMOTION)}
CONFIRMATION = Table(
    "confirmation",
    "One row per flag that was asked about again, and run: what came of it.",
    ("run_id", "flag_id"),
    (
        _required("run_id", TEXT, "Run of `nightaudit confirm`; its answers lie in the raw zone under this name."),
        _required("run_at", INSTANT, "Start of the run."),
        _required("is_simulated", FLAG, "True if the answers come from the sandbox."),
        _required("flag_id", TEXT, "Flag that was asked about: its rule and the subject_key in hex."),
        _required(
            "outcome",
            TEXT,
            "`confirmed`: the rule finds it in the new answers too; `gone`: all was answered, and it does not; "
            "`not_confirmable`: see reason.",
            ("confirmed", "gone", "not_confirmable"),
        ),
        Column("reason", TEXT, "Why it is not confirmable; NULL: it is."),
        Column("searched_at", INSTANT, "When the last of its searches was sent; NULL: none was."),
        Column("size_pct", NUMBER, "Size that the rule finds now; NULL: it finds nothing."),
        Column("finding", TEXT, "What the rule finds now; NULL: nothing."),
        Column("raw_address", TEXT, "Where the new answers lie, separated by blanks; NULL: there are none."),
    ),
)
SIDE_TABLES = INPUT_TABLES | QUOTE_TABLES | {CONFIRMATION.name: CONFIRMATION}

# What the published file carries from night to night. Analysts read these through the views of `mart`.

_CELL_KEY = _required("cell_key", LONG, "Stable hash of all that was asked, whichever operation asked: mart.cell_key.")
_OPEN_COLUMNS = (
    _required("source", TEXT, "`multi`: cheapest per board and policy; `detail`: every product. Never one series."),
    _required("offer_key", LONG, "Stable hash of what makes an offer the same, whichever source: mart.offer_key."),
    _CELL_KEY,
    PROPERTY_ID,
    *ASKED,
    Column("currency", TEXT, "ISO 4217 code of all money of this row, as sent; NULL: not comparable."),
    Column("room_stay_id", INT, "Which requested room this answers, from 0."),
    Column("room_id", LONG, "The supplier's room id."),
    Column("room_name", TEXT, "Room name as last sent."),
    Column("board_id", INT, "Board basis id."),
    Column("board_name", TEXT, "Board basis name as last sent."),
    _required("policy_key", LONG, "Stable hash of the sorted cancel penalties; 0: none stated."),
    _required("refundability", TEXT, "`refundable`, `non_refundable`, `mixed` or `unknown`."),
    Column(
        "free_cancel_hours",
        INT,
        "Hours before check-in until which cancelling is free, by the windows; NULL: not stated of all that costs.",
    ),
    Column(
        "free_cancel_until",
        INSTANT,
        "Until when cancelling is free, by exact dates; NULL: not stated of all that costs. Detail only.",
    ),
    Column("product_id", LONG, "The supplier's product id as last sent; it may change from search to search."),
    _required("is_offered", FLAG, "False: the cell was answered without this offer."),
    Column("total", MONEY, "Room cost for the whole stay after promotions; NULL: gone or not stated."),
    Column("pre_promo_total", MONEY, "Room cost for the whole stay before promotions; NULL: gone or not stated."),
    Column("discount_pct", NUMBER, "Discount as stated, in percent of pre_promo_total."),
    Column("floor", MONEY, "minSellablePrice: the lowest price to sell a hotel-only product at; NULL: none stated."),
    Column("available_rooms", INT, "Rooms of this type still bookable; repeats per room stay."),
    Column("promotion_key", LONG, "Stable hash of the promotions in order; 0: none; NULL: gone."),
    Column("included_charges", MONEY, "Taxes and fees inside total, as last sent. Detail only."),
    Column("excluded_charges", MONEY, "Amounts outside total, as last sent. Detail only."),
    Column("resort_fee", MONEY, "Resort fee, paid at the property, as last sent. Detail only."),
    Column("child_resort_fee", MONEY, "Resort fee for children, paid at the property, as last sent. Detail only."),
    Column("city_taxes", MONEY, "City taxes, paid at the property, as last sent. Detail only."),
    Column("hotel_service_fee", MONEY, "Service fee, paid at the property, as last sent. Detail only."),
    _required("change", TEXT, "What began this state: `first` seen, `value` changed, `gone`, or `back`."),
    _required("valid_from", INSTANT, "Start of the sweep that saw this state first."),
    _required("first_seen_at", INSTANT, "Start of the sweep that saw the offer key first."),
    _required("last_seen_at", INSTANT, "Start of the last sweep that confirmed this state."),
    _required("snapshots", INT, "Sweeps that saw this state; those that got no answer do not count."),
    Column("unobserved_since", INSTANT, "First sweep since last_seen_at that asked and got no answer; NULL: none."),
    _required("began_sweep_id", TEXT, "Sweep of the observation that began this state."),
    _required("began_search_id", LONG, "Search of that observation; with its sweep it leads to the raw answer."),
    Column("began_offer_no", INT, "Offer of that observation; NULL: gone."),
    _required("seen_sweep_id", TEXT, "Sweep of the last observation of this state."),
    _required("seen_search_id", LONG, "Search of that observation; with its sweep it leads to the raw answer."),
    Column("seen_offer_no", INT, "Offer of that observation; NULL: gone."),
    _required("is_whole", FLAG, "False: what that answer says of the property could not all be read, or was refused."),
)

OFFER_OPEN = Table(
    "offer_open",
    "One row per source and offer key in its last known state, while its stay lies ahead.",
    ("source", "property_id", "offer_key"),
    _OPEN_COLUMNS,
)

OFFER_CLOSED = Table(
    "offer_closed",
    "One row per ended interval of a source and offer key. Append-only.",
    ("source", "property_id", "offer_key", "valid_from"),
    (
        *_OPEN_COLUMNS,
        _required("valid_to", INSTANT, "Start of the sweep that saw the next state, or the day of check-in."),
        _required("ended_by", TEXT, "What ended it: `value`, `gone`, `back`, or `stay_began`."),
    ),
)

CELL_STATE = Table(
    "cell",
    "One row per cell as it was asked about last, while its stay lies ahead.",
    ("operation", "property_id", "cell_key"),
    (
        _CELL_KEY,
        _required("operation", TEXT, "`multi` or `single`."),
        PROPERTY_ID,
        *ASKED,
        _required("status", TEXT, "`offered`, `no_offer`, `absent`, `rejected`, `failed` or `not_swept`."),
        Column("code", INT, "Error code behind the status, where the supplier gave one."),
        Column("searched_at", INSTANT, "When the search was sent; NULL: not swept."),
        _required("offers", INT, "Offers stored for this cell."),
        SWEEP_ID,
        SEARCH_ID,
        _required("asked_at", INSTANT, "Start of the sweep that asked last."),
        _required("is_whole", FLAG, "True: it was answered, and what the answer says of it could all be read."),
        Column("answered_at", INSTANT, "When the last search was sent that was answered; NULL: never."),
        Column("answered_status", TEXT, "Status of that answer; NULL: never answered."),
        Column(
            "known_status",
            TEXT,
            "`offered`, `no_offer` or `absent` of the last answer that was read whole; NULL: none.",
        ),
        Column("known_code", INT, "Error code behind known_status; NULL: none was given, or it is offered."),
        Column("known_from", INSTANT, "Start of the sweep that saw known_status with known_code first."),
        Column("known_seen_at", INSTANT, "Start of the last sweep that confirmed it."),
        _required("spells", SMALL, "How often the cell has come on sale: 1 the first time, more where it re-opened."),
    ),
)

CELL_CLOSED = Table(
    "cell_closed",
    "One row per ended interval in which the answer about a cell was of one status and code. Append-only.",
    ("operation", "property_id", "cell_key", "known_from"),
    (
        _CELL_KEY,
        _required("operation", TEXT, "`multi` or `single`."),
        PROPERTY_ID,
        MARKET,
        _required("product_type", TEXT, "`Hotel` or `Package`, as asked for."),
        _required("check_in", DAY, "First night of the stay."),
        _required("nights", SMALL, "Nights of the stay; the day of departure is check_in + nights."),
        _required("party", TEXT, "Guests of all rooms: rooms joined by +, 2c5-9 is two adults with children."),
        _required("known_status", TEXT, "`offered`, `no_offer` or `absent`."),
        Column("known_code", INT, "Error code behind known_status; NULL: none was given, or it is offered."),
        _required("known_from", INSTANT, "Start of the sweep that saw it first."),
        _required("known_seen_at", INSTANT, "Start of the last sweep that confirmed it."),
        _required("spells", SMALL, "How often the cell had come on sale by then, re-openings included."),
        _required("known_to", INSTANT, "Start of the sweep that saw the next status, or the day of check-in."),
        _required("next_status", TEXT, "What came next: `offered`, `no_offer`, `absent` or `stay_began`."),
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
        _required("snapshot_date", DAY, "The day that lead days are counted from: start of the sweep in UTC."),
        _required("operation", TEXT, "`multi` or `single`."),
        MARKET,
        _required("product_type", TEXT, "`Hotel` or `Package`, as asked for."),
        _required("rooms", SMALL, "Rooms of the party."),
        _required("lead_days", INT, "Days from the snapshot to check-in."),
        _required("planned", LONG, "Planned cells: the sum of the six statuses."),
        _required("offered", LONG, "Cells with at least one offer."),
        _required("no_offer_1023", LONG, "Cells answered with 1023: no offers available."),
        _required("no_offer_1024", LONG, "Cells answered with 1024: restricted rates requested."),
        _required("no_offer_1025", LONG, "Cells answered with 1025: none of the properties asked for is available."),
        _required("no_offer_1026", LONG, "Cells answered with 1026: several rooms of different types."),
        _required("no_offer_other", LONG, "Cells answered without an offer and with no such code."),
        _required("absent", LONG, "Cells asked for in a multi search and not in its answer; not the same as sold out."),
        _required("rejected", LONG, "Cells refused by the supplier (400)."),
        _required("failed", LONG, "Cells whose retries were used up or whose answer could not be read."),
        _required("not_swept", LONG, "Cells not asked: stopped, or out of budget."),
    ),
)

STOCK_CHANGE = Table(
    "stock_change",
    "One row per room of a cell and sweep that saw another number of rooms still bookable than the answer before. "
    "Append-only.",
    ("sweep_id", "source", "property_id", "cell_key", "room_id"),
    (
        SWEEP_ID,
        _required("changed_at", INSTANT, "Start of the sweep that saw the change."),
        _required("previous_seen_at", INSTANT, "Last sweep that saw the room before; the change lies between the two."),
        _required("source", TEXT, "`multi` or `detail`: two series that are never mixed."),
        _CELL_KEY,
        PROPERTY_ID,
        MARKET,
        _required("product_type", TEXT, "`Hotel` or `Package`, as asked for."),
        _required("check_in", DAY, "First night of the stay."),
        _required("nights", SMALL, "Nights of the stay; the day of departure is check_in + nights."),
        _required("party", TEXT, "Guests of all rooms: rooms joined by +, 2c5-9 is two adults with children."),
        Column("room_id", LONG, "The supplier's room id."),
        Column("rooms_before", INT, "Rooms still bookable before; NULL: the room was gone, and has re-opened."),
        _required("rooms_after", INT, "Rooms still bookable after."),
    ),
)

_BY_LEAD = (
    SWEEP_ID,
    _required("source", TEXT, "`multi` or `detail`: two series that are never mixed."),
    MARKET,
    _required("product_type", TEXT, "`Hotel` or `Package`, as asked for."),
    _required("lead_days", INT, "Days from the snapshot to check-in."),
)

PRICE_MOVE = Table(
    "price_move",
    "One row per sweep, source, market, product type and lead days: how totals moved since offers were last seen. "
    "Append-only.",
    ("sweep_id", "source", "market", "product_type", "lead_days"),
    (
        *_BY_LEAD,
        _required("seen", LONG, "Offers seen, with a total."),
        _required("pairs", LONG, "Of those, seen with a total in the last answer before as well."),
        _required("raised", LONG, "Pairs of which the total rose."),
        _required("lowered", LONG, "Pairs of which the total fell."),
        _required("spanning", LONG, "Pairs of any lead days whose two answers lie before and after this day's end."),
        _required("drift", NUMBER, "Sum over these of ln(total / total before) for each day between the two answers."),
        _required("squares", NUMBER, "Sum over the pairs of ln(total / total before) squared."),
    ),
)

WAITING = Table(
    "waiting",
    "One row per sweep that found stays begun, source, market, product type and lead days: what waiting brought. "
    "Append-only.",
    ("sweep_id", "source", "market", "product_type", "lead_days"),
    (
        *_BY_LEAD,
        _required("offers", LONG, "Offer keys that were on sale so many days ahead, of stays that have begun."),
        _required("answered_later", LONG, "Of those, answered again later: the comparable ones."),
        _required("gone_later", LONG, "Of those answered again, not on sale when last answered."),
        _required("comparable", LONG, "Of those answered again, seen with a total again."),
        _required("cheaper_later", LONG, "Comparable ones that were cheaper at some later time."),
        _required("dearer_last", LONG, "Comparable ones that were dearer when last seen."),
        _required("ln_lowest", NUMBER, "Sum over the comparable ones of ln(lowest later total / total)."),
        _required("ln_last", NUMBER, "Sum over the comparable ones of ln(last total / total)."),
    ),
)

PROPERTY_SALE = Table(
    "property_sale",
    "One row per operation, property, market and product type that has ever had an offer: when, and how long not.",
    ("operation", "property_id", "market", "product_type"),
    (
        _required("operation", TEXT, "`multi` or `single`."),
        PROPERTY_ID,
        MARKET,
        _required("product_type", TEXT, "`Hotel` or `Package`, as asked for."),
        _required("last_offered_at", INSTANT, "Start of the last sweep that found an offer."),
        _required("offered_sweep_id", TEXT, "That sweep."),
        _required("offered_search_id", LONG, "A search of that sweep that found an offer."),
        _required("last_answered_at", INSTANT, "Start of the last sweep that was answered about it."),
        Column("quiet_date", DAY, "Last day on which it was answered without any offer; NULL: offered since."),
        Column("quiet_sweep_id", TEXT, "Last sweep that was answered without any offer; NULL: offered since."),
        Column("quiet_search_id", LONG, "A search of that sweep that was answered; NULL: offered since."),
        _required("quiet_nights", INT, "Days since its last offer on which it was answered, and without any offer."),
        _required("quiet_cells", LONG, "Cells that were answered on those days."),
    ),
)

QUIET_SEARCH = Table(
    "quiet_search",
    "One row per search that was answered without an offer of a property that had offers before, as long as it counts "
    "for its being quiet. Append-only.",
    ("operation", "property_id", "sweep_id", "search_id"),
    (
        SWEEP_ID,
        SEARCH_ID,
        _required("asked_at", INSTANT, "Start of the sweep."),
        _required("operation", TEXT, "`multi` or `single`."),
        PROPERTY_ID,
        MARKET,
        _required("product_type", TEXT, "`Hotel` or `Package`, as asked for."),
    ),
)

PROMOTION_STATE = Table(
    "promotion",
    "One row per promotion of a promotion key, in order: what the key stands for.",
    ("promotion_key", "promotion_no"),
    (
        _required("promotion_key", LONG, "Stable hash of the promotions of an offer, in order."),
        _required("promotion_no", SMALL, "Position in the offer, from 0."),
        Column("promo_type", TEXT, "Kind as sent: value add, discount off or free night."),
        Column("description", TEXT, "Text as sent."),
        Column(
            "promotion_kind",
            TEXT,
            "`value_add`, `discount_off` or `free_night`, however it is spelled, or `other`; NULL: not stated.",
        ),
    ),
)

POLICY_STATE = Table(
    "policy",
    "One row per cancel penalty of a policy key: what the key stands for.",
    ("policy_key", "penalty_no"),
    (
        _required("policy_key", LONG, "Stable hash of the sorted cancel penalties of an offer."),
        _required("penalty_no", SMALL, "Position among the distinct penalties of the policy, from 0."),
        Column("window_hours", INT, "Hours before check-in in which the penalty applies."),
        Column("penalty_pct", NUMBER, "Percentage of the total, or of the nights of penalty_nights."),
        Column("penalty_nights", NUMBER, "Nights charged, read together with penalty_pct."),
        Column("is_refundable", FLAG, "False: cannot be refunded."),
    ),
)

DETAIL_PENALTY = Table(
    "detail_penalty",
    "One row per cancel penalty of an offer key in its last detail answer, while its stay lies ahead.",
    ("property_id", "offer_key", "penalty_no"),
    (
        PROPERTY_ID,
        _required("offer_key", LONG, "Stable hash of what makes an offer the same: mart.offer_key."),
        _required("check_in", DAY, "First night of the stay."),
        SWEEP_ID,
        *(column for column in PENALTY.columns if column.name in _PENALTY_TERMS),
    ),
)

_PARITY_COLUMNS = (
    _required("source", TEXT, "`multi`: cheapest per board and policy; `detail`: every product. Never one series."),
    _required("offer_key", LONG, "Stable hash of what makes an offer the same, whichever source: mart.offer_key."),
    PROPERTY_ID,
    MARKET,
    _required("check_in", DAY, "First night of the stay."),
    _required("reference_market", TEXT, "Market that it was compared with."),
    _required("reference_offer_key", LONG, "Offer key of the offer that it was compared with."),
    _required("began_at", INSTANT, "Start of the first sweep of the episode."),
    _required("last_losing_at", INSTANT, "Start of the last sweep that found it dearer."),
    _required("snapshots", INT, "Snapshots in a row in which it was dearer; sweeps without an answer do not count."),
    _required("last_gap_pct", NUMBER, "Gap to the reference market at last_losing_at, in percent of its total."),
    _required("largest_gap_pct", NUMBER, "Largest gap of the episode, in percent of the reference market's total."),
)

PARITY_OPEN = Table(
    "parity_open",
    "One row per source and offer key that was dearer than in the reference market when it was last compared with it.",
    ("source", "property_id", "offer_key"),
    _PARITY_COLUMNS,
)

PARITY_CLOSED = Table(
    "parity_closed",
    "One row per ended episode in which an offer was dearer than in the reference market. Append-only.",
    ("source", "property_id", "offer_key", "began_at"),
    (
        *_PARITY_COLUMNS,
        _required("ended_at", INSTANT, "Start of the sweep that saw the end, or the day of check-in."),
        _required(
            "ended_by",
            TEXT,
            "`resolved`: it was compared and not dearer; `gone`: one of the two was not on sale any more; "
            "`reference_changed`: another offer is compared with; or `stay_began`.",
        ),
    ),
)

FLOOR_MOVE = Table(
    "floor_move",
    "One row per source, offer key and sweep that saw another floor beside the same total, hotel-only. Append-only.",
    ("source", "property_id", "offer_key", "moved_at"),
    (
        *_PARITY_COLUMNS[:5],
        Column("currency", TEXT, "ISO 4217 code of all money of this row, as sent; NULL: not comparable."),
        _required("total", MONEY, "Room cost for the whole stay after promotions, before as after the move."),
        Column("floor_before", MONEY, "Floor when the offer was last seen before; NULL: none stated."),
        Column("floor", MONEY, "Floor since; NULL: none stated."),
        _required("previous_seen_at", INSTANT, "Start of the last sweep that saw floor_before."),
        _required("moved_at", INSTANT, "Start of the sweep that saw the other floor."),
        _required("before_sweep_id", TEXT, "Sweep of the observation of floor_before."),
        _required("before_search_id", LONG, "Search of that observation."),
        _required("before_offer_no", INT, "Offer of that observation."),
        SWEEP_ID,
        SEARCH_ID,
        OFFER_NO,
    ),
)

SWEEP_PUBLISHED = Table(
    "sweep",
    "One row per published sweep.",
    ("sweep_id",),
    (
        *SWEEP.columns,
        _required("audit", TEXT, "`passed`, `overridden`: published although blocked, or `none`: published unchecked."),
        Column("override_reason", TEXT, "Why it was published although its audit failed."),
        _required("quarantined", LONG, "Offers that the audit took out: rows of `reject` with their rule."),
        _required("offers_first", LONG, "Offer keys seen for the first time."),
        _required("offers_changed", LONG, "Offer keys of which a value changed since they were last seen."),
        _required("offers_gone", LONG, "Offer keys that were on sale and are not any more."),
        _required("offers_back", LONG, "Offer keys that were gone and are on sale again."),
        _required("price_changes", LONG, "Offer keys of which the total changed since they were last seen."),
    ),
)

EVIDENCE = pa.list_(
    pa.struct(
        [
            pa.field("role", TEXT),
            pa.field("source", TEXT),
            pa.field("property_id", LONG),
            pa.field("offer_key", LONG),
            pa.field("sweep_id", TEXT),
            pa.field("search_id", LONG),
            pa.field("offer_no", INT),
        ]
    )
)
CONVERSION = pa.struct(
    [pa.field("from_currency", TEXT), pa.field("to_currency", TEXT), pa.field("rate", RATE), pa.field("rate_date", DAY)]
)
FLAG_ID = _required(
    "flag_id", TEXT, "For `nightaudit explain`: the rule and the subject_key in hex. The same every night."
)

# What every relation that finds something says of a finding, under these names.
FINDING_COLUMNS = (
    _required("rule", TEXT, "Rule that finds it."),
    _required("rule_version", INT, "Version of the rule: raised whenever it would find something else."),
    _required("subject_key", LONG, "Stable hash of the rule and of what it is about, over all nights."),
    _required("severity", TEXT, "`low`, `medium` or `high`, by size_pct.", ("low", "medium", "high")),
    Column("size_pct", NUMBER, "Size of the finding in percent of what it is held against."),
    Column("amount", MONEY, "Size of the finding in currency; NULL: it is none of money."),
    Column("source", TEXT, "`multi` or `detail`: the series that it is found in; NULL: of no one series."),
    Column("property_id", LONG, "The supplier's property id; NULL: of no one property."),
    Column("market", TEXT, "Market code asked for; NULL: of no one market."),
    Column("product_type", TEXT, "`Hotel` or `Package`; NULL: of no one type."),
    Column("check_in", DAY, "First night of the stay; NULL: of no one stay."),
    Column("nights", SMALL, "Nights of the stay; NULL: of no one stay."),
    Column("party", TEXT, "Guests of all rooms; NULL: of no one party."),
    Column("currency", TEXT, "ISO 4217 code of amount; NULL: of no one currency."),
    _required("finding", TEXT, "The finding in one sentence, with its numbers."),
    _required("evidence", EVIDENCE, "Observations that the finding rests on: each leads to its raw answer."),
    Column("fx", CONVERSION, "Reference rate that it was converted by, and its day; NULL: one currency."),
)
_FLAG_COLUMNS = (
    FLAG_ID,
    *FINDING_COLUMNS,
    _required("relation", TEXT, "Relation that finds it: its SQL is the rule."),
    _required("first_flagged_at", INSTANT, "Start of the sweep that it was flagged after for the first time."),
    _required("first_flagged_sweep_id", TEXT, "That sweep."),
    _required("last_flagged_at", INSTANT, "Start of the last sweep that observed its evidence again."),
    _required("last_flagged_sweep_id", TEXT, "That sweep."),
    _required("snapshots", LONG, "Sweeps that observed its evidence and found it, without those that got no answer."),
)

FLAG_OPEN = Table(
    "flag_open",
    "One row per finding that stands: found, and not answered otherwise since.",
    ("flag_id",),
    _FLAG_COLUMNS,
)

FLAG_CLOSED = Table(
    "flag_closed",
    "One row per finding that stood once, and time that it stood. Append-only.",
    ("flag_id", "first_flagged_at"),
    (
        *_FLAG_COLUMNS,
        _required("resolved_at", INSTANT, "Start of the sweep that saw it gone, or the day of check-in."),
        _required("resolved_sweep_id", TEXT, "Sweep after which it was closed."),
        _required(
            "ended_by",
            TEXT,
            "`value`: all of its evidence was answered, and the rule finds nothing; `gone`: an offer of it was not on "
            "sale any more; `stay_began`.",
        ),
    ),
)

# The last change of each: what is known of content now.
CONTENT_STATES = tuple(
    Table(table.name, table.grain.replace("per change of", "per last change of"), table.key[1:], table.columns)
    for table in CONTENT_TABLES
)

STATE_TABLES = (
    *(OFFER_OPEN, OFFER_CLOSED, CELL_STATE, PROMOTION_STATE, POLICY_STATE, DETAIL_PENALTY),
    *(FLAG_OPEN, FLAG_CLOSED),
    *(CELL_CLOSED, CELL_COUNT, STOCK_CHANGE, PRICE_MOVE, WAITING, PROPERTY_SALE, QUIET_SEARCH),
    *(PARITY_OPEN, PARITY_CLOSED, FLOOR_MOVE),
)
