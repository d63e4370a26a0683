"""Which rows a message is about."""

from __future__ import annotations

import duckdb
import pytest

from pipeline.lake import Lake
from pipeline.notify.alert_rules import Rule
from pipeline.notify.selected import without_muted

# Cases of the market GB and of its properties 1 and 3, of which 3 deviates from the market, and two mark-ups of GB.
CASES = [("of-market", "muted"), ("of-1", "part_of"), ("of-3", "new"), ("in-pounds", "muted"), ("in-dollars", "open")]
FLAGS = [
    ("d-1", "of-market", True), ("d-1", "of-1", True), ("d-3", "of-market", False), ("d-3", "of-3", True),
    ("fx-GBP", "in-pounds", True), ("fx-USD", "in-dollars", True),
]  # fmt: skip


@pytest.fixture
def lake(tmp_path):
    made = Lake(str(tmp_path / "lake"))
    made.published_file.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(str(made.published_file)) as session:
        session.execute("CREATE SCHEMA mart; CREATE SCHEMA report")
        session.execute("CREATE TABLE report.finding_case (case_id VARCHAR, status VARCHAR)")
        session.execute("CREATE TABLE mart.case_flag (flag_id VARCHAR, case_id VARCHAR, is_open BOOLEAN)")
        session.executemany("INSERT INTO report.finding_case VALUES (?, ?)", CASES)
        session.executemany("INSERT INTO mart.case_flag VALUES (?, ?, ?)", FLAGS)
    return made


def test_a_muted_case_mutes_its_own_findings_not_those_of_a_case_beside_it(lake):
    rows = [{"flag_id": flag_id} for flag_id in ("d-1", "d-3", "fx-GBP", "fx-USD")]
    heard = without_muted(lake, Rule(name="flags", relation="report.flag", who=("me",)), rows)
    assert [row["flag_id"] for row in heard] == ["d-3", "fx-USD"]


def test_a_muted_case_is_left_out_whether_or_not_the_rule_asks_for_its_status(lake):
    rows = [{"case_id": case_id, "status": status} for case_id, status in CASES]
    rule = Rule(name="cases", relation="report.finding_case", key=("case_id",), who=("me",))
    assert [row["case_id"] for row in without_muted(lake, rule, rows)] == ["of-1", "of-3", "in-dollars"]
