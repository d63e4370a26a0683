"""Charts as SVG that stands in the page itself, in the page's own colours, by day and by night.

A chart is drawn with stand-ins for the colours of the page; in the SVG they become the page's CSS variables.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final

import altair as alt
import polars as pl
import vl_convert
from markupsafe import Markup

# Stand-ins that no palette contains, and the variables of `layout.html.j2` that they stand for.
INK: Final = "#010203"
SOFT: Final = "#010204"
LINE: Final = "#010205"
ACCENT: Final = "#010206"
GOOD: Final = "#010207"
BAD: Final = "#010208"
WARN: Final = "#010209"
_VARIABLES: Final = {
    INK: "var(--ink)",
    SOFT: "var(--soft)",
    LINE: "var(--line)",
    ACCENT: "var(--accent)",
    GOOD: "var(--good)",
    BAD: "var(--bad)",
    WARN: "var(--warn)",
}
# Told apart by day and by night, and by people who do not see all colours.
SERIES: Final = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#66a9c9", "#b08d1a", "#8a8a8a", "#d65a6f")
# Low to high, and below to above nothing: mid tones that stand out from white paper and from black.
SEQUENTIAL: Final = ("#dbe6f3", "#9dbfe0", "#5a93c6", "#2c5f9e", "#173a68")
DIVERGING: Final = ("#b2412f", "#e08f6b", "#d9d9d6", "#7fb0d3", "#2c64a0")

WIDTH: Final = 640
# As many days and properties as a page can show and a reader can tell apart.
_MOST_DAYS: Final = 60
_MOST_PROPERTIES: Final = 40
_NUMBERED = re.compile(r"\b(?:gradient_|clip)\d+\b")
_STANDING_IN = re.compile("|".join(_VARIABLES), re.IGNORECASE)

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


def chart(frame: pl.DataFrame, *, width: int = WIDTH, height: int = 240) -> alt.Chart:
    """Return an empty chart over a frame, in the size that pages leave room for."""
    return alt.Chart(frame).properties(width=width, height=height)


def calendar(days: pl.DataFrame, measure: str, title: str, *, properties: pl.Series, scale: alt.Scale) -> alt.Chart:
    """Return a heatmap of a measure by property and check-in: the properties named, and the first 60 check-ins."""
    houses, dates = properties.head(_MOST_PROPERTIES), days["check_in"].unique().sort().head(_MOST_DAYS)
    drawn = days.filter(pl.col("property_id").is_in(houses.implode()) & pl.col("check_in").is_in(dates.implode()))
    made: alt.Chart = (
        chart(drawn.with_columns(pl.col("check_in").cast(pl.String)), height=max(80, 13 * houses.len()))
        .mark_rect()
        .encode(
            x=alt.X("check_in:O", title="Check-in", axis=alt.Axis(labelAngle=-45)),
            y=alt.Y("property_id:N", title="Property", axis=alt.Axis(labelFontSize=9, labelOverlap=False)),
            color=alt.Color(f"{measure}:Q", title=title, scale=scale),
        )
    )
    return made


def towards_the_stay(frame: pl.DataFrame, measure: alt.Y, *, height: int = 240, steps: bool = False) -> alt.Chart:
    """Return lines of a measure by days before check-in, the stay at the right: a line each market and product type."""
    made: alt.Chart = (
        chart(frame, height=height)
        .mark_line(interpolate="step-after" if steps else "linear")
        .encode(
            x=alt.X("lead_days:Q", title="Days before check-in", sort="descending"),
            y=measure,
            color=alt.Color("market:N", title=None),
            strokeDash=alt.StrokeDash("product_type:N", title=None),
        )
    )
    return made


def svg(made: AnyChart) -> Markup:
    """Return a chart as an SVG element for a page."""
    spec: dict[str, Any] = made.configure(
        background="transparent",
        font="system-ui, sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=SOFT,
            titleColor=SOFT,
            gridColor=LINE,
            domainColor=LINE,
            tickColor=LINE,
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
            labelOverlap="greedy",
            labelLimit=260,
            labelSeparation=6,
        ),
        legend=alt.LegendConfig(
            labelColor=INK, titleColor=SOFT, titleFontWeight="normal", titleLimit=360, orient="top"
        ),
        header=alt.HeaderConfig(labelColor=INK, titleColor=SOFT),
        title=alt.TitleConfig(color=INK, anchor="start"),
        text=alt.MarkConfig(color=INK),
        bar=alt.BarConfig(color=ACCENT),
        line=alt.LineConfig(color=ACCENT, strokeWidth=2),
        point=alt.MarkConfig(color=ACCENT, filled=True),
        area=alt.AreaConfig(color=ACCENT),
        rule=alt.MarkConfig(color=SOFT),
        tick=alt.TickConfig(color=ACCENT),
        range=alt.RangeConfig(category=list(SERIES), heatmap=list(SEQUENTIAL), ramp=list(SEQUENTIAL)),
    ).to_dict()
    drawn = vl_convert.vegalite_to_svg(spec)
    coloured = _STANDING_IN.sub(lambda found: _VARIABLES[found[0].lower()], drawn)
    # Its size is its box; the page decides how much of its width a chart gets.
    sized = re.sub(r'<svg ([^>]*?)width="([\d.]+)" height="[\d.]+"', r'<svg \1data-width="\2"', coloured, count=1)
    return Markup(_with_own_ids(sized))  # noqa: S704 - the drawing library escapes the text that it draws


def _with_own_ids(drawn: str) -> str:
    """Name what a chart refers to after the chart: the library counts on, over charts and from page to page."""
    places = {name: place for place, name in enumerate(dict.fromkeys(_NUMBERED.findall(drawn)))}
    chart_id = sha256(_NUMBERED.sub(lambda found: f"{places[found[0]]}", drawn).encode()).hexdigest()[:10]
    return _NUMBERED.sub(lambda found: f"c{chart_id}-{places[found[0]]}", drawn)
