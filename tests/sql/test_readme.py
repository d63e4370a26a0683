"""`sql/README.md` and what rules declare agree with the files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from readme import FILE, MACROS, macros_of_rules, written

from pipeline.audit.domain_measures import declared_measures
from pipeline.audit.rules import declared_rules
from pipeline.domain.tables import FINDING_COLUMNS, FLAG_ID
from pipeline.lake.relations import (
    detectors,
    finding_rules,
    night_relations,
    read_by,
    relation,
    relations,
    rule_versions,
    size_unit,
    sql_folder,
    views,
)
from pipeline.publish.catalogue import describe
from pipeline.report.words import unit_said

SCHEMAS = ("audit", "mart", "measure", "report", "staging")


def test_the_page_shows_the_relations_as_they_are():
    text = FILE.read_text()
    assert text == written(text), "make sql-readme"


@pytest.mark.parametrize(("name", "text"), macros_of_rules().items())
def test_a_macro_of_rules_says_what_they_declare(name, text):
    assert (MACROS / f"{name}.sql").read_text() == text, "make sql-readme"


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_first_line_says_what_a_row_is(schema):
    assert [
        made.full_name for made in relations(schema) if not re.match(r"(One|The one) row\b.*[.?]$", made.grain)
    ] == []


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_meaning_of_a_column_is_one_line_since_that_is_all_that_is_published(schema):
    cut = [
        f"{made.full_name}.{column}: {meaning}"
        for made in relations(schema)
        for column, meaning in made.meanings.items()
        if not meaning.endswith(".")
    ]
    assert cut == []


def test_a_column_without_a_meaning_is_named_with_the_line_to_add():
    with duckdb.connect() as session:
        session.execute("CREATE SCHEMA report; CREATE TABLE report.freshness (mood INTEGER)")
        with pytest.raises(ValueError, match=r"sql/report/freshness\.sql: add a comment `-- mood: <its meaning>\.`"):
            describe(session)


def test_a_view_comes_after_those_that_it_reads():
    names = [view.full_name for view in views()]
    assert (
        names.index("mart.comparable_offer")
        < names.index("mart.market_parity")
        < names.index("report.market_disparity")
    )
    assert len(names) == len(set(names)) == len(relations("mart")) + len(relations("report"))


def test_every_rule_is_declared_beside_its_relation():
    """And a relation that raises findings has a rule."""
    pairs = {
        "sql/audit/rules.toml": (set(declared_rules()), {made.name for made in relations("audit")}),
        "sql/report/rules.toml": (
            {rule.relation for rule in finding_rules().values()},
            {made.name for made in relations("report") if "mart.flag_id(" in made.sql},
        ),
        "sql/measure/measures.toml": (
            set(declared_measures()),
            {made.name for made in relations("measure") if "__of" in made.sql},
        ),
    }
    for file, (declared, made) in pairs.items():
        assert made - declared == set(), f"declare it in {file}"
        assert declared - made == set(), f"{file} declares what is gone"


def test_a_detector_states_the_version_of_its_rules_as_a_number():
    assert set(detectors()) - rule_versions().keys() == set(), "write it as `1 AS rule_version`, from where it is read"


@pytest.mark.parametrize("rule", finding_rules().values(), ids=lambda rule: rule.name)
def test_a_rule_declares_the_subject_that_its_key_is_made_of(rule):
    sql = relation("report", rule.relation).sql
    assert f"'{rule.name}'" in sql, "a rule has the name that rules.toml declares"
    subjects = re.findall(r"mart\.subject_key\(\s*(?:found\.)?rule,\s*(.*?)\)\s*AS subject_key", sql, flags=re.DOTALL)
    assert len(subjects) == 1, "write mart.subject_key(rule, ...) AS subject_key, so that its name stands once"
    named = re.findall(r"\b\w+\.(\w+)\b(?!\()", subjects[0])
    assert list(rule.subject) == named, "`subject` in rules.toml names other columns than mart.subject_key is given"


def test_a_step_of_a_night_comes_after_those_that_it_reads():
    """What a step reads is found in its text; here DuckDB says it."""
    steps = night_relations(*(made.name for made in relations("staging")))
    assert sorted(steps) == sorted(made.name for made in relations("staging"))
    read = read_by(relations("staging"))
    for place, name in enumerate(steps):
        own = {each.removeprefix("night.") for each in read[f"staging.{name}"] if each.startswith("night.")}
        assert own & set(steps) <= set(steps[:place]), name


@pytest.mark.parametrize("rule", finding_rules().values(), ids=lambda rule: rule.name)
def test_sizes_are_written_in_the_unit_that_their_rule_declares(rule):
    with duckdb.connect() as session:
        session.execute(f"CREATE SCHEMA mart; {(sql_folder() / 'macro' / 'size_unit.sql').read_text()}")
        query = f"SELECT mart.size_unit(rule), {size_unit('rule')} FROM (SELECT $rule AS rule)"  # noqa: S608 - our own words
        written = session.execute(query, {"rule": rule.name}).fetchone()
    assert written == (rule.unit, rule.unit)
    assert unit_said(rule.name) == (rule.unit if rule.unit.startswith("%") else f" {rule.unit}")
    meaning = relation("report", rule.relation).meanings["size_pct"].lower()
    # That relation is of several rules.
    if rule.relation != "promotion_arithmetic":
        assert (rule.unit == "percentage points") == ("percentage points" in meaning)
    assert (rule.unit == "% of the total") == ("percent of total" in meaning)


def test_a_rule_names_a_report_that_lists_its_findings_or_none():
    assert {rule.page for rule in finding_rules().values() if rule.makes == "flags"} == {"", "parity", "promotions"}
    assert {rule.page for rule in finding_rules().values() if rule.makes != "flags"} == {""}


@pytest.mark.parametrize("rule", finding_rules().values(), ids=lambda rule: rule.name)
def test_a_finding_has_the_columns_of_all_findings(golden, rule):
    made = relation("report", rule.relation)
    golden.rows(made)
    found = golden.session.execute(f"DESCRIBE {made.sql}").fetchall()
    wanted = {column.name for column in (FLAG_ID, *FINDING_COLUMNS)}
    assert wanted - {name for name, *_ in found} == set(), "columns of every finding: see sql/README.md"


def test_evidence_keys_and_severity_have_one_spelling():
    for path in sql_folder().glob("*/*.sql"):
        if path.parent.name != "macro":
            text = path.read_text()
            assert "'role':" not in text, path
            assert "role :=" not in text, path
            assert "md5_number" not in text, path
            assert not re.search(r"'high'\s+WHEN .*>=", text), path
