"""The kinds of charts that several pages share: calendars, bars of shares, and lines towards the stay."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import polars as pl

from pipeline.report.charts import PAPER, SEQUENTIAL, WIDTH, AnyChart, Drawing, chart, svg
from pipeline.report.ink import DARK, LIGHT, is_dark, is_dark_at
from pipeline.report.page import percent, shown

# Below, at and above zero: mid tones that are visible on white and on black.
_BELOW, _EVEN, _ABOVE = "#2c64a0", "#d9d9d6", "#b2412f"
# The most days that a reader can distinguish on a page.
_MOST_DAYS: Final = 60
# Dates that fit on a phone, and few enough that each field has room for its value.
_MOST_DATES: Final = 16
_FEW_DATES: Final = 8
_MOST_PROPERTIES: Final = 40
# After this many days without an answer, a new line begins.
_BREAK_DAYS: Final = 7
# Lines that stay distinguishable; all are in the figures.
_MOST_MARKETS: Final = 6
# Characters of a name, and pixels for it and the id.
_LONGEST_NAME: Final = 30
_ID_AND_NAME: Final = 290

# Two charts side by side.
_HALF: Final = 460
# A part of a bar in which its share can be written, on a phone too.
_ROOM_PCT: Final = 11

_PERCENT: Final = alt.Scale(domain=[0, 100])


def calendar(
    days: pl.DataFrame, measure: str, title: str, first: pl.Expr, scale: alt.Scale = _PERCENT, digits: int = 0
) -> Sequence[Drawing]:
    """Return a heatmap of a measure by property and check-in, for the first 60 check-ins; empty without data.

    With few check-ins, the fields show their values, with `digits`. `days` has `property_id`, `property_name` and
    `check_in`. The 40 properties with the highest `first` are drawn, and none with NULL.
    """
    ranked = days.group_by("property_id").agg(first.alias("first")).drop_nulls("first")
    properties = ranked.sort("first", "property_id", descending=[True, False])["property_id"].head(_MOST_PROPERTIES)
    if properties.is_empty():
        return ()
    dates = days["check_in"].unique().sort().head(_MOST_DAYS)
    drawn = days.filter(pl.col("property_id").is_in(properties.implode()) & pl.col("check_in").is_in(dates.implode()))
    is_roomy = dates.len() <= _FEW_DATES
    painted = scale.to_dict()
    lowest, *_, highest = painted.get("domain", (0, 100))
    colours = painted.get("range", SEQUENTIAL)
    # A long name is cut; the id that follows distinguishes two of them.
    name = pl.col("property_name")
    short = pl.when(name.str.len_chars() > _LONGEST_NAME).then(name.str.head(_LONGEST_NAME - 1) + "…").otherwise(name)
    labelled = drawn.with_columns(
        pl.concat_str([short, "property_id"], separator=" ", ignore_nulls=True).alias("property"),
        pl.col("check_in").dt.strftime("%Y-%m-%d").alias("day"),
        pl.col("property_id").replace_strict({each: at for at, each in enumerate(properties)}).alias("place"),
        pl.col(measure).map_elements(lambda value: shown(value, digits), return_dtype=pl.String).alias("value"),
        pl.col(measure)
        .map_elements(lambda value: is_dark_at(value, lowest, highest, colours), return_dtype=pl.Boolean)
        .alias("is_dark"),
    ).select("property", "day", "place", measure, "value", "is_dark")
    colour = alt.Color(f"{measure}:Q", title=title, scale=scale)
    width = _DATE * dates.len() if is_roomy else min(WIDTH - _ID_AND_NAME, max(150, 22 * dates.len()))
    on_page = _fields(labelled, colour, width, max(40, 18 * properties.len()), _BESIDE, has_values=is_roomy)
    # On a phone names are above the fields, which then have the complete width.
    phone_width = min(_PHONE, _DATE * dates.len())
    height = _ROW_ON_PHONE * properties.len()
    on_phone = _fields(labelled, colour, phone_width, height, _ABOVE_FIELDS, has_values=is_roomy)
    return [svg(on_page, on_phone=on_phone)]


# Pixels of a date with room for its value, of a chart without labels beside it on a phone, and of a row there.
_DATE: Final = 84
_PHONE: Final = 340
_ROW_ON_PHONE: Final = 36
# The names of properties beside the fields, or above them.
_BESIDE: Final = {"labelLimit": _ID_AND_NAME}
_ABOVE_FIELDS: Final = {"labelLimit": _PHONE, "labelAlign": "left", "labelPadding": 0, "labelOffset": -18}


def _fields(
    labelled: pl.DataFrame, colour: alt.Color, width: int, height: int, names: Mapping[str, Any], *, has_values: bool
) -> AnyChart:
    dates, is_above = labelled["day"].n_unique(), names is _ABOVE_FIELDS
    is_level = width >= _DATE * dates
    base = chart(labelled, width=width, height=height).encode(
        x=alt.X("day:O", title=None,
                axis=alt.Axis(labelAngle=0 if is_level else -90, orient="top", domain=False, ticks=False,
                              labelOverlap=dates > _MOST_DATES, offset=18 if is_above else 0)),
        y=alt.Y("property:N", title=None, sort=alt.EncodingSortField("place", order="ascending"),
                scale=alt.Scale(paddingInner=0.45) if is_above else alt.Undefined,
                axis=alt.Axis(domain=False, ticks=False, labelOverlap=False, **names)),
    )  # fmt: skip
    painted: AnyChart = base.mark_rect(stroke=PAPER, strokeWidth=1).encode(color=colour)
    if not has_values:
        return painted
    on_colour = alt.condition("datum.is_dark", alt.value(LIGHT), alt.value(DARK))
    values = base.mark_text(fontSize=11).encode(text="value:N", color=on_colour)
    return alt.layer(painted, values).properties(width=width, height=height)


def shares(rows: pl.DataFrame, named: Sequence[str], parts: Mapping[str, tuple[str, str]], title: str) -> AnyChart:
    """Return a bar for each row, divided into labelled shares.

    `named` are the columns that identify a row; `parts` has the columns of counts, each with its word and colour.
    """
    of_all = pl.sum_horizontal(*parts)
    bars = pl.concat(
        rows.with_columns(
            pl.concat_str(list(named), separator=", ").alias("row"),
            pl.lit(word).alias("part"),
            (100 * pl.sum_horizontal(pl.lit(0), *list(parts)[:place]) / of_all).alias("from"),
            (100 * pl.col(column) / of_all).alias("share"),
            pl.lit(is_dark(colour)).alias("is_dark"),
        ).select("row", "part", "from", "share", "is_dark")
        for place, (column, (word, colour)) in enumerate(parts.items())
    ).with_columns(
        (pl.col("from") + pl.col("share")).alias("to"),
        (pl.col("from") + pl.col("share") / 2).alias("middle"),
        pl.col("share").map_elements(percent, return_dtype=pl.String).alias("words"),
    )
    base = chart(bars, height=max(40, 26 * rows.height)).encode(y=alt.Y("row:N", title=None, sort=None))
    words = [word for word, _ in parts.values()]
    drawn = base.mark_bar().encode(
        x=alt.X("from:Q", title=title, scale=_PERCENT),
        x2="to:Q",
        color=alt.Color("part:N", title=None, scale=alt.Scale(domain=words, range=[of for _, of in parts.values()])),
    )
    written = (
        base.mark_text(fontSize=11)
        .encode(
            x=alt.X("middle:Q"),
            text="words:N",
            color=alt.condition("datum.is_dark", alt.value(LIGHT), alt.value(DARK)),
        )
        .transform_filter(f"datum.share >= {_ROOM_PCT}")
    )
    return alt.layer(drawn, written).properties(width=WIDTH, height=max(40, 26 * rows.height))


_PALE_UP_TO: Final = 2.0


def around_zero(values: pl.Series) -> alt.Scale:
    """Return a colour scale that is as deep for a value above 0 as for its opposite."""
    furthest = max((abs(value) for value in values if value is not None), default=0.0)
    # A tenth of a percent must not look like a tenth of the price.
    furthest = max(furthest, _PALE_UP_TO)
    return alt.Scale(domain=[-furthest, 0, furthest], range=[_BELOW, _EVEN, _ABOVE], interpolate="rgb")


def towards_the_stay(
    frame: pl.DataFrame, measure: str, title: str, *, weight: str, steps: bool = False, zero: bool = False
) -> Sequence[Drawing]:
    """Return lines of a measure by days before check-in, with the stay at the right: a chart for each product type.

    The six markets with most of `weight` have a line each. Thinner lines are drawn over thicker ones, so that all are
    visible where they coincide. Lines break where nothing was seen for long, unless they are `steps`. `zero` includes 0
    in the vertical axis.
    """
    markets = (
        frame.group_by("market").agg(pl.col(weight).sum()).sort([weight, "market"], descending=[True, False])["market"]
    )
    kept = markets.head(_MOST_MARKETS).sort().to_list()
    apart = (pl.col("lead_days").shift(1) - pl.col("lead_days") > _BREAK_DAYS).fill_null(value=False)
    drawn = (
        frame.filter(pl.col("market").is_in(kept))
        .sort("product_type", "market", "lead_days", descending=[False, False, True])
        .with_columns(apart.cum_sum().over("market", "product_type").alias("stretch"))
    )
    # From the first market to the last one.
    widths = [5.0, 1.5] if len(kept) > 1 else [2.0, 2.0]
    products = drawn.partition_by("product_type", maintain_order=True)
    # Charts side by side share their scales.
    days, heights = _reach(drawn["lead_days"]), _reach(drawn[measure], *([0.0] if zero else []))
    charts = []
    for of_product in products:
        lines = (
            chart(of_product, width=WIDTH if len(products) == 1 else _HALF)
            # Round ends show a stretch of one day as a dot.
            .mark_line(interpolate="step-after" if steps else "linear", strokeCap="round")
            .encode(
                x=alt.X(
                    "lead_days:Q",
                    title="Days before check-in",
                    sort="descending",
                    scale=days,
                    axis=alt.Axis(tickMinStep=1),
                ),
                y=alt.Y(f"{measure}:Q", title=title, scale=heights),
                color=alt.Color("market:N", title=None, scale=alt.Scale(domain=kept)),
                strokeWidth=alt.StrokeWidth("market:N", title=None, scale=alt.Scale(domain=kept, range=widths)),
                order=alt.Order("lead_days:Q", sort="descending"),
                detail=alt.Undefined if steps else alt.Detail("stretch:N"),
            )
        )
        of_all = f": {len(kept)} of {markets.len()} markets, those with most answers"
        charts.append(svg(lines, f"{of_product['product_type'][0]}{of_all if markets.len() > len(kept) else ''}"))
    return charts


def _reach(values: pl.Series, *others: float) -> alt.Scale:
    """Return a scale that covers `values` and `others`."""
    numbers = [*map(float, values.drop_nulls()), *others] or [0.0]
    return alt.Scale(domain=[min(numbers), max(numbers)], nice=True, zero=False)
