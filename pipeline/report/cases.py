"""Cases on a page: what opened with the last night and what persists, the most costly first."""

import polars as pl

from pipeline.domain.problem import status_of
from pipeline.domain.quantities import counted
from pipeline.report.cost import COST, NOTE, SINCE, cost_and_since, costly_first, with_amounts_as_text
from pipeline.report.findings import by_severity, most_severe
from pipeline.report.page import PROPERTY, Column, Section, named
from pipeline.report.read import PROPERTY_PAGES, Reader
from pipeline.report.words import CASE_STATUSES, rule_said, unit_of, unit_said

_SHOWN = 15
# Sentences of a finding about two prices that may be wrong about which of them deviates.
_IN_DOUBT = "No third price|do not agree with each other|Only these two were answered|deviates is unknown"


def open_cases(reader: Reader) -> pl.DataFrame:
    """Return the cases that are neither closed nor part of a wider one."""
    reader.note_cases()
    return described(reader, reader.cases)


def described(reader: Reader, cases: pl.DataFrame) -> pl.DataFrame:
    """Return cases with their problem and subject in words, and with the pages of case and property."""
    texts = pl.col("evidence").list.eval(pl.element().struct.field("flag_id")).list.join(", ").alias("flag_ids")
    said = pl.col("rule").map_elements(rule_said, return_dtype=pl.String).alias("rule_words")
    unit = pl.col("rule").map_elements(unit_of, return_dtype=pl.String).alias("size_unit")
    whom = (
        pl.when(pl.col("scope") == "supplier")
        .then(_of_supplier(reader, cases))
        .when(pl.col("scope") == "market")
        .then(pl.format("market {}", "market"))
        .otherwise(pl.col("property_name"))
        .alias("property_name")
    )
    has_page = pl.col("property_id").is_in(list(reader.linked_properties))
    its_page = pl.when(has_page).then(pl.format(f"{PROPERTY_PAGES}/{{}}.html", "property_id")).alias("property_page")
    told = pl.struct("scope", "rule", "status", "opened_at", "first_seen_at").map_elements(status_of, pl.String)
    added = {"markets": pl.col("markets").list.join(", "), "status_words": told}
    return cases.with_columns(said, unit, whom, texts, reader.case_page, its_page, **added)


def _of_supplier(reader: Reader, cases: pl.DataFrame) -> pl.Expr:
    """Return the markets of a case of the supplier in words: `all markets` only if it covers all that are on sale."""
    if not (cases["scope"] == "supplier").any():
        return pl.lit(None, pl.String)
    on_sale = reader.query("SELECT DISTINCT market FROM mart.market_on_sale")["market"].to_list()
    markets = pl.col("markets")
    is_all = markets.list.set_intersection(on_sale).list.len() == len(on_sale)
    listed = pl.format(
        "markets {} and {}", markets.list.slice(0, markets.list.len() - 1).list.join(", "), markets.list.last()
    )
    few = pl.when(markets.list.len() == 1).then(pl.format("market {}", markets.list.first())).otherwise(listed)
    return pl.when(is_all & pl.lit(bool(on_sale))).then(pl.lit("all markets")).otherwise(few)


