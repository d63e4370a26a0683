"""Charts as inline SVG in the page's colours, light and dark.

A chart is drawn with placeholders for the colours of the page; in the SVG they become the page's CSS variables.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from typing import Any, Final, Self, cast

import altair as alt
import polars as pl
from altair.utils.schemapi import disable_debug_mode
from markupsafe import Markup, escape

from pipeline.process.draw import draw
from pipeline.report.chart_text import chart_text
from pipeline.report.words import UNNAMED, drawable, printed

# A chart's parts are checked against Vega-Lite's schema by the tests; a night would pay for it with each of its charts.
disable_debug_mode()

# Placeholders that no palette contains, and the variables of `layout.html.j2` that replace them.
_NAMES: Final = ("ink", "soft", "line", "accent", "good", "bad", "warn", "paper")
INK, SOFT, LINE, ACCENT, GOOD, BAD, WARN, PAPER = (f"#0102{number:02x}" for number in range(3, 11))
_VARIABLES: Final = {
    stand_in: f"var(--{name})"
    for stand_in, name in zip((INK, SOFT, LINE, ACCENT, GOOD, BAD, WARN, PAPER), _NAMES, strict=True)
}
# Distinguishable in light and dark pages, and by colour-blind readers.
SERIES: Final = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#66a9c9", "#b08d1a", "#8a8a8a", "#d65a6f")
# Low to high: mid tones that are visible on white and on black.
SEQUENTIAL: Final = ("#dbe6f3", "#9dbfe0", "#5a93c6", "#2c5f9e", "#173a68")

# Width of the plot in pixels, on a page and on a phone.
WIDTH: Final = 940
_NARROW: Final = 285
# The fonts whose letter widths the drawing library knows.
_FONT: Final = "Arial, Liberation Sans, Helvetica, sans-serif"
_NUMBERED = re.compile(r"\b(?:gradient_|clip)\d+\b")
# Labels of a drawing's parts for screen readers, removed because the drawing is one image.
_ROLES = re.compile(r' (?:role="graphics-[a-z]+"|aria-roledescription="[^"]*"|aria-hidden="true")')
_STANDING_IN = re.compile("|".join(_VARIABLES), re.IGNORECASE)
# Room for labels beside bars; longer names are cut.
_LABEL, _LABEL_NARROW = 230, 120

AnyChart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart


def chart(frame: pl.DataFrame, *, width: int = WIDTH, height: int = 240) -> alt.Chart:
    """Return an empty chart over a frame, by default in the size of a page."""
    return alt.Chart(frame).properties(width=width, height=height)


# Begins to draw a chart in Vega-Lite, perhaps elsewhere; what it returns waits for the SVG.
Pen = Callable[[Mapping[str, Any]], Callable[[], str]]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart of a page, for screen and paper and, where it is too wide for that, for a phone: the page shows one.

    It is drawn when a page shows it, or has been begun before by a pen.
    """

    wide: Mapping[str, Any]
    narrow: Mapping[str, Any] | None
    caption: str
    begun: tuple[Callable[[], str], ...] = ()

    def begin(self, pen: Pen) -> Self:
        """Return this chart as a pen draws it."""
        return replace(self, begun=tuple(pen(spec) for spec in (self.wide, self.narrow) if spec is not None))

    def __html__(self) -> str:
        """Return the chart for a page."""
        drawings = self.begun or self.begin(here).begun
        caption = f"<figcaption>{escape(printed(self.caption))}</figcaption>" if self.caption else ""
        text = escape(printed(chart_text(self.wide, self.caption)))
        wide, *narrow = (_in_colours_of_the_page(drawn(), text) for drawn in drawings)
        drawn = f'<div class="wide">{wide}</div><div class="narrow">{narrow[0]}</div>' if narrow else wide
        return f"<figure>{caption}{drawn}</figure>"


def svg(made: AnyChart, caption: str = "", on_phone: AnyChart | None = None) -> Drawing:
    """Return a chart for a page; on a phone it is `on_phone`, or the same one made narrower."""
    spec = _spec(made)
    narrow = spec | {"width": _NARROW} if spec["width"] > _NARROW else None
    if on_phone is not None:
        narrow = _spec(on_phone)
    return Drawing(spec | {"config": _config(_LABEL)}, narrow and narrow | {"config": _config(_LABEL_NARROW)}, caption)


