"""For each check, a night that breaks it and nothing else; and a clean night that passes them all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audited_nights import (
    Night,
    audited,
    clean_night,
    drift,
    every,
    failed_checks,
    first,
    load,
    passed,
    reject,
    settings_of,
)
from nights import started_at, sweep_id

from pipeline.audit.history import Limits, Seen, bounds
from pipeline.audit.results import Audit
from pipeline.audit.rules import rules
from pipeline.domain.errors import LakeError
from pipeline.lake import Lake
from pipeline.lake.database import rows_of
from pipeline.lake.relations import relation
from pipeline.night.gate import audit_sweep
from pipeline.publish.state import write_macros

GB = "GB"
DAY = timedelta(days=1)
# A property that has offers in the first search of nights 5 and 6.
COMMON = min(
    set.intersection(
        *({row["property_id"] for row in clean_night(night)["offer"] if row["search_id"] == 1} for night in (5, 6))
    )
)


class Fault(NamedTuple):
    """A change to a clean night. `also` are checks that must fail with it, `of_sweep` goes to `load`."""

    do: Callable[[Night], Night]
    also: frozenset[str]
    of_sweep: dict[str, object]


def fault(do: Callable[[Night], Night], *also: str, **of_sweep: object) -> Fault:
    return Fault(do, frozenset(also), of_sweep)


def added(rows: Night, table: str, **values: object) -> Night:
    """The night with a copy of a table's first row, changed."""
    return rows | {table: [*rows[table], rows[table][0] | values]}


def dearer(rows: Night, factor: str, is_meant: Callable[[dict[str, object]], bool]) -> Night:
    """The night with the money of some offers of GB multiplied."""

    def change(row):
        money = ("total", "pre_promo_total", "floor")
        return {name: row[name] and row[name] * Decimal(factor) for name in money} if is_meant(row) else {}

    return every(rows, "offer", change, GB)


def is_one_cell(row: dict[str, object]) -> bool:
    """Whether an offer is one of a cell that was on sale on nights 5 and 6 alike."""
    return (row["property_id"], row["search_id"]) == (COMMON, 1)


def instead(rows: Night, status: str, *of: str) -> Night:
    """The night with cells of GB whose status is not one of these."""
    return every(rows, "cell", lambda row: {"status": status} if row["status"] in of else {}, GB)


def none_of(rows: Night, table: str, column: str) -> Night:
    return every(rows, table, lambda _: {column: None}, GB)


def of_first_search(rows: Night, **values: object) -> Night:
    """The night with the first search changed, and what belongs to it."""
    for table in ("search", "offer", "cell"):
        rows = every(rows, table, lambda row: values if row["search_id"] == 1 else {})
    return rows


def many(rows: Night, **values: object) -> Night:
    """The night with the first offers of each search of GB changed: more than chance explains."""
    return every(rows, "offer", lambda row: values if row["offer_no"] < 3 else {}, GB)


def same_prices(rows: Night) -> Night:
    """The night with the answers of the night before in GB."""
    last = clean_night(5)
    before = {table: [row for row in last[table] if row["market"] == GB] for table in last}
    offers = {row["search_id"]: {"offers": row["offers"]} for row in before["search"]}
    for table in ("offer", "penalty", "promotion", "cell"):
        rows = rows | {table: before[table] + [row for row in rows[table] if row["market"] != GB]}
    return every(rows, "search", lambda row: offers[row["search_id"]], GB)


def same_bodies(rows: Night) -> Night:
    bodies = {row["search_id"]: {"body_sha256": row["body_sha256"]} for row in clean_night(5)["search"]}
    return every(rows, "search", lambda row: bodies[row["search_id"]], GB)


def unread(rows: Night) -> Night:
    """The night with thirty parts of each answer of GB that could not be read."""
    more = [reject(row["search_id"], 1 + n, GB) for row in rows["search"] if row["market"] == GB for n in range(30)]
    return every(rows, "search", lambda _: {"rejects": 31}, GB) | {"reject": rows["reject"] + more}


