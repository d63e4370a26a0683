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
from pipeline.lake import Lake
from pipeline.lake.database import query_published
from pipeline.lake.delta import commit_files
from pipeline.normalise.segment import normalise_segment
from pipeline.publish import publish
from pipeline.publish.refresh import refresh
from pipeline.sweep.load import SEGMENT_TABLES

pytestmark = pytest.mark.slow

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


def reported(*rooms, **fields):
    return {
        "property": {"propertyId": 1, "propertyName": "Fjord", "currencyCode": "EUR", "roomStays": list(rooms)} | fields
    }


# What each property answers, by the number of the night; all are published together, and none touches another.
FIRST, SAME, CHANGED, SILENT, EMPTIED, SOLD_OUT, NAMELESS = range(1, 8)
ANSWERS = {
    FIRST: {0: [reported(suite())]},
    SAME: {0: [reported(suite())], 1: [reported(suite()), reported(suite())]},
    CHANGED: {
        0: [reported(suite())],
        1: [
            reported(suite(), propertyName="Fjord Hotel"),
            reported(suite(roomDescription="Larger.", roomAmenities=[SAFE])),
        ],
        2: [
            reported(
                suite(roomDescription="Larger.", images=["https://x.example/2.jpg"], roomAmenities=[SAFE]),
                propertyName="Fjord Hotel",
            )
        ],
    },
    SILENT: {
        0: [reported(suite())],
        1: [{"property": {"roomStays": [{"id": 0, "roomId": 71, "products": [product()]}]}}],
        2: [reported(suite(roomDescription=None, images=None, roomAmenities=None), propertyName=None)],
    },
    EMPTIED: {0: [reported(suite())], 1: [reported(suite(images=[], roomAmenities=[]))]},
    SOLD_OUT: {
        0: [reported(suite(71), suite(72))],
        1: [{"errors": [{"code": 1023}]}],
        2: [reported(suite(71, products=["nonsense", product()]))],
        3: [reported(suite(71))],
        4: [reported(suite(72)), reported(suite(71))],
    },
    NAMELESS: {
        0: [reported(suite(None, roomAmenities=[{"name": "Sauna"}, {"id": 9}, {}]))],
        1: [reported(suite(None, roomAmenities=[{"name": "Sauna"}, {"id": 9}]))],
    },
}
NIGHTS = 5
# A property that is in a file of the user's alone.
LISTED = 99
VIEWS = ("property_latest", "room_latest", "room_amenity_latest", "room_image_latest")


def publish_night(lake, number: int, answers):
    """Load and publish a night whose single searches are answered like this: (property, body) each."""
    sweep = sweep_id(number)
    records = [
        record(n, _of(property_id, body), property_ids=(property_id,), operation=SINGLE)
        for n, (property_id, body) in enumerate(answers)
    ]
    segment = land(lake, records, SINGLE, sweep)
    normalise_segment(lake, sweep, segment, 4_000_000, {})
    for name in SEGMENT_TABLES:
        path = lake.table_file(name, sweep, segment.name)
        if lake.exists(path):
            commit_files(lake, TABLES[name], {sweep: [path]})
    finish(lake, number)
    return publish(lake, sweep, started_at(number))


def _of(property_id: int, body):
    """The answer as one about this property."""
    return {"property": body["property"] | {"propertyId": property_id}} if "property" in body else body


@pytest.fixture(scope="module")
def published(once_a_run) -> Lake:
    """The nights of all those answers; nothing is written to it."""

    def make(folder):
        made = Lake(str(folder / "lake"))
        for number in range(NIGHTS):
            answers = [(key, body) for key, nights in ANSWERS.items() for body in nights.get(number, ())]
            publish_night(made, number, answers)
        return made

    return once_a_run("nights-of-content", make)


@pytest.fixture
def copied(published, tmp_path) -> Lake:
    """A copy to write to. Its views read the files of the first one until the next publication."""
    shutil.copytree(published.root, tmp_path / "lake")
    return Lake(str(tmp_path / "lake"))


