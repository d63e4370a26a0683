"""A user's file is loaded completely, once, and can be loaded again from the raw zone alone."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from nights import load_night, started_at, sweep_id

from pipeline.domain.errors import CorruptObject, InputError, LakeFull
from pipeline.domain.tables import INPUT_TABLES
from pipeline.inputs import load
from pipeline.inputs.branded import unbranded_ids
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.delta import committed_files
from pipeline.night.verify import verify
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.sample.generate import DAY, FOLDER, samples
from pipeline.sandbox.world.fx import REFERENCE_RATES

NOW = datetime(2030, 1, 2, tzinfo=UTC)
SAMPLES = {
    "rates": "eurofxref-hist.csv",
    "prices": "selling_prices.csv",
    "property-map": "property_map.csv",
    "weights": "weights.csv",
    "properties": "properties.csv",
}


def rows(lake, kind):
    files = committed_files(lake, load.KINDS[kind].table)
    return pl.read_parquet(files).sort("input_id", "line_no") if files else None


def write(folder, name, text):
    file = folder / name
    file.write_text(text)
    return file


def load_samples(lake):
    for kind, name in SAMPLES.items():
        load.load(lake, kind, FOLDER / name, NOW)


def published(lake, query):
    return query_published(lake.published_file, query).fetchall()


def test_the_samples_are_what_their_generator_makes():
    for name, text in samples(DAY).items():
        assert (FOLDER / name).read_text() == text


@pytest.fixture(scope="module")
def sampled(a_night, tmp_path_factory):
    """A lake whose second night was published with the samples."""
    made = Lake(str(tmp_path_factory.mktemp("sampled") / "lake"))
    shutil.copytree(a_night.root, made.root)
    load_samples(made)
    publish(made, load_night(made, 1), started_at(1))
    return made


@pytest.mark.slow
def test_the_samples_load_and_show_in_the_published_file(sampled):
    lake = sampled
    assert published(lake, "SELECT count(*), min(price) FROM mart.selling_price") == [(60, Decimal("77.4000"))]
    assert published(lake, "SELECT count(*) FROM mart.property_map") == [(12,)]
    assert published(lake, "SELECT count(*) FROM mart.weight") == [(21,)]
    # A Saturday has Friday's rate.
    saturday = "SELECT rate, rate_date FROM mart.fx_rate_on WHERE currency = 'SEK' AND on_date = '2026-11-14'"
    assert published(lake, saturday) == [(Decimal(str(REFERENCE_RATES["SEK"])), date(2026, 11, 13))]


@pytest.mark.slow
def test_a_rate_holds_for_seven_days_and_the_euro_is_one(sampled):
    lake = sampled
    last = "SELECT currency, max(on_date) FROM mart.fx_rate_on WHERE currency IN ('EUR', 'USD') GROUP BY ALL ORDER BY 1"
    week_after = DAY + timedelta(days=7)
    assert published(lake, last) == [("EUR", week_after), ("USD", week_after)]
    assert published(lake, "SELECT DISTINCT rate FROM mart.fx_rate_on WHERE currency = 'EUR'") == [(1,)]
    twice = "SELECT count(*) FROM (SELECT 1 FROM mart.fx_rate_on GROUP BY on_date, currency HAVING count(*) > 1)"
    assert published(lake, twice) == [(0,)]


@pytest.mark.parametrize("kind", ["rates", "weights"])
def test_loading_the_same_file_twice_changes_nothing(lake, kind):
    file = FOLDER / SAMPLES[kind]
    assert load.load(lake, kind, file, NOW).is_new
    before = rows(lake, kind)
    assert not load.load(lake, kind, file, NOW + timedelta(days=1)).is_new
    assert rows(lake, kind).equals(before)


def test_a_file_that_only_passes_the_check_leaves_nothing(lake):
    assert load.check(lake, "weights", FOLDER / "weights.csv").rows == 21
    assert rows(lake, "weights") is None
    assert not lake.exists(lake.inputs_folder("weights"))


def test_of_a_file_with_one_bad_row_nothing_is_kept(lake, tmp_path):
    file = write(tmp_path, "map.csv", "branded_id,unbranded_id\n1,2\n3,x\n")
    with pytest.raises(InputError, match="row 3, column unbranded_id"):
        load.load(lake, "property-map", file, NOW)
    assert rows(lake, "property-map") is None
    assert not lake.exists(lake.inputs_folder("property-map"))


def test_the_map_loaded_last_is_the_map_and_an_earlier_one_can_come_back(lake_of_a_night, tmp_path):
    lake = lake_of_a_night
    first = write(tmp_path, "a.csv", "branded_id,unbranded_id\n1,2\n")
    second = write(tmp_path, "b.csv", "branded_id,unbranded_id\n1,3\n5,6\n")
    assert unbranded_ids(lake) == {}
    found = []
    for file in (first, second, first):
        assert load.load(lake, "property-map", file, NOW).is_new
        found.append(unbranded_ids(lake))
    assert found == [{1: 2}, {1: 3, 5: 6}, {1: 2}]
    assert refresh(lake)
    assert published(lake, "SELECT branded_id, unbranded_id FROM mart.property_map") == [(1, 2)]


def test_the_newer_of_two_files_wins_for_what_both_state(lake_of_a_night, tmp_path):
    lake = lake_of_a_night
    load.load(lake, "rates", write(tmp_path, "a.csv", "Date,USD\n2030-01-01,1.1\n2030-01-02,1.2\n"), NOW)
    load.load(lake, "rates", write(tmp_path, "b.csv", "Date,USD\n2030-01-02,1.3\n"), NOW)
    assert refresh(lake)
    query = "SELECT rate FROM mart.fx_rate_on WHERE currency = 'USD' AND age_days = 0 ORDER BY rate_date"
    assert [str(row[0]) for row in published(lake, query)] == ["1.10000000", "1.30000000"]


def test_what_is_loaded_between_nights_shows_at_once(lake_of_a_night, tmp_path):
    lake = lake_of_a_night
    assert not refresh(Lake(str(tmp_path / "none")))
    load.load(lake, "weights", write(tmp_path, "w.csv", "market,weight\nGB,2.5\n"), NOW)
    assert published(lake, "SELECT count(*) FROM mart.weight") == [(0,)]
    assert refresh(lake)
    assert published(lake, "SELECT market, weight, property_id FROM mart.weight") == [("GB", 2.5, None)]
    comment = (
        "SELECT comment FROM duckdb_columns() WHERE schema_name = 'mart' AND table_name = 'weight' AND comment IS NULL"
    )
    assert published(lake, comment) == []
    assert not list(lake.published_file.parent.glob(".*"))


@pytest.mark.slow
def test_a_deadline_is_counted_from_the_check_in_of_its_property(lake, tmp_path):
    cells = [{"property_id": each, "search_id": each, "status": "offered"} for each in (1, 2)]
    offers = [{name: cell[name] for name in ("property_id", "search_id")} | {"total": 100} for cell in cells]
    penalties = [{"search_id": each, "window_hours": 24, "penalty_pct": 50.0} for each in (1, 2)]
    publish(lake, load_night(lake, 0, cell=cells, offer=offers, penalty=penalties), started_at(0))
    query = "SELECT property_id, hours_to_check_in FROM mart.cancellation ORDER BY property_id"
    (_, before), _ = published(lake, query)
    night = f"'{sweep_id(0)}'"
    # Of a sweep, and of an hour if one is given.
    steps = (
        "SELECT property_id, strftime(from_at AT TIME ZONE 'UTC', '%H:%M'), from_hours "
        "FROM mart.penalty_step({}) WHERE from_at IS NOT NULL ORDER BY property_id"
    )
    assert published(lake, steps.format(night)) == [(1, "15:00", 24.0), (2, "15:00", 24.0)]
    file = write(tmp_path, "p.csv", "property_id,check_in_time,time_zone\n1,16:30,Asia/Tokyo\n2,,\n")
    load.load(lake, "properties", file, NOW)
    assert refresh(lake)
    assert published(lake, "SELECT * FROM mart.property_check_in") == [(1, "16:30", "Asia/Tokyo")]
    # 16:30 in Tokyo is 07:30 UTC, and check-in is at 15:00 UTC elsewhere.
    assert published(lake, query) == [(1, before - 7.5), (2, before)]
    assert published(lake, steps.format(night)) == [(1, "07:30", 24.0), (2, "15:00", 24.0)]
    assert published(lake, steps.format(f"{night}, check_in_hour := 12")) == [(1, "12:00", 24.0), (2, "12:00", 24.0)]


def test_a_lake_from_before_times_of_check_in_takes_them_with_its_next_load(lake_of_a_night, tmp_path):
    lake = lake_of_a_night
    load.load(lake, "properties", write(tmp_path, "a.csv", "property_id\n1\n"), NOW)
    shutil.rmtree(lake.table_root("property_check_in"))
    assert refresh(lake)
    assert published(lake, "SELECT * FROM mart.property_check_in") == []
    load.load(lake, "properties", write(tmp_path, "b.csv", "property_id,check_in_time\n1,12:00\n"), NOW)
    assert refresh(lake)
    assert published(lake, "SELECT * FROM mart.property_check_in") == [(1, "12:00", None)]


def test_a_file_that_cannot_be_refreshed_is_left_as_it_was(lake):
    lake.published_file.parent.mkdir(parents=True)
    lake.published_file.write_bytes(b"no database")
    assert not refresh(lake)
    assert lake.published_file.read_bytes() == b"no database"


def test_tables_that_are_gone_come_back_from_the_raw_zone(lake, tmp_path):
    load_samples(lake)
    load.load(lake, "weights", write(tmp_path, "w.csv", "market,weight\nGB,2.5\n"), NOW)
    before = {kind: rows(lake, kind) for kind in SAMPLES}
    for table in INPUT_TABLES:
        shutil.rmtree(lake.table_root(table))
    for kind in load.KINDS.values():
        load.replay(lake, kind)
    assert all(rows(lake, kind).equals(before[kind]) for kind in SAMPLES)


@pytest.mark.parametrize(
    "kind", ["rates", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("prices", "property-map"))]
)
def test_a_damaged_table_is_not_used_and_its_repair_works(lake_of_a_night, kind):
    lake = lake_of_a_night
    load_samples(lake)
    (file,) = committed_files(lake, load.KINDS[kind].table)
    data = bytearray(Path(file).read_bytes())
    data[len(data) // 3] ^= 4
    Path(file).write_bytes(data)
    following = load_night(lake, 1)
    with pytest.raises(CorruptObject, match="is damaged"):
        publish(lake, following, started_at(1))
    if kind == "property-map":
        with pytest.raises(CorruptObject, match="is damaged"):
            unbranded_ids(lake)
    table = load.KINDS[kind].table.name
    repairs = {damage.path.split("/")[1]: damage.repair for damage in verify(lake, is_deep=True).damages}
    away = f"move tables/{table} and checksums/tables/{table} away, then"
    assert repairs[table] == f"{away} load one of its files again: nightaudit load {kind}"
    shutil.move(lake.root / "checksums" / "tables" / table, lake.root.parent / "sums away")
    shutil.move(lake.table_root(table), lake.root.parent / "away")
    load.load(lake, kind, FOLDER / SAMPLES[kind], NOW)
    assert not [damage for damage in verify(lake, is_deep=True).damages if table in damage.path]
    assert publish(lake, following, started_at(1)).is_new


def test_a_load_that_was_killed_before_its_commit_is_finished_by_the_next(lake, tmp_path, monkeypatch):
    first = write(tmp_path, "a.csv", "market,weight\nGB,1\n")

    def dies(*_):
        raise LakeFull("killed")

    with monkeypatch.context() as patched:
        patched.setattr(load, "commit_rows", dies)
        with pytest.raises(LakeFull):
            load.load(lake, "weights", first, NOW)
    assert rows(lake, "weights") is None
    load.load(lake, "weights", write(tmp_path, "b.csv", "market,weight\nGB,2\n"), NOW)
    assert rows(lake, "weights")["weight"].to_list() == [1.0, 2.0]


def test_a_load_that_had_no_space_for_its_rows_is_new_when_it_is_repeated(lake, tmp_path, monkeypatch):
    file = write(tmp_path, "a.csv", "market,weight\nGB,1\n")

    def is_full(*_):
        raise LakeFull("full")

    with monkeypatch.context() as patched:
        patched.setattr(load, "commit_rows", is_full)
        with pytest.raises(LakeFull):
            load.load(lake, "weights", file, NOW)
    # Only what is new is shown in the published file.
    assert load.load(lake, "weights", file, NOW).is_new
    assert not load.load(lake, "weights", file, NOW).is_new
    assert rows(lake, "weights")["weight"].to_list() == [1.0]


def test_a_damaged_note_is_reported(lake):
    load.load(lake, "weights", FOLDER / "weights.csv", NOW)
    (note,) = lake.local(lake.inputs_folder("weights")).glob("*.json")
    note.write_text("{")
    with pytest.raises(CorruptObject, match=note.name):
        load.load(lake, "weights", FOLDER / "weights.csv", NOW)


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("price", "w.csv", "is not a kind of file"),
        ("weights", "w.xlsx", ".csv or .parquet"),
        ("weights", "no.csv", "read"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(lake, tmp_path, kind, name, reason):
    if name != "no.csv":
        write(tmp_path, name, "market,weight\nGB,1\n")
    with pytest.raises(InputError, match=reason):
        load.load(lake, kind, tmp_path / name, NOW)


def test_a_file_without_rows_is_refused(lake, tmp_path):
    with pytest.raises(InputError, match="no rows"):
        load.load(lake, "weights", write(tmp_path, "w.csv", "market,weight\n"), NOW)