def outage(rows: Night) -> Night:
    """The night in which five of the eight searches of GB failed."""
    failed = {row["search_id"] for row in rows["search"] if row["market"] == GB and row["search_id"] > 3 * 256}
    lost = ("offer", "penalty", "promotion", "reject")
    rows = rows | {name: [row for row in rows[name] if row["search_id"] not in failed] for name in lost}
    rows = every(rows, "cell", lambda row: {"status": "failed", "offers": 0} if row["search_id"] in failed else {}, GB)
    nothing = {"outcome": "failed", "offers": 0, "rejects": 0, "body_sha256": None}
    return every(rows, "search", lambda row: nothing if row["search_id"] in failed else {}, GB)


def unanswered(rows: Night, status: str) -> Night:
    """The night in which no search was answered."""
    nothing = {"outcome": "failed", "offers": 0, "rejects": 0, "body_sha256": None}
    rows = rows | {name: [] for name in ("offer", "penalty", "promotion", "reject")}
    rows = every(rows, "search", lambda _: nothing)
    return every(rows, "cell", lambda _: {"status": status, "offers": 0})


def fewer_stays(rows: Night) -> Night:
    """The night with half of the searches of GB, as planned."""
    return {
        table: [row for row in held if row["market"] != GB or row.get("search_id", 1) <= 4 * 256]
        for table, held in rows.items()
    }


def second(rows: Night, table: str, **values: object) -> Night:
    head, row, *rest = rows[table]
    return rows | {table: [head, row | values, *rest]}


def without(rows: Night, table: str) -> Night:
    """The night with no row of a table in GB."""
    return rows | {table: [row for row in rows[table] if row["market"] != GB]}


def unsold(rows: Night) -> Night:
    """The night with offers of one property only in GB, and cells that say otherwise."""
    rows = rows | {
        table: [row for row in rows[table] if row["market"] != GB or row["property_id"] == COMMON]
        for table in ("offer", "penalty", "promotion")
    }
    left = Counter(row["search_id"] for row in rows["offer"])
    return every(rows, "search", lambda row: {"offers": left[row["search_id"]]}, GB)


def silent(rows: Night, *markets: str) -> Night:
    """The night in which the supplier answers each search of some markets with "no offer"."""
    lost = ("offer", "penalty", "promotion", "reject")
    rows = rows | {name: [row for row in rows[name] if row["market"] not in markets] for name in lost}
    for market in markets:
        rows = every(rows, "cell", lambda _: {"status": "no_offer", "code": 1023, "offers": 0}, market)
        rows = every(rows, "search", lambda _: {"offers": 0, "rejects": 0, "body_sha256": "5" * 64}, market)
    return rows


def promoted_thrice(rows: Night) -> Night:
    return rows | {"promotion": [row | {"promotion_no": n} for row in rows["promotion"] for n in range(3)]}


