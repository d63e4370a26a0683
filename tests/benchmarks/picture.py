"""The cost curves of a run, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def draw(points: Sequence[dict[str, object]], file: Path) -> None:
    """Write an SVG with one chart a curve. Nothing is fetched from anywhere."""
    import altair

    charts = [
        altair.Chart(altair.Data(values=[point for point in points if point["curve"] == curve]), width=280, height=200)
        .mark_line(point=True)
        .encode(
            x=altair.X("x:Q", title="in flight" if curve.startswith("CPU a request, us") else "size or night"),
            y=altair.Y("y:Q", title=None, scale=altair.Scale(zero=True)),
            color=altair.Color("who:N", title=None),
        )
        .properties(title=str(curve))
        for curve in dict.fromkeys(point["curve"] for point in points)
    ]
    altair.concat(*charts, columns=2).resolve_scale(color="independent").save(str(file))
