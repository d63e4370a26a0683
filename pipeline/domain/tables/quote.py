"""Requested quotes, and the products in their answers."""

from dataclasses import replace

from pipeline.domain.tables.declaration import (
    ASKED,
    FLAG,
    INSTANT,
    INT,
    LONG,
    MARKET,
    MONEY,
    OFFER_NO,
    PROPERTY_ID,
    RAW_ADDRESS,
    SEARCH_ID,
    SMALL,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)
from pipeline.domain.tables.offer import OFFER, PENALTY, PROMOTION

QUOTE = Table(
    "quote",
    "One row per quote, recorded before it is sent, with its outcome.",
    ("run_id", "quote_no"),
    (
        required("run_id", TEXT, "Run of quotes: start in UTC and a short hash of the chosen offers."),
        required("quote_no", INT, "Position in the run, from 0."),
        required("is_simulated", FLAG, "TRUE: the answer comes from the sandbox."),
        SWEEP_ID,
        SEARCH_ID,
        required("offer_no", INT, "Position of the quoted offer in that search's answer, from 0: of its first room."),
        required("source", TEXT, "Answer that the offer was in: `multi` (list) or `detail`."),
        required("offer_key", LONG, "Offer key of its first room: stable hash of what identifies an offer."),
        PROPERTY_ID,
        required("sent_property_id", LONG, "Property id that was sent: the unbranded one if the map has one."),
        *ASKED,
        required("rooms", SMALL, "Rooms of the party; each is quoted with its own product: quote_offer.", lowest=1),
        Column("room_stay_id", INT, "Requested room of the first product, from 0."),
        Column("room_id", LONG, "The supplier's room id, from the search."),
        Column("board_id", INT, "Board basis id, from the search."),
        required("policy_key", LONG, "Stable hash of the cancellation penalties, from the search."),
        required("product_id", LONG, "Product that the quote named for its first room."),
        required("searched_at", INSTANT, "When the search that returned the offer was sent."),
        required("currency", TEXT, "ISO 4217 code of search_total."),
        required("search_total", MONEY, "Cost of all rooms for the whole stay, from the search."),
        required("intended_at", INSTANT, "When the intent was recorded, before the call."),
        Column("quoted_at", INSTANT, "When the quote was sent; NULL: unknown."),
        Column("answered_at", INSTANT, "When its answer arrived, or the call failed; NULL: unknown."),
        Column("age_seconds", LONG, "Seconds from the search to the quote: the age of the price."),
        required(
            "outcome",
            TEXT,
            "`matched`, `raised`, `lowered`, `gone`, `refused` (400), `not_comparable` (answered without a price "
            "above 0, in another currency, or for another property, room, board or product), `failed` (no reservation "
            "was made or stated), or `unknown`.",
        ),
        Column("code", INT, "Error code behind the outcome; NULL: the supplier gave none."),
        Column("codes", TEXT, "Error codes of the answer, separated by commas; NULL: none."),
        Column("messages", TEXT, "Error texts of the answer, one per line; NULL: none."),
        Column("failure", TEXT, "Why there is no answer, or which unreadable parts of it are left out."),
        Column("http_status", SMALL, "HTTP status of the answer; NULL: there was none."),
        required("is_reservation_possible", FLAG, "TRUE: a reservation was made or cannot be ruled out."),
        Column("reservation_id", LONG, "Reservation that guarantees the price."),
        Column("quote_property_id", LONG, "Property id, from the quote."),
        Column("quote_currency", TEXT, "ISO 4217 code of quote_total, as sent."),
        Column("quote_total", MONEY, "Cost of all rooms for the whole stay, as quoted; NULL: unknown for some room."),
        Column("property_remarks", TEXT, "Restrictions or special terms of the property, from the quote."),
        RAW_ADDRESS,
    ),
)

_QUOTED = (*QUOTE.pick("run_id", "quote_no"), required("room_no", SMALL, "Room of the party, from 0."))

# A quoted product has the columns of an offer, without those that were requested or that a quote does not return.
_NOT_IN_A_QUOTE = frozenset(column.name for column in (SWEEP_ID, SEARCH_ID, OFFER_NO, PROPERTY_ID, *ASKED)) | {
    "source", "searched_at", "room_stay_id", "room_name", "available_rooms",
}  # fmt: skip

QUOTE_OFFER = Table(
    "quote_offer",
    "One row per room of a quote: the requested offer, and the product in the answer (NULL: none).",
    ("run_id", "quote_no", "room_no"),
    (
        *_QUOTED,
        PROPERTY_ID,
        MARKET,
        required("offer_key", LONG, "Offer key of the requested offer: stable hash of what identifies an offer."),
        required("offer_no", INT, "Position of that offer in the answer of the quote's search, from 0."),
        required("asked_product_id", LONG, "Product that the quote named for this room."),
        required("search_total", MONEY, "Room cost for the whole stay, from the search."),
        Column("room_stay_id", INT, "Requested room that the product is for, from the quote."),
        *(
            replace(column, is_required=False, meaning=column.meaning.removesuffix(" Detail only."))
            for column in OFFER.columns
            if column.name not in _NOT_IN_A_QUOTE
        ),
    ),
)

_OF_AN_OFFER = (SWEEP_ID, SEARCH_ID, OFFER_NO)

QUOTE_PENALTY = Table(
    "quote_penalty",
    "One row per cancellation penalty of a quoted product, in the order of the answer.",
    ("run_id", "quote_no", "room_no", "penalty_no"),
    (*_QUOTED, *(column for column in PENALTY.columns if column not in _OF_AN_OFFER)),
)

QUOTE_PROMOTION = Table(
    "quote_promotion",
    "One row per promotion of a quoted product, in the order of the answer.",
    ("run_id", "quote_no", "room_no", "promotion_no"),
    (*_QUOTED, *(column for column in PROMOTION.columns if column not in _OF_AN_OFFER)),
)

QUOTE_TABLES = {table.name: table for table in (QUOTE, QUOTE_OFFER, QUOTE_PENALTY, QUOTE_PROMOTION)}
