"""Names, descriptions, amenities and images: stored when they are new, not every night."""

from __future__ import annotations

import shutil

import polars as pl
import pytest
from nights import finish, started_at, sweep_id
from raw_answers import cells_of, land, product, record, tables_of

from pipeline.domain.search import Operation
from pipeline.domain.tables import CONTENT_TABLES, TABLES, WORKING_TABLES
from pipeline.inputs.load import load
from pipeline.lake.database import query_published
from pipeline.lake.delta import commit_files
from pipeline.normalise.segment import normalise_segment
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.sweep.load import SEGMENT_TABLES

SINGLE = Operation.SINGLE
POOL = {"id": 5, "name": "Pool"}
SAFE = {"id": 6, "name": "Safe"}


def suite(room_id=71, **fields):
    """A room stay of a single answer, with all that it may say."""
    return {
        "id": 0,
        "roomId": room_id,
        "roomName": "Suite",
        "roomDescription": "Large.",
        "bedTypeInfo": "1 king bed",
        "products": [product()],
        "images": ["https://x.example/1.jpg", "https://x.example/2.jpg"],
        "roomAmenities": [POOL, SAFE],
    } | fields


def told(*rooms, **fields):
    return {
        "property": {"propertyId": 1, "propertyName": "Fjord", "currencyCode": "EUR", "roomStays": list(rooms)} | fields
    }


@pytest.fixture
def night(lake):
    """Load and publish a night whose single searches about property 1 are answered like this."""

    def run(number: int, *bodies, **given):
        sweep = sweep_id(number)
        records = [record(n, body, property_ids=(1,), operation=SINGLE, **given) for n, body in enumerate(bodies)]
        segment = land(lake, records, SINGLE, sweep)
        normalise_segment(lake, sweep, segment, 4_000_000, {})
        for name in SEGMENT_TABLES:
            path = lake.table_file(name, sweep, segment.name)
            if lake.exists(path):
                commit_files(lake, TABLES[name], [path], sweep)
        finish(lake, number)
        return publish(lake, sweep, started_at(number))

    return run


def changes(lake, table, columns):
    order = "ALL" if columns == "*" else f"changed_at, change, {columns}"
    query = f"SELECT change, {columns} FROM lake.{table} ORDER BY {order}"  # noqa: S608 - our own names
    return query_published(lake.published_file, query).fetchall()


def known(lake, view, columns):
    query = f"SELECT {columns} FROM mart.{view} ORDER BY ALL"  # noqa: S608 - our own names
    return query_published(lake.published_file, query).fetchall()


def test_what_a_first_night_tells_is_all_first_seen(lake, night):
    night(0, told(suite()))
    assert changes(lake, "property", "property_id, property_name, search_id") == [("first", 1, "Fjord", 1)]
    assert changes(lake, "room", "room_id, room_name, room_description, bed_type") == [
        ("first", 71, "Suite", "Large.", "1 king bed")
    ]
    assert changes(lake, "room_amenity", "amenity_id, amenity_name") == [("first", 5, "Pool"), ("first", 6, "Safe")]
    assert changes(lake, "room_image", "image_no, image_url") == [
        ("first", 0, "https://x.example/1.jpg"),
        ("first", 1, "https://x.example/2.jpg"),
    ]


def test_a_night_that_tells_the_same_adds_nothing_and_leaves_no_copy_behind(lake, night):
    night(0, told(suite()))
    night(1, told(suite()), told(suite()))
    for table in CONTENT_TABLES:
        assert len({row[1] for row in changes(lake, table.name, "sweep_id")}) == 1
    for name in WORKING_TABLES:
        assert list(lake.table_root(name).rglob("*.parquet")) == []


