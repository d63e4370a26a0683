"""Columns that many tables have, under one name and with one meaning."""

from __future__ import annotations

from pipeline.domain.tables.declaration import DAY, INT, LONG, SMALL, TEXT, Column, required

SWEEP_ID = required("sweep_id", TEXT, "Sweep id: start in UTC and a short hash of what was requested.")
SEARCH_ID = required(
    "search_id",
    LONG,
    "HTTP search of the sweep: planned number x 256 + 1; halves of a batch have a higher remainder.",
)
OFFER_NO = required("offer_no", INT, "Position of the offer in the answer, from 0.", lowest=0)
RAW_ADDRESS = Column("raw_address", TEXT, "Address of the raw answer: object of the lake, #, row.")

PROPERTY_ID = required("property_id", LONG, "The supplier's property id.")
MARKET = required("market", TEXT, "Requested market code: the point of sale.")
PRODUCT_TYPE = required("product_type", TEXT, "`Hotel` or `Package`, as asked for.", ("Hotel", "Package"))
CHECK_IN = required("check_in", DAY, "First night of the stay.")
STAY = (
    CHECK_IN,
    required("nights", SMALL, "Nights of the stay; the day of departure is check_in + nights.", lowest=1),
    required("party", TEXT, "Guests of all rooms, joined by +; 2c5-9 is two adults with children aged 5 and 9."),
)
ASKED = (
    *(MARKET, PRODUCT_TYPE, *STAY),
    Column("currency_asked", TEXT, "Requested ISO 4217 code; NULL: none was requested."),
)
CELL_KEY = required(
    "cell_key", LONG, "Stable hash of everything requested, the same for both operations: mart.cell_key."
)
