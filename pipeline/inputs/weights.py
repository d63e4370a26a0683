"""Weights: how much a property, or a market, counts in a score. What is not listed counts 1."""

from __future__ import annotations

import polars as pl

from pipeline.inputs import user_table
from pipeline.inputs.problems import Findings
from pipeline.inputs.user_table import REFUSED, InputColumn, readable, report, report_repeated

COLUMNS = (
    InputColumn("property_id", user_table.ID, "the property that it is of, or", is_required=False),
    InputColumn("market", user_table.MARKET, "the market that it is of", is_required=False),
    InputColumn("weight", user_table.WEIGHT, "0 or more"),
)


def read_weights(data: bytes, file_name: str) -> pl.DataFrame:
    """Return the weights of a file. Raises InputError that lists what is wrong, row by row."""
    findings = Findings(file_name)
    weights = user_table.read_table(data, file_name, COLUMNS, findings)
    named = readable(weights, ["property_id", "market"])
    is_of_one = pl.col("property_id").is_null() != pl.col("market").is_null()
    report(
        findings,
        named.filter(~is_of_one),
        "property_id",
        lambda _: "a weight is of a property or of a market, one of the two",
    )
    for column in ("property_id", "market"):
        of_one = named.filter(is_of_one & pl.col(column).is_not_null())
        report_repeated(findings, of_one, [column], f"the same {column.removesuffix('_id')}")
    findings.refuse_faults()
    return weights.drop(REFUSED)
