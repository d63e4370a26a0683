"""Availability and prices: what is on sale, how it sells out, and how prices move towards the stay."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.report.charts import calendar, chart, svg, towards_the_stay
from pipeline.report.page import Column, Page, Section, shown
from pipeline.report.reading import Reader


def page(reader: Reader) -> Page:
    """Return the report on availability and prices over time."""
    latest = reader.rows(
        "report.availability", where="sweep_id = (SELECT max_by(sweep_id, started_at) FROM mart.sweep)"
    )
    answered, offered = int(latest["answered"].sum()), int(latest["offered"].sum())
    share = f"{offered / answered:.1%}" if answered else "none"
    return Page(
        "availability",
        f"{share} of the answered cells are on sale",
        "What can be booked, when it sells out, and how prices move as the stay comes nearer.",
        (_by_market(latest), _heatmap(reader), _sell_out(reader), _path(reader), _volatility(reader), _regret(reader)),
        tiles=[
            (shown(answered, 0), "cells answered"),
            (shown(offered, 0), "cells on sale"),
            (shown(int(latest["absent"].sum()), 0), "absent from answers"),
        ],
    )


def _by_market(latest: pl.DataFrame) -> Section:
    listed = latest.filter(pl.col("answered") > 0)
    drawn = (
        chart(listed.with_columns(pl.col("availability") * 100), height=max(90, 26 * listed.height))
        .transform_calculate(row="datum.market + ', ' + datum.product_type + ', ' + datum.operation")
        .mark_bar()
        .encode(
            x=alt.X("availability:Q", title="On sale, percent of the answered cells", scale=alt.Scale(domain=[0, 100])),
            y=alt.Y("row:N", title=None, sort="-x"),
        )
    )
    least = listed.sort("availability", "market").row(0, named=True) if listed.height else None
    return Section(
        "availability",
        f"Least is on sale in {least['market']} ({least['product_type']}): {least['availability']:.1%}"
        if least
        else "Nothing was answered",
        "Offered cells of those answered. Absent means that an answer does not name the property at all, which is not "
        "the same as sold out; the codes of the supplier are apart in the figures. List and detail sweeps ask about "
        "different properties, so their shares are not comparable.",
        latest,
        [svg(drawn)] if listed.height else (),
        [
            Column("market", "Market"),
            Column("product_type", "Product"),
            Column("operation", "Operation"),
            Column("answered", "Answered", digits=0),
            Column("offered", "On sale", digits=0),
            Column("no_offer", "No offer", digits=0),
            Column("absent", "Absent", digits=0),
        ],
        why_empty="No cell of these limits was asked about in the latest sweep.",
    )


def _heatmap(reader: Reader) -> Section:
    cells = reader.rows("mart.cell_latest", where="operation = 'multi' AND answered_status IS NOT NULL")
    days = (
        cells.group_by("property_id", "check_in")
        .agg((pl.col("answered_status") == "offered").mean().mul(100).alias("on_sale_pct"), pl.len().alias("cells"))
        .sort("property_id", "check_in")
    )
    # Where there are more than fit, those whose availability says most: neither always nor never on sale.
    houses = (
        days.group_by("property_id")
        .agg(pl.col("on_sale_pct").std().fill_null(0).alias("spread"))
        .sort("spread", "property_id", descending=[True, False])["property_id"]
    )
    painted = calendar(
        days, "on_sale_pct", "Cells on sale, percent", properties=houses, scale=alt.Scale(domain=[0, 100])
    )
    sold_out = days.filter(pl.col("on_sale_pct") == 0).height
    return Section(
        "calendar",
        f"{sold_out:,} of {days.height:,} property days have nothing on sale",
        "Cells of a property and check-in (markets, nights, parties and product types together) that were on sale when "
        "last answered by a list search. Drawn are the properties where that differs most from day to day. A blank "
        "place was never answered.",
        days,
        [svg(painted)] if days.height else (),
        why_empty="No list search of these limits was answered yet.",
    )


def _sell_out(reader: Reader) -> Section:
    curve = reader.rows("report.sell_out_curve", where="ending = 'sold_out' AND operation = 'multi'")
    ended = int(curve["ended"].sum())
    lines = towards_the_stay(
        curve.with_columns(pl.col("on_sale_share") * 100),
        alt.Y("on_sale_share:Q", title="Still on sale, percent (estimate)", scale=alt.Scale(zero=False)),
        steps=True,
    )
    return Section(
        "sell_out_curve",
        f"{ended:,} cells were seen to sell out" if ended else "No cell was seen to sell out yet",
        "Kaplan-Meier estimate of the share of cells still on sale: cells whose end is not known yet count for as long "
        "as they were watched. Where few are at risk (see the figures) the estimate is poor. Re-openings are apart.",
        curve,
        [svg(lines)] if curve.height else (),
        why_empty="It takes two answers to the same cell, on different nights.",
    )


def _path(reader: Reader) -> Section:
    path = reader.rows("report.price_path", where="source = 'multi' AND pairs > 0")
    drawn = towards_the_stay(
        path, alt.Y("index_first:Q", title="Index, first lead time = 100", scale=alt.Scale(zero=False))
    )
    pairs = int(path["pairs"].sum())
    rose, fell = int(path["raised"].sum()), int(path["lowered"].sum())
    return Section(
        "price_path",
        f"Of {pairs:,} prices seen twice, {rose:,} rose and {fell:,} fell" if pairs else "No price was seen twice yet",
        "Each offer is held against itself as it was last seen, so a change of what is on offer is no change of price. "
        "The chained index shows direction, not the level: markets and product types start at 100 each.",
        path,
        [svg(drawn)] if path.height else (),
        why_empty="It takes two nights that saw the same offer.",
    )


def _volatility(reader: Reader) -> Section:
    path = reader.rows("report.price_path", where="source = 'multi' AND volatility_pct IS NOT NULL")
    drawn = towards_the_stay(path, alt.Y("volatility_pct:Q", title="Change between answers, percent"), height=200)
    most = path.sort("volatility_pct", "lead_days", descending=True).row(0, named=True) if path.height else None
    return Section(
        "volatility",
        f"Prices move most {most['lead_days']} days before check-in: {most['volatility_pct']:.1f} % between two answers"
        if most
        else "No volatility to show yet",
        "Root of the mean squared logarithmic change between consecutive answers of the same offer. Sweeps of unequal "
        "distance make it larger: compare lead times, not supply with a different schedule.",
        path,
        [svg(drawn)] if path.height else (),
        why_empty="It takes two nights that saw the same offer.",
    )


def _regret(reader: Reader) -> Section:
    regret = reader.rows("report.regret_of_waiting", order="source, market, product_type, lead_days DESC")
    return Section(
        "regret_of_waiting",
        _waiting(regret),
        "What waiting would have brought, from stays that have begun: below 0 in 'lowest later' is the regret of "
        "having booked, above 0 in 'last seen' the regret of having waited. Offers that were gone later have "
        "no price to compare, and are counted apart.",
        regret,
        columns=[
            Column("market", "Market"),
            Column("product_type", "Product"),
            Column("source", "Answers"),
            Column("lead_days", "Lead days", digits=0),
            Column("comparable", "Comparable", digits=0),
            Column("lowest_later_pct", "Lowest later", "%", 1),
            Column("last_pct", "Last seen", "%", 1),
            Column("gone_share", "Gone later", digits=2),
        ],
        why_empty="Stays must have begun before what waiting brought is known.",
    )


def _waiting(regret: pl.DataFrame) -> str:
    """Say what waiting from a week ahead, or the next lead time that is known, has brought where most is comparable."""
    known = regret.filter((pl.col("comparable") > 0) & pl.col("lowest_later_pct").is_not_null())
    if known.height == 0:
        return "No stay has begun yet that was watched before"
    nearest = known.with_columns((pl.col("lead_days") - 7).abs().alias("off")).sort(
        "off", pl.col("comparable"), descending=[False, True]
    )
    row = nearest.row(0, named=True)
    return (
        f"Who waited {row['lead_days']} days before check-in ({row['market']}, {row['product_type']}) found "
        f"{-row['lowest_later_pct']:.1f} % less at best, and {row['gone_share']:.0%} gone"
    )
