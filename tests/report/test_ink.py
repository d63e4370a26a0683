"""Numbers in the fields of a calendar: readable on every colour that is drawn."""

from __future__ import annotations

import re
from datetime import date, timedelta

import polars as pl
import pytest

from pipeline.report.chart_kinds import around_zero, calendar

DATES = 8
FIELDS = 40 * DATES
_FILLED = re.compile(r'<path[^>]*? d="M[\d.]+,[\d.]+h[^>]*? fill="(rgb[^"]+)"')
_WRITTEN = re.compile(r'<text[^>]*? fill="(#[0-9a-f]{6})"[^>]*>')


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    if colour.startswith("#"):
        parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    else:
        parts = [int(each) for each in re.findall(r"\d+", colour)]
    red, green, blue = (part / 3294.6 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("is_around_zero", [False, True])
def test_the_number_in_a_field_contrasts_with_its_colour(is_around_zero):
    """4.5 to 1 is what text of this size needs (WCAG 2, 1.4.3)."""
    shares = [number / (FIELDS - 1) for number in range(FIELDS)]
    values = pl.Series([32 * share - 16 if is_around_zero else 100 * share for share in shares])
    days = pl.DataFrame(
        {
            "property_id": [number // DATES for number in range(FIELDS)],
            "property_name": "Hotel",
            "check_in": [date(2030, 3, 1) + timedelta(days=number % DATES) for number in range(FIELDS)],
            "measure": values,
        }
    )
    scale = {"scale": around_zero(values)} if is_around_zero else {}
    (drawn,) = calendar(days, "measure", "Measure", pl.col("measure").max(), **scale)
    page, _ = drawn.__html__().split('<div class="narrow">')
    filled, written = _FILLED.findall(page), _WRITTEN.findall(page)
    assert len(filled) >= FIELDS
    assert len(written) == FIELDS
    assert min(map(contrast, filled, written)) >= 4.5
