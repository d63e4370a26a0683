"""Cases that ended with the last night, and why."""

import polars as pl

from pipeline.report.cases import in_markets, with_cases
from pipeline.report.page import Point, counted
from pipeline.report.read import Reader
from pipeline.report.words import rule_said

# Cases that the summary names.
_NAMED = 3
_NOT_PUT_RIGHT = {
    "gone": "; no longer on sale",
    "not_compared": "; what it was compared with is no longer on sale",
    "not_asked": "; its currency is no longer requested",
}


def ended_cases(reader: Reader) -> pl.DataFrame:
    """Return the cases that ended with the last night, without those covered by a wider one."""
    tonight = reader.cases_of_night.sort("rule", "scope", "market", "property_id", nulls_last=True, maintain_order=True)
    rule, of_market = pl.col("rule"), pl.struct("rule", "market")
    wide = tonight.filter(pl.col("scope") == "market").select(of_market.alias("it"))["it"].implode()
    widest = tonight.filter(pl.col("scope") == "supplier")["rule"].implode()
    is_spoken_for = ((pl.col("scope") == "property") & of_market.is_in(wide)) | (
        (pl.col("scope") != "supplier") & rule.is_in(widest)
    )
    said = rule.map_elements(rule_said, return_dtype=pl.String).alias("rule_words")
    ended = tonight.filter((pl.col("status") == "closed") & ~is_spoken_for)
    return _with_why(reader, ended).with_columns(said, in_markets()).drop("amounts")


def _with_why(reader: Reader, ended: pl.DataFrame) -> pl.DataFrame:
    """Return ended cases with `ended_by`: why most of their findings ended; NULL if some were corrected."""
    flags = reader.query(
        "SELECT rule, property_id, market, ended_by FROM report.flag_history WHERE resolved_sweep_id = $sweep_id",
        {"sweep_id": reader.night["sweep_id"]},
    )
    is_corrected = (pl.col("ended_by") == "value").any()
    why = pl.when(~is_corrected).then(pl.col("ended_by").mode().sort().first())
    # Without a property or a market, a case is about all of them.
    levels = (["rule", "property_id", "market"], ["rule", "property_id"], ["rule", "market"], ["rule"])
    for number, keys in enumerate(levels):
        ended = ended.join(
            flags.group_by(keys).agg(why.alias(f"why_{number}")), on=keys, how="left", maintain_order="left"
        )
    of_property, of_market = pl.col("property_id").is_not_null(), pl.col("market").is_not_null()
    chosen = (
        pl.when(of_property & of_market)
        .then("why_0")
        .when(of_property)
        .then("why_1")
        .when(of_market)
        .then("why_2")
        .otherwise("why_3")
    )
    return ended.with_columns(chosen.alias("ended_by")).drop(f"why_{number}" for number in range(len(levels)))


def ended_points(ended: pl.DataFrame) -> list[Point]:
    """Return which cases ended: corrected, no longer on sale, or no longer requested."""
    if not ended.height:
        return []
    lines = ended_problems(ended)
    named = lines.select(
        pl.format("{} ({}{})", "rule_words", pl.concat_str(["whom", "in"], separator=", ", ignore_nulls=True), "why")
    )
    first, more = named.to_series().to_list()[:_NAMED], named.height - _NAMED
    listed = "; ".join(first) + (f"; and {counted(more, 'more problem')}" if more > 0 else "")
    return [Point(f"{with_cases(named.height, ended.height)} ended: {listed}.", "ended_findings", "good")]


def ended_problems(ended: pl.DataFrame) -> pl.DataFrame:
    """Return one line for each ended problem, with the markets in which it ended; wider problems come first."""
    whom = pl.when(pl.col("scope") == "property").then(
        pl.coalesce("property_name", pl.format("property {}", "property_id"))
    )
    # A price that went off sale was not corrected, nor was one that is no longer requested.
    why = pl.col("ended_by").replace_strict(_NOT_PUT_RIGHT, default="").alias("why")
    # One problem of a property may end in several markets.
    return (
        ended.sort("scope", maintain_order=True)
        .group_by("scope", "property_id", whom.alias("whom"), "rule_words", why, maintain_order=True)
        .agg(pl.coalesce("market", "markets").drop_nulls().str.join(", ").replace("", None).alias("in"))
    )
