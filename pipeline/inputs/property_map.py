"""The property map: which unbranded id stands for the opaque offer of a branded property.

The supplier's document requires the unbranded id in single searches and quotes of opaque offers (4.2, 4.3); a multi
search may name both. The map is private and never part of a report.
"""

from __future__ import annotations

import polars as pl

from pipeline.inputs import kinds, user_table
from pipeline.inputs.kinds import InputColumn
from pipeline.inputs.problems import Findings
from pipeline.inputs.user_table import ROW, report, report_repeated

COLUMNS = (
    InputColumn("branded_id", kinds.ID, "id under which the offer is shown with its brand"),
    InputColumn("unbranded_id", kinds.ID, "id that is sent in its place in single searches and quotes"),
)


def read_map(data: bytes, findings: Findings, _: object = None) -> pl.DataFrame:
    """Return the pairs of a file; what is wrong is added to `findings`, row by row."""
    pairs = user_table.read_table(data, COLUMNS, findings)
    whole = pairs.drop_nulls(["branded_id", "unbranded_id"])
    for column in ("branded_id", "unbranded_id"):
        report_repeated(findings, whole, [column], "the same id")
    same = whole.filter(pl.col("branded_id") == pl.col("unbranded_id"))
    report(findings, same, "unbranded_id", lambda value: f"{value} stands for itself")
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
