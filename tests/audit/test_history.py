"""Bounds from the nights before, and nights of nights: no false alarm, and no planted fault that passes."""

from __future__ import annotations

import pytest
from audited_nights import audited, clean_night, every, failed_checks, load, passed, settings_of, sweep_id
from nights import started_at

from pipeline.audit.history import bounds
from pipeline.gate import audit_sweep
from pipeline.lake import Lake


def test_twenty_clean_nights_raise_no_alarm_and_planted_faults_are_caught(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    for night in range(20):
        found = audited(lake, night, clean_night(night))
        assert failed_checks(found) == set(), night
        passed(lake, night)
    for number, (name, (fault, checks)) in enumerate(FAULTS.items()):
        night = 20 + number
        load(lake, night, fault(clean_night(night)))
        if name == "one partition doubled":
            double(lake, night)
        found = audit_sweep(settings_of(lake), lake, sweep_id(night), started_at(night))
        assert checks <= failed_checks(found, "critical"), name


def double(lake, night):
    for table in ("offer", "penalty", "cell"):
        path = lake.local(lake.table_file(table, sweep_id(night), "multi-GB-00000"))
        path.with_name("multi-GB-00001.parquet").write_bytes(path.read_bytes())


def without_market(rows):
    return {table: [row for row in given if row["market"] != "SE"] for table, given in rows.items()}


def times_a_hundred(row):
    changed = {name: row[name] * 100 for name in ("total", "pre_promo_total")}
    return changed | {"floor": row["floor"] and row["floor"] * 100}


def stale(rows):
    """The answers of the last clean night once more, byte for byte."""
    last = clean_night(19)
    kept = {"body_sha256", "offers"}
    searches = [
        now | {name: before[name] for name in kept} for now, before in zip(rows["search"], last["search"], strict=True)
    ]
    same = {table: last[table] for table in ("offer", "penalty", "promotion", "cell")}
    return rows | same | {"search": searches}


# A fault, and the critical checks that it must fail.
FAULTS = {
    "a market missing": (without_market, {"market_as_planned", "cells_as_planned", "statuses_add_up"}),
    "currency swapped": (lambda rows: every(rows, "offer", lambda _: {"currency": "USD"}, "GB"), {"quarantined_share"}),
    "prices x100": (lambda rows: every(rows, "offer", times_a_hundred, "GB"), {"price_level_lead_over_090"}),
    "floors vanished": (lambda rows: every(rows, "offer", lambda _: {"floor": None}, "GB"), {"floor_share"}),
    "one partition doubled": (lambda rows: rows, {"key", "offers_not_balanced"}),
    "stale answers": (stale, {"price_changed_share_lead_over_090", "repeated_body_share"}),
}


def test_too_few_nights_are_not_judged_by(lake):
    for night in range(3):
        found = audited(lake, night, clean_night(night))
        passed(lake, night)
    compared = [f for f in found.findings if f.basis == "history"]
    assert {f.outcome for f in compared} == {"not_judged"}
    assert {f.outcome for f in found.findings if f.basis != "history"} == {"passed"}


@pytest.mark.parametrize("kind", ["share", "level", "rare"])
def test_what_was_published_before_passes_and_ten_times_as_much_does_not(kind):
    before = [0.040, 0.042, 0.039, 0.041, 0.040, 0.043]
    lowest, highest = bounds(before, kind, of=20_000, deviations=6)
    assert all(lowest <= value <= highest for value in before)
    assert highest < 0.4


def test_one_bad_night_that_was_overridden_does_not_move_the_middle():
    lowest, _ = bounds([0.9, 0.91, 0.9, 0.89, 0.9, 0.9, 0.6], "share", of=100_000, deviations=6)
    calm, _ = bounds([0.9, 0.91, 0.9, 0.89, 0.9, 0.9], "share", of=100_000, deviations=6)
    assert lowest < calm < 0.9
    assert calm > 0.85


def test_few_cells_are_given_more_room_than_many():
    few, _ = bounds([0.9] * 6, "share", of=50, deviations=6)
    many, _ = bounds([0.9] * 6, "share", of=50_000, deviations=6)
    assert few < many < 0.9


def test_answers_that_repeat_the_last_night_are_beyond_what_few_repeats_make_plausible():
    _, highest = bounds([0.0, 0.01, 0.0, 0.0, 0.02, 0.0], "share", of=72, deviations=6)
    assert highest < 0.2
