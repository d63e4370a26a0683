"""A setting that is changed between two nights: what its rule no longer finds was not put right."""

from __future__ import annotations

import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.analysis import Analysis
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.ledger import LedgerEntry
from pipeline.publish import publish
from pipeline.publish.settings_changed import changed_after

# Discounts of 14% and 20%, both stated as 11%; the second is stated correctly on night 2.
TOTALS = {1: 86, 2: 80}


def night_of(number: int, **settings: object) -> LedgerEntry:
    return LedgerEntry(sweep_id(number), started_at(number), started_at(number), analysis=Analysis(**settings))


@pytest.mark.slow
def test_a_finding_that_a_wider_setting_no_longer_makes_was_not_put_right(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    for number, rounding in enumerate((0.51, 2.0, 2.0)):
        asked = [{"search_id": property_id, "property_id": property_id} for property_id in TOTALS]
        offers = [
            cell
            | {
                "total": TOTALS[cell["property_id"]],
                "pre_promo_total": 100,
                "discount_pct": 20 if (number, cell["property_id"]) == (2, 2) else 11,
                "currency": "EUR",
                "room_id": 7,
                "board_id": 14,
            }
            for cell in asked
        ]
        load_night(lake, number, cell=asked, offer=offers)
        publish(lake, sweep_id(number), started_at(number), analysis=Analysis(discount_rounding=rounding))
    ended = "SELECT property_id, resolved_sweep_id, ended_by FROM report.flag_history WHERE rule = 'wrong_discount'"
    with query_published(lake.published_file, ended) as rows:
        assert set(rows.fetchall()) == {(1, sweep_id(1), "rule_changed"), (2, sweep_id(2), "value")}


def test_the_last_night_with_other_settings_is_known_for_the_rules_that_read_them():
    nights = [
        night_of(0, disparity_pct=2.0),
        night_of(1, disparity_pct=2.0, discount_rounding=1.0),
        night_of(2, discount_rounding=1.0),
        night_of(3),
        night_of(4),
    ]
    changed = changed_after(nights)
    assert changed["report.promotion_arithmetic"] == started_at(2)
    assert changed["report.market_disparity"] == started_at(1)
    assert "report.list_detail_mismatch" not in changed


@pytest.mark.parametrize("setting", [{"high_pct": 9.0}, {"reference_market": "GB"}, {}])
def test_severities_and_the_reference_market_end_no_finding_for_this_reason(setting):
    assert changed_after([night_of(0, **setting), night_of(1)]) == {}
