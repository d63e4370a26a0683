"""What a chart says to those who do not see it covers everything that it shows."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import altair as alt
import polars as pl
import pytest

from pipeline.process.draw import draw
from pipeline.report.chart_kinds import calendar, towards_the_stay
from pipeline.report.chart_text import chart_text
from pipeline.report.charts import chart, svg
from pipeline.report.gaps import _steps
from pipeline.report.price_lines import price_lines
from pipeline.report.promotions import _history


def said(made: alt.Chart | alt.LayerChart) -> str:
    return chart_text(svg(made).wide, "")


def test_a_waterfall_reaches_as_far_as_the_ends_of_its_steps():
    parts = {"policy": -30.0, "board": None, "tax_and_fee": 12.0, "promotion": -40.0, "fx": 5.0, "residual": -2.5}
    assert said(_steps({**parts, "currency": "EUR"})).endswith("Sum over the pairs, EUR: -58 to 0")


def test_a_price_history_reaches_from_what_was_charged_to_what_was_struck_through():
    nights = [datetime(2030, 1, day, 2, tzinfo=UTC) for day in (1, 2, 3)]
    offer = pl.DataFrame(
        {
            "currency": "EUR",
            "valid_from": nights[:2],
            "valid_to": nights[1:],
            "total": [Decimal("80.00"), Decimal("79.95")],
            "pre_promo_total": [Decimal("120.00"), Decimal("140.00")],
        }
    )
    assert said(_history(offer)).endswith("Total of the stay, EUR: 79.95 to 140")


@pytest.mark.parametrize("stack", [True, alt.Undefined])
def test_stacked_bars_reach_to_the_sum_of_their_parts(stack):
    nights = pl.DataFrame(
        {"night": ["1", "1", "2", "2"], "status": ["offered", "failed"] * 2, "cells": [300, 20, 310, 0]}
    )
    stacked = (
        chart(nights).mark_bar().encode(x="night:N", y=alt.Y("cells:Q", title="Cells", stack=stack), color="status:N")
    )
    assert said(stacked).endswith("Cells: 310 to 320")
    beside = (
        chart(nights).mark_bar().encode(x="night:N", y=alt.Y("cells:Q", title="Cells", stack=None), color="status:N")
    )
    assert said(beside).endswith("Cells: 0 to 310")


def test_bars_of_sums_reach_to_these():
    bands = pl.DataFrame({"from_pct": [0, 0, 1], "to_pct": [1, 1, 2], "offers": [3, 4, 5]})
    drawn = (
        chart(bands)
        .mark_bar()
        .encode(
            x=alt.X("from_pct:Q", bin="binned", title="Percent"),
            x2="to_pct:Q",
            y=alt.Y("sum(offers):Q", title="Offers"),
        )
    )
    assert said(drawn).endswith("Offers: 5 to 7. Percent: 0 to 2")


def days(*rows: tuple[int, int, float | None]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"property_id": number, "property_name": f"Hotel {number}", "check_in": date(2030, 3, day), "share": share}
            for number, day, share in rows
        ]
    )


def calendar_said(found: pl.DataFrame) -> str:
    (drawing,) = calendar(found, "share", "Cells on sale, percent", pl.col("share").mean())
    return chart_text(drawing.wide, "")


def test_a_calendar_says_what_it_shows_and_its_extremes():
    assert calendar_said(days((7, 1, 25.5), (7, 2, 100.0), (8, 1, 100.0), (8, 4, None))) == (
        "Cells on sale, percent, by colour: 2 properties, check-ins 2030-03-01 to 2030-03-04. "
        "Lowest: 25.5 (Hotel 7 7, 2030-03-01). Highest: 100 (2 fields)"
    )
    assert calendar_said(days((7, 1, 50.0))) == (
        "Cells on sale, percent, by colour: 1 property, check-in 2030-03-01. All: 50"
    )


@pytest.mark.parametrize(
    ("prices", "labels"),
    [
        ((156.6, 157.0), ["156.60", "156.80", "157.00"]),
        ((150.0, 157.0), ["150", "154", "157"]),
        ((157.0, 157.0), ["157"]),
        ((57.0, 59.0), ["57.00", "58.00", "59.00"]),
    ],
)
def test_levels_of_a_price_chart_that_differ_have_labels_that_differ(prices, labels):
    nights = [date(2030, 1, 1), date(2030, 1, 2)]
    drawn = price_lines({"GB": list(zip(nights, prices, strict=True))}, {"GB": 0}, nights, "Check-in")
    assert re.findall(r'text-anchor="end">([0-9.,]+)</text>', str(drawn)) == labels


def test_days_before_check_in_are_whole_numbers_on_the_axis():
    rows = pl.DataFrame({"lead_days": [5, 4, 3, 2], "share": [0.5, 0.4, 0.6, 0.3]}).with_columns(
        market=pl.lit("GB"), product_type=pl.lit("Hotel"), offers=pl.lit(9)
    )
    (drawn,) = towards_the_stay(rows, "share", "Share", weight="offers")
    days, _, _ = draw(drawn.wide).partition("Days before check-in")
    assert re.findall(r">([0-9.]+)</text>", days) == ["2", "3", "4", "5"]
