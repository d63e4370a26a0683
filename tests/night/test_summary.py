"""The result of a night, as text."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from pipeline.night.summary import NightSummary, as_markdown, lines_of

NIGHT = NightSummary(
    sweep_id="20300101T020000Z-abc123",
    snapshot_date=date(2030, 1, 1),
    supplier="sandbox",
    is_simulated=True,
    is_complete=True,
    planned=1200,
    cells=(("offered", 900), ("no_offer", 100), ("absent", 50), ("rejected", 0), ("failed", 50), ("not_swept", 100)),
    requests=345,
    duration=timedelta(minutes=61, seconds=40),
    offers=6789,
    price_changes=12,
    previous_date=date(2029, 12, 31),
    findings=34,
    new_findings=5,
    cases=7,
    new_cases=2,
    file=Path("/srv/my lake/published/nightaudit.duckdb"),
    reports=Path("/srv/my lake/reports/index.html"),
)


def test_a_summary_has_the_counts_planned_done_stored_and_changed_and_the_paths():
    reported = [text for _, text in lines_of(NIGHT)]

    for said in (
        "1,200",
        "900",
        "345",
        "1 h 1 min",
        "6,789",
        "12 since the night of 2029-12-31 (offers on sale on both nights)",
    ):
        assert said in reported
    for said in ("34 open, 5 new", "7 to decide, 2 new; see: nightaudit cases", str(NIGHT.file), str(NIGHT.reports)):
        assert said in reported
    assert NIGHT.query in as_markdown(NIGHT)


def test_damaged_files_that_the_night_is_without_are_in_its_summary():
    assert "files left out" not in dict(lines_of(NIGHT))
    reported = dict(lines_of(replace(NIGHT, files_left_out=3)))["files left out"]
    assert reported.startswith("3; ")
    assert "nightaudit verify --deep" in reported


def test_simulated_data_is_called_so_and_real_data_is_not():
    assert "Simulated" in as_markdown(NIGHT)
    assert "imulated" not in as_markdown(replace(NIGHT, is_simulated=False))


def test_a_first_night_has_no_price_changes_to_tell_of():
    assert "this is the first night" in as_markdown(replace(NIGHT, previous_date=None))


@pytest.mark.parametrize(("seconds", "reported"), [(7.26, "7.3 s"), (90, "1 min 30 s"), (3599.6, "1 h 0 min")])
def test_a_duration_is_reported_in_the_units_that_it_is_long_in(seconds, reported):
    assert ("duration", reported) in lines_of(replace(NIGHT, duration=timedelta(seconds=seconds)))


def test_names_cannot_break_the_table_of_the_markdown():
    table = as_markdown(replace(NIGHT, supplier="a|b_c"))
    assert "a\\|b\\_c" in table
