"""For each check, a night that breaks exactly it and is caught; and a clean one that passes them all."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audited_nights import audited, clean_night, every, failed_checks, first, load, passed, settings_of
from nights import started_at, sweep_id

from pipeline.audit.rules import rules
from pipeline.gate import audit_sweep
from pipeline.lake import Lake


@pytest.fixture(scope="module")
def seasoned(tmp_path_factory) -> Lake:
    """A lake of six clean, published nights; night 6 is written anew by each test."""
    lake = Lake(str(tmp_path_factory.mktemp("seasoned") / "lake"))
    for night in range(6):
        assert audited(lake, night, clean_night(night)).is_passed
        passed(lake, night)
    return lake


def tonight(seasoned: Lake, tmp_path, rows, **changed):
    """Audit rows as night 6 of a lake that shares the six nights before."""
    lake = Lake(str(tmp_path / "lake"))
    for folder in ("tables", "raw", "published"):
        for file in sorted((seasoned.root / folder).rglob("*")):
            place = lake.root / folder / file.relative_to(seasoned.root / folder)
            if file.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            elif not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file.read_bytes())
    return lake, audited(lake, 6, rows, **changed)


def stripped(rows, count=1):
    """The night without its first search's offers, as the search tells of them."""
    head, *rest = rows["search"]
    return rows | {"search": [head | {"offers": head["offers"] - count}, *rest]}


def added(rows, table, **values):
    """The night with a copy of a table's first row, changed."""
    return rows | {table: [*rows[table], rows[table][0] | values]}


def times(row, factor):
    return {name: row[name] * factor for name in ("total", "pre_promo_total")} | {
        "floor": row["floor"] and row["floor"] * factor
    }


GB = "GB"
DAY = timedelta(days=1)
ROWS = {
    "total_not_positive": lambda n: first(n, "offer", total=Decimal(0)),
    "currency_not_as_asked": lambda n: first(n, "offer", currency="USD"),
    "total_above_pre_promo_total": lambda n: first(n, "offer", pre_promo_total=Decimal(1)),
    "discount_not_as_stated": lambda n: first(n, "offer", discount_pct=77.0),
    "available_rooms_implausible": lambda n: first(n, "offer", available_rooms=2147483647),
    "board_unknown": lambda n: first(n, "offer", board_id=9999),
    "offer_without_search": lambda n: first(n, "offer", nights=5),
    "stay_not_ahead": lambda n: first(n, "search", check_in=started_at(6).date()),
    "penalty_without_offer": lambda n: added(n, "penalty", offer_no=99_999),
    "promotion_without_offer": lambda n: added(n, "promotion", offer_no=99_999),
    "penalty_pct_out_of_range": lambda n: first(n, "penalty", penalty_pct=250.0),
    "penalty_dates_reversed": lambda n: first(n, "penalty", start_at=started_at(50), end_at=started_at(49)),
    "penalty_order_reversed": lambda n: first(n, "penalty", window_hours=12, penalty_pct=10.0),
    "answer_outside_sweep": lambda n: first(n, "search", started_at=started_at(2), ended_at=started_at(2)),
    "offers_not_balanced": stripped,
    "price_jump": lambda n: first(n, "offer", total=Decimal(1), pre_promo_total=Decimal(1), discount_pct=0.0),
    "floor_vanished": lambda n: every(n, "offer", lambda row: {"floor": None} if row["property_id"] <= 30 else {}),
    "drift_new": lambda n: (
        n
        | {
            "drift": [
                {"operation": "multi", "market": GB, "path": "$.new", "kind": "unknown_field", "detail": "int"}
                | {"occurrences": 3, "example_raw_address": "raw/x#1"}
            ]
        }
    ),
}
DECLARED = {
    "key": lambda n: added(n, "cell"),
    "value_status": lambda n: first(n, "cell", status="sleeping"),
    "value_refundability": lambda n: first(n, "offer", refundability="perhaps"),
    "range_discount_pct": lambda n: first(n, "offer", discount_pct=-3.0),
    "range_floor": lambda n: first(n, "offer", floor=Decimal(-1)),
    "null_currency": lambda n: every(n, "offer", lambda _: {"currency": None}, GB),
    "null_total": lambda n: every(n, "offer", lambda row: {"total": None} if row["offer_no"] % 2 else {}, GB),
    "null_board_id": lambda n: every(n, "offer", lambda _: {"board_id": None}, GB),
}
NIGHTS = {
    "answered_share": lambda n: every(n, "cell", lambda _: {"status": "failed"}, GB),
    "failed_share": lambda n: every(
        n, "cell", lambda row: {"status": "failed"} if row["property_id"] % 4 == 0 else {}, GB
    ),
    "swept_share": lambda n: every(
        n, "cell", lambda row: {"status": "not_swept"} if row["property_id"] % 2 else {}, GB
    ),
    "offered_share": lambda n: every(
        n, "cell", lambda row: {"status": "no_offer"} if row["property_id"] % 2 else {}, GB
    ),
    "offers_per_cell": lambda n: every(n, "cell", lambda row: {"offers": row["offers"] * 5}, GB),
    "floor_share": lambda n: every(n, "offer", lambda _: {"floor": None}, GB),
    "promoted_share": lambda n: every(n, "offer", lambda _: {"promotion_key": 0}, GB),
    "refundable_share": lambda n: every(n, "offer", lambda _: {"refundability": "unknown"}, GB),
    "penalties_per_offer": lambda n: (
        n | {"penalty": [r for r in n["penalty"] if r["penalty_no"] or r["offer_no"] % 5 == 0]}
    ),
    "unread_share": lambda n: every(n, "search", lambda row: {"rejects": row["offers"]}, GB),
    "price_level_lead_over_090": lambda n: every(n, "offer", lambda row: times(row, 100), GB),
}


