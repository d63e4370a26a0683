"""Weights: how much a property, or a market, counts in a score. The default is 1."""

from __future__ import annotations

import polars as pl

from pipeline.inputs import kinds, user_table
from pipeline.inputs.kinds import InputColumn
from pipeline.inputs.problems import Findings
from pipeline.inputs.user_table import readable, report, report_repeated

COLUMNS = (
    InputColumn("property_id", kinds.ID, "the property that it is of, or", is_required=False),
    InputColumn("market", kinds.MARKET, "the market that it is of", is_required=False),
    InputColumn("weight", kinds.WEIGHT, "0 or more"),
)


def read_weights(data: bytes, findings: Findings, _: object = None) -> pl.DataFrame:
    """Return the weights of a file; what is wrong is added to `findings`, row by row."""
    weights = user_table.read_table(data, COLUMNS, findings)
    named = readable(weights, ["property_id", "market"])
    is_of_one = pl.col("property_id").is_null() != pl.col("market").is_null()
    either = "a weight is of a property or of a market, one of the two"
    report(findings, named.filter(~is_of_one), "property_id", lambda _: either)
    for column in ("property_id", "market"):
        of_one = named.filter(is_of_one & pl.col(column).is_not_null())
        report_repeated(findings, of_one, [column], f"the same {column.removesuffix('_id')}")
    return weights
