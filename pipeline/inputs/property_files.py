"""Files about properties: the list of them, the map of opaque offers, and weights.

The list has their names, and the cities, brands and groups to choose them by. Only the id is required. Empty values
stay NULL; an empty name is taken from detail answers.

The map names the unbranded id that stands for the opaque offer of a branded property. The supplier's document requires
it in single searches and quotes of opaque offers (4.2, 4.3); a multi search may name both. The map is private and never
part of a report.

A weight is how much a property, or a market, counts in a score. The default is 1.
"""

import polars as pl

from pipeline.inputs import kinds, user_table
from pipeline.inputs.kinds import InputColumn
from pipeline.inputs.problems import Findings
from pipeline.inputs.user_table import ROW, readable, report, report_repeated

PROPERTY_COLUMNS = (
    InputColumn("property_id", kinds.ID, "the supplier's property id"),
    InputColumn("property_name", kinds.TEXT, "what you call it", is_required=False),
    InputColumn("city", kinds.TEXT, "its city", is_required=False),
    InputColumn("country", kinds.TEXT, "its country", is_required=False),
    InputColumn("stars", kinds.STARS, "its stars, 0 to 7, halves allowed", is_required=False),
    InputColumn("brand", kinds.TEXT, "its brand", is_required=False),
    InputColumn("property_group", kinds.TEXT, "the group, chain or portfolio it belongs to", is_required=False),
    InputColumn("latitude", kinds.LATITUDE, "degrees north, -90 to 90", is_required=False),
    InputColumn("longitude", kinds.LONGITUDE, "degrees east, -180 to 180", is_required=False),
    InputColumn("own_code", kinds.TEXT, "your own code for it", is_required=False),
    InputColumn("check_in_time", kinds.TIME, "when check-in begins, 00:00 to 23:59", is_required=False),
    InputColumn("time_zone", kinds.TIME_ZONE, "its time zone, like Europe/Stockholm", is_required=False),
)


def read_properties(data: bytes, findings: Findings, _: object = None) -> pl.DataFrame:
    """Return the properties of a file; what is wrong is added to `findings`, row by row."""
    properties = user_table.read_table(data, PROPERTY_COLUMNS, findings)
    report_repeated(findings, properties.drop_nulls("property_id"), ["property_id"], "the same id")
    placed = readable(properties, ["latitude", "longitude"])
    half = placed.filter(pl.col("latitude").is_null() != pl.col("longitude").is_null())
    report(findings, half, "latitude", lambda _: "give both latitude and longitude, or neither")
    return properties


MAP_COLUMNS = (
    InputColumn("branded_id", kinds.ID, "id under which the offer is shown with its brand"),
    InputColumn("unbranded_id", kinds.ID, "id that is sent in its place in single searches and quotes"),
)


def read_map(data: bytes, findings: Findings, _: object = None) -> pl.DataFrame:
    """Return the pairs of a file; what is wrong is added to `findings`, row by row."""
    pairs = user_table.read_table(data, MAP_COLUMNS, findings)
    whole = pairs.drop_nulls(["branded_id", "unbranded_id"])
    for column in ("branded_id", "unbranded_id"):
        report_repeated(findings, whole, [column], "the same id")
    same = whole.filter(pl.col("branded_id") == pl.col("unbranded_id"))
    report(findings, same, "unbranded_id", lambda value: f"{value} is mapped to itself")
    _refuse_chains(whole.filter(pl.col("branded_id") != pl.col("unbranded_id")), findings)
    return pairs


def _refuse_chains(pairs: pl.DataFrame, findings: Findings) -> None:
    """Add a fault for each row whose unbranded id is branded in another row: a chain or a circle."""
    branded = pairs.select(pl.col("branded_id").alias("unbranded_id"), pl.col(ROW).alias("other")).unique(
        "unbranded_id", keep="first", maintain_order=True
    )
    chained = pairs.join(branded, on="unbranded_id", how="inner").sort(ROW)
    for row, value, other in chained.select(ROW, "unbranded_id", "other").iter_rows():
        findings.add(row, "unbranded_id", f"{value} is the branded id of row {other}; a map has no chains or circles")


WEIGHT_COLUMNS = (
    InputColumn("property_id", kinds.ID, "property that it applies to, or", is_required=False),
    InputColumn("market", kinds.MARKET, "market that it applies to", is_required=False),
    InputColumn("weight", kinds.WEIGHT, "0 or more"),
)


def read_weights(data: bytes, findings: Findings, _: object = None) -> pl.DataFrame:
    """Return the weights of a file; what is wrong is added to `findings`, row by row."""
    weights = user_table.read_table(data, WEIGHT_COLUMNS, findings)
    named = readable(weights, ["property_id", "market"])
    is_of_one = pl.col("property_id").is_null() != pl.col("market").is_null()
    either = "a weight is for a property or for a market, not both"
    report(findings, named.filter(~is_of_one), "property_id", lambda _: either)
    for column in ("property_id", "market"):
        of_one = named.filter(is_of_one & pl.col(column).is_not_null())
        report_repeated(findings, of_one, [column], f"the same {column.removesuffix('_id')}")
    return weights
