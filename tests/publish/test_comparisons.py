"""Comparisons of markets are kept in files: when they are recomputed, and that they equal the relation."""

from __future__ import annotations

import shutil
from datetime import date

import duckdb
import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.analysis import Analysis
from pipeline.inputs import load
from pipeline.lake import Lake
from pipeline.lake.checksums import record_as_they_are
from pipeline.lake.database import query_published
from pipeline.lake.relations import reached, relation
from pipeline.publish.comparisons import COMPARED
from pipeline.publish.publish import publish, republish_all
from pipeline.publish.refresh import refresh
from pipeline.publish.state import FILED
from pipeline.publish.summaries import SUMMARIES

pytestmark = pytest.mark.slow

GB_IS_REFERENCE = Analysis(reference_market="GB")
STAY = {"check_in": date(2030, 3, 1), "nights": 2}
ROOM = {"room_id": 7, "board_id": 14}
ASKED = (
    "SELECT property_id, market, currency_basis, rate, total, reference_converted FROM mart.market_parity "
    "WHERE match_grade = 'exact' ORDER BY ALL"
)
AT_ONE_TO_TWO = [(number, "US", "reference_rate", 2.0, 250, 200) for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """GB pays 100 EUR at three properties, US 250 USD, and no rate is known; each property is a range of its own."""
    lake, cells, offers = Lake(str(tmp_path_factory.mktemp("compared") / "lake")), [], []
    for number in (1, 2, 3):
        for market, currency, total in (("GB", "EUR", 100), ("US", "USD", 250)):
            asked = STAY | {"search_id": len(cells) + 1, "property_id": number, "market": market}
            cells.append(asked)
            offers.append(asked | ROOM | {"currency": currency, "total": total})
    load_night(lake, 0, cell=cells, offer=offers)
    publish(lake, sweep_id(0), started_at(0), analysis=GB_IS_REFERENCE, most_offers=1)
    return lake


def test_comparisons_read_the_tables_of_the_state_that_ranges_give_them():
    of_the_state = {f"state.{name}" for name in FILED}
    assert {f"state.{name}" for name in COMPARED} == reached(["mart.market_parity"]) & of_the_state


@pytest.fixture
def lake(made, tmp_path):
    """A copy of that night. Its views read the files of the first one until it is refreshed."""
    shutil.copytree(made.root, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def night(lake):
    return lake.published_file


@pytest.fixture
def rates(tmp_path):
    file = tmp_path / "rates.csv"
    file.write_text(f"Date,USD\n{started_at(0).date()},2\n")
    return file


def held(lake):
    return sorted(path.name for path in lake.local("state").glob("*/*/market_parity*"))


def test_rates_that_are_loaded_after_a_night_are_compared_at(lake, night, rates):
    assert query_published(night, ASKED).fetchall() == []
    before = held(lake)
    load.load(lake, "rates", rates, started_at(1))
    assert refresh(lake)
    assert query_published(night, ASKED).fetchall() == AT_ONE_TO_TWO
    # A session that opened the last file keeps reading it.
    assert len(before) == 3
    assert set(before) < set(held(lake))
    named = query_published(night, "SELECT path FROM state.file WHERE table_name = 'market_parity'").fetchall()
    assert sorted(path.rpartition("/")[2] for (path,) in named) == sorted(set(held(lake)) - set(before))
    score = "SELECT market, currency_basis, lose FROM report.market_parity WHERE match_grade = 'exact'"
    assert query_published(night, score).fetchall() == [("US", "reference_rate", 3)]


LOADED = {
    "weights": "market,weight\nUS,2.5\nGB,1\n",
    "prices": (
        "property_id,market,product_type,check_in,nights,party,currency,price,observed_at\n"
        f"1,GB,Hotel,2030-03-01,2,2,EUR,120,{started_at(0).isoformat()}\n"
    ),
}


@pytest.mark.parametrize("kind", ["rates", "weights", "prices"])
def test_summaries_of_several_ranges_show_what_was_loaded_since(lake, night, rates, tmp_path, kind):
    load.load(lake, "rates", rates, started_at(1))
    assert refresh(lake)
    if kind != "rates":
        (tmp_path / kind).with_suffix(".csv").write_text(LOADED[kind])
        load.load(lake, kind, (tmp_path / kind).with_suffix(".csv"), started_at(2))
        assert refresh(lake)
    shown = {name: query_published(night, f"FROM {name} ORDER BY ALL").fetchall() for name in SUMMARIES}
    assert shown["report.market_parity"]
    assert republish_all(lake, lambda: None) == night
    assert {name: query_published(night, f"FROM {name} ORDER BY ALL").fetchall() for name in SUMMARIES} == shown
    score = "SELECT market_weight FROM report.market_parity WHERE match_grade = 'exact'"
    assert query_published(night, score).fetchall() == [(2.5 if kind == "weights" else 1.0,)]
    planned = query_published(night, "SELECT planned FROM report.floor_compliance").fetchall()
    assert planned == ([(1,)] if kind == "prices" else [])


def test_summaries_are_not_computed_again_for_what_they_do_not_read(lake, night, tmp_path):
    with duckdb.connect(str(night)) as session:
        session.execute("UPDATE report.stay_price SET planned = -1")
        changed = session.execute("SELECT count(*) FROM report.stay_price WHERE planned = -1").fetchone()
    record_as_they_are(lake.root, [night])
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "property_id,market,product_type,check_in,nights,party,currency,price,observed_at\n"
        "1,GB,Hotel,2030-03-01,2,2,EUR,120,2026-11-20T02:30:00Z\n"
    )
    load.load(lake, "prices", prices, started_at(1))
    assert refresh(lake)
    kept = query_published(night, "SELECT count(*) FROM report.stay_price WHERE planned = -1").fetchone()
    assert kept == changed
    assert changed[0] > 0


def test_what_changes_no_rate_makes_no_comparison_again(lake, tmp_path):
    before = held(lake)
    weights = tmp_path / "weights.csv"
    weights.write_text("market,weight\nGB,2.5\n")
    load.load(lake, "weights", weights, started_at(1))
    assert refresh(lake)
    assert held(lake) == before


def test_the_log_of_a_killed_refresh_is_not_applied_to_the_next_one(lake, night, rates, tmp_path, monkeypatch):
    """DuckDB would apply it: the file would then have the new comparisons, and summaries of the old ones."""
    load.load(lake, "rates", rates, started_at(1))
    killed = tmp_path / "killed"

    def dies(*_):
        shutil.copytree(night.parent, killed)
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("pipeline.publish.refresh.sum_again", dies)
        assert not refresh(lake)
    left = [each for each in killed.glob(".*") if each.suffix == ".wal"]
    assert left
    for each in left:
        shutil.copy(each, night.parent)
    assert refresh(lake)
    assert query_published(night, ASKED).fetchall() == AT_ONE_TO_TWO
    summed = query_published(night, "SELECT sum(comparable) FROM report.market_parity WHERE match_grade = 'exact'")
    assert summed.fetchall() == [(3,)]


@pytest.mark.parametrize("kind", ["rates", "weights"])
def test_what_is_loaded_is_never_compared_with_damaged_prices(lake, night, rates, tmp_path, caplog, kind):
    """The damage leaves a file that DuckDB reads without complaint."""
    if kind == "weights":
        rates = tmp_path / "weights.csv"
        rates.write_text(LOADED[kind])
    damaged = next(lake.local("state").glob("*/*/offer_open*"))
    with duckdb.connect(":memory:") as session:
        session.sql(f"FROM '{damaged}'").write_parquet(str(damaged.with_name("other")), compression="gzip")
    damaged.with_name("other").replace(damaged)
    before, shown = held(lake), night.read_bytes()
    load.load(lake, kind, rates, started_at(1))
    assert not refresh(lake)
    assert f"{damaged} is damaged" in caplog.text
    assert held(lake) == before
    assert night.read_bytes() == shown


def test_a_file_that_is_built_again_compares_at_the_rates_of_now(lake, night, rates):
    load.load(lake, "rates", rates, started_at(1))
    assert republish_all(lake, lambda: None) == night
    assert query_published(night, ASKED).fetchall() == AT_ONE_TO_TWO


def test_the_files_hold_what_the_relation_says(lake, night, rates):
    load.load(lake, "rates", rates, started_at(1))
    refresh(lake)
    said = relation("mart", "market_parity").sql
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{night}' AS published (READ_ONLY)")
        session.execute("USE published")
        read = session.execute("SELECT * FROM mart.market_parity ORDER BY ALL")
        columns, rows = [(column[0], column[1]) for column in read.description], read.fetchall()
        worked_out = session.execute(f"SELECT * FROM ({said}) ORDER BY ALL")  # noqa: S608 - our own SQL
        assert [(column[0], column[1]) for column in worked_out.description] == columns
        assert worked_out.fetchall() == rows
