"""Each relation: given tables, expected tables."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pytest
import yaml
from nights import started_at, sweep_id

from pipeline.audit.domain_measures import declared_measures
from pipeline.audit.rules import declared_rules
from pipeline.domain.search import ANSWERED, STATUSES
from pipeline.lake.relations import relation, relations, sql_folder

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*/*/*.yaml"))
# Relations that readers query, in sessions of any time zone.
READ = ("mart", "report", "page")
NIGHT = re.compile(r"night (-?\d+)")
# Relations whose tables have one row each.
ONE_ROW_IN = {"mart/reference_market": "the settings, and what an earlier night has chosen"}


def understood(value):
    """`night 3` is the start of that night's sweep, `sweep 3` its id."""
    if isinstance(value, list):
        return [understood(item) for item in value]
    if isinstance(value, dict):
        return {key: understood(part) for key, part in value.items()}
    if isinstance(value, str) and (found := NIGHT.fullmatch(value)):
        return started_at(int(found[1]))
    if isinstance(value, str) and (found := re.fullmatch(r"sweep (\d+)", value)):
        return sweep_id(int(found[1]))
    return value


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(HERE).with_suffix("")))
def test_the_rows_are_those_expected(golden, path):
    expected = expected_of(golden, path)
    made = relation(*path.parts[-3:-1])
    if difference := differs(golden, expected, made):
        pytest.fail(difference, pytrace=False)
    if path.parts[-3] in READ:
        golden.session.execute("SET TimeZone = 'America/New_York'")
        # The rows do not depend on the plan either.
        golden.session.execute("PRAGMA disable_optimizer")
        try:
            difference = differs(golden, expected, made)
        finally:
            golden.session.execute("SET TimeZone = 'UTC'")
            golden.session.execute("PRAGMA enable_optimizer")
        if difference:
            pytest.fail(f"In New York's time zone, and planned in another way: {difference}", pytrace=False)


def expected_of(golden, path):
    """The rows that a case expects, once its tables are given."""
    for table, rows in (yaml.load(path.read_text(), yaml.CSafeLoader)["given"] or {}).items():
        golden.give(table, [{key: understood(value) for key, value in row.items()} for row in rows])
    return yaml.load(path.read_text(), Exactly)["expected"]  # noqa: S506 - a SafeLoader


def differs(golden, expected, made):
    """The rows that a case expects and a relation does not give, and the other way round; '' where there are none."""
    columns = wanted_columns(expected)
    missing = [{key: tame(understood(row[key])) for key in columns} for row in expected]
    unexpected = []
    for row in golden.rows(made):
        found = {key: tame(row[key]) for key in columns}
        if found in missing:
            missing.remove(found)
        else:
            unexpected.append(found)
    lines = [f"- {written(row)}" for row in missing] + [f"+ {written(row)}" for row in unexpected]
    return "\n".join([f"{made.full_name}: - expected and not there, + there and not expected", *lines]) if lines else ""


def written(row):
    return "{" + ", ".join(f"{key}: {'null' if value is None else value}" for key, value in row.items()) + "}"


def wanted_columns(expected):
    assert len({frozenset(row) for row in expected}) <= 1, "name the same columns in every expected row"
    return list(expected[0]) if expected else []


