"""Promotions: how often and how deep they are, whether they are real, and when they run."""

from collections.abc import Iterator
from typing import Any

import altair as alt
import polars as pl

from pipeline.domain.quantities import counted
from pipeline.report.chart_kinds import calendar, shares
from pipeline.report.charts import INK, SERIES, SOFT, WIDTH, AnyChart, chart, svg
from pipeline.report.findings import Flags, findings, flags
from pipeline.report.page import Column, Page, Section, named, percent, share, shown, whole
from pipeline.report.read import Reader
from pipeline.report.words import are_alike, first_of, kinds_said, lead_days_said, said

_VERDICTS = {"honest": "#228833", "above_lowest": "#b08d1a", "never_charged": "#b2412f"}
_DRAWN_OFFERS = 4
# The most rows of a chart, and bars of a panel, that are readable.
_MOST_ROWS, _MOST_BARS = 24, 12
_PANEL = 300
_ROWS_SHOWN = 10
_NO_PROMOTION = "No offer within these limits was below its price before promotions."


def page(reader: Reader) -> Page:
    """Return the report on promotions."""
    found = flags(reader, "promotions")
    row = reader.total("promoted_total")
    honest = _counted(reader)
    depth = f"; the average discount is {percent(row['mean_depth_pct'])}" if row["promoted"] else ""
    return Page(
        "promotions",
        f"{share(row['promoted'], row['offers'])} of the offers are promoted{depth}"
        if row["promoted"]
        else "No promotion is running",
        "How often and how deeply prices are discounted, and whether the price history supports it.",
        _sections(reader, found),
        tiles=[
            (shown(row["promoted"], 0), "offers promoted"),
            (shown(honest["comparable"], 0), "of them with enough history"),
            (shown(honest["never_charged"], 0), "struck-through prices never charged"),
            (shown(honest["evergreen"], 0), "promotions without an end so far"),
            (shown(found.number, 0), "findings"),
        ],
    )


def _sections(reader: Reader, found: Flags) -> Iterator[Section]:
    yield _incidence(reader)
    yield _honesty(reader)
    yield findings(
        "findings",
        found,
        "Promotions whose own figures contradict each other, that the price history of the same offer contradicts, or "
        "that the floor keeps from being passed on. Indicators, not proof.",
        "No offer breaks a promotion rule. Findings appear as soon as one does.",
    )
    yield _histories(reader, found)
    yield _calendar(reader)
    yield _length(reader)


def _incidence(reader: Reader) -> Section:
    targeting = reader.rows("report.promotion_targeting", order="source DESC, dimension, value").with_columns(
        pl.struct("dimension", "value")
        .map_elements(lambda row: _value_said(row["dimension"], row["value"]), return_dtype=pl.String)
        .alias("value_words")
    )
    # Without a total there is no share.
    places = targeting.filter(
        (pl.col("source") == "multi") & pl.col("dimension").is_in(list(_PANELS)) & pl.col("incidence_pct").is_not_null()
    )
    panels = []
    for dimension, title in _PANELS.items():
        most = places.filter(pl.col("dimension") == dimension)
        if dimension == "market":
            most = most.sort("incidence_pct", "value", descending=[True, False])
        bars = (
            chart(most.head(_MOST_BARS), width=_PANEL, height=130)
            .mark_bar()
            .encode(
                x=alt.X("value_words:N", title=title, sort=None, axis=alt.Axis(labelAngle=0),
                        scale=alt.Scale(paddingInner=0.3)),
                y=alt.Y("incidence_pct:Q", title="Offers promoted, percent"),
            )
        )  # fmt: skip
        panels.append(svg(bars))
    markets = places.filter(pl.col("dimension") == "market").sort("incidence_pct", "value", descending=[True, False])
    first = markets.row(0, named=True) if markets.height else None
    printed = [percent(pct) for pct in markets["incidence_pct"]]
    least = f"; {markets['value'][-1]} the fewest, {printed[-1]}" if len(set(printed)) > 1 else ""
    return Section(
        "targeting",
        f"Every market has the same share of promotions: {printed[0]} of the offers"
        if first and first["incidence_pct"] and are_alike(printed)
        else f"{first_of(first['value'], printed)} the most promotions: {printed[0]} of the offers{least}"
        if first and first["incidence_pct"]
        else "No promotions to compare",
        "List offers below their price before promotions, as a share of the offers with a total. Value adds do not "
        "lower the price and do not count. List and detail are different samples: compare within one.",
        targeting,
        panels if places.height else (),
        [
            *named(source="Answers", dimension="By"),
            Column("value_words", "Value", is_wide=True),
            *whole(comparable="Offers", promoted="Promoted"),
            Column("incidence_pct", "Offers promoted", "%", 1),
            Column("mean_depth_pct", "Average discount", "%", 1),
        ],
        why_empty=_NO_PROMOTION,
        shown=_ROWS_SHOWN,
        source="report.promotion_targeting",
    )