def test_each_change_leads_to_its_sweep_and_search(lake, night):
    night(0, told(suite()))
    night(1, told(suite(), propertyName="Fjord Hotel"), told(suite(roomDescription="Larger.", roomAmenities=[SAFE])))
    assert changes(lake, "property", "property_name, sweep_id")[1:] == [("value", "Fjord Hotel", sweep_id(1))]
    night(2, told(suite(roomDescription="Larger.", images=["https://x.example/2.jpg"], roomAmenities=[SAFE])))
    assert changes(lake, "room", "room_description, search_id, sweep_id")[1:] == [("value", "Larger.", 1, sweep_id(2))]
    assert changes(lake, "room_amenity", "amenity_id")[2:] == [("gone", 5)]
    assert changes(lake, "room_image", "image_no, image_url")[2:] == [
        ("gone", 0, "https://x.example/1.jpg"),
        ("value", 0, "https://x.example/2.jpg"),
    ]
    assert known(lake, "room_amenity_latest", "amenity_name") == [("Safe",)]


def test_what_an_answer_does_not_state_changes_nothing(lake, night):
    night(0, told(suite()))
    bare = {"id": 0, "roomId": 71, "products": [product()]}
    night(1, {"property": {"propertyId": 1, "roomStays": [bare]}})
    night(2, told(suite(roomDescription=None, images=None, roomAmenities=None), propertyName=None))
    for table in CONTENT_TABLES:
        assert {row[1] for row in changes(lake, table.name, "sweep_id")} == {sweep_id(0)}


def test_an_empty_list_is_a_statement(lake, night):
    night(0, told(suite()))
    night(1, told(suite(images=[], roomAmenities=[])))
    assert known(lake, "room_image_latest", "image_url") == []
    assert known(lake, "room_amenity_latest", "amenity_id") == []


def test_a_room_is_gone_only_when_its_property_was_sold_without_it(lake, night):
    night(0, told(suite(71), suite(72)))
    night(1, {"errors": [{"code": 1023}]})
    night(2, told(suite(71, products=["nonsense", product()])))
    assert known(lake, "room_latest", "room_id") == [(71,), (72,)]
    night(3, told(suite(71)))
    assert known(lake, "room_latest", "room_id") == [(71,)]
    night(4, told(suite(72)), told(suite(71)))
    assert changes(lake, "room", "room_id, sweep_id")[2:] == [("gone", 72, sweep_id(3)), ("back", 72, sweep_id(4))]


def test_a_room_or_amenity_without_an_id_is_kept(lake, night):
    night(0, told(suite(None, roomAmenities=[{"name": "Sauna"}, {"id": 9}, {}])))
    night(1, told(suite(None, roomAmenities=[{"name": "Sauna"}, {"id": 9}])))
    assert known(lake, "room_latest", "room_id, room_name") == [(None, "Suite")]
    assert changes(lake, "room_amenity", "amenity_key, amenity_id, amenity_name") == [
        ("first", "9", 9, None),
        ("first", "~Sauna", None, "Sauna"),
    ]


def test_content_is_the_same_when_the_published_file_is_built_anew(lake, night):
    night(0, told(suite(71), suite(72)))
    night(1, told(suite(71, roomDescription="Larger.", images=["https://x.example/2.jpg"])))
    views = ("property_latest", "room_latest", "room_amenity_latest", "room_image_latest")
    before = {view: known(lake, view, "*") for view in views}
    held = {table.name: changes(lake, table.name, "*") for table in CONTENT_TABLES}
    lake.published_file.unlink()
    publish(lake, sweep_id(1), started_at(1))
    assert {view: known(lake, view, "*") for view in views} == before
    assert {table.name: changes(lake, table.name, "*") for table in CONTENT_TABLES} == held


