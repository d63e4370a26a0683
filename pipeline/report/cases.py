"""Cases on a page: what opened with the last night and what persists, the most costly first."""

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from pipeline.lake.relations import finding_rules
from pipeline.report.cost import COST, NOTE, SINCE, cost_and_since, costly_first
from pipeline.report.findings import SEVERITIES, by_severity, most_severe
from pipeline.report.page import PROPERTY, Column, Point, Section, counted, named
from pipeline.report.read import PROPERTY_PAGES, Reader
from pipeline.report.words import rule_said

_SHOWN = 15
# Properties that the summary names.
_CALLS = 3
_STATUSES = ("new", "open", "acknowledged", "muted")


def open_cases(reader: Reader) -> pl.DataFrame:
    """Return the cases that are neither closed nor part of a wider one."""
    reader.note_cases()
    return described(reader, reader.cases)


def described(reader: Reader, cases: pl.DataFrame) -> pl.DataFrame:
    """Return cases with their problem and subject in words, and with the pages of case and property."""
    texts = pl.col("evidence").list.eval(pl.element().struct.field("flag_id")).list.join(", ").alias("flag_ids")
    said = pl.col("rule").map_elements(rule_said, return_dtype=pl.String).alias("rule_words")
    whom = (
        pl.when(pl.col("scope") == "supplier")
        .then(pl.lit("all markets"))
        .when(pl.col("scope") == "market")
        .then(pl.format("market {}", "market"))
        .otherwise(pl.col("property_name"))
        .alias("property_name")
    )
    has_page = pl.col("property_id").is_in(list(reader.property_pages))
    its_page = pl.when(has_page).then(pl.format(f"{PROPERTY_PAGES}/{{}}.html", "property_id")).alias("property_page")
    in_markets = pl.col("markets").list.join(", ")
    return cases.with_columns(said, whom, texts, reader.case_page, its_page, in_markets)


def calls(cases: pl.DataFrame) -> pl.DataFrame:
    """Return one line (one call) for each property and rule, over all its markets, the most costly first.

    What was acknowledged comes after what needs a decision, and what was muted last.
    """
    if not cases.height:
        return cases
    is_many = pl.len() > 1
    is_of_several = pl.col("market").is_null() & pl.col("property_id").is_not_null()
    named = pl.when(is_of_several).then(pl.col("markets").str.split(", ")).otherwise(pl.concat_list("market"))
    many = named.explode().drop_nulls().unique().sort()
    lowest, highest = pl.col("lowest_pct").cast(float).min().round(1), pl.col("highest_pct").cast(float).max().round(1)
    example = pl.col("example").first()
    # If all have the size in the example, it is not repeated.
    is_said = (lowest == highest) & example.str.contains(
        pl.format("(?:^|[^0-9.]){}0?%", lowest.abs().cast(pl.String).str.escape_regex())
    )
    is_above = lowest > 0
    size = pl.format(
        "{} in {} markets{}. {}",
        # A property that has gone quiet has no offers, and no stays.
        pl.when(pl.col("stays").sum() == 0)
        .then(pl.format("{} findings", _with_commas(pl.col("flags").sum())))
        .otherwise(pl.format("{} offers", _with_commas(pl.col("offers").sum()))),
        many.len(),
        pl.when(lowest.is_null() | is_said)
        .then(pl.lit(""))
        .when((lowest == highest) & is_above)
        .then(pl.format(", a difference of {}%", lowest))
        .when(lowest == highest)
        .then(pl.format(", {}%", lowest))
        .when(is_above)
        .then(pl.format(", differences of {}% to {}%", lowest, highest))
        .otherwise(pl.format(", {}% to {}%", lowest, highest)),
        example,
    )
    # Without a property, a case is of a market or the supplier and has its own line.
    by = [pl.coalesce(pl.col("property_id").cast(pl.String), "case_id").alias("whom"), "rule", _is_waiting().alias("w")]
    lines = (
        cases.with_columns(pl.col("evidence").list.first().struct.field("finding").alias("example"))
        .group_by(by, maintain_order=True)
        .agg(
            pl.col("rule_words", "status", "scope", "property_id", "property_name").first(),
            most_severe(),
            many.str.join(", ").alias("market"),
            pl.col("flags").sum(),
            pl.when(is_many).then(size).otherwise(pl.col("finding").first()).alias("finding"),
            pl.col("case_id").str.join(" ").alias("case_id"),
            pl.col("case_id")
            .filter(pl.col("case_page").is_null())
            .str.join(" ")
            .replace("", None)
            .alias("without_page"),
            pl.col("case_page").first(),
            pl.col("property_page").first(),
            pl.struct(pl.coalesce("market", pl.lit("the answers")).alias("text"), pl.col("case_page").alias("href"))
            .filter(pl.col("case_page").is_not_null())
            .sort_by(pl.coalesce("market", pl.lit("")).filter(pl.col("case_page").is_not_null()))
            .alias("pages"),
            pl.len().alias("cases"),
            *cost_and_since(),
        )
    )
    rank = pl.col("status").replace_strict({status: place for place, status in enumerate(_STATUSES)}, default=0)
    return costly_first(lines, rank)


