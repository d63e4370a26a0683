"""Promotions: how often and how deep, whether they keep what they say, and when they run."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.report.charts import SERIES, SOFT, AnyChart, calendar, chart, svg
from pipeline.report.findings import findings, flags
from pipeline.report.page import Column, Page, Section, shown
from pipeline.report.reading import Reader

_RULES = (
    "phantom_promotion",
    "unnamed_promotion",
    "wrong_discount",
    "total_above_reference",
    "reference_never_charged",
    "reference_above_lowest",
    "evergreen_promotion",
    "floor_eats_promotion",
)
_VERDICTS = {
    "honest": "#228833",
    "above_lowest": "#b08d1a",
    "never_charged": "#b2412f",
    "not_enough_history": "#b9c6d2",
}
_DRAWN_OFFERS, _MOST_DAYS, _MOST_PROPERTIES = 4, 60, 40
_NO_PROMOTION = "No offer of these limits is on sale below a price before promotions."


def page(reader: Reader) -> Page:
    """Return the report on promotions."""
    found = flags(reader, _RULES)
    share = reader.rows("report.promotion_targeting", where="dimension = 'all' AND source = 'multi'")
    row = share.row(0, named=True) if share.height else {"incidence_pct": None, "mean_depth_pct": None, "promoted": 0}
    lead = shown(row["incidence_pct"], 1)
    return Page(
        "promotions",
        f"{lead} % of the offers are promoted, by {shown(row['mean_depth_pct'], 1)} % on average"
        if row["promoted"]
        else "No promotion runs",
        "How often prices are struck through and how deep, and whether their history bears them out.",
        (
            _incidence(reader),
            _honesty(reader),
            findings(
                "findings",
                found,
                "Promotions that do not keep what they say: in their own arithmetic, against the history of the same "
                "offer, or because the floor keeps the seller from passing them on. An indicator, not a verdict.",
                "No offer breaks any of the rules on promotions.",
            ),
            _histories(reader, found),
            _calendar(reader),
            _length(reader),
        ),
        tiles=[(shown(row["promoted"], 0), "offers promoted"), (shown(found.height, 0), "findings")],
    )


def _incidence(reader: Reader) -> Section:
    targeting = reader.rows("report.promotion_targeting", order="source DESC, dimension, value")
    drawn = targeting.filter(
        (pl.col("source") == "multi") & pl.col("dimension").is_in(["market", "lead_days", "weekday"])
    )
    panels = []
    for dimension, title in (
        ("market", "Market"),
        ("lead_days", "Days before check-in"),
        ("weekday", "Weekday of check-in, Monday = 1"),
    ):
        bars = (
            chart(drawn.filter(pl.col("dimension") == dimension), height=150)
            .mark_bar()
            .encode(
                x=alt.X("value:N", title=title, sort=None, axis=alt.Axis(labelAngle=0)),
                y=alt.Y("incidence_pct:Q", title="Offers promoted, percent"),
            )
        )
        panels.append(svg(bars))
    markets = drawn.filter(pl.col("dimension") == "market").sort("incidence_pct", "value", descending=[True, False])
    first = markets.row(0, named=True) if markets.height else None
    return Section(
        "targeting",
        f"Most is promoted in {first['value']}: {first['incidence_pct']:.1f} % of the offers"
        if first
        else "No promotion to place",
        "Offers of list answers below their price before promotions, as a share of the offers with a total. Value adds "
        "cost nothing and are none here. List and detail are different samples: compare within one.",
        targeting,
        panels if drawn.height else (),
        [
            Column("source", "Answers"),
            Column("dimension", "By"),
            Column("value", "Value"),
            Column("comparable", "Offers", digits=0),
            Column("promoted", "Promoted", digits=0),
            Column("incidence_pct", "Incidence", "%", 1),
            Column("mean_depth_pct", "Mean depth", "%", 1),
        ],
        why_empty=_NO_PROMOTION,
    )


def _honesty(reader: Reader) -> Section:
    honesty = reader.rows("report.promotion_honesty")
    long = honesty.unpivot(
        list(_VERDICTS), index=["source", "market", "product_type"], variable_name="verdict", value_name="offers"
    ).with_columns(
        pl.concat_str(["market", "product_type", "source"], separator=", ").alias("row"),
        pl.col("verdict").replace_strict({name: place for place, name in enumerate(_VERDICTS)}).alias("place"),
    )
    drawn = (
        chart(long, height=max(80, 26 * honesty.height))
        .mark_bar()
        .encode(
            x=alt.X("offers:Q", title="Promoted offers", axis=alt.Axis(tickCount=8)),
            y=alt.Y("row:N", title=None),
            order=alt.Order("place:Q"),
            color=alt.Color(
                "verdict:N", title=None, scale=alt.Scale(domain=list(_VERDICTS), range=list(_VERDICTS.values()))
            ),
        )
    )
    never, comparable = int(honesty["never_charged"].sum()), int(honesty["comparable"].sum())
    return Section(
        "honesty",
        f"{never:,} of {comparable:,} struck-through prices with enough history were never charged"
        if comparable
        else "There is not enough history yet to judge a struck-through price",
        "The price before promotions against the totals seen of the same offer: never charged, above the lowest of the "
        "days before the promotion began, or honest. Without enough history nothing is said. Only sweeps were seen: a "
        "price charged between two of them is not known.",
        honesty,
        [svg(drawn)] if honesty.height else (),
        why_empty=_NO_PROMOTION,
    )


def _histories(reader: Reader, found: pl.DataFrame) -> Section:
    worst = found.filter(pl.col("rule").is_in(["reference_never_charged", "evergreen_promotion"]))
    worst = worst.unique(subset=["property_id"], keep="first", maintain_order=True).head(_DRAWN_OFFERS)
    keys = worst.select(pl.col("evidence").list.first().struct.field("offer_key"), "source", "property_id")
    history = reader.query(
        "SELECT source, property_id, offer_key, room_name, valid_from, coalesce(valid_to, last_seen_at) AS valid_to, "
        "currency, total, pre_promo_total FROM mart.offer_history WHERE is_offered AND offer_key IN $keys "
        "AND property_id IN $houses ORDER BY ALL",
        {"keys": keys["offer_key"].to_list(), "houses": keys["property_id"].to_list()},
    ).join(keys, on=["source", "property_id", "offer_key"], how="semi")
    charts = [svg(_history(group)) for _, group in history.group_by("offer_key", maintain_order=True)]
    return Section(
        "price_history",
        f"{len(charts)} struck-through prices against the prices that were charged"
        if charts
        else "No struck-through price is known to be untrue",
        "Line: total charged. Grey line: the price before promotions that was told. The worst offer of each property.",
        history,
        charts,
        why_empty="No struck-through price is known to have never been charged.",
    )


def _history(offer: pl.DataFrame) -> AnyChart:
    first = offer.row(0, named=True)
    base = chart(offer.with_columns(pl.col("total", "pre_promo_total").cast(pl.Float64)), height=130).encode(
        x=alt.X("valid_from:T", title=None)
    )
    told = base.mark_rule(color=SOFT, strokeWidth=2, strokeDash=[3, 3]).encode(x2="valid_to:T", y="pre_promo_total:Q")
    charged = base.mark_rule(color=SERIES[0], strokeWidth=3).encode(
        x2="valid_to:T", y=alt.Y("total:Q", title=first["currency"], scale=alt.Scale(zero=False))
    )
    ticks = base.mark_point(color=SERIES[0], size=20).encode(y="total:Q")
    return alt.layer(told, charged, ticks).properties(title=f"Property {first['property_id']}, {first['room_name']}")


def _calendar(reader: Reader) -> Section:
    limits, values = reader.scope.condition("property_id", "market", "check_in")
    days = reader.query(
        "SELECT property_id, check_in, count(*) AS offers, 100.0 * count(*) FILTER (WHERE total < pre_promo_total) "  # noqa: S608 - our own names; what users give is a parameter
        f"/ count(*) AS promoted_pct FROM mart.offer_latest WHERE source = 'multi' AND total > 0 AND {limits} "
        "GROUP BY property_id, check_in ORDER BY ALL",
        values,
    )
    promoted = (
        days.group_by("property_id")
        .agg(pl.col("promoted_pct").mean())
        .filter(pl.col("promoted_pct") > 0)
        .sort("promoted_pct", "property_id", descending=[True, False])
    )
    painted = calendar(
        days,
        "promoted_pct",
        "Offers promoted, percent",
        properties=promoted["property_id"],
        scale=alt.Scale(domain=[0, 100]),
    )
    return Section(
        "calendar",
        f"{promoted.height:,} of {days['property_id'].n_unique():,} properties have a promotion on some day",
        "Share of the offers of a property and check-in that are promoted. Drawn are the properties with most of it.",
        days,
        [svg(painted)] if promoted.height else (),
        why_empty=_NO_PROMOTION,
    )


def _length(reader: Reader) -> Section:
    length = reader.rows("report.promotion_length")
    ended = int(length["comparable"].sum()) if length.height else 0
    return Section(
        "length",
        f"{ended:,} promotions were seen to begin and to end"
        if ended
        else "No promotion was watched from start to end",
        "Only promotions that began and ended while watched have a length; the longest is no shorter than told.",
        length,
        columns=[
            Column("source", "Answers"),
            Column("market", "Market"),
            Column("product_type", "Product"),
            Column("promotions", "Seen", digits=0),
            Column("running", "Running", digits=0),
            Column("comparable", "Comparable", digits=0),
            Column("median_days", "Median", "days", 1),
            Column("median_days_at_most", "At most", "days", 1),
            Column("longest_days", "Longest", "days", 1),
        ],
        why_empty=_NO_PROMOTION,
    )
