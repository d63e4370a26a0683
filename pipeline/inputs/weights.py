"""Weights: how much a property, or a market, counts in a score. What is not listed counts 1."""

from __future__ import annotations

import polars as pl

from pipeline.inputs import reading
from pipeline.inputs.findings import Findings
from pipeline.inputs.reading import InputColumn, report, report_repeated

COLUMNS = (
    InputColumn("property_id", reading.ID, "the property that it is of, or", is_required=False),
    InputColumn("market", reading.MARKET, "the market that it is of", is_required=False),
    InputColumn("weight", reading.WEIGHT, "0 or more"),
)


def read_weights(data: bytes, file_name: str) -> pl.DataFrame:
    """Return the weights of a file. Raises InputError that lists what is wrong, row by row."""
    findings = Findings(file_name)
    weights = reading.read_table(data, file_name, COLUMNS, findings)
    if not findings.count:
        has_property, has_market = pl.col("property_id").is_not_null(), pl.col("market").is_not_null()
        bad = weights.filter(has_property == has_market)
        report(findings, bad, "property_id", lambda _: "a weight is of a property or of a market, one of the two")
        report_repeated(findings, weights, ["property_id", "market"], "the same property or market")
    findings.refuse_faults()
    return weights