def calls(cases: pl.DataFrame) -> pl.DataFrame:
    """Return one line (one call) for each property and rule, over all its markets, the most costly first.

    What was acknowledged comes after what needs a decision, and what was muted last.
    """
    if not cases.height:
        return cases
    is_of_several = pl.col("market").is_null() & pl.col("property_id").is_not_null()
    named = pl.when(is_of_several).then(pl.col("markets").str.split(", ")).otherwise(pl.concat_list("market"))
    many = named.explode().drop_nulls().unique().sort()
    # Without a property, a case is of a market or the supplier and has its own line.
    by = [
        pl.coalesce(pl.col("property_id").cast(pl.String), "case_id").alias("whom"),
        "rule",
        _is_waiting().alias("w"),
    ]
    lines = (
        cases.with_columns(pl.col("evidence").list.eval(pl.element().struct.field("finding")).alias("examples"))
        .group_by(by, maintain_order=True)
        .agg(
            pl.col("rule_words", "status", "scope", "property_id", "property_name").first(),
            pl.coalesce(pl.col("status_words").filter(pl.col("status_words") == "new").first(), "status_words").first(),
            most_severe(),
            many.str.join(", ").alias("market"),
            pl.col("flags").sum(),
            pl.when(pl.len() > 1).then(_sizes(many)).otherwise(pl.col("finding").first()).alias("finding"),
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
    rank = pl.col("status").replace_strict({status: place for place, status in enumerate(CASE_STATUSES)}, default=0)
    return costly_first(lines, rank)


def _sizes(markets: pl.Expr) -> pl.Expr:
    """Return how many offers several cases of a problem are about, in how many markets and of which size, in words."""
    lowest, highest = pl.col("lowest_pct").cast(float).min().round(1), pl.col("highest_pct").cast(float).max().round(1)
    examples = pl.col("examples").explode()
    # One that says which price deviates, if there is one.
    example = pl.coalesce(examples.filter(~examples.str.contains(_IN_DOUBT)).first(), examples.first())
    unit = pl.col("rule").first().map_elements(unit_said, return_dtype=pl.String)
    # Of a range, words follow its end alone.
    between = pl.when(unit.str.starts_with("%")).then(pl.lit("%")).otherwise(pl.lit(""))
    # If all have the size in the example, it is not repeated.
    is_said = (lowest == highest) & example.str.contains(
        pl.format("(?:^|[^0-9.]){}0?{}", lowest.abs().cast(pl.String).str.escape_regex(), unit)
    )
    is_above = lowest > 0
    return pl.format(
        "{} in {} markets{}. {}",
        # A property that has gone quiet has no offers, and no stays.
        pl.when(pl.col("stays").sum() == 0)
        .then(pl.format("{} findings", _with_commas(pl.col("flags").sum())))
        .otherwise(pl.format("{} offers", _with_commas(pl.col("offers").sum()))),
        markets.len(),
        pl.when(lowest.is_null() | is_said)
        .then(pl.lit(""))
        .when((lowest == highest) & is_above)
        .then(pl.format(", a difference of {}{}", lowest, unit))
        .when(lowest == highest)
        .then(pl.format(", {}{}", lowest, unit))
        .when(is_above)
        .then(pl.format(", differences of {}{} to {}{}", lowest, between, highest, unit))
        .otherwise(
            pl.format(
                ", {}{} to {}{}{}",
                lowest,
                between,
                pl.when(highest > 0).then(pl.lit("+")).otherwise(pl.lit("")),
                highest,
                unit,
            )
        ),
        example,
    )


def new_cases_section(cases: pl.DataFrame, *, is_first_night: bool) -> Section:
    """Return the section of cases that opened with the last night."""
    opened = cases.filter(pl.col("status") == "new")
    return _section(
        "new_cases",
        f"{problems(opened)} opened: {by_severity(calls(opened))}" if opened.height else "No problem opened",
        "Each line is one problem: one rule at one property, in every market where it was found; market codes link to "
        f'both answers side by side. Status "back": it had ended before. The most costly come first. {NOTE}',
        opened,
        "The rules found no new problem. A case opens on the night a rule first finds something.",
        "All problems are new: this is the first published night. " if is_first_night else "",
    )


def open_cases_section(cases: pl.DataFrame, *, is_first_night: bool) -> Section:
    """Return the section of cases that were open before the last night. Muted and acknowledged ones come last."""
    before = cases.filter(pl.col("status") != "new")
    waiting = waiting_of(before)
    is_noted = f"; {noted}" if (noted := noted_of(before)) else ""
    return _section(
        "open_cases",
        f"{problems(waiting)} {persist(waiting)}: {by_severity(calls(waiting))}{is_noted}"
        if waiting.height
        else f"No earlier problem needs a decision{is_noted}",
        "Problems of earlier nights that are still open, the most costly first; those acknowledged or muted come last. "
        "In each market a problem is a case (a property gone quiet is one over all markets); `nightaudit case` "
        "acknowledges or mutes it by the id on its page. What many properties of a market share is one line about the "
        "market; what most markets share is one about the supplier, unless the rule compares markets.",
        before,
        "This is the first published night: problems persist from the second night on."
        if is_first_night
        else "No problem of earlier nights is still open.",
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
        with_amounts_as_text(cases.drop("evidence", "case_page", "property_page")),
        columns=[
            PROPERTY,
            Column("rule_words", "Problem", is_wide=True),
            COST,
            SINCE,
            Column("market", "Markets", is_wide=True),
            *named(severity="Severity", status_words="Status"),
            Column("finding", "In words, and evidence by market", is_wide=True, below="without_page", links="pages"),
        ],
        why_empty=why_empty,
        shown=_SHOWN,
        source="report.finding_case",
        lines=calls(cases),
    )


def problems(cases: pl.DataFrame, one: str = "problem") -> str:
    """Return how many problems open cases are, with the number of cases in brackets if they are more."""
    return with_cases(number_of(cases), cases.height, one)


def number_of(cases: pl.DataFrame) -> int:
    """Return how many problems open cases are. One that was acknowledged in some markets has two lines, and is one."""
    lines = calls(cases)
    return lines.n_unique(("whom", "rule")) if lines.height else 0


def noted_of(cases: pl.DataFrame) -> str:
    """Return how many of these cases no longer need a decision, in words."""
    noted = cases.height - waiting_of(cases).height
    return f"{counted(noted, 'case is', 'cases are')} acknowledged or muted" if noted else ""


def with_cases(problems: int, cases: int, one: str = "problem") -> str:
    """Return a number of problems, with the number of cases in brackets if they are more."""
    return counted(problems, one) + (f" ({cases:,} cases)" if cases > problems else "")


def persist(cases: pl.DataFrame) -> str:
    """Return the verb for problems that persist."""
    return "persists" if number_of(cases) == 1 else "persist"


def _with_commas(number: pl.Expr) -> pl.Expr:
    return (
        number.cast(pl.String).str.replace_all(r"(\d)(?:(\d{3}))$", "$1,$2").str.replace_all(r"(\d)(\d{3}),", "$1,$2,")
    )


def waiting_of(cases: pl.DataFrame) -> pl.DataFrame:
    """Return the cases that need a decision: neither acknowledged nor muted."""
    return cases.filter(_is_waiting())


def _is_waiting() -> pl.Expr:
    return pl.col("status").is_in(["new", "open"])