ROWS = {
    "total_not_positive": fault(lambda n: first(n, "offer", total=Decimal(0), discount_pct=None)),
    "currency_unknown": fault(lambda n: first(n, "offer", currency="XXQ"), "currency_not_as_asked"),
    "currency_not_as_asked": fault(lambda n: first(n, "offer", currency="USD")),
    "total_above_pre_promo_total": fault(lambda n: first(n, "offer", pre_promo_total=Decimal(1))),
    "discount_not_as_stated": fault(lambda n: many(n, discount_pct=77.0)),
    "available_rooms_implausible": fault(lambda n: many(n, available_rooms=2147483647)),
    "board_unknown": fault(lambda n: first(n, "offer", board_id=9999)),
    "offer_without_search": fault(lambda n: first(n, "offer", nights=5)),
    "penalty_without_offer": fault(lambda n: added(n, "penalty", offer_no=99_999)),
    "promotion_without_offer": fault(lambda n: added(n, "promotion", offer_no=99_999)),
    "penalty_pct_out_of_range": fault(lambda n: second(n, "penalty", penalty_pct=250.0)),
    "penalty_dates_reversed": fault(lambda n: first(n, "penalty", start_at=started_at(50), end_at=started_at(49))),
    "penalty_order_reversed": fault(lambda n: first(n, "penalty", window_hours=12, penalty_pct=10.0)),
    "offers_not_balanced": fault(lambda n: first(n, "search", offers=n["search"][0]["offers"] - 1)),
    "price_jump": fault(lambda n: dearer(n, "1.5", is_one_cell)),
    "floor_vanished": fault(
        lambda n: every(n, "offer", lambda row: {"floor": None} if row["property_id"] == 1 else {}, GB)
    ),
    "drift_new": fault(lambda n: n | {"drift": [*n["drift"], drift(GB, "$.new")]}),
    # All offers of such a search are taken, and that is more of a market than is tolerated.
    "stay_not_ahead": fault(lambda n: of_first_search(n, check_in=started_at(6).date()), "quarantined_share"),
    "answer_outside_sweep": fault(
        lambda n: first(n, "search", started_at=started_at(2), ended_at=started_at(2)), "quarantined_share"
    ),
    "range_discount_pct": fault(lambda n: first(n, "offer", discount_pct=-3.0, pre_promo_total=None)),
    "range_floor": fault(lambda n: first(n, "offer", floor=Decimal(-1))),
}
DECLARED = {
    "key": fault(lambda n: added(n, "penalty")),
    "value_refundability": fault(lambda n: first(n, "offer", refundability="perhaps")),
    "null_policy_key": fault(lambda n: first(n, "offer", policy_key=None)),
    "null_currency": fault(lambda n: none_of(n, "offer", "currency")),
    "null_total": fault(
        lambda n: every(n, "offer", lambda row: {"total": None} if row["offer_no"] % 3 == 1 else {}, GB)
    ),
    "null_board_id": fault(lambda n: none_of(n, "offer", "board_id")),
}
SWEEPS = {
    "statuses_add_up": fault(lambda n: n, planned=481),
    "cells_as_planned": fault(lambda n: n | {"cell": n["cell"][1:]}, planned=479),
    "market_as_planned": fault(
        lambda n: every(n, "cell", lambda row: {"search_id": 257} if row["search_id"] == 1 else {})
    ),
    "quarantined_share": fault(
        lambda n: every(n, "offer", lambda row: {"currency": "USD"} if row["offer_no"] < 2 else {}, GB),
        "currency_not_as_asked",
    ),
}
NIGHTS = {
    "answered_share": fault(lambda n: instead(n, "rejected", "absent", "no_offer"), "absent_share"),
    "failed_share": fault(lambda n: instead(n, "failed", "rejected")),
    "swept_share": fault(lambda n: instead(n, "not_swept", "rejected")),
    "absent_share": fault(lambda n: instead(n, "absent", "rejected")),
    "no_offer_share": fault(lambda n: instead(n, "no_offer", "rejected")),
    "offered_share": fault(lambda n: instead(n, "no_offer", "offered"), "no_offer_share"),
    "offers_per_cell": fault(lambda n: every(n, "cell", lambda row: {"offers": row["offers"] * 5}, GB)),
    "planned_cells": fault(fewer_stays, stays={GB: 4}),
    "floor_share": fault(lambda n: none_of(n, "offer", "floor"), "floor_vanished", "null_floor"),
    "promoted_share": fault(lambda n: every(n, "offer", lambda _: {"promotion_key": 0}, GB)),
    "refundable_share": fault(lambda n: every(n, "offer", lambda _: {"refundability": "unknown"}, GB)),
    "penalties_per_offer": fault(lambda n: n | {"penalty": [r for r in n["penalty"] if r["offer_no"] % 5 == 0]}),
    "penalty_pct_mean": fault(
        lambda n: every(n, "penalty", lambda row: {"penalty_pct": 99.0} if row["penalty_no"] == 0 else {}, GB)
    ),
    "promotions_per_offer": fault(promoted_thrice),
    "priced_share_lead_over_090": fault(unsold),
    "unread_share": fault(unread),
    "drift_kinds": fault(lambda n: n | {"drift": [drift(GB, f"$.{letter}") for letter in "abcdefghijkl"]}, "drift_new"),
    "failed_search_share": fault(lambda n: every(n, "search", lambda _: {"outcome": "failed"}, GB)),
    "repeated_body_share": fault(same_bodies),
    "price_level_lead_over_090": fault(
        lambda n: dearer(n, "100", lambda _: True), "largest_move_lead_over_090", "price_jump"
    ),
    "price_moved_share_lead_over_090": fault(same_prices),
    "largest_move_lead_over_090": fault(lambda n: dearer(n, "6", is_one_cell), "price_jump"),
}
FAULTS = ROWS | DECLARED | SWEEPS | NIGHTS