def test_a_publication_that_was_stopped_between_two_tables_ends_the_same(lake, night, monkeypatch):
    from pipeline.publish import content

    night(0, told(suite()))
    real, calls = content._commit, []

    def stop_at_third(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(*given)

    changed = told(suite(roomDescription="Larger.", roomAmenities=[SAFE], images=[]), propertyName="Fjord Hotel")
    with monkeypatch.context() as patch:
        patch.setattr(content, "_commit", stop_at_third)
        with pytest.raises(KeyboardInterrupt):
            night(1, changed)
    publish(lake, sweep_id(1), started_at(1))
    assert known(lake, "property_latest", "property_name") == [("Fjord Hotel",)]
    assert known(lake, "room_latest", "room_description") == [("Larger.",)]
    assert known(lake, "room_amenity_latest", "amenity_id") == [(6,)]
    assert known(lake, "room_image_latest", "image_no") == []


def test_a_lake_of_before_content_was_kept_can_be_published(lake, night):
    night(0, told(suite()))
    for name in WORKING_TABLES:
        shutil.rmtree(lake.table_root(name), ignore_errors=True)
    lake.published_file.unlink()
    publish(lake, sweep_id(0), started_at(0))
    assert known(lake, "room_latest", "room_id") == [(71,)]


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("roomDescription", {"text": "Large."}, None),
        ("roomDescription", 7, "7"),
        ("bedTypeInfo", ["1 king bed"], None),
        ("images", "https://x.example/1.jpg", None),
        ("images", ["https://x.example/1.jpg", None, {}], ["https://x.example/1.jpg"]),
        ("roomAmenities", {"id": 5}, None),
        ("roomAmenities", [{"id": 2**70, "name": "?"}, {"id": "5", "name": "Pool", "icon": "~"}], [(5, "Pool")]),
    ],
)
def test_content_of_another_shape_is_noted_and_costs_no_offer(lake, field, value, stored):
    records = [record(0, told(suite(**{field: value})), property_ids=(1,), operation=SINGLE)]
    segment = land(lake, records, SINGLE)
    normalise_segment(lake, "20300101T020000Z-aaaaaa", segment, 4_000_000, {})
    found = tables_of(lake, segment.name)
    assert cells_of(found) == {1: ("offered", None, 1)}
    assert found["reject"].num_rows == 0
    assert any(field in path for path in found["drift"]["path"].to_pylist())
    import pyarrow.parquet as pq

    path = lake.local(lake.table_file("room_content", "20300101T020000Z-aaaaaa", segment.name))
    (row,) = pq.read_table(path).to_pylist()
    column = {"bedTypeInfo": "bed_type", "roomDescription": "room_description", "roomAmenities": "amenities"}.get(
        field, field
    )
    held = row[column]
    if column == "amenities" and held is not None:
        held = [(item["amenity_id"], item["amenity_name"]) for item in held]
    assert held == stored


def test_a_property_has_the_name_of_the_newest_file_else_that_of_a_detail_answer(lake, night, tmp_path):
    night(0, told(suite()))
    columns = "property_id, property_name, city, stars, brand, is_listed"
    found = [known(lake, "property", columns)]
    header = "property_id,property_name,city,stars,brand\n"
    for number, lines in enumerate(["1,Old,Oslo,3,B\n", "1,,Oslo,4.5,Nordic\n3,Sole,Roma,,\n", "3,Sole,Roma,,\n"]):
        file = tmp_path / f"{number}.csv"
        file.write_text(header + lines)
        load(lake, "properties", file, started_at(number))
        assert refresh(lake)
        found.append(known(lake, "property", columns))
    sole = (3, "Sole", "Roma", None, None, True)
    assert found == [
        [(1, "Fjord", None, None, None, False)],
        [(1, "Old", "Oslo", 3.0, "B", True)],
        [(1, "Fjord", "Oslo", 4.5, "Nordic", True), sole],
        [(1, "Fjord", None, None, None, False), sole],
    ]


def test_polars_reads_every_table_of_a_published_lake(lake, night):
    night(0, told(suite()))
    tables = sorted(place.name for place in lake.table_root("room").parent.iterdir())
    assert {"offer", "room", "search", "sweep"} <= set(tables)
    counts = {name: pl.scan_delta(str(lake.table_root(name))).select(pl.len()).collect().item() for name in tables}
    assert (counts["room"], counts["offer"]) == (1, 1)
