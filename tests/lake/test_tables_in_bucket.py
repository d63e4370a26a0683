"""Other engines read the tables of a lake on S3 in the bucket: they hold what the lake holds after each step."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from nights import started_at

from pipeline.domain.tables import CASE_NOTE
from pipeline.lake import Lake
from pipeline.lake.delta import commit_rows, committed_files, replace_files
from pipeline.lake.s3.object_store import Store


@pytest.fixture
def lake(address, monkeypatch, tmp_path) -> Lake:
    monkeypatch.setenv("NIGHTAUDIT_LAKE_COPY", str(tmp_path / "one"))
    return Lake(address)


def note(lake: Lake, number: int, value: str = "seen") -> None:
    rows = [{"case_id": f"case-{number}", "noted_at": started_at(0), "action": "note", "value": value}]
    commit_rows(lake, CASE_NOTE, pa.Table.from_pylist(rows, schema=CASE_NOTE.schema), "run", f"{number}", f"{number}")


def in_bucket(address: str, folder: str = "tables") -> pl.DataFrame:
    return pl.scan_delta(f"{address}/{folder}/{CASE_NOTE.name}").collect().sort("case_id")


def in_copy(lake: Lake) -> pl.DataFrame:
    return pl.read_delta(str(lake.table_root(CASE_NOTE.name))).sort("case_id")


def test_a_step_is_in_the_bucket_as_soon_as_it_is_committed(lake, address):
    with lake.writing("a test"):
        note(lake, 0)
        lake.commit()
        assert in_bucket(address).equals(in_copy(lake))
        # With a checkpoint of the log in between.
        for number in range(1, 12):
            note(lake, number)
        lake.commit()
        assert in_bucket(address).equals(in_copy(lake))
    assert in_bucket(address).height == 12


def test_replaced_files_leave_the_bucket_after_the_lake_has_removed_them(lake, address):
    with lake.writing("a test"):
        note(lake, 0)
        note(lake, 1)
    former = min(committed_files(lake, CASE_NOTE)).relative_to(lake.root).as_posix()
    with lake.writing("lake maintenance"):
        replace_files(lake, CASE_NOTE, {former: None}, "without one")
        lake.commit()
        assert Store(address).exists(former)
        lake.remove(former)
    assert not Store(address).exists(former)
    assert in_bucket(address)["case_id"].to_list() == ["case-1"]


def test_rebuilt_tables_are_in_the_folder_that_lake_json_names(lake, address):
    with lake.writing("a test"):
        note(lake, 0)
    with lake.writing("a rebuild"):
        rebuilt = lake.with_new_tables()
        note(rebuilt, 0, "rebuilt")
        rebuilt.adopt_tables()
        rebuilt.drop_tables_but()
    assert b'"tables-2"' in Store(address).get("lake.json")
    assert in_bucket(address, "tables-2")["value"].to_list() == ["rebuilt"]
    assert not Store(address).keys("tables")


@pytest.mark.parametrize("lost", ["the record", "the files", "everything but an unknown file"])
def test_what_a_killed_writer_has_left_is_completed_by_the_next_one(lake, address, lost):
    with lake.writing("a test"):
        note(lake, 0)
    store = Store(address)
    if lost != "the files":
        store.delete(["in-place.json"])
    if lost != "the record":
        store.delete(list(store.keys("tables")))
    store.put("tables/unknown/file.parquet", b"of a writer that had lost the lake")
    with lake.writing("lake maintenance"):
        lake.drop_unused(1)
    with lake.writing("a test"):
        note(lake, 1)
    assert in_bucket(address).equals(in_copy(lake))
    assert not store.exists("tables/unknown/file.parquet")


def test_a_lake_whose_object_is_missing_is_written_all_the_same(lake, address, caplog):
    with lake.writing("a test"):
        note(lake, 0)
    store = Store(address)
    path = committed_files(lake, CASE_NOTE)[0].relative_to(lake.root).as_posix()
    name = lake.copy.listing.files[path][0]
    data = store.get(f"objects/{name}")
    store.delete([f"objects/{name}", "in-place.json", *store.keys("tables")])
    with lake.writing("a test"):
        note(lake, 1)
    assert f"The object {name} of {address}/{path} is missing" in caplog.text
    store.put(f"objects/{name}", data)
    with lake.writing("a test"):
        pass
    assert in_bucket(address).equals(in_copy(lake))
