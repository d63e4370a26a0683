"""Findings on a page: the flags of some rules, the most severe first, each with the command that replays it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.lake.relations import MOST_SEVERE_FIRST, finding_rules
from pipeline.report.page import PROPERTY, Column, Section, named
from pipeline.report.read import Reader
from pipeline.report.rows_held import ROWS_OF_A_PAGE
from pipeline.report.words import rule_said, unit_of, unit_said

# The most severe first.
SEVERITIES = ("high", "medium", "low")

# Flags of which all is read at once.
_AT_ONCE = 10_000
# Findings shown of a rule, so that one rule does not crowd out the others.
_OF_A_RULE = 5
# What makes a row of a table: its most severe finding stands for all of them.
_ALIKE = ("rule", "property_id", "market")
A_ROW = "A row is the most severe finding of a rule at a property in a market, with the number of findings there."
ALIKE = Column("alike", "Findings", digits=0)
# The first columns of a table of findings.
WHAT_AND_WHERE = (
    Column("rule_words", "Finding", is_wide=True),
    Column("severity", "Severity"),
    PROPERTY,
    *named(market="Market", check_in="Check-in"),
)


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags in page order: the columns to count by of all of them, and the full rows of some, read on demand.

    A large night has hundreds of thousands of flags, whose full rows take half a kilobyte each.
    """

    narrow: pl.DataFrame
    """One row per flag: `flag_id`, `rule`, `severity`, `property_id`, `market`, and perhaps more."""
    of: Callable[[pl.Series], pl.DataFrame]
    """Returns all columns of the flags with some ids, in the order of these."""

    @property
    def number(self) -> int:
        """How many they are."""
        return self.narrow.height


def flags(reader: Reader, page: str) -> Flags:
    """Return the open flags within the scope of the rules whose findings a report lists, the most severe first."""
    named = ", ".join(f"'{name}'" for name, rule in finding_rules().items() if rule.page == page)
    return read_flags(reader, "report.flag", f"rule IN ({named})")


def read_flags(reader: Reader, relation: str, where: str, *more: str) -> Flags:
    """Return flags of a relation within the scope, the most severe first; `more` are further columns to count by."""

    def of(ids: pl.Series) -> pl.DataFrame:
        return _worded(reader, _rows_of(reader, relation, ids, where))

    only = ", ".join(("flag_id", *_ALIKE, "severity", *more))
    return Flags(reader.rows(relation, only=only, order=MOST_SEVERE_FIRST, where=where), of)


def _rows_of(reader: Reader, relation: str, ids: pl.Series, where: str) -> pl.DataFrame:
    wanted = pl.DataFrame({"flag_id": ids})
    reader.session.register("wanted", wanted.to_arrow())
    try:
        found = reader.query(
            f"SELECT flag.* FROM {relation} AS flag SEMI JOIN wanted ON wanted.flag_id = flag.flag_id WHERE {where}"  # noqa: S608 - our own names
        )
    finally:
        reader.session.unregister("wanted")
    return wanted.join(found, on="flag_id", how="left", maintain_order="left").select(found.columns)


def _worded(reader: Reader, found: pl.DataFrame) -> pl.DataFrame:
    """Return flags with their rule in words, the unit of their size and the names of their properties."""
    said = pl.col("rule").map_elements(rule_said, return_dtype=pl.String).alias("rule_words")
    unit = pl.col("rule").map_elements(unit_of, return_dtype=pl.String).alias("size_unit")
    return reader.with_cases(reader.named(found)).with_columns(said, unit)


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


def in_rows(found: pl.DataFrame, of_a_rule: int = _OF_A_RULE) -> tuple[pl.DataFrame, int]:
    """Return one row for all flags of a rule, property and market, with their number, and how many to show.

    Those to show are the most severe of each rule: one per property, few of a rule. Of the others, each property's
    first comes before any second: a page that cannot hold all holds each property.
    """
    rows = found.with_columns(pl.len().over(_ALIKE).alias("alike"))
    rows = rows.unique(subset=_ALIKE, keep="first", maintain_order=True)
    is_first = pl.int_range(pl.len()).over("rule", "property_id") == 0
    is_shown = is_first & (is_first.cum_sum().over("rule") <= of_a_rule)
    number = rows.select(is_shown.sum()).item()
    turn = pl.when(is_shown).then(-1).otherwise(pl.int_range(pl.len()).over("property_id"))
    return rows.sort(turn, maintain_order=True), number


def section_of(found: Flags, of_a_rule: int, section: Section) -> Section:
    """Return a section with flags as its figures, those that its table shows first, and the rows of its table."""
    rows, shown = in_rows(found.narrow, of_a_rule)
    held = rows.head(ROWS_OF_A_PAGE)
    lines = found.of(held["flag_id"]).with_columns(held["alike"])
    first = rows["flag_id"].head(shown)
    ids = pl.concat([first, found.narrow["flag_id"].filter(~found.narrow["flag_id"].is_in(first.implode()))])

    def part(start: int) -> pl.DataFrame:
        return found.of(ids[start : start + _AT_ONCE]).drop("case_page")

    return replace(
        section,
        figures=part(0),
        further=lambda: map(part, range(_AT_ONCE, ids.len(), _AT_ONCE)),
        lines=lines,
        shown=shown,
        in_all=(found.number, rows.height),
    )


def findings(
    name: str,
    found: Flags,
    note: str,
    why_empty: str,
    *,
    are: tuple[str, str] = ("is open", "are open"),
    of_a_rule: int = _OF_A_RULE,
) -> Section:
    """Return a section of flags; its title counts them by severity, and its table shows the worst of each property."""
    made = Section(
        name,
        f"{counted(found.number, 'finding')} {are[found.number != 1]}: {by_severity(found.narrow)}"
        if found.number
        else f"No finding {are[0]}",
        f"{note} {A_ROW} The first rows are the most severe of each rule, one per property; the files below have "
        "every finding. The case shows both answers side by side. `nightaudit explain`, with the flag below a finding, "
        "traces it to its raw answers and recomputes it.",
        found.narrow,
        columns=[
            *WHAT_AND_WHERE,
            ALIKE,
            Column("size_pct", "Size", digits=1, unit_in="size_unit"),
            Column("snapshots", "Nights seen", digits=0),
            Column("finding", "In words, and the flag", is_wide=True, below="flag_id", links="pages"),
        ],
        why_empty=why_empty,
        source="report.flag",
    )
    made = section_of(found, of_a_rule, made)
    pages = (
        pl.when(pl.col("case_page").is_not_null())
        .then(pl.concat_list(pl.struct(pl.lit("the case").alias("text"), pl.col("case_page").alias("href"))))
        .alias("pages")
    )
    # Rules in one table differ in their unit.
    units = pl.col("rule").map_elements(_unit, return_dtype=pl.String).alias("size_unit")
    return replace(made, lines=made.table.with_columns(pages, units))


def _unit(rule: str) -> str:
    """Return the unit of a rule's sizes as it follows a number in a table, such as `%` or ` points`."""
    return unit_said(rule).replace("percentage ", "")
