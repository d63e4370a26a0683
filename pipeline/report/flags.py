"""What became of findings in the last night: those that are new, those that ended, and how many each rule has."""

from __future__ import annotations

import polars as pl

from pipeline.report.findings import GRAVEST_FIRST, findings
from pipeline.report.page import Column, Section
from pipeline.report.reading import Reader

_ENDINGS = {"value": "answered otherwise", "gone": "its offer is gone", "stay_began": "its stay began"}


def new_flags(reader: Reader) -> pl.DataFrame:
    """Return the findings that the last night flagged for the first time, the gravest first."""
    found = reader.rows(
        "report.flag", order=GRAVEST_FIRST, where=f"first_flagged_sweep_id = '{reader.night['sweep_id']}'"
    )
    return found.with_columns(pl.col("rule").str.replace_all("_", " ").alias("rule_words"))


def ended_flags(reader: Reader) -> pl.DataFrame:
    """Return the findings that ended with the last night, the gravest first."""
    found = reader.rows(
        "report.flag_history", order=GRAVEST_FIRST, where=f"resolved_sweep_id = '{reader.night['sweep_id']}'"
    )
    return found.with_columns(
        pl.col("rule").str.replace_all("_", " ").alias("rule_words"),
        pl.col("ended_by").replace_strict(_ENDINGS, return_dtype=pl.String).alias("ending"),
    )


def new_section(new: pl.DataFrame, *, is_first_night: bool) -> Section:
    """Return the section of new findings."""
    note = "Findings that the rules did not have the night before."
    if is_first_night:
        note = "This is the first published night, so that all of its findings are new."
    why_empty = "The rules found nothing that they had not found before."
    return findings("new_findings", new, note, why_empty, are="are new")


def ended_section(ended: pl.DataFrame, *, is_first_night: bool) -> Section:
    """Return the section of findings that ended, with the time that each took."""
    resolved = ended.filter(pl.col("hours_to_resolve").is_not_null())
    median = resolved["hours_to_resolve"].median()
    told = f", half of them within {median:,.0f} hours" if isinstance(median, float) else ""
    return Section(
        "ended_findings",
        f"{ended.height:,} findings ended{told}" if ended.height else "No finding ended",
        "A finding ends by an answer: all of it was answered otherwise, an offer of it is gone, or its stay began. "
        "The hours run from the sweep that flagged it first; a stay that began resolves nothing, and has none.",
        ended,
        columns=[
            Column("rule_words", "Finding", is_wide=True, below="severity"),
            Column("property_id", "Property"),
            Column("market", "Market"),
            Column("check_in", "Check-in"),
            Column("ending", "Ended, as", is_wide=True),
            Column("hours_to_resolve", "To resolve", "hours", 0),
            Column("finding", "What it was, and the flag", is_wide=True, below="flag_id"),
        ],
        why_empty="There was no night before this one."
        if is_first_night
        else "Every finding of the night before still stands, or got no answer.",
    )


def by_rule_section(standing: pl.DataFrame, new: pl.DataFrame, ended: pl.DataFrame) -> Section:
    """Return the section that counts findings by rule."""
    counted = (
        _counts(standing, "standing")
        .join(_counts(new, "new"), on="rule", how="full", coalesce=True)
        .join(_counts(ended, "ended"), on="rule", how="full", coalesce=True)
        .join(_counts(standing.filter(pl.col("severity") == "high"), "high"), on="rule", how="left")
        .with_columns(pl.col("standing", "new", "ended", "high").fill_null(0).cast(pl.Int64))
        .with_columns(pl.col("rule").str.replace_all("_", " ").alias("rule_words"))
        .sort(["standing", "rule"], descending=[True, False])
    )
    most = counted.row(0, named=True) if counted.height else None
    return Section(
        "findings_by_rule",
        f"Most findings are of the rule: {most['rule_words']}" if most else "No rule found anything",
        "One price can break several rules, so the sum over rules is not a number of prices. Findings that got no "
        "answer stand on.",
        counted,
        columns=[
            Column("rule_words", "Rule", is_wide=True),
            Column("standing", "Standing", digits=0),
            Column("high", "High", digits=0),
            Column("new", "New", digits=0),
            Column("ended", "Ended", digits=0),
        ],
        why_empty="No rule found anything in this night or the one before.",
        shown=counted.height,
    )


def _counts(flags: pl.DataFrame, name: str) -> pl.DataFrame:
    return flags.group_by("rule").agg(pl.len().alias(name))
