"""Small charts of prices night by night, for the pages of properties.

They are drawn without the drawing library, which takes a tenth of a second for each of the hundreds in a night.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Final

from markupsafe import Markup, escape

from pipeline.report.charts import SERIES
from pipeline.report.page import shown
from pipeline.report.words import UNNAMED, printed

_WIDTH, _HEIGHT = 310, 150
# Margins for the amounts at the left and the dates at the bottom.
_LEFT, _BOTTOM, _TOP = 58, 20, 8
# Thin lines are drawn over thick ones, so that all are visible where they coincide.
_WIDEST, _THINNEST = 6.0, 1.5
_STEPS: Final = 3

Path = Sequence[tuple[date, float]]


def price_lines(paths: Mapping[str, Path], places: Mapping[str, int], nights: Sequence[date], caption: str) -> Markup:
    """Return a chart of each market's price over `nights`; `places` determines each market's colour.

    A line breaks on nights without a price.
    """
    prices = [price for path in paths.values() for _, price in path]
    low, high = min(prices), max(prices)
    # A constant price is a line in the middle.
    margin = (high - low) * 0.06 or max(high * 0.02, 0.01)
    low, high = low - margin, high + margin
    at = {night: place for place, night in enumerate(nights)}
    step = (_WIDTH - _LEFT) / max(1, len(nights))

    def y(price: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - price) / (high - low)

    levels = [low + margin + (high - low - 2 * margin) * part / (_STEPS - 1) for part in range(_STEPS)]
    # Whole amounts, unless different levels would have the same one.
    is_whole = high >= 100 and (len(set(prices)) == 1 or len({shown(level, 0) for level in levels}) == _STEPS)
    grid = [
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y(price):.1f}" y2="{y(price):.1f}" stroke="var(--line)"/>'
        f'<text x="{_LEFT - 6}" y="{y(price) + 4:.1f}" text-anchor="end">{shown(price, 0 if is_whole else 2)}</text>'
        for price in levels
    ]
    # A constant price has one label.
    grid = list(dict.fromkeys(grid))
    thinner = (_WIDEST - _THINNEST) / max(1, len(paths) - 1)
    lines = [
        f'<path d="{_steps(path, at, step, y)}" fill="none" stroke="{SERIES[places[market] % len(SERIES)]}" '
        f'stroke-width="{_WIDEST - place * thinner if len(paths) > 1 else 2:.1f}"/>'
        for place, (market, path) in enumerate(paths.items())
    ]
    days = (
        f'<text x="{_LEFT}" y="{_HEIGHT - 5}">{nights[0]:%d %b}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 5}" text-anchor="end">{nights[-1]:%d %b}</text>'
    )
    drawn = f"{''.join(grid)}{''.join(lines)}{days}"
    told = "; ".join(
        f"{market} from {shown(first, 2)} on {begins:%-d %b} to {shown(last, 2)} on {ends:%-d %b}"
        for market, ((begins, first), *_, (ends, last)) in ((name, [*path, path[-1]]) for name, path in paths.items())
    )
    label = escape(printed(f"{UNNAMED}. {caption}: {told}"))
    return Markup(  # noqa: S704 - numbers and our own words; the caption is escaped
        f'<figure class="path"><figcaption>{escape(printed(caption))}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" style="width:{_WIDTH}px" role="img" aria-label="{label}">{drawn}'
        "</svg></figure>"
    )


def key(places: Mapping[str, int]) -> Markup:
    """Return the legend of the markets' colours."""
    named = " ".join(
        f'<span class="key"><svg viewBox="0 0 12 12" aria-hidden="true"><rect width="12" height="12" '
        f'fill="{SERIES[place % len(SERIES)]}"/></svg>{escape(market)}</span>'
        for market, place in places.items()
    )
    return Markup(f'<p class="keys">{named}</p>')  # noqa: S704 - the names are escaped


def _steps(path: Path, at: Mapping[date, int], step: float, y: Callable[[float], float]) -> str:
    """Return the path of a line: horizontal during a night, and broken on nights without a price."""
    drawn, before = [], None
    for night, price in path:
        left, level = _LEFT + at[night] * step, y(price)
        drawn.append(f"{'L' if before == at[night] - 1 else 'M'}{left:.1f} {level:.1f}H{left + step:.1f}")
        before = at[night]
    return "".join(drawn)
