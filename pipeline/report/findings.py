"""Findings on a page: the flags of some rules, the gravest first, each with the command that replays it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pipeline.report.page import Column, Section
from pipeline.report.reading import Reader

# Order of flags: the gravest come first.
GRAVEST_FIRST = "CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, size_pct DESC NULLS LAST, flag_id"

# So many of a rule are shown, so that one rule does not crowd out the others.
_OF_A_RULE = 5


def flags(reader: Reader, rules: Sequence[str]) -> pl.DataFrame:
    """Return the open flags of rules within the scope, the gravest first."""
    named = ", ".join(f"'{rule}'" for rule in rules)
    found = reader.rows("report.flag", order=GRAVEST_FIRST, where=f"rule IN ({named})")
    return found.with_columns(pl.col("rule").str.replace_all("_", " ").alias("rule_words"))


def findings(name: str, found: pl.DataFrame, note: str, why_empty: str, *, are: str = "stand") -> Section:
    """Return a section of flags; its title counts them by severity, its table shows the gravest of each property."""
    counts = dict(found.group_by("severity").len().iter_rows())
    told = ", ".join(f"{counts[severity]:,} {severity}" for severity in ("high", "medium", "low") if severity in counts)
    each = found.unique(subset=["rule", "property_id"], keep="first", maintain_order=True)
    gravest = each.filter(pl.int_range(pl.len()).over("rule") < _OF_A_RULE)
    left = found.height - gravest.height
    return Section(
        name,
        f"{found.height:,} findings {are}: {told}" if found.height else f"No findings {are}",
        f"{note} The table shows the gravest of each rule, one a property; {left:,} more are in the figures. "
        "The command nightaudit explain, with a flag, leads it back to the raw answers and judges it again.",
        pl.concat([gravest, found.join(gravest, on="flag_id", how="anti")]),
        columns=[
            Column("rule_words", "Finding", is_wide=True, below="severity"),
            Column("property_id", "Property"),
            Column("market", "Market"),
            Column("check_in", "Check-in"),
            Column("size_pct", "Size", "%", 1),
            Column("snapshots", "Nights", digits=0),
            Column("finding", "In words, and the flag", is_wide=True, below="flag_id"),
        ],
        why_empty=why_empty,
        shown=gravest.height,
    )
