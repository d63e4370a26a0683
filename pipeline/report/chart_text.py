"""What a chart shows, in words, for those who do not see it: its caption, its axes, and the extremes on them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pipeline.domain.quantities import counted

_Spec = Mapping[str, Any]
_OTHER: Final = {"x": "y", "y": "x"}
# Numbers from which no cents are written, and below which four digits after the point are.
_WITHOUT_CENTS: Final = 10_000
_SMALL: Final = 0.1


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer of a chart: its kind of mark, its encoding with what it inherits, and its rows."""

    mark: str
    encoding: _Spec
    rows: Sequence[_Spec]


def chart_text(spec: _Spec, caption: str) -> str:
    """Return what a chart in Vega-Lite shows; empty if neither its axes nor its colours have titles."""
    layers = list(_layers(spec, spec.get("datasets", {}), {}, {}))
    upright, across, coloured = (_title(layers, channel) for channel in ("y", "x", "color"))
    axes = (("Vertical axis", upright), ("Horizontal axis", across))
    drawn = ". ".join(f"{axis}: {title}" for axis, title in axes if title)
    colours = f", by colour: {coloured}" if coloured and drawn else ""
    ranges = [_range(layers, channel, title) for channel, title in (("y", upright), ("x", across))]
    parts = (caption, f"{drawn}{colours}", *ranges, "" if drawn else _fields(layers, coloured))
    return ". ".join(part.strip().rstrip(".") for part in parts if part)


def _layers(spec: _Spec, datasets: Mapping[str, Sequence[_Spec]], encoding: _Spec, data: _Spec) -> Iterator[_Layer]:
    """Yield the layers of a chart, in which each has the encoding and data of what contains it."""
    encoding, data = {**encoding, **spec.get("encoding", {})}, spec.get("data", data)
    for part in spec.get("layer", ()):
        yield from _layers(part, datasets, encoding, data)
    if mark := spec.get("mark"):
        yield _Layer(mark if isinstance(mark, str) else mark["type"], encoding, datasets.get(data.get("name", ""), ()))


def _title(layers: Sequence[_Layer], channel: str) -> str:
    found = (layer.encoding[channel].get("title") for layer in layers if channel in layer.encoding)
    title = next((each for each in found if each), "")
    return " ".join(title) if isinstance(title, list) else str(title)


def _range(layers: Sequence[_Layer], axis: str, title: str) -> str:
    """Return the lowest and the highest number that any layer shows on an axis."""
    numbers = [number for layer in layers for number in _numbers(layer, axis)] if title else []
    if not numbers:
        return ""
    low, high = (_number(each) for each in (min(numbers), max(numbers)))
    return f"{title}: {low}" if low == high else f"{title}: {low} to {high}"


def _numbers(layer: _Layer, axis: str) -> Iterator[float]:
    """Yield the numbers of a layer on an axis: both ends of a mark that has two, and the ends of stacked bars."""
    drawn = layer.encoding.get(axis, {})
    if drawn.get("type") != "quantitative":
        return
    if drawn.get("aggregate") == "sum" or _is_stacked(layer, axis):
        sums: dict[object, float] = defaultdict(float)
        place = layer.encoding.get(_OTHER[axis], {}).get("field")
        for row in layer.rows:
            # Parts below zero are stacked on the other side.
            sums[row.get(place), row[drawn["field"]] < 0] += row[drawn["field"]]
        yield from sums.values()
        return
    for end in (axis, f"{axis}2"):
        yield from _held(layer, layer.encoding.get(end, {}).get("field"))


def _is_stacked(layer: _Layer, axis: str) -> bool:
    """Whether parts of a bar are stacked along an axis: the default of bars with parts of several colours."""
    has_parts = layer.mark in {"bar", "area"} and layer.encoding.get("color", {}).get("field")
    return bool(has_parts and f"{axis}2" not in layer.encoding and layer.encoding[axis].get("stack", True))


def _fields(layers: Sequence[_Layer], title: str) -> str:
    """Return what the fields of a heatmap are, and which of them have the lowest and the highest number."""
    painted = next((layer for layer in layers if layer.encoding.get("color", {}).get("type") == "quantitative"), None)
    numbers = list(_held(painted, painted.encoding["color"]["field"])) if painted and title else []
    if not painted or not numbers:
        return ""
    row_of, column_of = (painted.encoding[axis]["field"] for axis in ("y", "x"))
    rows, columns = ({row[of] for row in painted.rows} for of in (row_of, column_of))
    size = f"{title}, by colour: {_counted(rows, row_of)}, {_counted(columns, column_of)}"
    low, high = min(numbers), max(numbers)
    if low == high:
        return f"{size}. All: {_number(low)}"
    ends = []
    for word, end in (("Lowest", low), ("Highest", high)):
        at = [row for row in painted.rows if row.get(painted.encoding["color"]["field"]) == end]
        where = f"{at[0][row_of]}, {at[0][column_of]}" if len(at) == 1 else f"{len(at):,} fields"
        ends.append(f"{word}: {_number(end)} ({where})")
    return f"{size}. {'. '.join(ends)}"


def _counted(values: set[str], column: str) -> str:
    """Return how many values a column has, and the first and the last of days."""
    if column == "day":
        return f"check-in {min(values)}" if len(values) == 1 else f"check-ins {min(values)} to {max(values)}"
    return counted(len(values), "property", "properties")


def _held(layer: _Layer, field: str | None) -> Iterator[float]:
    yield from (row[field] for row in layer.rows if field and isinstance(row.get(field), int | float))


def _number(value: float) -> str:
    if abs(value) >= _WITHOUT_CENTS:
        return f"{value:,.0f}"
    # Small shares have few digits before the point; amounts keep their cents.
    digits = 2 if abs(value) >= _SMALL or not value else 4
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".")
