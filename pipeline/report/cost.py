"""What a problem costs, and since when it is open."""

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from pipeline.domain.quantities import cost_said
from pipeline.report.page import Column

COST: Final = Column("cost", "Cost", digits=0)
SINCE: Final = Column("since", "Found since")
# For the notes of tables with a cost.
NOTE: Final = (
    "Cost adds up one price difference for each property, market and stay, the middle one of its offers (the lower of "
    "two), in euro at the day's reference rates (`nightaudit load rates`); for a stay in two currencies, it is the "
    "larger one. Without a rate, what is in other currencies follows what is known in euro, however much it is. What "
    "is not about an amount, such as a property gone quiet, comes last."
)


def cost_of_cases() -> pl.Expr:
    """Return the cost of several cases in euro as an aggregation of these; null if that of one is unknown."""
    is_known = pl.col("exposure_eur").null_count() == 0
    return pl.when(is_known).then(pl.col("exposure_eur").sum()).alias("cost_eur")


def is_without_cost() -> pl.Expr:
    """Return whether `cost_eur` is 0. An unknown cost is not, and comes before: there is an amount without a rate."""
    return (pl.col("cost_eur") == 0).fill_null(value=False)


def cost_and_since() -> list[pl.Expr]:
    """Return the cost and the first day of a line of several cases, as aggregations of these."""
    return [
        cost_of_cases(),
        pl.col("amounts").explode().drop_nulls(),
        pl.col("opened_at").min().dt.date().alias("since"),
    ]


def costly_first(lines: pl.DataFrame, *before: pl.Expr) -> pl.DataFrame:
    """Return lines of `cost_and_since` in the order of `before` and their cost, with the cost as text."""
    by = [*before, is_without_cost(), pl.col("cost_eur")]
    is_down = [*(False for _ in before), False, True]
    words = pl.struct("cost_eur", "amounts").map_elements(_in_words, return_dtype=pl.String, skip_nulls=False)
    return (
        lines.sort(by, descending=is_down, nulls_last=True, maintain_order=True)
        .with_columns(words.alias("cost"))
        .drop("amounts")
    )


def with_amounts_as_text(cases: pl.DataFrame) -> pl.DataFrame:
    """Return cases with their amounts as text, such as `9.5000 EUR + 80.0000 SEK`; null: none."""
    each = pl.element().struct
    said = pl.concat_str(each.field("amount").cast(pl.String), pl.lit(" "), each.field("currency"))
    joined = pl.col("amounts").list.eval(said).list.join(" + ")
    return cases.with_columns(pl.when(joined != "").then(joined).alias("amounts"))


def _in_words(line: Mapping[str, Any]) -> str | None:
    return cost_said(line["cost_eur"], line["amounts"])