@pytest.fixture(scope="module")
def seasoned(tmp_path_factory) -> Lake:
    """A lake of six clean, published nights; each test writes night 6 again."""
    lake = Lake(str(tmp_path_factory.mktemp("seasoned") / "lake"))
    for night in range(6):
        assert audited(lake, night, clean_night(night)).is_passed
        passed(lake, night)
    return lake


def tonight(seasoned: Lake, tmp_path, rows: Night, **of_sweep: object) -> tuple[Lake, Audit]:
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
    return lake, audited(lake, 6, rows, **of_sweep)


@pytest.mark.slow
def test_a_clean_night_passes_every_check(seasoned, tmp_path):
    _, found = tonight(seasoned, tmp_path, clean_night(6))
    assert failed_checks(found) == set()
    assert {f.outcome for f in found.findings} == {"passed"}


@pytest.mark.slow
@pytest.mark.parametrize("check", FAULTS)
def test_a_night_that_breaks_a_check_is_caught_by_it_and_by_no_other(seasoned, tmp_path, check):
    fault = FAULTS[check]
    _, found = tonight(seasoned, tmp_path, fault.do(clean_night(6)), **fault.of_sweep)
    assert failed_checks(found) == {check} | fault.also


@pytest.mark.slow
def test_an_outage_that_is_counted_as_failed_cells_withholds_nothing(seasoned, tmp_path):
    _, found = tonight(seasoned, tmp_path, outage(clean_night(6)))
    assert failed_checks(found) == {"failed_share"}
    assert found.is_passed


@pytest.mark.slow
def test_a_market_that_is_answered_with_no_offer_throughout_is_a_warning_and_all_of_them_withhold(seasoned, tmp_path):
    _, found = tonight(seasoned, tmp_path / "one", silent(clean_night(6), GB))
    failed = {(finding.market, finding.check_name) for finding in found.findings if finding.is_failed}
    assert failed >= {(GB, "offered_share"), (GB, "no_offer_share"), (GB, "priced_share_lead_over_090")}
    assert {market for market, _ in failed} == {GB}
    assert found.is_passed
    _, found = tonight(
        seasoned, tmp_path / "all", silent(clean_night(6), *{row["market"] for row in clean_night(6)["cell"]})
    )
    assert not found.is_passed


@pytest.mark.slow
def test_a_market_that_is_missing_from_all_answers_withholds_the_night(seasoned, tmp_path):
    rows = every(silent(clean_night(6), GB), "cell", lambda _: {"status": "absent", "code": None}, GB)
    _, found = tonight(seasoned, tmp_path, rows)
    assert not found.is_passed


@pytest.mark.slow
def test_four_of_thirty_properties_that_state_no_floors_any_more_are_no_lost_column(seasoned, tmp_path):
    """Floors are a habit of a property: each counts once, however many offers it has."""
    quiet = every(clean_night(6), "offer", lambda row: {"floor": None} if row["property_id"] <= 4 else {}, GB)
    _, found = tonight(seasoned, tmp_path, quiet)
    assert "floor_share" not in failed_checks(found)


