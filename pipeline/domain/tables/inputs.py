"""Data loaded by users. The rows of a file are kept together under the file's id."""

from pipeline.domain.tables.declaration import (
    DAY,
    INSTANT,
    INT,
    LONG,
    MARKET,
    MONEY,
    NUMBER,
    PROPERTY_ID,
    RATE,
    STAY,
    TEXT,
    Column,
    Table,
    required,
)

_LOADED = (
    required("input_id", TEXT, "File that was loaded: its number among those of its kind, and its SHA-256."),
    required("loaded_at", INSTANT, "When the file was loaded."),
    required("line_no", LONG, "Row number in that file, as in a spreadsheet: the header is row 1."),
)

FX_RATE = Table(
    "fx_rate",
    "One row per currency, day and file with its reference rate. The file loaded last counts: mart.fx_rate_on.",
    ("input_id", "rate_date", "currency"),
    (
        *_LOADED,
        required("rate_date", DAY, "Business day of the reference rate."),
        required("currency", TEXT, "ISO 4217 code of the currency."),
        required("rate", RATE, "Units of the currency per euro."),
    ),
)

SELLING_PRICE = Table(
    "selling_price",
    "One row per selling price and file. The file loaded last counts: mart.selling_price.",
    ("input_id", "line_no"),
    (
        *_LOADED,
        PROPERTY_ID,
        MARKET,
        required("product_type", TEXT, "`Hotel` or `Package`."),
        *STAY,
        required("currency", TEXT, "ISO 4217 code of price."),
        required("price", MONEY, "Price of the whole stay, for all rooms of the party, in currency."),
        required("observed_at", INSTANT, "When this price was on sale."),
        Column("room_id", LONG, "The supplier's room id; NULL: not given, so it may be any room."),
        Column("board_id", INT, "Board basis id; NULL: not given."),
        Column("policy_key", LONG, "Hash of the cancellation penalties, as in offer; NULL: not given."),
        Column("channel", TEXT, "Where it was sold or seen; NULL: not given."),
    ),
)

PROPERTY_MAP = Table(
    "property_map",
    "One row per opaque pair and file. The file loaded last counts: mart.property_map.",
    ("input_id", "branded_id"),
    (
        *_LOADED,
        required("branded_id", LONG, "Property id of the branded offer."),
        required("unbranded_id", LONG, "Property id that its single searches and quotes are sent with."),
    ),
)

WEIGHT = Table(
    "weight",
    "One row per property or market and file. The file loaded last counts: mart.weight.",
    ("input_id", "line_no"),
    (
        *_LOADED,
        Column("property_id", LONG, "Property that has this weight; NULL: the weight is for a market."),
        Column("market", TEXT, "Market that has this weight; NULL: the weight is for a property."),
        required("weight", NUMBER, "Weight in scores, 0 or more; properties and markets not listed weigh 1."),
    ),
)

PROPERTY_FILE = Table(
    "property_file",
    "One row per property and properties file. The file loaded last counts: mart.property.",
    ("input_id", "property_id"),
    (
        *_LOADED,
        PROPERTY_ID,
        Column("property_name", TEXT, "Name given by the user; NULL: not given."),
        Column("city", TEXT, "City; NULL: not given."),
        Column("country", TEXT, "Country as written by the user; NULL: not given."),
        Column("stars", NUMBER, "Stars, 0 to 7; NULL: not given."),
        Column("brand", TEXT, "Brand; NULL: not given."),
        Column("property_group", TEXT, "Group, chain or portfolio that it belongs to; NULL: not given."),
        Column("latitude", NUMBER, "Degrees north, -90 to 90; NULL: not given."),
        Column("longitude", NUMBER, "Degrees east, -180 to 180; NULL: not given."),
        Column("own_code", TEXT, "The user's own code for it; NULL: not given."),
    ),
)

PROPERTY_CHECK_IN = Table(
    "property_check_in",
    "One row per property and properties file that states a check-in time or time zone: mart.property_check_in.",
    ("input_id", "property_id"),
    (
        *_LOADED,
        PROPERTY_ID,
        Column("check_in_time", TEXT, "Earliest time of check-in, such as 15:00; NULL: not given."),
        Column("time_zone", TEXT, "Time zone (tz database name); NULL: not given."),
    ),
)

INPUT_TABLES = {
    table.name: table for table in (FX_RATE, SELLING_PRICE, PROPERTY_MAP, WEIGHT, PROPERTY_FILE, PROPERTY_CHECK_IN)
}
