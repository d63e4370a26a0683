"""Bounds from earlier nights, over many series of nights: no false alarm, and no planted fault that passes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from audited_nights import audited, clean_night, every, failed_checks, load, passed, settings_of, sweep_id
from nights import started_at

from pipeline.audit.domain_measures import resting_markets
from pipeline.audit.history import Limits, Seen, bounds, with_bounds
from pipeline.audit.results import Measure
from pipeline.lake import Lake
from pipeline.night.gate import audit_sweep

pytestmark = pytest.mark.slow


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
    # That no price of thirty properties has moved may be chance; that their answers are the same bytes is not.
    "stale answers": (stale, {"repeated_body_share"}),
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
    lowest, highest = bounds([Seen(value) for value in before], kind, of=20_000, deviations=6)
    assert all(lowest <= value <= highest for value in before)
    assert highest < 0.4


def judged(value: float, before: list[Seen], kind: str = "level") -> Measure:
    measure = Measure("GB", "offer", "it", "critical", "", "history", value, kind=kind, of=1000)
    return with_bounds([measure], {measure.key: before}, Limits())[0]


@pytest.mark.parametrize(("kind", "calm", "wild"), [("level", 100.0, 10_000.0), ("share", 0.9, 0.0)])
def test_a_night_that_was_overridden_does_not_widen_the_band(kind, calm, wild):
    before = [Seen(calm * (1 + place / 100)) for place in range(8)]
    without = judged(calm, before, kind)
    after = judged(calm, [*before[:5], Seen(wild, is_failed=True), *before[5:]], kind)
    assert (after.lowest, after.highest) == (without.lowest, without.highest)
    assert not without.lowest <= wild <= without.highest


def test_what_there_never_was_may_be_missing_tonight_and_may_begin():
    before = [Seen(0.0) for _ in range(6)]
    for value in (0.0, 3.0):
        measure = judged(value, before)
        assert (measure.lowest, measure.highest) == (0.0, None)


@pytest.mark.parametrize(("kind", "calm", "wild"), [("level", 100.0, 10_000.0), ("share", 0.9, 0.0)])
def test_a_fault_in_a_cold_start_makes_no_room_for_the_next_one(kind, calm, wild):
    calm_nights = [Seen(calm * (1 + place / 1000), is_judged=False) for place in range(5)]
    after = judged(calm, [*calm_nights[:2], Seen(wild, is_judged=False), *calm_nights[2:]], kind)
    assert not after.lowest <= wild <= after.highest
    assert after.lowest <= calm <= after.highest


def test_a_new_level_that_stays_is_the_usual_one_after_as_many_nights_as_a_cold_start_needs():
    before = [Seen(100.0) for _ in range(20)]
    new = [Seen(10_000.0 + place, is_failed=True) for place in range(5)]
    assert judged(10_000, before + new[:4]).highest < 10_000
    settled = judged(10_000, before + new)
    assert settled.lowest < 10_000 < settled.highest
    assert settled.lowest > 100
    assert settled.nights == 5


# A supplier that converts its prices at the rate of the day: rates of seven nights, the last one after a day of rest.
RATES = ["1.000", "1.003", "1.001", "1.004", "0.999", "1.002", "1.002"]


def converted(night: int, rate: str):
    """The night of a market in which only one property moves on its own."""

    def change(row):
        base = Decimal(160 + row["property_id"] + (night if row["property_id"] == 1 else 0))
        return {name: (base * Decimal(rate)).quantize(Decimal("0.01")) for name in ("total", "pre_promo_total")}

    return every(clean_night(night), "offer", change, "GB")


def test_a_night_without_a_new_exchange_rate_is_not_taken_for_repeated_answers(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    for night, rate in enumerate(RATES):
        found = audited(lake, night, converted(night, rate))
        assert "price_moved_share_lead_over_090" not in failed_checks(found), night
        passed(lake, night)


@pytest.mark.parametrize(
    ("repeated", "resting"),
    [
        # Of two hundred answers of SE and US each, 14% are new: a cache has none.
        ({"all": (0.6, 600), "DE": (0.1, 200), "SE": (0.86, 200), "US": (0.84, 200)}, {"all", "SE", "US"}),
        # US is served from a cache, and all markets together still withhold the night.
        ({"all": (0.6, 600), "DE": (0.1, 200), "SE": (0.86, 200), "US": (0.99, 200)}, {"SE"}),
        # Eight new answers are too few to tell.
        ({"all": (0.5, 32), "DE": (0.0, 16), "SE": (0.5, 16)}, set()),
    ],
)
def test_a_market_with_many_new_answers_is_not_taken_for_one_served_from_a_cache(repeated, resting):
    measures = [
        Measure(market, "search", "repeated_body_share", "critical", "", "history", share, harmless=0.25, of=count)
        for market, (share, count) in repeated.items()
    ]
    assert resting_markets(measures) == resting


def test_an_override_is_for_its_night_only(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    given = settings_of(lake, audit_cold_nights=4)
    for night in range(4):
        audited(lake, night, clean_night(night), settings=given)
        passed(lake, night)

    def dear(night):
        return audited(lake, night, every(clean_night(night), "offer", times_a_hundred, "GB"), settings=given)

    assert "price_level_lead_over_090" in failed_checks(dear(4), "critical")
    passed(lake, 4)
    assert audited(lake, 5, clean_night(5), settings=given).is_passed
    passed(lake, 5)
    assert "price_level_lead_over_090" in failed_checks(dear(6), "critical")


# What a market of 55 properties was measured at: 0.2% of its cells, where 5% had moved on six nights before.
CALM = [0.0524, 0.0588, 0.0588, 0.0776, 0.093, 0.0476]


def test_that_no_price_moved_in_one_night_is_chance_among_few_properties_and_none_among_many():
    lowest, _ = bounds([Seen(share) for share in CALM], "rare", of=55, deviations=6)
    assert lowest < 0.5 / 440
    lowest, _ = bounds([Seen(share) for share in CALM], "rare", of=1000, deviations=6)
    assert lowest > 0.5 / 8000


@pytest.mark.parametrize("kind", ["share", "rare"])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("properties", [20, 55, 400, 3000])
def test_no_night_in_a_hundred_thousand_is_withheld_for_chance(kind, share, properties):
    """Properties move with all of their eight cells or with none, on nights on which nothing is wrong."""
    moved = np.random.default_rng(properties).binomial(properties, share, 100_000)
    observed = (8 * moved + 0.5) / (8 * properties + 0.5) if kind == "rare" else moved / properties
    # The calmest history that there can be: every night at the share itself.
    usual = (8 * round(share * properties) + 0.5) / (8 * properties + 0.5) if kind == "rare" else share
    lowest, highest = bounds([Seen(usual)] * 6, kind, of=properties, deviations=6)
    assert (observed < lowest).sum() + (observed > highest).sum() <= 1


def test_a_share_of_one_in_two_hundred_is_no_reason_to_withhold_a_large_night():
    _, highest = bounds([Seen(0.0)] * 6, "share", of=50_000, deviations=6)
    assert 0.005 < highest < 0.02


def test_few_cells_are_given_more_room_than_many():
    few, _ = bounds([Seen(0.9)] * 6, "share", of=50, deviations=6)
    many, _ = bounds([Seen(0.9)] * 6, "share", of=50_000, deviations=6)
    assert few < many < 0.9


def test_a_value_that_is_harmless_passes_whatever_earlier_nights_were():
    measure = Measure("all", "search", "it", "critical", "", "history", 0.1, side="high", harmless=0.25, of=480)
    before = {measure.key: [Seen(0.0)] * 6}
    assert with_bounds([measure], before, Limits())[0].highest == 0.25
    assert with_bounds([replace(measure, harmless=0.0)], before, Limits())[0].highest < 0.1
    # Earlier nights may still allow more.
    assert with_bounds([measure], {measure.key: [Seen(0.4)] * 6}, Limits())[0].highest > 0.4


def test_answers_that_repeat_the_last_night_are_beyond_what_few_repeats_make_plausible():
    _, highest = bounds([Seen(share) for share in (0.0, 0.01, 0.0, 0.0, 0.02, 0.0)], "share", of=72, deviations=6)
    assert highest < 0.2
