"""The cost curves of a run, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_AXES = {
    "CPU a request": "requests in flight",
    "CPU to publish": "night",
    "CPU seconds of a stage": "cells of the night",
    "Memory of all processes": "requests of the sweep",
}


def draw(points: Sequence[dict[str, object]], file: Path) -> None:
    """Write an SVG with one chart a curve. Nothing is fetched from anywhere."""
    import altair

    charts = []
    for curve in dict.fromkeys(str(point["curve"]) for point in points):
        axis = next((title for start, title in _AXES.items() if curve.startswith(start)), "")
        # Sizes and costs over orders of magnitude: on logarithmic scales what is linear is a line of slope one.
        is_wide = "stage" in curve or "in flight" in axis
        scale = altair.Scale(type="log") if is_wide else altair.Scale(zero=True)
        charts.append(
            altair.Chart(altair.Data(values=[point for point in points if point["curve"] == curve]))
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
