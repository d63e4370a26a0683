"""Findings on a page: the flags of some rules, the most severe first, each with the command that replays it."""

from collections.abc import Sequence

import polars as pl

from pipeline.report.page import PROPERTY, Column, Section, counted, named
from pipeline.report.read import Reader
from pipeline.report.words import rule_said

# The most severe first.
SEVERITIES = ("high", "medium", "low")
# Order of flags: the most severe come first.
MOST_SEVERE_FIRST = (
    "CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, abs(size_pct) DESC NULLS LAST, flag_id"
)

# Findings shown of a rule, so that one rule does not crowd out the others.
_OF_A_RULE = 5
# The first columns of a table of findings.
WHAT_AND_WHERE = (
    Column("rule_words", "Finding", is_wide=True),
    Column("severity", "Severity"),
    PROPERTY,
    *named(market="Market", check_in="Check-in"),
)


def flags(reader: Reader, rules: Sequence[str]) -> pl.DataFrame:
    """Return the open flags of rules within the scope, the most severe first."""
    named = ", ".join(f"'{rule}'" for rule in rules)
    return worded(reader, reader.rows("report.flag", order=MOST_SEVERE_FIRST, where=f"rule IN ({named})"))


def worded(reader: Reader, found: pl.DataFrame) -> pl.DataFrame:
    """Return flags with their rule in words and the names of their properties."""
    said = pl.col("rule").map_elements(rule_said, return_dtype=pl.String).alias("rule_words")
    return reader.with_cases(reader.named(found)).with_columns(said)


def by_severity(found: pl.DataFrame) -> str:
    """Return the number of flags by severity, in words."""
    counts = dict(found.group_by("severity").len().iter_rows())
    if len(counts) == 1 and found.height > 1:
        return f"all {next(iter(counts))}"
    return ", ".join(f"{counts[severity]:,} {severity}" for severity in SEVERITIES if severity in counts)


def most_severe() -> pl.Expr:
    """Return the highest severity of a group of rows."""
    rank = pl.col("severity").replace_strict({severity: place for place, severity in enumerate(SEVERITIES)})
    return pl.col("severity").sort_by(rank).first()


def most_severe_first(found: pl.DataFrame, of_a_rule: int = _OF_A_RULE) -> tuple[pl.DataFrame, int]:
    """Return flags with the most severe of each rule first (one per property, few of a rule), and their number."""
    each = found.unique(subset=["rule", "property_id"], keep="first", maintain_order=True)
    most_severe = each.filter(pl.int_range(pl.len()).over("rule") < of_a_rule)
    return pl.concat(
        [most_severe, found.join(most_severe, on="flag_id", how="anti", maintain_order="left")]
    ), most_severe.height


def findings(
    name: str,
    found: pl.DataFrame,
    note: str,
    why_empty: str,
    *,
    are: tuple[str, str] = ("is open", "are open"),
    of_a_rule: int = _OF_A_RULE,
) -> Section:
    """Return a section of flags; its title counts them by severity, and its table shows the worst of each property."""
    placed, shown = most_severe_first(found, of_a_rule)
    left = found.height - shown
    rest = f"; {counted(left, 'more is', 'more are')} in the files below" if left else ""
    return Section(
        name,
        f"{counted(found.height, 'finding')} {are[found.height != 1]}: {by_severity(found)}"
        if found.height
        else f"No finding {are[0]}",
        f"{note} The table shows the most severe of each rule, one per property{rest}. "
        "The case shows both answers side by side. `nightaudit explain`, with the flag below a finding, traces it to "
        "its raw answers and recomputes it.",
        placed.drop("case_page"),
        columns=[
            *WHAT_AND_WHERE,
            Column("size_pct", "Size", "%", 1),
            Column("snapshots", "Nights seen", digits=0),
            Column("finding", "In words, and the flag", is_wide=True, below="flag_id", links="pages"),
        ],
        why_empty=why_empty,
        shown=shown,
        source="report.flag",
        lines=placed.with_columns(
            pl.when(pl.col("case_page").is_not_null())
            .then(pl.concat_list(pl.struct(pl.lit("the case").alias("text"), pl.col("case_page").alias("href"))))
            .alias("pages")
        ),
    )
