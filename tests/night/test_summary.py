"""What a night came to, as text."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from pipeline.domain.errors import TooManyFailures
from pipeline.night.summary import NightSummary, as_markdown, lines_of, refuse_too_many_failures

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
    file=Path("/srv/my lake/published/nightaudit.duckdb"),
    reports=Path("/srv/my lake/reports/index.html"),
)


def test_a_summary_says_what_was_planned_done_stored_and_changed_and_where_it_lies():
    told = [text for _, text in lines_of(NIGHT)]

    for said in ("1,200", "900", "345", "1 h 1 min", "6,789", "12 since the night of 2029-12-31"):
        assert said in told
    for said in ("34 stand, 5 of them new", str(NIGHT.file), str(NIGHT.reports)):
        assert said in told
    assert NIGHT.query in as_markdown(NIGHT)


def test_simulated_data_is_called_so_and_real_data_is_not():
    assert "Simulated" in as_markdown(NIGHT)
    assert "imulated" not in as_markdown(replace(NIGHT, is_simulated=False))


def test_a_first_night_has_no_price_changes_to_tell_of():
    assert "this is the first night" in as_markdown(replace(NIGHT, previous_date=None))


@pytest.mark.parametrize(("seconds", "told"), [(7.26, "7.3 s"), (90, "1 min 30 s"), (3599.6, "1 h 0 min")])
def test_a_duration_is_told_in_the_units_that_it_is_long_in(seconds, told):
    assert ("duration", told) in lines_of(replace(NIGHT, duration=timedelta(seconds=seconds)))


def test_names_cannot_break_the_table_of_the_markdown():
    table = as_markdown(replace(NIGHT, supplier="a|b_c"))
    assert "a\\|b\\_c" in table


@pytest.mark.parametrize(("tolerated", "is_refused"), [(0.05, False), (0.0454, True), (0.0, True)])
def test_failed_cells_count_against_those_asked_about_and_not_against_those_left_out(tolerated, is_refused):
    assert NIGHT.failed_share == pytest.approx(50 / 1100)
    if not is_refused:
        refuse_too_many_failures(NIGHT, tolerated)
        return
    with pytest.raises(TooManyFailures, match=r"50 cells failed: 4\.5%"):
        refuse_too_many_failures(NIGHT, tolerated)


def test_a_night_in_which_nothing_was_asked_has_no_failures():
    cells = tuple((status, 1200 if status == "not_swept" else 0) for status, _ in NIGHT.cells)
    refuse_too_many_failures(replace(NIGHT, cells=cells), 0.0)
