"""Hand-made raw answers, landed and normalised: the starting point of tests of the stages after collection."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.search import NODES_PER_SEARCH, Operation
from pipeline.domain.shards import Partition, segments
from pipeline.domain.tables import TABLES
from pipeline.lake import Lake
from pipeline.lake.raw import RawRecord, encode_shard
from pipeline.normalise.segment import normalise_segment
from pipeline.sweep.load import SEGMENT_TABLES

SWEEP = "20300101T020000Z-aaaaaa"
STARTED = datetime(2030, 1, 1, 2, tzinfo=UTC)
MAX_BODY = 4_000_000


def request(property_ids, operation=Operation.MULTI, **changed) -> bytes:
    """The JSON of a request as the client sends it."""
    asked = {"propertyIds": list(property_ids)} if operation is Operation.MULTI else {"propertyId": property_ids[0]}
    return json.dumps(
        asked
        | {
            "checkIn": "2030-02-01",
            "checkOut": "2030-02-03",
            "market": "GB",
            "currencyCode": "EUR",
            "rateType": "BAR",
            "productType": "Hotel",
            "roomStays": [{"id": 0, "guestCount": {"adultCount": 2}}],
        }
        | changed
    ).encode()


def record(number=0, body: object = b"{}", property_ids=(1, 2), operation=Operation.MULTI, node=1, **given):
    """One raw record; `body` is the received bytes, or a value to encode as JSON."""
    plain = body if isinstance(body, bytes) else json.dumps(body).encode()
    started = STARTED + timedelta(seconds=number)
    defaults = {
        "search_id": number * NODES_PER_SEARCH + node,
        "request": request(property_ids, operation),
        "http_status": 200,
        "content_type": "application/json",
        "content_encoding": "",
        "headers": "{}",
        "body": plain,
        "started_at": started,
        "ended_at": started + timedelta(milliseconds=120),
        "attempts": 1,
        "failure": "",
        "failure_detail": "",
        "is_split": False,
    }
    return RawRecord(**(defaults | given))


def land(lake: Lake, records, operation=Operation.MULTI, sweep_id=SWEEP, searches=32):
    """Land records as the first shard of a partition, and return its one segment."""
    partition = Partition(operation, "GB", 0, searches)
    (segment,) = segments(partition)
    lake.put_new(lake.shard_path(sweep_id, segment.shards[0].name), encode_shard(records))
    return segment


def normalised(lake: Lake, records, operation=Operation.MULTI, max_body=MAX_BODY) -> dict[str, pa.Table]:
    """Land and normalise records, and return every table of the segment; a table without rows is empty."""
    segment = land(lake, records, operation)
    normalise_segment(lake, SWEEP, segment, max_body, {})
    return tables_of(lake, segment.name)


def tables_of(lake: Lake, name: str, sweep_id=SWEEP) -> dict[str, pa.Table]:
    found = {}
    for table in SEGMENT_TABLES:
        path = lake.table_file(table, sweep_id, name)
        schema = TABLES[table].schema
        found[table] = pq.read_table(lake.local(path)).cast(schema) if lake.exists(path) else schema.empty_table()
    return found


def cells_of(tables: dict[str, pa.Table]) -> dict[int, tuple[str, int | None, int]]:
    """Status, code and offers of each property."""
    rows = tables["cell"].to_pylist()
    found = {row["property_id"]: (row["status"], row["code"], row["offers"]) for row in rows}
    assert len(found) == len(rows), "a property has two cells"
    return found


def product(**fields):
    """A well-formed product of a multi answer."""
    return {
        "productId": 900,
        "boardBasis": {"id": 14, "name": "Room Only", "detail": "no meals"},
        "charges": {"total": 100.5, "minSellablePrice": 110, "prePromoTotal": 120.25, "discountPercentage": 16.4},
        "promotions": [{"promoType": "Discount off", "description": "Early bird"}],
        "cancelPenalties": [
            {"penaltyWindow": 48, "penaltyPercentage": 50, "penaltyNights": 1, "refundable": True},
            {"penaltyWindow": 24, "penaltyPercentage": 100.0, "refundable": True},
        ],
    } | fields


def room(products=None, **fields):
    """A well-formed room stay of a multi answer."""
    return {
        "id": 0,
        "roomId": 7001,
        "roomName": "Double",
        "rateType": "BAR",
        "availableRooms": 4,
        "products": [product()] if products is None else products,
    } | fields


def hotel(property_id=1, rooms=None, **fields):
    """A well-formed property of a multi answer."""
    return {
        "propertyId": property_id,
        "currencyCode": "EUR",
        "roomStays": [room()] if rooms is None else rooms,
    } | fields


def answer(*hotels, **fields):
    """A multi answer."""
    return {"properties": list(hotels)} | fields
