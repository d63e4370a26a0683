"""The file of properties: their names, and the cities, brands and groups to choose them by.

Only the id is required. Empty values stay NULL; an empty name is taken from detail answers.
"""

from __future__ import annotations

import polars as pl

from pipeline.inputs import kinds, user_table
from pipeline.inputs.kinds import InputColumn
from pipeline.inputs.problems import Findings
from pipeline.inputs.user_table import readable, report, report_repeated

COLUMNS = (
    InputColumn("property_id", kinds.ID, "the supplier's property id"),
    InputColumn("property_name", kinds.TEXT, "what you call it", is_required=False),
    InputColumn("city", kinds.TEXT, "its city", is_required=False),
    InputColumn("country", kinds.TEXT, "its country", is_required=False),
    InputColumn("stars", kinds.STARS, "its stars, 0 to 7, halves allowed", is_required=False),
    InputColumn("brand", kinds.TEXT, "its brand", is_required=False),
    InputColumn("property_group", kinds.TEXT, "the group, chain or portfolio it belongs to", is_required=False),
    InputColumn("latitude", kinds.LATITUDE, "degrees north, -90 to 90", is_required=False),
    InputColumn("longitude", kinds.LONGITUDE, "degrees east, -180 to 180", is_required=False),
    InputColumn("own_code", kinds.TEXT, "your own code of it", is_required=False),
    InputColumn("check_in_time", kinds.TIME, "when guests are let in, 00:00 to 23:59", is_required=False),
    InputColumn("time_zone", kinds.TIME_ZONE, "its time zone, like Europe/Stockholm", is_required=False),
)


def read_properties(data: bytes, findings: Findings, _: object = None) -> pl.DataFrame:
    """Return the properties of a file; what is wrong is added to `findings`, row by row."""
    properties = user_table.read_table(data, COLUMNS, findings)
    report_repeated(findings, properties.drop_nulls("property_id"), ["property_id"], "the same id")
    placed = readable(properties, ["latitude", "longitude"])
    half = placed.filter(pl.col("latitude").is_null() != pl.col("longitude").is_null())
    report(findings, half, "latitude", lambda _: "a place has a latitude and a longitude, or neither")
    return properties