def test_a_stay_counts_once_for_chance_in_however_many_currencies_and_product_types_it_is_asked():
    """Five of sixty properties that close for a season take twelve cells each with them: no reason to withhold."""
    with duckdb.connect() as session:
        session.execute("CREATE SCHEMA sweep_files; CREATE SCHEMA audit; CREATE SCHEMA mart")
        write_macros(session)
        session.execute(
            """
            CREATE TABLE sweep_files.cell AS
            SELECT 'SE' AS market, id AS property_id, stay.check_in, currency, product_type, 8 AS offers,
                CASE WHEN id <= 50 THEN 'offered' ELSE 'absent' END AS status
            FROM range(1, 61) AS property (id), (SELECT unnest(['05-20', '06-10', '07-15']) AS check_in) AS stay,
                (SELECT unnest(['SEK', 'EUR']) AS currency), (SELECT unnest(['Hotel', 'Package']) AS product_type)
            """
        )
        session.execute(
            """
            CREATE TABLE sweep_files.search_lead AS
            SELECT 'SE' AS market, '031_to_090' AS lead, 'multi' AS operation, product_type, check_in, 2 AS nights,
                '2' AS party, currency AS currency_asked, 'answered' AS outcome, count(*) AS properties
            FROM sweep_files.cell GROUP BY ALL
            """
        )
        session.execute(
            """
            CREATE TABLE audit.cell_price AS
            SELECT market, '031_to_090' AS lead, property_id, 100 AS total, 2 AS nights
            FROM sweep_files.cell WHERE status = 'offered'
            """
        )
        (cell,) = rows_of(session.execute(relation("measure", "cell").sql))
        (price,) = rows_of(session.execute(relation("measure", "price_level").sql))
    for measured, name in ((cell, "offered_share"), (price, "priced_share")):
        assert measured[name] == pytest.approx(50 / 60)
        # The count of distinct values is estimated.
        assert measured[f"{name}__of"] == pytest.approx(180, rel=0.1)
        lowest, _ = bounds([Seen(55 / 60)] * 6, "share", measured[f"{name}__of"], Limits().deviations)
        assert lowest < measured[name] - 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "check"), [("penalty", "penalties_per_offer"), ("promotion", "promotions_per_offer")]
)
def test_what_a_market_has_lost_altogether_is_counted_as_none(seasoned, tmp_path, table, check):
    _, found = tonight(seasoned, tmp_path, without(clean_night(6), table))
    (failed,) = [finding for finding in found.findings if finding.is_failed]
    assert (failed.market, failed.check_name, failed.observed) == (GB, check, 0)
    assert found.is_passed == (table == "promotion")


def test_every_check_has_a_night_that_breaks_it(lake):
    made = {finding.check_name for finding in audited(lake, 0, clean_night(0)).findings} | {r.name for r in rules()}
    # Those that follow from a declared column are broken column by column in test_declared.
    named = {name for name in made if not name.startswith(("null_", "value_", "range_"))}
    # An unknown market makes a partition of its own, and the others need no history: all see below. Prices move from
    # one published night to the next, so a first night has none.
    below = {"market_unknown", "types", "age_days", "answered_cells"}
    moved = {"price_moved_share_lead_over_090", "largest_move_lead_over_090"}
    families = {name for name in FAULTS if name.startswith(("null_", "value_", "range_"))}
    assert named | moved == set(FAULTS) - families | below


def test_an_unknown_market_is_caught(lake, monkeypatch):
    monkeypatch.setattr("audited_nights.MARKETS", ("GB", "XX"))
    found = audited(lake, 0, clean_night(0))
    assert "market_unknown" in failed_checks(found, "critical")


@pytest.mark.parametrize("status", ["failed", "not_swept", "rejected"])
def test_a_night_without_any_answer_is_withheld_however_its_cells_ended(lake, status):
    found = audited(lake, 0, unanswered(clean_night(0), status))
    assert failed_checks(found, "critical") == {"answered_cells"}
    some = unanswered(clean_night(1), status)
    some["cell"][0] |= {"status": "no_offer", "code": 1023}
    assert audited(lake, 1, some).is_passed