def test_a_clean_night_passes_every_check(seasoned, tmp_path):
    _, found = tonight(seasoned, tmp_path, clean_night(6))
    assert failed_checks(found) == set()
    assert {f.outcome for f in found.findings} == {"passed"}


@pytest.mark.parametrize(("check", "fault"), [*ROWS.items(), *DECLARED.items(), *NIGHTS.items()])
def test_a_night_that_breaks_a_check_is_caught_by_it(seasoned, tmp_path, check, fault):
    _, found = tonight(seasoned, tmp_path, fault(clean_night(6)))
    assert check in failed_checks(found)


def test_every_rule_has_a_night_that_breaks_it():
    # A market that is not in the document makes a partition of its own: see below.
    assert {rule.name for rule in rules()} - {"market_unknown"} == set(ROWS)


def test_an_unknown_market_is_caught(lake, monkeypatch):
    monkeypatch.setattr("audited_nights.MARKETS", ("GB", "XX"))
    found = audited(lake, 0, clean_night(0))
    assert "market_unknown" in failed_checks(found, "critical")


def test_planned_cells_are_the_sum_of_the_statuses(lake):
    found = audited(lake, 0, clean_night(0), planned=481)
    assert failed_checks(found, "critical") == {"statuses_add_up"}


def test_a_file_of_another_type_stops_the_audit_there(lake):
    load(lake, 0, clean_night(0))
    place = lake.local(lake.table_file("offer", sweep_id(0), "multi-GB-00001"))
    pq.write_table(pa.table({"total": ["twelve"]}), place)
    found = audit_sweep(settings_of(lake), lake, sweep_id(0), started_at(0))
    assert failed_checks(found) == {"types"}


def test_examples_lead_to_the_raw_answer(lake):
    found = audited(lake, 0, ROWS["board_unknown"](clean_night(0)))
    (failed,) = [f for f in found.findings if f.is_failed]
    assert f"raw/{sweep_id(0)}/multi-GB-000000#0" in failed.examples
    assert "9999" in failed.examples


def test_an_old_sweep_is_told(lake):
    load(lake, 0, clean_night(0))
    found = audit_sweep(settings_of(lake), lake, sweep_id(0), started_at(0) + 3 * DAY)
    assert failed_checks(found, "warning") == {"age_days"}