def new_cases_section(cases: pl.DataFrame, *, is_first_night: bool) -> Section:
    """Return the section of cases that opened with the last night."""
    opened = cases.filter(pl.col("status") == "new")
    return _section(
        "new_cases",
        f"{problems(opened)} opened: {by_severity(calls(opened))}" if opened.height else "No problem opened",
        "Each line is one problem: one rule at one property, in every market where it was found; market codes link to "
        f"both answers side by side. The most costly come first. {NOTE}",
        opened,
        "The rules found no new problem. A case opens on the night a rule first finds something.",
        "All problems are new: this is the first published night. " if is_first_night else "",
    )


def open_cases_section(cases: pl.DataFrame, *, is_first_night: bool) -> Section:
    """Return the section of cases that were open before the last night. Muted and acknowledged ones come last."""
    before = cases.filter(pl.col("status") != "new")
    waiting = _waiting(before)
    noted = before.height - waiting.height
    is_noted = f"; {counted(noted, 'case is', 'cases are')} acknowledged or muted" if noted else ""
    return _section(
        "open_cases",
        f"{problems(waiting)} {_persist(waiting)}: {by_severity(calls(waiting))}{is_noted}"
        if waiting.height
        else f"No earlier problem needs a decision{is_noted}",
        "Problems of earlier nights that are still open, the most costly first; those acknowledged or muted come last. "
        "In each market a problem is a case (a property gone quiet is one over all markets); `nightaudit case` "
        "acknowledges or mutes it by the id on its page. What many properties of a market share is one line about the "
        "market; what most markets share is one about the supplier.",
        before,
        "This is the first published night: problems persist from the second night on."
        if is_first_night
        else "Every problem of earlier nights has ended.",
    )


def _section(name: str, title: str, note: str, cases: pl.DataFrame, why_empty: str, first: str = "") -> Section:
    with_page = cases["case_page"].count()
    paged = (
        f" {counted(with_page, 'case has', 'cases have')} a page, the most costly of each problem first; to "
        "write those of a property: `nightaudit report digest --property ID`."
        if with_page < cases.height
        else ""
    )
    return Section(
        name,
        title,
        f"{first}{note}{paged}",
        cases.drop("evidence", "case_page", "property_page", "amounts"),
        columns=[
            PROPERTY,
            Column("rule_words", "Problem", is_wide=True),
            COST,
            SINCE,
            Column("market", "Markets", is_wide=True),
            *named(severity="Severity", status="Status"),
            Column("finding", "In words, and evidence by market", is_wide=True, below="without_page", links="pages"),
        ],
        why_empty=why_empty,
        shown=_SHOWN,
        source="report.finding_case",
        lines=calls(cases),
    )


