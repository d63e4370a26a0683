"""Columns that many tables have, under one name and with one meaning."""

from __future__ import annotations

from pipeline.domain.tables.declaration import DAY, INT, LONG, SMALL, TEXT, Column, required

SWEEP_ID = required("sweep_id", TEXT, "Sweep: start in UTC and a short hash of what was asked.")
SEARCH_ID = required(
    "search_id",
    LONG,
    "HTTP search of the sweep: planned number x 256 + 1, or a higher remainder for halves of a batch.",
)
OFFER_NO = required("offer_no", INT, "Position of the offer in the answer, from 0.", lowest=0)
RAW_ADDRESS = Column("raw_address", TEXT, "Where the raw answer lies: object of the lake, #, row.")

PROPERTY_ID = required("property_id", LONG, "The supplier's property id.")
MARKET = required("market", TEXT, "Market code asked for: the point of sale.")
PRODUCT_TYPE = required("product_type", TEXT, "`Hotel` or `Package`, as asked for.", ("Hotel", "Package"))
CHECK_IN = required("check_in", DAY, "First night of the stay.")
STAY = (
    CHECK_IN,
    required("nights", SMALL, "Nights of the stay; the day of departure is check_in + nights.", lowest=1),
    required("party", TEXT, "Guests of all rooms: rooms joined by +, 2c5-9 is two adults with children of 5 and 9."),
)
ASKED = (
    *(MARKET, PRODUCT_TYPE, *STAY),
    Column("currency_asked", TEXT, "ISO 4217 code asked for; NULL: none was named."),
)
CELL_KEY = required("cell_key", LONG, "Stable hash of all that was asked, whichever operation asked: mart.cell_key.")