# The dimensions for which incidence is drawn.
_PANELS = {"market": "Market", "lead_days": "Days before check-in", "weekday": "Weekday of check-in"}


def _value_said(dimension: str, value: str) -> str:
    if dimension == "lead_days":
        return lead_days_said(value)
    return kinds_said(value) if dimension == "promotion_kinds" else said(dimension, value)


def _counted(reader: Reader) -> dict[str, Any]:
    """Return how many reference prices in list answers could be judged, were never charged, or never end."""
    if reader.scope.words:
        return reader.total("reference_price_total")
    # Read from sums made when the night was published, as the history of every offer takes long to read.
    lists = reader.rows("report.promotion_honesty", where="source = 'multi'")
    return lists.select(pl.col("comparable", "never_charged", "evergreen").sum()).row(0, named=True)


def _honesty(reader: Reader) -> Section:
    honesty = reader.rows("report.promotion_honesty", order="source DESC, market, product_type")
    days = reader.query("SELECT reference_days FROM ref.analysis").item()
    lists = honesty.filter(pl.col("source") == "multi")
    judged = lists.filter(pl.col("comparable") > 0)
    share_of = pl.col("never_charged") / pl.col("comparable")
    kept = judged.sort(share_of, "market", "product_type", descending=[True, False, False]).head(_MOST_ROWS)
    parts = {name: (said("verdict", name), colour) for name, colour in _VERDICTS.items()}
    drawn = shares(kept, ["market", "product_type"], parts, "Percent of the promoted offers with enough history")
    promoted, never, comparable = (int(lists[name].sum()) for name in ("promoted", "never_charged", "comparable"))
    left = (
        f"The chart shows {kept.height} of {judged.height}: those with the largest share never charged."
        if kept.height < judged.height
        else ""
    )
    return Section(
        "honesty",
        f"{never:,} of {comparable:,} struck-through prices were apparently never charged"
        if comparable
        else "There is not enough history yet to judge struck-through prices",
        "This compares the price before promotions with the observed totals of the same offer: never charged, above "
        "the lowest total in the days before the promotion, or honest. Only offers with enough history count. Prices "
        "between two sweeps are unknown, so this is an indicator, not proof. Rising market prices are allowed for "
        "(moved_pct in mart.reference_price). Chart and title count list answers.",
        honesty,
        [svg(drawn, left)] if kept.height else (),
        [
            *named(source="Answers", market="Market", product_type="Product"),
            *whole(promoted="Promoted", comparable="Enough history"),
            *(Column(name, said("verdict", name).capitalize(), digits=0) for name in _VERDICTS),
        ]
        if comparable
        else (),
        why_empty=f"A struck-through price can be judged once its offer has been observed for {days} days."
        if promoted
        else _NO_PROMOTION,
        shown=_ROWS_SHOWN,
        source="report.promotion_honesty",
    )


def _histories(reader: Reader, found: Flags) -> Section:
    false = found.narrow.filter(pl.col("rule").is_in(["reference_never_charged", "evergreen_promotion"]))
    of_each = false.unique(subset=["property_id"], keep="first", maintain_order=True)
    worst = found.of(of_each["flag_id"].head(_DRAWN_OFFERS))
    keys = worst.select(pl.col("evidence").list.first().struct.field("offer_key"), "source", "property_id")
    history = reader.query(
        "SELECT source, property_id, offer_key, market, check_in, nights, room_name, valid_from, "
        "coalesce(valid_to, last_seen_at) AS valid_to, "
        "currency, total, pre_promo_total FROM mart.offer_history WHERE is_offered AND offer_key IN $keys "
        "AND property_id IN $properties ORDER BY ALL",
        {"keys": keys["offer_key"].to_list(), "properties": keys["property_id"].to_list()},
    ).join(keys, on=["source", "property_id", "offer_key"], how="semi")
    named = reader.named(history)
    days = reader.query("SELECT reference_days FROM ref.analysis").item()
    charts = [svg(_history(group), _titled(group)) for _, group in named.group_by("offer_key", maintain_order=True)]
    return Section(
        "price_history",
        f"{counted(len(charts), 'struck-through price')} and what was charged, night by night"
        if charts
        else "No struck-through price is known to be false",
        "Solid line: the total that was charged. Dashed line: the price before promotions stated with it. "
        "One chart per property with the most severe findings: its worst offer.",
        named,
        charts,
        why_empty="No struck-through price has been found to be never charged, and no promotion to be endless. Both "
        f"can be judged once an offer has been observed for {days} days.",
        source="mart.offer_history",
    )