def _spec(made: AnyChart) -> dict[str, Any]:
    return cast("dict[str, Any]", _drawable(made.to_dict(validate=False)))


def with_title(chart: Markup | Drawing, title: str) -> Markup:
    """Return a chart with a text alternative for screen readers."""
    return escape(chart).replace(UNNAMED, f"Chart: {printed(title)}")


def here(spec: Mapping[str, Any]) -> Callable[[], str]:
    """Draw a chart in this process when it is first wanted: the pen of a report that has no other."""
    return cache(partial(draw, spec))


def begun(charts: Iterable[Markup | Drawing], pen: Pen) -> list[Markup | Drawing]:
    """Return charts that a pen has begun to draw, so that each is drawn once however often it is shown."""
    return [one.begin(pen) if isinstance(one, Drawing) else one for one in charts]


def _drawable(part: object) -> object:
    """Return a part of a chart without control characters, at which the library would end the process."""
    if isinstance(part, dict):
        return {name: _drawable(value) for name, value in part.items()}
    return [_drawable(value) for value in part] if isinstance(part, list) else drawable(part)


def _in_colours_of_the_page(drawn: str, text: str) -> str:
    """Return an SVG as an element in the page's colours, with what it shows as `text`."""
    coloured = _STANDING_IN.sub(lambda found: _VARIABLES[found[0].lower()], _ROLES.sub("", drawn))
    # At most as wide as it was drawn.
    label = f"{UNNAMED}. {text}" if text else UNNAMED
    sized = re.sub(
        r'<svg ([^>]*?)width="([\d.]+)" height="[\d.]+"',
        lambda found: f'<svg {found[1]}role="img" aria-label="{label}" style="width:{found[2]}px"',
        coloured,
        count=1,
    )
    return _with_own_ids(sized)


@cache
def _config(label_limit: int) -> dict[str, Any]:
    """Return the look of charts. Cached, because the library validates each part against its schema."""
    axis = alt.AxisConfig(
        labelColor=SOFT,
        titleColor=SOFT,
        gridColor=LINE,
        domainColor=LINE,
        tickColor=LINE,
        labelFontSize=12,
        titleFontSize=12,
        titleFontWeight="normal",
        labelOverlap="greedy",
        labelLimit=label_limit,
        labelSeparation=10,
    )
    # The title of the vertical axis is horizontal above it, where it is readable and meets no label.
    upright = alt.AxisConfig(
        titleAngle=0, titleAlign="left", titleAnchor="start", titleBaseline="bottom", titleX=0, titleY=-9
    )
    config: dict[str, Any] = alt.Config(
        background="transparent",
        # A label for each mark would be most of the page, without more information than the figures.
        aria=False,
        font=_FONT,
        padding={"left": 6, "right": 12, "top": 5, "bottom": 5},
        view=alt.ViewConfig(stroke=None),
        axis=axis,
        axisY=upright,
        axisQuantitative=alt.AxisConfig(tickCount=6 if label_limit == _LABEL else 4),
        legend=alt.LegendConfig(
            labelColor=INK,
            titleColor=SOFT,
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=12,
            titleLimit=400,
            orient="top",
            # Above the title of the vertical axis.
            offset=26,
            # A reader's font may be wider than the one that the drawing library measures.
            columnPadding=28,
            columns=0 if label_limit == _LABEL else 2,
        ),
        bar=alt.BarConfig(color=ACCENT),
        line=alt.LineConfig(color=ACCENT),
        point=alt.MarkConfig(color=ACCENT, filled=True),
        area=alt.AreaConfig(color=ACCENT),
        rule=alt.MarkConfig(color=SOFT),
        text=alt.MarkConfig(color=INK, fontSize=12),
        tick=alt.TickConfig(color=ACCENT),
        range=alt.RangeConfig(category=list(SERIES), heatmap=list(SEQUENTIAL), ramp=list(SEQUENTIAL)),
    ).to_dict()
    return config


def _with_own_ids(drawn: str) -> str:
    """Derive the ids in a chart from its content, as the library numbers them across charts and pages."""
    places = {name: place for place, name in enumerate(dict.fromkeys(_NUMBERED.findall(drawn)))}
    chart_id = sha256(_NUMBERED.sub(lambda found: f"{places[found[0]]}", drawn).encode()).hexdigest()[:10]
    return _NUMBERED.sub(lambda found: f"c{chart_id}-{places[found[0]]}", drawn)
