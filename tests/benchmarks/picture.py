"""The cost curves of a run, as one picture."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

_AXES = {
    "CPU per request": "requests in flight",
    "CPU to publish": "night",
    "CPU seconds of a stage": "cells of the night",
    "CPU seconds of a step": "offers of the night",
    "Largest process of a step": "offers of the night",
    "Memory of all processes": "requests of the sweep",
}


def draw(points: Sequence[dict[str, object]], file: Path) -> None:
    """Write an SVG with one chart per curve. Nothing is fetched from anywhere."""
    import altair

    charts = []
    for curve in dict.fromkeys(str(point["curve"]) for point in points):
        axis = next((title for start, title in _AXES.items() if curve.startswith(start)), "")
        # Sizes and costs over orders of magnitude: on logarithmic scales what is linear is a line of slope one.
        is_wide = "stage" in curve or "step" in curve or "in flight" in axis
        scale = altair.Scale(type="log") if is_wide else altair.Scale(zero=True)
        values = [point for point in points if point["curve"] == curve]
        if "stage" in curve:
            values += _linear(curve, values)
        charts.append(
            altair.Chart(altair.Data(values=values))
            .mark_line(point=True)
            .encode(
                x=altair.X("x:Q", title=axis, scale=altair.Scale(type="log") if is_wide else altair.Undefined),
                y=altair.Y("y:Q", title=None, scale=scale),
                color=altair.Color("who:N", title=None),
            )
            .properties(title=curve, width=320, height=220)
        )
    picture = altair.concat(*charts, columns=2).resolve_scale(color="independent").configure(background="white")
    picture.save(str(file))


def _linear(curve: str, values: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Two points of a line of slope one, through the middle of the others on logarithmic scales."""
    sizes, costs = ([float(str(point[axis])) for point in values] for axis in ("x", "y"))
    a_cell = statistics.geometric_mean(costs) / statistics.geometric_mean(sizes)
    return [{"curve": curve, "who": "slope one", "x": x, "y": a_cell * x} for x in (min(sizes), max(sizes))]
