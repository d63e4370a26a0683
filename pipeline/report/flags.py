"""Changes of findings in the last night: new ones, ended ones, and how many each rule has."""

from dataclasses import replace

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.findings import (
    A_ROW,
    ALIKE,
    WHAT_AND_WHERE,
    Flags,
    findings,
    read_flags,
    section_of,
)
from pipeline.report.page import Column, Section, whole
from pipeline.report.read import Reader
from pipeline.report.words import rule_said

# The digest shows only the most severe of each rule.
_OF_A_RULE = 1
# Longer times are shown in days.
_HOURS_AS_SUCH = 48


def new_flags(reader: Reader) -> Flags:
    """Return the findings that the last night flagged for the first time, the most severe first."""
    return read_flags(reader, "report.flag", f"first_flagged_sweep_id = '{reader.night['sweep_id']}'")


def ended_flags(reader: Reader) -> Flags:
    """Return the findings that ended with the last night, the most severe first."""
    where = f"resolved_sweep_id = '{reader.night['sweep_id']}'"
    return read_flags(reader, "report.flag_history", where, "hours_to_resolve")


def new_section(new: Flags, *, is_first_night: bool) -> Section:
    """Return the section of new findings."""
    note = "Findings that did not exist the night before."
    if is_first_night:
        note = "This is the first published night, so all findings are new."
    why_empty = "The rules found nothing new tonight. New findings appear as soon as a rule finds them."
    return findings("new_findings", new, note, why_empty, are=("is new", "are new"), of_a_rule=_OF_A_RULE)


def ended_section(ended: Flags, *, is_first_night: bool) -> Section:
    """Return the section of findings that ended, with the time that each took."""
    resolved = ended.narrow["hours_to_resolve"].drop_nulls()
    median = resolved.median()
    took = ""
    if isinstance(median, float):
        some = "" if resolved.len() == ended.number else f"; {resolved.len():,} were resolved"
        within = f"{median:,.0f} hours" if median < _HOURS_AS_SUCH else f"{median / 24:,.0f} days"
        took = f"{some}, half of them within {within}"
    made = Section(
        "ended_findings",
        f"{counted(ended.number, 'finding')} ended{took}"
        if ended.number
        else "No earlier findings that could end"
        if is_first_night
        else "No finding ended",
        "A finding ends when an answer no longer shows it, one of its offers is gone, its currency is no longer "
        "requested, or its stay begins. Days count from the sweep that first flagged it to the answer that no longer "
        "shows it; a finding that ended in another way was not resolved and has none. "
        f"{A_ROW} The first rows are the most severe of each rule.",
        ended.narrow,
        columns=[
            *WHAT_AND_WHERE,
            ALIKE,
            Column("ended_by", "Why it ended", is_wide=True),
            Column("days_to_resolve", "To resolve", "days", 1),
            Column("finding", "What it was, and the flag", is_wide=True, below="flag_id"),
        ],
        why_empty="This is the first published night: findings can end from the second night on."
        if is_first_night
        else "Every finding of the previous night is still open, or got no answer.",
        source="report.flag_history",
    )
    made = section_of(ended, _OF_A_RULE, made)
    return replace(made, lines=made.table.with_columns((pl.col("hours_to_resolve") / 24).alias("days_to_resolve")))


def by_rule_section(standing: pl.DataFrame, new: Flags, ended: Flags) -> Section:
    """Return the section that counts findings by rule."""
    by_rule = (
        _counts(standing, "standing")
        .join(_counts(new.narrow, "new"), on="rule", how="full", coalesce=True)
        .join(_counts(ended.narrow, "ended"), on="rule", how="full", coalesce=True)
        .join(_counts(standing.filter(pl.col("severity") == "high"), "high"), on="rule", how="left")
        .with_columns(pl.col("standing", "new", "ended", "high").fill_null(0).cast(pl.Int64))
        .with_columns(pl.col("rule").map_elements(rule_said, return_dtype=pl.String).alias("rule_words"))
        .sort(["standing", "rule"], descending=[True, False])
    )
    most = by_rule.row(0, named=True) if by_rule.height else None
    words = most["rule_words"] if most else ""
    alike = by_rule.filter(pl.col("standing") == pl.col("standing").max()).height
    return Section(
        "findings_by_rule",
        f"The most frequent findings: {alike} rules with {most['standing']:,} each"
        if most and most["standing"] and alike > 1
        else f"The most frequent finding: {words[0].lower()}{words[1:]} ({most['standing']:,})"
        if most
        else "No rule found anything",
        "One price can break several rules, so adding up the rules does not give a number of prices. Findings whose "
        "cells got no answer stay open.",
        by_rule,
        columns=[
            Column("rule_words", "Finding", is_wide=True),
            *whole(standing="Open", high="High", new="New", ended="Ended"),
        ],
        why_empty="No rule found anything tonight or the night before. The first finding fills this section.",
        shown=by_rule.height,
        source="report.flag",
    )


def _counts(flags: pl.DataFrame, name: str) -> pl.DataFrame:
    return flags.group_by("rule").agg(pl.len().alias(name))