def changes(lake, table, columns, of=None):
    order = "ALL" if columns == "*" else f"changed_at, change, {columns}"
    where = f"WHERE property_id = {of}" if of else ""
    query = f"SELECT change, {columns} FROM lake.{table} {where} ORDER BY {order}"  # noqa: S608 - our own names
    return query_published(lake.published_file, query).fetchall()


def known(lake, view, columns, of=None):
    where = f"WHERE property_id = {of}" if of else ""
    query = f"SELECT {columns} FROM mart.{view} {where} ORDER BY ALL"  # noqa: S608 - our own names
    return query_published(lake.published_file, query).fetchall()


def test_what_a_first_night_tells_is_all_first_seen(published):
    assert changes(published, "property", "property_name, search_id", FIRST) == [("first", "Fjord", 1)]
    assert changes(published, "room", "room_id, room_name, room_description, bed_type", FIRST) == [
        ("first", 71, "Suite", "Large.", "1 king bed")
    ]
    assert changes(published, "room_amenity", "amenity_id, amenity_name", FIRST) == [
        ("first", 5, "Pool"),
        ("first", 6, "Safe"),
    ]
    assert changes(published, "room_image", "image_no, image_url", FIRST) == [
        ("first", 0, "https://x.example/1.jpg"),
        ("first", 1, "https://x.example/2.jpg"),
    ]


def test_an_unchanged_night_adds_nothing_and_leaves_no_copy_behind(published):
    for table in CONTENT_TABLES:
        assert {row[1] for row in changes(published, table.name, "sweep_id", SAME)} == {sweep_id(0)}
    for name in WORKING_TABLES:
        assert list(published.table_root(name).rglob("*.parquet")) == []


def test_each_change_leads_to_its_sweep_and_search(published):
    query = (
        "SELECT sweep_id, list(search_id ORDER BY search_id) FROM lake.cell WHERE property_id = $of GROUP BY ALL "
        "ORDER BY ALL"
    )
    asked = dict(query_published(published.published_file, query, {"of": CHANGED}).fetchall())
    assert changes(published, "property", "property_name, sweep_id", CHANGED)[1:] == [
        ("value", "Fjord Hotel", sweep_id(1))
    ]
    (only,) = asked[sweep_id(2)]
    assert changes(published, "room", "room_description, search_id, sweep_id", CHANGED)[1:] == [
        ("value", "Larger.", only, sweep_id(2))
    ]
    assert changes(published, "room_amenity", "amenity_id, sweep_id", CHANGED)[2:] == [("gone", 5, sweep_id(2))]
    assert changes(published, "room_image", "image_no, image_url, search_id, sweep_id", CHANGED)[2:] == [
        ("gone", 0, "https://x.example/1.jpg", only, sweep_id(2)),
        ("value", 0, "https://x.example/2.jpg", only, sweep_id(2)),
    ]
    assert known(published, "room_amenity_latest", "amenity_name", CHANGED) == [("Safe",)]


def test_what_an_answer_does_not_state_changes_nothing(published):
    for table in CONTENT_TABLES:
        assert {row[1] for row in changes(published, table.name, "sweep_id", SILENT)} == {sweep_id(0)}


def test_an_empty_list_is_a_statement(published):
    assert changes(published, "room_image", "image_no", EMPTIED) != []
    assert known(published, "room_image_latest", "image_url", EMPTIED) == []
    assert known(published, "room_amenity_latest", "amenity_id", EMPTIED) == []


def test_a_room_is_gone_only_when_its_property_was_sold_without_it(published):
    assert changes(published, "room", "room_id, sweep_id", SOLD_OUT) == [
        ("first", 71, sweep_id(0)),
        ("first", 72, sweep_id(0)),
        ("gone", 72, sweep_id(3)),
        ("back", 72, sweep_id(4)),
    ]
    assert known(published, "room_latest", "room_id", SOLD_OUT) == [(71,), (72,)]


