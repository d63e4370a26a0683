"""Availability by property: rows that a reader can choose by city, brand and group."""

from __future__ import annotations

import json
from datetime import date

import polars as pl
import pytest
from nights import started_at

from pipeline.inputs.load import load
from pipeline.report.on_sale_calendar import _by_property
from pipeline.report.write import write_reports

from .conftest import night


def day(property_id: int, number: int, on_sale_pct: float, cells: int = 2) -> dict[str, object]:
    of = {"property_id": property_id, "property_name": f"Hotel {property_id}", "check_in": date(2030, 3, number)}
    return of | {"on_sale_pct": on_sale_pct, "cells": cells}


def test_a_property_has_one_row_with_the_check_ins_on_which_it_has_nothing_on_sale():
    days = pl.DataFrame(
        [
            *(day(1, number, 0.0) for number in range(1, 9)),
            day(2, 1, 100.0, 1),
            day(2, 2, 20.0, 3),
            day(3, 2, 0.0),
            day(3, 1, 50.0),
        ]
    )
    rows = {row["property_id"]: row for row in _by_property(days).rows(named=True)}
    assert list(rows) == [1, 3, 2]
    assert rows[1]["days_without"] == "1 Mar, 2 Mar, 3 Mar, 4 Mar, 5 Mar, 6 Mar and 2 more"
    assert (rows[3]["check_ins"], rows[3]["without"], rows[3]["days_without"]) == (2, 1, "2 Mar")
    # By cells, not by check-ins.
    assert (rows[2]["on_sale_pct"], rows[2]["lowest_pct"], rows[2]["days_without"]) == (40.0, 20.0, "none")
    assert _by_property(days.clear()).is_empty()


@pytest.mark.slow
def test_the_calendar_can_be_chosen_by_city(lake, tmp_path):
    places = tmp_path / "properties.csv"
    places.write_text("property_id,property_name,city\n1,One,Riga\n2,Two,Oslo\n")
    load(lake, "properties", places, started_at(0))
    night(lake, 1, {1: 120, 2: 95})
    (written,) = write_reports(lake, ["availability"])
    page = written.file.read_text()
    section = page[page.index('<section id="calendar">') :]
    assert '<tr data-city="Riga">' in section[: section.index("</section>")]
    # The figures stay those of each check-in.
    sections = json.loads(written.file.with_suffix(".json").read_text())["sections"]
    (rows,) = (each["rows"] for each in sections if each["name"] == "calendar")
    assert {"check_in", "on_sale_pct", "cells"} <= rows[0].keys()