def _titled(offer: pl.DataFrame) -> str:
    first = offer.row(0, named=True)
    named = ", ".join(filter(None, (first["property_name"], f"property {first['property_id']}", first["room_name"])))
    stay = f"{first['market']}, check-in {first['check_in']}, {counted(first['nights'], 'night')}"
    return f"{named} ({stay})"


def _history(offer: pl.DataFrame) -> AnyChart:
    """Return a chart of charged and struck-through prices, by intervals in which neither changed."""
    first, last = offer.row(0, named=True), offer.tail(1)
    days = alt.X(
        "valid_from:T",
        title=None,
        scale=alt.Scale(type="utc"),
        axis=alt.Axis(format="%d %b", tickCount={"interval": "day", "step": 1}, grid=False),
    )
    charged_at = alt.Y("total:Q", title=f"Total of the stay, {first['currency']}", scale=alt.Scale(zero=False))
    base = alt.Chart(offer.with_columns(_AMOUNTS)).encode(x=days)
    stated = base.mark_rule(color=SOFT, strokeWidth=2, strokeDash=[5, 3]).encode(x2="valid_to:T", y="pre_promo_total:Q")
    charged = base.mark_rule(color=SERIES[0], strokeWidth=3).encode(x2="valid_to:T", y=charged_at)
    ticks = base.mark_point(color=SERIES[0], size=22).encode(y="total:Q")
    ends = last.with_columns(
        _AMOUNTS,
        pl.lit(f"stated before: {shown(last['pre_promo_total'][0])}").alias("stated"),
        pl.lit(f"charged: {shown(last['total'][0])}").alias("charged"),
    )
    end = alt.Chart(ends).encode(x=alt.X("valid_to:T"))
    above = end.mark_text(align="right", dy=-8, color=INK)
    words = above.encode(y="pre_promo_total:Q", text="stated:N"), above.encode(y="total:Q", text="charged:N")
    return alt.layer(stated, charged, ticks, *words).properties(width=WIDTH, height=120)


_AMOUNTS = pl.col("total", "pre_promo_total").cast(pl.Float64)


def _calendar(reader: Reader) -> Section:
    days = reader.named(reader.figures("promoted_day"))
    promoted = days.filter(pl.col("promoted_pct") > 0)["property_id"].n_unique()
    in_all = counted(days["property_id"].n_unique(), "property", "properties")
    often = pl.col("promoted_pct").mean()
    painted = calendar(days, "promoted_pct", "Offers promoted, percent", pl.when(often > 0).then(often))
    return Section(
        "calendar",
        f"{promoted:,} of {in_all} have a promotion on some day" if promoted else "No property has a promotion",
        "Share of the list offers of a property and check-in that are promoted. The chart shows the properties with "
        "the most, at most 40, on the first 60 check-ins. A blank field has no offer.",
        days,
        painted,
        why_empty=_NO_PROMOTION,
        source="mart.offer_latest",
    )


def _length(reader: Reader) -> Section:
    length = reader.rows("report.promotion_length", order="source DESC, market, product_type")
    ended = int(length.filter(pl.col("source") == "multi")["comparable"].sum())
    return Section(
        "length",
        f"{counted(ended, 'promotion')} began and ended while observed"
        if ended
        else "No promotion has been observed from start to end",
        "Only promotions that began and ended while observed have a known length, and the medians are theirs: a "
        "promotion may have begun and ended at any time between two nights. The longest may still be running. "
        "The title counts list answers."
        + (
            ""
            if ended
            else " A promotion counts once an earlier night did not have it and a later night no longer has it."
        ),
        length,
        columns=[
            *named(source="Answers", market="Market", product_type="Product"),
            *whole(promotions="Seen", running="Running", comparable="Began and ended"),
            Column("median_days", "Shortest possible median", "days", 1),
            Column("median_days_at_most", "Longest possible median", "days", 1),
            Column("longest_days", "Longest", "days", 1),
        ],
        why_empty=_NO_PROMOTION,
        source="report.promotion_length",
    )