def test_a_room_or_amenity_without_an_id_is_kept(published):
    assert known(published, "room_latest", "room_id, room_name", NAMELESS) == [(None, "Suite")]
    assert changes(published, "room_amenity", "amenity_key, amenity_id, amenity_name", NAMELESS) == [
        ("first", "9", 9, None),
        ("first", "~Sauna", None, "Sauna"),
    ]


def test_content_is_the_same_when_the_published_file_is_rebuilt(copied):
    before = {view: known(copied, view, "*") for view in VIEWS}
    held = {table.name: changes(copied, table.name, "*") for table in CONTENT_TABLES}
    copied.published_file.unlink()
    publish(copied, sweep_id(NIGHTS - 1), started_at(NIGHTS - 1))
    assert {view: known(copied, view, "*") for view in VIEWS} == before
    assert {table.name: changes(copied, table.name, "*") for table in CONTENT_TABLES} == held


def test_a_publication_that_was_stopped_between_two_tables_ends_the_same(copied, monkeypatch):
    from pipeline.publish import content

    real, calls = content._commit, []

    def stop_at_third(*given):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        real(*given)

    changed = reported(suite(roomDescription="Larger.", roomAmenities=[SAFE], images=[]), propertyName="Fjord Hotel")
    with monkeypatch.context() as patch:
        patch.setattr(content, "_commit", stop_at_third)
        with pytest.raises(KeyboardInterrupt):
            publish_night(copied, NIGHTS, [(FIRST, changed)])
    publish(copied, sweep_id(NIGHTS), started_at(NIGHTS))
    assert known(copied, "property_latest", "property_name", FIRST) == [("Fjord Hotel",)]
    assert known(copied, "room_latest", "room_description", FIRST) == [("Larger.",)]
    assert known(copied, "room_amenity_latest", "amenity_id", FIRST) == [(6,)]
    assert known(copied, "room_image_latest", "image_no", FIRST) == []


def test_a_lake_of_before_content_was_kept_can_be_published(lake):
    publish_night(lake, 0, [(FIRST, reported(suite()))])
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
    records = [record(0, reported(suite(**{field: value})), property_ids=(1,), operation=SINGLE)]
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


def test_a_property_has_the_name_of_the_newest_file_else_that_of_a_detail_answer(copied, tmp_path):
    columns = "property_id, property_name, city, stars, brand, is_listed"

    def found():
        return [row for row in known(copied, "property", columns) if row[0] in {FIRST, LISTED}]

    shown = [found()]
    header = "property_id,property_name,city,stars,brand\n"
    sole = f"{LISTED},Sole,Roma,,\n"
    for number, lines in enumerate([f"{FIRST},Old,Oslo,3,B\n", f"{FIRST},,Oslo,4.5,Nordic\n{sole}", sole]):
        file = tmp_path / f"{number}.csv"
        file.write_text(header + lines)
        load(copied, "properties", file, started_at(number))
        assert refresh(copied)
        shown.append(found())
    of_the_file = (LISTED, "Sole", "Roma", None, None, True)
    assert shown == [
        [(FIRST, "Fjord", None, None, None, False)],
        [(FIRST, "Old", "Oslo", 3.0, "B", True)],
        [(FIRST, "Fjord", "Oslo", 4.5, "Nordic", True), of_the_file],
        [(FIRST, "Fjord", None, None, None, False), of_the_file],
    ]


def test_polars_reads_every_table_of_a_published_lake(published):
    tables = sorted(place.name for place in published.table_root("room").parent.iterdir())
    assert {"offer", "room", "search", "sweep"} <= set(tables)
    counts = {name: pl.scan_delta(str(published.table_root(name))).select(pl.len()).collect().item() for name in tables}
    answered = sum(len(bodies) for nights in ANSWERS.values() for bodies in nights.values())
    assert (counts["sweep"], counts["search"]) == (NIGHTS, answered)
    assert counts["room"] == len(changes(published, "room", "room_id"))