def cases_points(cases: pl.DataFrame, silent_markets: Collection[str] = ()) -> list[Point]:
    """Return how many problems opened and persist, and which properties to call first and why.

    Of markets that sell nothing tonight, no price is worth a call.
    """
    waiting = _waiting(cases)
    if not waiting.height:
        return [Point("No open case needs a decision.", "open_cases", "good")]
    new, before = (waiting.filter(is_new) for is_new in (pl.col("status") == "new", pl.col("status") != "new"))
    lines = calls(waiting.with_columns(status=pl.lit("open")))
    # A line names its markets: it stands if a single one of them sells.
    markets = pl.col("market").str.split(", ")
    is_silent = (markets.list.set_difference(list(silent_markets)).list.len() == 0).fill_null(value=False)
    worth = lines.filter(~is_silent)
    at_each = dict(worth.group_by("whom").len().iter_rows())
    of_each = worth.unique(subset=["whom"], keep="first", maintain_order=True).rows(named=True)
    # Whom to call comes before what is to be checked first.
    first = sorted(of_each, key=lambda row: not _to_do(row).startswith("Call"))[:_CALLS]
    tone = "bad" if "high" in lines["severity"] else "warn"
    section = "new_cases" if new.height else "open_cases"
    points = [Point(f"{problems(new)} opened, {problems(before)} {_persist(before)}.", section, tone)]
    for row in first:
        place = f" ({row['market']})" if row["scope"] == "property" and row["market"] else ""
        # A case of several markets names them itself.
        place = "" if place in row["finding"] else place
        to_do = _to_do(row)
        cost = f" Cost: {row['cost']}," if row["cost"] else " Open"
        since = f"{cost} since {row['since']:%-d %b %Y}."
        others = at_each[row["whom"]] - 1
        also = f" {counted(others, 'more problem')} there." if others else ""
        text = f"{to_do}: {row['rule_words']}{place}. {row['finding']}{since}{also}"
        pages = (row["case_page"] or "", row["property_page"] or "")
        points.append(Point(text, section, tone, *pages, bold=to_do.removesuffix(" about")))
    return points


def problems(cases: pl.DataFrame, one: str = "problem") -> str:
    """Return how many problems open cases are, with the number of cases in brackets if they are more."""
    return with_cases(calls(cases).height, cases.height, one)


def with_cases(problems: int, cases: int, one: str = "problem") -> str:
    """Return a number of problems, with the number of cases in brackets if they are more."""
    return counted(problems, one) + (f" ({cases:,} cases)" if cases > problems else "")


def _persist(cases: pl.DataFrame) -> str:
    return "persists" if calls(cases).height == 1 else "persist"


def _to_do(row: Mapping[str, Any]) -> str:
    """Return what to do about a problem: whom to call, whom to check before, or which price of one's own to check."""
    name = row["property_name"] or f"property {row['property_id']}"
    rule = finding_rules().get(row["rule"])
    if rule and rule.concerns == "selling_price":
        return f"Check your selling price of {name}" if row["scope"] == "property" else f"Check your prices in {name}"
    if rule and SEVERITIES.index(row["severity"]) > SEVERITIES.index(rule.call_from):
        return f"Check {name} before you call"
    return f"Call {name} about" if row["scope"] == "property" else f"Call the supplier about {name}"


def _with_commas(number: pl.Expr) -> pl.Expr:
    return (
        number.cast(pl.String).str.replace_all(r"(\d)(?:(\d{3}))$", "$1,$2").str.replace_all(r"(\d)(\d{3}),", "$1,$2,")
    )


def _waiting(cases: pl.DataFrame) -> pl.DataFrame:
    return cases.filter(_is_waiting())


def _is_waiting() -> pl.Expr:
    return pl.col("status").is_in(["new", "open"])
