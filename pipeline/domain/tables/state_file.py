"""Files of the state between two nights, and the reference market of the lake."""

from __future__ import annotations

from pipeline.domain.tables.columns import SWEEP_ID
from pipeline.domain.tables.declaration import INSTANT, LONG, TEXT, Column, Table, required

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
