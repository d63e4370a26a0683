"""The calendar of what is on sale, by property and check-in, and its rows by property."""

import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.chart_kinds import calendar
from pipeline.report.page import PROPERTY, Column, Section, whole
from pipeline.report.read import Reader

# Check-ins with nothing on sale that a property's row names.
_DAYS_NAMED = 6


def on_sale_calendar(reader: Reader) -> Section:
    """Return how much is on sale on the check-ins of each property."""
    days = reader.named(reader.figures("on_sale_day"))
    # If not all fit: those whose availability varies most, then those with the least on sale.
    on_sale = pl.col("on_sale_pct")
    first = 1000 * on_sale.std().fill_null(0) - on_sale.mean()
    painted = calendar(days, "on_sale_pct", "Cells on sale, percent", first)
    sold_out = days.filter(pl.col("on_sale_pct") == 0).height
    return Section(
        "calendar",
        f"{sold_out:,} of {counted(days.height, 'check-in')} have nothing on sale (a date counts once for each "
        "property)"
        if days.height
        else "No property and check-in date has an answer",
        "Cells of a property and check-in (all markets, nights, parties and product types) that were on sale when a "
        "list search last answered them. The chart begins with the properties that vary most from day to day, then "
        "those with the least on sale: at most 40, on the first 60 check-ins. A blank field was never answered. The "
        "table has every property, those with nothing on sale on most check-ins first.",
        days,
        painted,
        [
            PROPERTY,
            *whole(check_ins="Check-ins", without="Nothing on sale"),
            Column("on_sale_pct", "Cells on sale", "%", 1),
            Column("lowest_pct", "Lowest check-in", "%", 1),
            Column("days_without", "Check-ins with nothing on sale", is_wide=True),
        ],
        why_empty="No list search within these limits has been answered yet.",
        source="mart.cell_latest",
        lines=_by_property(days),
    )


def _by_property(days: pl.DataFrame) -> pl.DataFrame:
    """Return the check-ins of each property in one row, those with nothing on sale on most of them first."""
    on_sale, cells, is_without = pl.col("on_sale_pct"), pl.col("cells"), pl.col("on_sale_pct") == 0
    named = pl.col("check_in").filter(is_without).sort().dt.strftime("%-d %b")
    more = pl.when(pl.col("without") > _DAYS_NAMED).then(pl.format(" and {} more", pl.col("without") - _DAYS_NAMED))
    return (
        days.group_by("property_id", "property_name")
        .agg(
            pl.len().alias("check_ins"),
            is_without.sum().cast(pl.Int64).alias("without"),
            ((on_sale * cells).sum() / cells.sum()).alias("on_sale_pct"),
            on_sale.min().alias("lowest_pct"),
            named.head(_DAYS_NAMED).str.join(", ").alias("days_without"),
        )
        .with_columns(pl.concat_str(pl.col("days_without").replace("", "none"), more.otherwise(pl.lit(""))))
        .sort("without", "on_sale_pct", "property_id", descending=[True, False, False])
    )
