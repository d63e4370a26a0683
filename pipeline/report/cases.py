"""Cases on a page: findings that have one cause to call about, the ones to look at first before others."""

from __future__ import annotations

import polars as pl

from pipeline.report.findings import by_severity
from pipeline.report.page import PROPERTY, Column, Point, Section, counted
from pipeline.report.read import Reader
from pipeline.report.words import rule_said

_SHOWN = 15
_FIRST = (
    "CASE status WHEN 'new' THEN 0 WHEN 'open' THEN 1 WHEN 'acknowledged' THEN 2 ELSE 3 END, "
    "CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, exposure_weight DESC, flags DESC, case_id"
)


def standing_cases(reader: Reader) -> pl.DataFrame:
    """Return the cases that are not closed and no part of a wider one."""
    found = reader.rows("report.finding_case", order=_FIRST, where="status NOT IN ('closed', 'part_of')")
    texts = pl.col("evidence").list.eval(pl.element().struct.field("flag_id")).list.join(", ").alias("flag_ids")
    said = pl.col("rule").map_elements(rule_said, return_dtype=pl.String).alias("rule_words")
    whom = (
        pl.when(pl.col("scope") == "supplier")
        .then(pl.lit("the supplier"))
        .when(pl.col("scope") == "market")
        .then(pl.lit("the market"))
        .otherwise(pl.col("property_name"))
        .alias("property_name")
    )
    return reader.named(found).with_columns(said, whom, texts).drop("evidence", "amounts")


def cases_section(cases: pl.DataFrame) -> Section:
    """Return the section of cases. Muted and acknowledged ones come last."""
    waiting = _waiting(cases)
    return Section(
        "cases",
        f"{counted(waiting.height, 'case waits', 'cases wait')} for a decision: {by_severity(waiting)}"
        if waiting.height
        else "No case waits for a decision",
        "A case groups the findings of one rule at one property in one market, or, where most properties are affected, "
        "in the market or at the supplier. Isolated or systematic: by the share of the market's properties, with a "
        "95% interval. nightaudit case shows, acknowledges or mutes a case by its id; explain and "
        "confirm take the id too.",
        cases,
        columns=[
            Column("rule_words", "Case", is_wide=True, below="case_id"),
            Column("status", "Status"),
            Column("severity", "Severity"),
            PROPERTY,
            Column("market", "Market"),
            Column("flags", "Findings", digits=0),
            Column("median_pct", "Median size", "%", 1, is_change=True),
            Column("spread", "Spread"),
            Column("finding", "In words", is_wide=True),
        ],
        why_empty="No case is open.",
        shown=_SHOWN,
        source="report.finding_case",
    )


def cases_point(cases: pl.DataFrame) -> Point:
    """Say how many cases wait, and which one to look at first."""
    waiting = _waiting(cases)
    if not waiting.height:
        return Point("No case waits for a decision.", "cases", "good")
    first = waiting.row(0, named=True)
    place = ", ".join(filter(None, (first["property_name"], first["market"])))
    told = (
        f"{counted(waiting.height, 'case waits', 'cases wait')} for a decision, "
        f"{waiting.filter(pl.col('status') == 'new').height:,} of them new. Look first at: {first['rule_words']} "
        f"({place}). {first['finding']}"
    )
    return Point(told, "cases", "bad" if first["severity"] == "high" else "warn")


def _waiting(cases: pl.DataFrame) -> pl.DataFrame:
    return cases.filter(pl.col("status").is_in(["new", "open"]))
