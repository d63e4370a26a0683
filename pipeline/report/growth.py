"""A chart of a lake's growth: the bytes that each night has written, by kind."""

from collections.abc import Iterable
from pathlib import Path

import altair as alt
import polars as pl

from pipeline.domain.errors import InputError
from pipeline.lake import write_in_place
from pipeline.lake.inventory import Stock
from pipeline.process.draw import draw
from pipeline.process.limits import CHARTS_MB, refuse_tight_limits
from pipeline.report.charts import SERIES

# Kinds with a colour of their own; the other, small ones share one.
_MOST_KINDS = 6


def draw_growth(stocks: Iterable[Stock], place: Path, nights: int) -> Path:
    """Write the chart of the latest `nights` as SVG. Raises InputError if there is no night."""
    refuse_tight_limits(more_mb=CHARTS_MB)
    rows = [(stock.kind, f"{stock.night}", stock.bytes / 1e6) for stock in stocks if stock.night is not None]
    frame = pl.DataFrame(rows, schema={"kind": pl.String, "night": pl.String, "megabytes": pl.Float64}, orient="row")
    if frame.is_empty():
        raise InputError("The lake has no nights yet.", hint="Start with: nightaudit nightly")
    largest = frame.group_by("kind").agg(pl.col("megabytes").sum()).sort("megabytes", "kind", descending=True)
    kept = largest["kind"].head(_MOST_KINDS)
    drawn = (
        frame.filter(pl.col("night").is_in(frame["night"].unique().sort().tail(nights).implode()))
        .with_columns(
            pl.when(pl.col("kind").is_in(kept.implode())).then("kind").otherwise(pl.lit("other")).alias("kind")
        )
        .group_by("kind", "night")
        .agg(pl.col("megabytes").sum())
        .sort("night", "kind")
    )
    chart = (
        alt.Chart(drawn, title="Megabytes in the lake, by night", width=860, height=240)
        .mark_bar()
        .encode(
            x=alt.X("night:O", title=None, axis=alt.Axis(labelAngle=-90, labelOverlap=True)),
            y=alt.Y("megabytes:Q", title="MB"),
            color=alt.Color("kind:N", title=None, scale=alt.Scale(range=list(SERIES))),
        )
    )
    return write_in_place(place, draw(chart.to_dict()).encode())