def test_a_file_of_another_type_stops_the_audit_there(lake):
    load(lake, 0, clean_night(0))
    place = lake.local(lake.table_file("offer", sweep_id(0), "multi-GB-00001"))
    pq.write_table(pa.table({"total": ["twelve"]}), place)
    found = audit_sweep(settings_of(lake), lake, sweep_id(0), started_at(0))
    assert failed_checks(found) == {"types"}
    (failed,) = [finding for finding in found.findings if finding.is_failed]
    assert "nightaudit rebuild" in failed.meaning
    assert "has no column" in failed.examples


def test_a_night_before_of_another_version_is_reported_with_the_way_out(lake):
    audited(lake, 0, clean_night(0))
    passed(lake, 0)
    place = lake.local(lake.table_file("offer", sweep_id(0), "multi-GB-00000"))
    pq.write_table(pq.read_table(place).drop_columns(["rate_type"]), place)
    load(lake, 1, clean_night(1))
    with pytest.raises(LakeError, match=r"another version of nightaudit: .* has no column rate_type") as reported:
        audit_sweep(settings_of(lake), lake, sweep_id(1), started_at(1))
    assert "nightaudit rebuild" in reported.value.hint


def test_examples_lead_to_the_raw_answer(lake):
    found = audited(lake, 0, ROWS["board_unknown"].do(clean_night(0)))
    (failed,) = [f for f in found.findings if f.is_failed]
    assert f"raw/{sweep_id(0)}/multi-GB-000000#0" in failed.examples
    assert "9999" in failed.examples


@pytest.mark.parametrize("check", ["key", "value_refundability", "null_policy_key", "null_total"])
def test_examples_of_declared_checks_lead_to_the_raw_answer(lake, check):
    found = audited(lake, 0, DECLARED[check].do(clean_night(0)))
    (failed,) = [
        f for f in found.findings if f.check_name == check and f.table_name in {"offer", "penalty"} and f.examples
    ]
    examples = json.loads(failed.examples)
    assert 1 <= len(examples) <= 3
    assert all(example["raw_address"].startswith(f"raw/{sweep_id(0)}/multi-GB-") for example in examples)
    assert failed.violations >= len(examples) or failed.basis == "history"


def test_a_key_twice_counts_each_and_cells_too_many_are_not_a_negative_number(lake):
    rows = clean_night(0)
    found = audited(lake, 0, rows | {"cell": rows["cell"] + rows["cell"][:80]})
    by_check = {f.check_name: f for f in found.findings if f.is_failed and f.table_name == "cell"}
    assert by_check["key"].violations == 80
    assert (by_check["cells_as_planned"].observed, by_check["cells_as_planned"].violations) == (80, 80)
    assert by_check["cells_as_planned"].meaning == "cells that were not planned"


def test_a_cause_quotes_the_rows_of_all_its_markets(lake):
    found = audited(lake, 0, every(clean_night(0), "search", lambda row: {"offers": row["offers"] + 1}))
    (cause,) = found.causes("critical")
    assert cause.line.endswith("; 16 rows")


@pytest.mark.slow
def test_what_a_supplier_always_does_is_reported_only_when_it_gets_more(tmp_path):
    lake = Lake(str(tmp_path / "lake"))
    for night in range(6):
        found = audited(lake, night, first(clean_night(night), "offer", available_rooms=2147483647))
        assert failed_checks(found) == set()
        passed(lake, night)
    assert failed_checks(audited(lake, 6, many(clean_night(6), available_rooms=2147483647))) == {
        "available_rooms_implausible"
    }


def test_an_old_sweep_is_reported(lake):
    load(lake, 0, clean_night(0))
    found = audit_sweep(settings_of(lake), lake, sweep_id(0), started_at(0) + 3 * DAY)
    assert failed_checks(found, "warning") == {"age_days"}
