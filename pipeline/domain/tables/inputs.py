"""What the user feeds in. The rows of a file stay together, under the file's id."""

from __future__ import annotations

from pipeline.domain.tables.columns import MARKET, PROPERTY_ID, STAY
from pipeline.domain.tables.declaration import (
    DAY,
    INSTANT,
    INT,
    LONG,
    MONEY,
    NUMBER,
    RATE,
    TEXT,
    Column,
    Table,
    required,
)

INPUT_ID = required("input_id", TEXT, "File that was loaded: its number among those of its kind, and its SHA-256.")

LOADED_AT = required("loaded_at", INSTANT, "When the file was loaded.")

LINE_NO = required("line_no", LONG, "Row of that file, as a spreadsheet counts: the header is row 1.")

FX_RATE = Table(
    "fx_rate",
    "One row per currency, day and file that states its reference rate. The file loaded last wins: mart.fx_rate_on.",
    ("input_id", "rate_date", "currency"),
    (
        INPUT_ID,
        LOADED_AT,
        LINE_NO,
        required("rate_date", DAY, "Business day that the reference rate was set for."),
        required("currency", TEXT, "ISO 4217 code of the currency that the rate is of."),
        required("rate", RATE, "Units of the currency for one euro."),
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
        required("product_type", TEXT, "`Hotel` or `Package`."),
        *STAY,
        required("currency", TEXT, "ISO 4217 code of price."),
        required("price", MONEY, "What the whole stay is sold at, all rooms of the party together, in currency."),
        required("observed_at", INSTANT, "When this price was on sale."),
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
        required("branded_id", LONG, "Property id under which the offer is shown with its brand."),
        required("unbranded_id", LONG, "Property id that single searches and quotes of it are sent with."),
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
        required("weight", NUMBER, "Weight in scores, 0 or more; what is not listed weighs 1."),
    ),
)

PROPERTY_FILE = Table(
    "property_file",
    "One row per property and file of properties. The file loaded last holds: mart.property.",
    ("input_id", "property_id"),
    (
        INPUT_ID,
        LOADED_AT,
        LINE_NO,
        PROPERTY_ID,
        Column("property_name", TEXT, "Name that the user gives it; NULL: not given."),
        Column("city", TEXT, "City; NULL: not given."),
        Column("country", TEXT, "Country as the user writes it; NULL: not given."),
        Column("stars", NUMBER, "Stars, 0 to 7; NULL: not given."),
        Column("brand", TEXT, "Brand; NULL: not given."),
        Column("property_group", TEXT, "Group, chain or portfolio that it belongs to; NULL: not given."),
        Column("latitude", NUMBER, "Degrees north, -90 to 90; NULL: not given."),
        Column("longitude", NUMBER, "Degrees east, -180 to 180; NULL: not given."),
        Column("own_code", TEXT, "The user's own code of it; NULL: not given."),
    ),
)

PROPERTY_CHECK_IN = Table(
    "property_check_in",
    "One row per property and file of properties that states when its guests check in: mart.property_check_in.",
    ("input_id", "property_id"),
    (
        INPUT_ID,
        LOADED_AT,
        LINE_NO,
        PROPERTY_ID,
        Column("check_in_time", TEXT, "Time of day from which guests are let in, like 15:00; NULL: not given."),
        Column("time_zone", TEXT, "Time zone, by its name in the tz database; NULL: not given."),
    ),
)

INPUT_TABLES = {
    table.name: table for table in (FX_RATE, SELLING_PRICE, PROPERTY_MAP, WEIGHT, PROPERTY_FILE, PROPERTY_CHECK_IN)
}
