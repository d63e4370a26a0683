"""One absurd value costs itself: no relation, rule or page fails or falls silent because of it."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from absurd_nights import ALL, VALUES, absurd_nights

from pipeline.domain.tables import TABLES
from pipeline.lake import Lake
from pipeline.lake.database import open_published, query_published
from pipeline.report.page_files import REPORTS
from pipeline.report.write import write_reports

pytestmark = pytest.mark.slow

RELATIONS = (
    "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal "
    "UNION ALL SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE schema_name <> 'main' ORDER BY 1"
)


@pytest.fixture(scope="module")
def published(once_a_run) -> Lake:
    return once_a_run("absurd-nights", lambda folder: absurd_nights(Lake(str(folder / "lake")), ALL))


@pytest.fixture(scope="module")
def clean(once_a_run) -> Lake:
    return once_a_run("clean-nights", lambda folder: absurd_nights(Lake(str(folder / "lake")), [{}, {}]))


def failures(lake: Lake) -> dict[str, str]:
    """What each relation that cannot be read whole says."""
    found = {}
    with open_published(lake.published_file) as session:
        for (name,) in session.execute(RELATIONS).fetchall():
            try:
                session.execute(f"CREATE OR REPLACE TEMP TABLE read_whole AS FROM {name}")
            except Exception as error:
                found[name] = str(error).splitlines()[0]
    return found


def rules_of(lake: Lake, property_id: int) -> list[tuple[object, ...]]:
    query = (
        "SELECT rule, source, market, product_type, party, currency, size_pct, amount FROM report.flag "
        "WHERE property_id = $own ORDER BY ALL"
    )
    return query_published(lake.published_file, query, {"own": property_id}).fetchall()


# What a sweep requests, and what is computed from the other columns.
OURS = {
    *("sweep_id", "search_id", "offer_no", "penalty_no", "promotion_no", "property_id", "market", "source"),
    *("product_type", "check_in", "nights", "party", "currency_asked", "searched_at", "policy_key", "promotion_key"),
    *("refundability", "is_refundable"),
}


@pytest.mark.parametrize("table", VALUES)
def test_every_column_that_a_supplier_fills_has_such_values(table):
    assert {column.name for column in TABLES[table].columns} == VALUES[table].keys() | OURS & set(
        TABLES[table].schema.names
    )


def test_every_relation_can_be_read_whole(published):
    assert failures(published) == {}


@pytest.mark.parametrize("report", REPORTS)
def test_every_report_is_written(published, report):
    assert write_reports(published, [report])


def test_no_rule_falls_silent(published, clean):
    expected = rules_of(clean, 1)
    assert {row[0] for row in expected} >= {"wrong_discount", "penalty_amount_off_formula"}
    assert rules_of(published, 1) == expected


def test_an_unusable_offer_is_in_quarantine_and_reported(published):
    said = query_published(published.published_file, "SELECT DISTINCT rule FROM lake.reject WHERE rule IS NOT NULL")
    rules = {rule for row in said.fetchall() for rule in row[0].split(",")}
    assert rules >= {"range_total", "range_penalty_nights", "total_not_positive", "currency_unknown"}
    left = query_published(published.published_file, "SELECT max(total), max(floor) FROM mart.offer_latest").fetchall()
    assert max(left[0]) <= 10**11


def test_a_room_stay_with_the_largest_number_there_is_stays_on_sale(published):
    number = next(at for at, each in enumerate(ALL, 1) if each == {"offer": {"room_stay_id": 2**31 - 1}})
    query = "SELECT count(*) > 0 FROM mart.offer_latest WHERE property_id = $own AND room_stay_id = 2147483647"
    assert query_published(published.published_file, query, {"own": number}).fetchall() == [(True,)]


def test_every_id_is_wide_enough_for_one_more_than_the_largest_int32(published):
    with open_published(published.published_file) as session:
        ids = session.execute(
            "SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = 'nightaudit' AND schema_name <> 'main' AND column_name LIKE '%\\_id' ESCAPE '\\' "
            "AND data_type <> 'VARCHAR' ORDER BY ALL"
        ).fetchall()
        assert {(name, column) for name, column, _ in ids} >= {
            ("lake.offer", "room_stay_id"), ("mart.offer_latest", "board_id"), ("ref.board_basis", "board_id"),
            ("mart.market_parity", "reference_board_id"), ("lake.selling_price", "board_id"),
        }  # fmt: skip
        assert [(name, column) for name, column, kind in ids if kind != "BIGINT"] == []
        # What is declared is also what is read.
        for name, column, _ in ids:
            added = f"CASE WHEN {column} BETWEEN 0 AND 2147483647 THEN {column} + 2147483647 END"
            session.execute(f"SELECT max({added}) FROM {name}")  # noqa: S608 - our own names
        at_most = session.execute("SELECT max(room_stay_id) + 1 FROM mart.offer_latest").fetchall()
    assert at_most == [(2**31,)]


def drawn(dice: random.Random) -> dict[str, dict[str, object]]:
    """Values for a property: of about half the tables, of about half their columns."""
    return {
        table: {column: dice.choice(values) for column, values in columns.items() if dice.random() < 0.5}
        for table, columns in VALUES.items()
        if dice.random() < 0.5
    }


OF_ALL = {
    # No value that may be missing is there, in either market.
    "missing": {table: dict.fromkeys(columns) for table, columns in VALUES.items()},
    "no totals": {"offer": {"total": None}},
    "zero": {
        table: {column: 0 for column, values in columns.items() if 0 in values} for table, columns in VALUES.items()
    },
}


@pytest.mark.parametrize("values", OF_ALL)
def test_nor_does_a_night_in_which_all_offers_have_them(tmp_path, values):
    lake = absurd_nights(Lake(str(tmp_path / "lake")), [OF_ALL[values]] * 3, markets=("GB", "SE"))
    assert failures(lake) == {}
    assert [page.name for page in write_reports(lake)] == list(REPORTS)


def test_nor_do_nights_without_an_offer(tmp_path):
    lake = absurd_nights(Lake(str(tmp_path / "lake")), [{}] * 3, is_offered=False)
    assert failures(lake) == {}
    assert [page.name for page in write_reports(lake)] == list(REPORTS)


def test_nor_do_any_of_them_together(tmp_path):
    dice = random.Random(1)  # noqa: S311 - not a secret
    lake = absurd_nights(Lake(str(tmp_path / "lake")), [{}, *(drawn(dice) for _ in range(60))])
    assert failures(lake) == {}
    write_reports(lake)
    assert rules_of(lake, 1)
