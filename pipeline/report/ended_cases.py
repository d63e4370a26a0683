"""Cases that ended with the last night, and why."""

from functools import partial

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.cases import described, with_cases
from pipeline.report.cost import COST, SINCE, cost_and_since, costly_first, with_amounts_as_text
from pipeline.report.findings import most_severe
from pipeline.report.page import PROPERTY, Column, Point, Section, named
from pipeline.report.read import Reader
from pipeline.report.words import said

# Cases that the summary names.
_NAMED = 3


def ended_cases(reader: Reader) -> pl.DataFrame:
    """Return the cases that ended with the last night, without those covered by a wider one."""
    return described(reader, with_why(reader, reader.ended))


def with_why(reader: Reader, ended: pl.DataFrame, sweep_id: str | None = None) -> pl.DataFrame:
    """Return cases that ended with a sweep with `ended_by`: why most of their findings did; NULL: some were corrected.

    The default of `sweep_id` is the last one.
    """
    flags = reader.query(
        "SELECT raised.case_id, flag.ended_by FROM mart.case_flag AS raised "
        "INNER JOIN report.flag_history AS flag "
        "ON flag.flag_id = raised.flag_id AND flag.first_flagged_at = raised.first_flagged_at "
        "WHERE flag.resolved_sweep_id = $sweep_id",
        {"sweep_id": sweep_id or reader.night["sweep_id"]},
    )
    is_corrected = (pl.col("ended_by") == "value").any()
    why = pl.when(~is_corrected).then(pl.col("ended_by").mode().sort().first())
    return ended.join(
        flags.group_by("case_id").agg(why.alias("ended_by")), on="case_id", how="left", maintain_order="left"
    )


def ended_cases_section(ended: pl.DataFrame, *, is_first_night: bool) -> Section:
    """Return the section of cases that ended with the last night, a line for each problem."""
    lines = ended_problems(ended)
    return Section(
        "ended_cases",
        f"{with_cases(lines.height, ended.height)} ended" if ended.height else "No problem ended",
        "Problems whose last finding ended tonight, the most costly first, and why. Only what the answer corrected "
        "was put right. Cost and size are those of all their findings since the case was first seen. Market codes "
        "link to the last evidence.",
        with_amounts_as_text(ended.drop("evidence", "case_page", "property_page")),
        columns=[
            PROPERTY,
            Column("rule_words", "Problem", is_wide=True),
            COST,
            SINCE,
            Column("in", "Markets", is_wide=True),
            *named(severity="Severity"),
            Column("why_it_ended", "Why it ended", is_wide=True),
            Column("finding", "What it was, and evidence by market", is_wide=True, below="without_page", links="pages"),
        ],
        why_empty="This is the first published night: problems can end from the second night on."
        if is_first_night
        else "A problem of the previous night ends once an answer no longer shows it; none has.",
        source="report.finding_case",
        lines=lines,
    )


def ended_points(ended: pl.DataFrame) -> list[Point]:
    """Return which cases ended: corrected, no longer on sale, or no longer requested."""
    if not ended.height:
        return []
    lines = ended_problems(ended)
    subject = pl.when(pl.col("scope") == "property").then("whom")
    where = pl.concat_str([subject, "in"], separator=", ", ignore_nulls=True)
    # What the answer corrected needs no reason.
    why = pl.when(pl.col("ended_by") != "value").then("why_it_ended")
    named = lines.select(
        pl.format("{} ({})", "rule_words", pl.concat_str([where, why], separator="; ", ignore_nulls=True))
    )
    first, more = named.to_series().to_list()[:_NAMED], named.height - _NAMED
    listed = "; ".join(first) + (f"; and {counted(more, 'more problem')}" if more > 0 else "")
    return [Point(f"{with_cases(named.height, ended.height)} ended: {listed}.", "ended_cases", "good")]


def ended_problems(ended: pl.DataFrame) -> pl.DataFrame:
    """Return one line for each ended problem, with the markets in which it ended, the most costly first."""
    by_id = pl.format("property {}", "property_id")
    whom = pl.concat_str(["property_name", by_id], separator=", ", ignore_nulls=True)
    ended_by = pl.col("ended_by").fill_null("value")
    page = pl.struct(pl.coalesce("market", "markets").alias("text"), pl.col("case_page").alias("href"))
    has_page = pl.col("case_page").is_not_null()
    # One problem of a property may end in several markets.
    lines = (
        ended.sort("scope", maintain_order=True)
        .group_by("scope", "property_id", whom.alias("whom"), "rule_words", ended_by, maintain_order=True)
        .agg(
            pl.coalesce("market", "markets").drop_nulls().str.join(", ").replace("", None).alias("in"),
            pl.col("property_name").first(),
            most_severe(),
            pl.col("finding").first(),
            pl.col("case_id").str.join(" ").alias("case_id"),
            pl.col("case_id").filter(~has_page).str.join(" ").replace("", None).alias("without_page"),
            page.filter(has_page).alias("pages"),
            *cost_and_since(),
        )
    )
    why = pl.col("ended_by").map_elements(partial(said, "ended_by"), return_dtype=pl.String)
    return costly_first(lines.with_columns(why_it_ended=why))
