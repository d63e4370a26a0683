"""Which rows a message is about."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.lake import Lake
from pipeline.notify.alert_rules import Rule
from pipeline.notify.selected import placed, without_muted

# Cases of the market GB and of its properties 1 and 3, of which 3 deviates from the market, and two mark-ups of GB.
CASES = [
    ("of-market", "muted", None, "market_disparity", None, "market"),
    ("of-1", "part_of", "of-market", "market_disparity", 1, "property"),
    ("of-3", "new", None, "market_disparity", 3, "property"),
    ("in-pounds", "muted", None, "fx_markup", 1, "property"),
    ("in-dollars", "open", None, "fx_markup", 1, "property"),
]
FLAGS = [
    ("d-1", "of-market", True, None), ("d-1", "of-1", True, "market"), ("d-3", "of-market", False, None),
    ("d-3", "of-3", True, None), ("fx-GBP", "in-pounds", True, None), ("fx-USD", "in-dollars", True, None),
]  # fmt: skip
ROWS = [
    {"flag_id": flag_id, "rule": rule, "property_id": property_id, "market": "GB"}
    for flag_id, rule, property_id in (
        ("d-1", "market_disparity", 1), ("d-3", "market_disparity", 3), ("fx-GBP", "fx_markup", 1),
        ("fx-USD", "fx_markup", 1),
    )
]  # fmt: skip


@pytest.fixture
def lake(tmp_path):
    made = Lake(str(tmp_path / "lake"))
    made.published_file.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(made.published_file)) as session:
        session.execute("CREATE SCHEMA mart; CREATE SCHEMA report")
        session.execute(
            "CREATE TABLE report.finding_case (case_id VARCHAR, status VARCHAR, part_of_case_id VARCHAR, rule VARCHAR, "
            "property_id BIGINT, scope VARCHAR, market VARCHAR DEFAULT 'GB')"
        )
        session.execute(
            "CREATE TABLE mart.case_flag (flag_id VARCHAR, case_id VARCHAR, is_open BOOLEAN, wider_scope VARCHAR, "
            "rule VARCHAR)"
        )
        session.executemany("INSERT INTO report.finding_case VALUES (?, ?, ?, ?, ?, ?, 'GB')", CASES)
        session.executemany(
            "INSERT INTO mart.case_flag VALUES ($1, $2, $3, $4, CASE WHEN $1 LIKE 'fx%' THEN 'fx_markup' END)", FLAGS
        )
    return made


def test_a_muted_case_mutes_its_own_findings_not_those_of_a_case_beside_it(lake):
    heard = without_muted(lake, Rule(name="flags", relation="report.flag", who=("me",)), ROWS)
    assert [row["flag_id"] for row in heard] == ["d-3", "fx-USD"]


def test_a_muted_case_mutes_its_findings_in_whichever_relation_a_rule_reads_them(lake):
    heard = without_muted(lake, Rule(name="pairs", relation="report.market_disparity", who=("me",)), ROWS)
    assert [row["flag_id"] for row in heard] == ["d-3", "fx-USD"]
    rows = [{"property_id": 1, "flag_id": None}, *ROWS]
    rule = Rule(name="pairs", relation="mart.case_flag", key=("property_id", "market"), who=("me",))
    assert [row["flag_id"] for row in without_muted(lake, rule, rows)] == [None, "d-3", "fx-USD"]


def test_a_muted_case_is_left_out_of_a_rule_with_another_key_than_its_id(lake):
    rows = [{"case_id": case_id, "status": status, "property_id": 1} for case_id, status, *_ in CASES]
    rule = Rule(name="cases", relation="report.finding_case", key=("property_id",), who=("me",))
    assert [row["case_id"] for row in without_muted(lake, rule, rows)] == ["of-1", "of-3", "in-dollars"]


def test_a_muted_case_is_left_out_whether_or_not_the_rule_asks_for_its_status(lake):
    rows = [{"case_id": case_id, "status": status} for case_id, status, *_ in CASES]
    rule = Rule(name="cases", relation="report.finding_case", key=("case_id",), who=("me",))
    assert [row["case_id"] for row in without_muted(lake, rule, rows)] == ["of-1", "of-3", "in-dollars"]


def test_a_finding_is_shown_on_the_page_of_its_own_case(lake):
    """Of several mark-ups of a property, each between its own currencies."""
    shown = placed(lake, ROWS, {case_id: f"{case_id}.html" for case_id, *_ in CASES})
    assert [row["case_page"] for row in shown] == ["of-market.html", "of-3.html", "in-pounds.html", "in-dollars.html"]
