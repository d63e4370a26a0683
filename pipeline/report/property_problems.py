"""What is wrong at a property: its open problems, and what every rule has found there so far."""

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.lake.relations import finding_rules
from pipeline.report.cost import COST, NOTE, SINCE
from pipeline.report.page import Column, Section, named, whole
from pipeline.report.words import rule_said


def cases_section(lines: pl.DataFrame) -> Section:
    """Return the section of open problems."""
    lines = lines.with_columns(
        pl.col("pages").list.eval(
            pl.struct(
                pl.element().struct.field("text"), (pl.lit("../") + pl.element().struct.field("href")).alias("href")
            )
        )
    )
    return Section(
        "cases",
        counted(lines["rule"].n_unique(), "problem is open", "problems are open"),
        f"Each line is one problem, in every market where it was found, with the answers that show it. {NOTE}",
        lines,
        columns=[
            Column("rule_words", "Problem", is_wide=True),
            COST,
            SINCE,
            Column("market", "Markets", is_wide=True),
            *named(severity="Severity", status_words="Status"),
            Column("finding", "In words, and the evidence by market", is_wide=True, links="pages"),
        ],
        source="report.finding_case",
    )


def rules_section(rows: pl.DataFrame, *, is_on_sale: bool) -> Section:
    """Return what every rule has found here so far: that it looked and found nothing is a result, too."""
    rules = [rule for rule in finding_rules().values() if rule.makes == "flags"]
    found = {row["rule"]: row for row in rows.iter_rows(named=True)}
    none = {"standing": 0, "ended": 0, "last_at": None}
    each = [{"rule": rule.name, "rule_words": rule_said(rule.name)} | found.get(rule.name, none) for rule in rules]
    now = sum(bool(row["standing"]) for row in each)
    before = sum(bool(row["ended"]) and not row["standing"] for row in each)
    of_rules = counted(len(each), "rule")
    none_judges = f"None of {of_rules} finds anything, as nothing is on sale"
    return Section(
        "rules",
        f"{now:,} of {of_rules} {'finds' if now == 1 else 'find'} something now"
        if now
        # That nothing is on sale may be worth a call.
        else (f"Nothing to call about: none of {of_rules} finds anything" if is_on_sale else none_judges)
        + (f"; {before:,} did before" if before else ""),
        "What was looked for at this property every night, and what was found. An offer in both a list and a detail "
        "answer has two findings. A case opens on the night a rule first finds something; what most of a market "
        "shares is a case of that market, not of this property.",
        pl.DataFrame(each, schema_overrides={"last_at": pl.Datetime(time_zone="UTC")})
        .with_columns(pl.col("last_at").dt.date().alias("last_on"))
        .sort("standing", "ended", descending=True, maintain_order=True),
        columns=[
            Column("rule_words", "Looked for", is_wide=True),
            *whole(standing="Open findings", ended="Ended findings"),
            Column("last_on", "Last seen"),
        ],
        shown=len(each),
        source="report.flag_history",
    )
