"""Checks that follow from declared columns: each column is broken by itself, and only its own check says so."""

from __future__ import annotations

import json
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from nights import filled, started_at

from pipeline.audit.declared import measure_declared, measure_key, measure_types
from pipeline.audit.quarantine import find_violators
from pipeline.audit.rules import CHECKED, measure_rules, rules
from pipeline.domain.tables import DAY, INSTANT, INT, LONG, MONEY, NUMBER, SMALL, TABLES

COLUMNS = [(TABLES[name], column) for name in CHECKED for column in TABLES[name].columns if column.name != "market"]
NUMBERS = {INT, LONG, SMALL, NUMBER, MONEY}
RANGED = [rule for rule in rules() if rule.name.startswith("range_")]


def row_of(table) -> dict[str, object]:
    """A row with a value in each column."""
    usual = {column.name: "x" for column in table.columns if column.type not in NUMBERS | {DAY, INSTANT}}
    usual |= {column.name: column.values[0] for column in table.columns if column.values}
    usual |= {column.name: 1 for column in table.columns if column.type in NUMBERS}
    usual |= {column.name: started_at(0) for column in table.columns if column.type == INSTANT}
    row = filled(table, {}, **usual)
    return {name: True if table.schema.field(name).type == pa.bool_() else value for name, value in row.items()}


@pytest.fixture(scope="module")
def session():
    with duckdb.connect(":memory:") as session:
        session.execute("CREATE SCHEMA sweep_files")
        for name in CHECKED:
            put(session, TABLES[name], [])
        yield session


def put(session, table, rows) -> None:
    schema = pa.schema([field.with_nullable(True) for field in table.schema])
    session.register("rows", pa.Table.from_pylist(rows, schema=schema))
    session.execute(f"CREATE OR REPLACE TABLE sweep_files.{table.name} AS FROM rows")


def broken(session, table) -> dict[str, float]:
    """What is found in a table: violations of rules, and shares above 0."""
    return {measure.check: measure.observed for measure in measure_declared(session, table.name) if measure.observed}


@pytest.mark.parametrize("name", CHECKED)
def test_a_row_in_order_breaks_nothing(session, name):
    put(session, TABLES[name], [row_of(TABLES[name])])
    assert broken(session, TABLES[name]) == {}


@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=lambda each: each.name)
def test_a_missing_value_is_counted_for_its_column_only(session, table, column):
    row = row_of(table)
    put(session, table, [row, row | {column.name: None}])
    found = broken(session, table)
    assert found == {f"null_{column.name}": 1.0 if column.is_required else 0.5}
    severity = {m.check: m.severity for m in measure_declared(session, table.name)}[f"null_{column.name}"]
    is_vital = (table.name, column.name) in {("offer", "total"), ("offer", "currency")}
    assert severity == ("critical" if column.is_required or is_vital else "warning")


@pytest.mark.parametrize(
    ("table", "column"), [(t, c) for t, c in COLUMNS if c.values], ids=lambda each: getattr(each, "name", "")
)
def test_a_value_that_is_not_listed_is_counted(session, table, column):
    put(session, table, [row_of(table) | {column.name: "no known value"}])
    assert broken(session, table) == {f"value_{column.name}": 1.0}


def reasons(session, name, **wrong) -> set[str]:
    """What is said about a row with wrong values, by the declared checks and the ranges of its table."""
    put(session, TABLES["search"], [])
    put(session, TABLES[name], [row_of(TABLES[name]) | wrong])
    said = [row["reason"] for m in measure_declared(session, name) if m.examples for row in json.loads(m.examples)]
    for rule in RANGED:
        if rule.table == name:
            said += [row[-1] for row in session.execute(rule.sql).fetchall()]
    return set(said)


def test_a_declared_check_says_what_is_wrong_in_a_sentence_without_names_of_columns(session):
    assert reasons(session, "offer", currency=None, discount_pct=112.5, total=Decimal("123456789012.5")) == {
        "currency: there is no value",
        "discount percentage: 112.5 is above 100, the highest allowed",
        "total: 123,456,789,012.5 is above 100,000,000,000, the highest allowed",
    }
    assert reasons(session, "penalty", penalty_nights=-2) == {"penalty nights: -2 is below 0, the lowest allowed"}
    assert reasons(session, "cell", status="lost", nights=None) == {
        "status: 'lost' is not a known value",
        "nights: there is no value",
    }


@pytest.mark.parametrize("name", CHECKED)
def test_a_key_that_occurs_twice_is_counted(session, name):
    row = row_of(TABLES[name])
    put(session, TABLES[name], [row])
    assert measure_key(session, name).violations == 0
    put(session, TABLES[name], [row, row])
    assert measure_key(session, name).violations == 1


@pytest.mark.parametrize("rule", RANGED, ids=lambda rule: f"{rule.table}-{rule.name}")
def test_a_value_outside_its_range_breaks_its_rule_only(session, rule, monkeypatch):
    for module in ("rules", "quarantine"):
        monkeypatch.setattr(f"pipeline.audit.{module}.rules", lambda: RANGED)
    for name in CHECKED:
        put(session, TABLES[name], [row_of(TABLES[name])])
    table, column = TABLES[rule.table], rule.name.removeprefix("range_")
    declared = next(each for each in table.columns if each.name == column)
    outside = Decimal(int(2 * declared.highest)) if declared.lowest is None else -1
    put(session, table, [row_of(table), row_of(table) | {column: outside}])
    session.execute("DROP SCHEMA IF EXISTS audit CASCADE; CREATE SCHEMA audit")
    session.execute("CREATE TABLE audit.sweep AS FROM sweep_files.search LIMIT 1")
    find_violators(session)
    failed = [(m.table, m.check, m.observed) for m in measure_rules(session) if m.violations]
    assert failed == [(rule.table, rule.name, 1.0)]


def test_a_discount_above_all_of_the_price_breaks_its_range(session):
    (rule,) = [rule for rule in RANGED if rule.name == "range_discount_pct"]
    put(session, TABLES["offer"], [row_of(TABLES["offer"]) | {"discount_pct": 101}])
    assert session.execute(rule.sql).fetchall()[0][-1] == "discount percentage: 101 is above 100, the highest allowed"


@pytest.mark.parametrize("name", CHECKED)
def test_a_column_of_another_type_is_a_file_that_does_not_fit(tmp_path, name):
    import pyarrow.parquet as pq

    table = TABLES[name]
    right, wrong = tmp_path / "right.parquet", tmp_path / "wrong.parquet"
    pq.write_table(pa.Table.from_pylist([row_of(table)], schema=table.schema), right, store_schema=False)
    pq.write_table(pa.table({"market": ["GB"]}), wrong)
    assert [m.violations for m in measure_types([(name, right)])] == [0] * len(CHECKED)
    assert {m.table for m in measure_types([(name, right), (name, wrong)]) if m.violations} == {name}