def tame(value):
    """Numbers as exact decimals: 12 is 12.00, and no money is ever a float."""
    if isinstance(value, dict):
        return {key: tame(item) for key, item in value.items()}
    if isinstance(value, list):
        return [tame(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    # As it is written; at most 28 digits, and -0 is 0.
    return +Decimal(str(value)).normalize() + 0


class Exactly(yaml.CSafeLoader):
    """Reads 1.10 as the decimal that is written."""


Exactly.add_constructor("tag:yaml.org,2002:float", lambda loader, node: Decimal(loader.construct_scalar(node)))


def test_every_relation_has_a_case():
    made = {
        f"{each.schema}/{each.name}" for schema in ("mart", "report", "staging", "page") for each in relations(schema)
    }
    cases = {"/".join(path.parts[-3:-1]) for path in CASES}
    assert made - cases == set(), "write a golden case, tests/sql/<schema>/<relation>/<case>.yaml: see sql/README.md"
    assert cases - made == set(), "cases of a relation that is gone"


@pytest.mark.parametrize("name", sorted({"/".join(path.parts[-3:-1]) for path in CASES} - ONE_ROW_IN.keys()))
def test_the_cases_of_a_relation_have_groups_of_several_rows(name):
    """A join that multiplies, or an aggregate that forgets its group, goes unnoticed where there is one row of a kind.

    Whether they are groups, a reader has to see: two groups of two rows are four, and give two rows.
    """
    cases = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in (HERE / name).glob("*.yaml")]
    given = max(len(rows) for case in cases for rows in (case["given"] or {}).values())
    expected = sum(len(case["expected"] or ()) for case in cases)
    is_one_row = relation(*name.split("/")).grain.startswith("One row:")
    assert given >= 4, "give one table at least two groups of two rows"
    assert expected >= (1 if is_one_row else 2), "expect rows of two groups"


def test_what_has_no_cases_has_tests_of_its_own():
    """Of each rule and measure of the audit a night is made that breaks it; macros are used by what has cases."""
    of_the_audit = "".join(path.read_text() for path in (HERE.parent / "audit").glob("*.py"))
    measures = {name for about in declared_measures().values() for name in about.measures}
    assert {name for name in {*declared_rules(), *measures} if name not in of_the_audit} == set()
    used = "".join(each.sql for schema in ("mart", "report", "staging") for each in relations(schema))
    used += "".join(path.read_text() for path in HERE.parent.glob("*/*.py"))
    macros = {path.stem: path.read_text() for path in (sql_folder() / "macro").glob("*.sql")}
    used += "".join(text.replace(f"MACRO mart.{name}(", "") for name, text in macros.items())
    assert {name for name in macros if f"mart.{name}(" not in used} == set()


def test_keys_of_cells_and_offers_keep_their_values(golden):
    cell = "mart.cell_key(1, 'GB', 'Hotel', DATE '2030-02-01', 2::SMALLINT, '2c5-9', {})"
    euro = "'EUR'"
    offer = "mart.offer_key(5, 0, 7, 14, -3, 'EUR')"
    found = golden.session.execute(f"SELECT {cell.format('NULL')}, {cell.format(euro)}, {offer}").fetchone()
    assert found == (1317081816410875484, 3250963720272402734, 6753785356649072782)


def test_the_sql_and_the_code_agree_on_which_statuses_are_answered(golden):
    query = "SELECT status FROM unnest(?) AS given (status) WHERE mart.is_answered(status)"
    assert {status for (status,) in golden.session.execute(query, [STATUSES]).fetchall()} == {*ANSWERED}


def test_the_answered_statuses_are_listed_once():
    listed = re.compile("|".join(rf"'{a}',\s*'{b}',\s*'{c}'" for a, b, c in permutations(ANSWERED)))
    assert {path.stem for path in sql_folder().glob("*/*.sql") if listed.search(path.read_text())} == {"is_answered"}


def test_no_null_of_an_offer_key_is_like_a_value_or_like_another_null(golden):
    parts = ["0", "7", "14", "-3", "'EUR'"]
    variants = [parts] + [[*parts[:n], "NULL", *parts[n + 1 :]] for n in (0, 1, 2, 4)]
    variants += [["7", "0", "14", "-3", "'EUR'"], ["0", "71", "4", "-3", "'EUR'"], ["0", "7", "14", "-3", "'USD'"]]
    keys = {golden.session.execute(f"SELECT mart.offer_key(5, {', '.join(v)})").fetchone()[0] for v in variants}
    assert len(keys) == len(variants)


def test_as_of_a_sweep_are_the_offers_known_right_after_it(golden):
    same = {"check_in": started_at(40).date(), "source": "multi"}
    golden.give("state.offer_closed", [
        {"offer_key": 1, "total": 100, "valid_from": started_at(1), "valid_to": started_at(3), **same},
        {"offer_key": 2, "is_offered": False, "valid_from": started_at(1), "valid_to": started_at(3), **same},
        {"offer_key": 3, "total": 1, "check_in": started_at(2).date(), "valid_from": started_at(1),
         "valid_to": started_at(2).replace(hour=0), "ended_by": "stay_began"},
    ])  # fmt: skip
    golden.give("state.offer_open", [
        {"offer_key": 1, "total": 120, "valid_from": started_at(3), **same},
        {"offer_key": 2, "total": 80, "valid_from": started_at(3), **same},
    ])  # fmt: skip
    nights = range(1, 5)
    golden.give("mart.sweep", [
        {"sweep_id": sweep_id(n), "started_at": started_at(n), "snapshot_date": started_at(n).date()} for n in nights
    ])  # fmt: skip
    golden.views()
    found = {}
    for night in nights:
        query = f"SELECT offer_key, total::INTEGER FROM mart.offer_as_of('{sweep_id(night)}') ORDER BY ALL"  # noqa: S608 - our own id
        found[night] = golden.session.execute(query).fetchall()
    assert found == {1: [(1, 100), (3, 1)], 2: [(1, 100)], 3: [(1, 120), (2, 80)], 4: [(1, 120), (2, 80)]}
