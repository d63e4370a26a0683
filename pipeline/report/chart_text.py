"""What a chart shows, in words, for those who do not see it: its caption, its axes, and the extremes on them."""

from collections.abc import Iterator, Mapping
from typing import Any

_Spec = Mapping[str, Any]


def chart_text(spec: _Spec, caption: str) -> str:
    """Return what a chart in Vega-Lite shows; empty if its axes have no titles."""
    titles = {channel: _title(spec, channel) for channel in ("y", "x", "color")}
    upright, across, coloured = (titles[channel] for channel in ("y", "x", "color"))
    axes = (("Vertical axis", upright), ("Horizontal axis", across))
    drawn = ". ".join(f"{axis}: {title}" for axis, title in axes if title)
    colours = f", by colour: {coloured}" if coloured and drawn else ""
    parts = (caption, f"{drawn}{colours}", *(_extremes(spec, channel, titles[channel]) for channel in ("y", "x")))
    return ". ".join(part.strip().rstrip(".") for part in parts if part)


def _encodings(spec: _Spec) -> Iterator[_Spec]:
    """Yield the encodings of a chart and of its parts."""
    if "encoding" in spec:
        yield spec["encoding"]
    for parts in ("layer", "hconcat", "vconcat"):
        for part in spec.get(parts, ()):
            yield from _encodings(part)
    if isinstance(spec.get("spec"), Mapping):
        yield from _encodings(spec["spec"])


def _title(spec: _Spec, channel: str) -> str:
    found = (encoding[channel].get("title") for encoding in _encodings(spec) if channel in encoding)
    title = next((each for each in found if each), "")
    return " ".join(title) if isinstance(title, list) else str(title)


def _extremes(spec: _Spec, channel: str, title: str) -> str:
    """Return the lowest and the highest value on an axis of numbers, as the rows of the chart have them."""
    for encoding in _encodings(spec):
        drawn = encoding.get(channel, {})
        field = drawn.get("field")
        if title and field and drawn.get("type") == "quantitative" and "aggregate" not in drawn:
            numbers = [row[field] for row in _rows(spec) if isinstance(row.get(field), int | float)]
            if numbers:
                low, high = (_number(each) for each in (min(numbers), max(numbers)))
                return f"{title}: {low}" if low == high else f"{title}: {low} to {high}"
    return ""


def _rows(spec: _Spec) -> Iterator[_Spec]:
    for rows in spec.get("datasets", {}).values():
        yield from rows


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
