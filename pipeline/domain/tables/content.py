"""What single answers say about properties and rooms, apart from prices."""

import pyarrow as pa

from pipeline.domain.tables.declaration import (
    INSTANT,
    INT,
    LONG,
    PROPERTY_ID,
    SEARCH_ID,
    SWEEP_ID,
    TEXT,
    Column,
    Table,
    required,
)

_CONTENT_CHANGE = (
    SWEEP_ID,
    required(
        "search_id",
        LONG,
        "Search that shows the change: the first of the sweep with the new content, or without the old.",
    ),
    required("changed_at", INSTANT, "Start of the sweep that saw the change."),
    required("change", TEXT, "`first` seen, `value` changed, `gone`, or `back`.", ("first", "value", "gone", "back")),
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
    "One row per change of what single answers say about a property. Append-only.",
    ("sweep_id", "property_id"),
    (*_CONTENT_CHANGE, _PROPERTY_NAME),
)

ROOM = Table(
    "room",
    "One row per change of what single answers say about a room; `gone`: its property was on sale without this room.",
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
        required("amenity_key", TEXT, "The amenity's id, or ~ and its name if it has no id."),
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
        required("image_url", TEXT, "Address of the image as sent."),
        required(
            "image_no",
            INT,
            "Position among the images of the room, from 0; the last known one if it is gone.",
            lowest=0,
        ),
    ),
)

CONTENT_TABLES = (PROPERTY, ROOM, ROOM_AMENITY, ROOM_IMAGE)

# The content of a loaded sweep until it is published; then only its changes are kept.
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
        required("room_no", INT, "Position in the answer, from 0."),
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

# The last change of each: the content that is known now.
CONTENT_STATES = tuple(
    Table(table.name, table.grain.replace("per change of", "per last change of"), table.key[1:], table.columns)
    for table in CONTENT_TABLES
)
