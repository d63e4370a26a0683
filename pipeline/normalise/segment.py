"""One segment of a sweep: its raw shards in, one Parquet file a table out.

The same shards always give the same files. Files appear complete under their names, the `cell` file last: if it exists,
the segment is done.
"""

import gc
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.search import NODES_PER_SEARCH, CellStatus, Operation
from pipeline.domain.shards import Segment, Shard
from pipeline.domain.tables import PROPERTY_CONTENT, ROOM_CONTENT
from pipeline.lake import Lake
from pipeline.lake.raw import RawRecord, raw_address, read_shard, second_look
from pipeline.normalise.interned import Interned
from pipeline.normalise.parquet import encode_table
from pipeline.normalise.read_answer import Reading, read_answer
from pipeline.normalise.refusals import Refusal
from pipeline.normalise.request import Asked, asked_for, asked_of_request, sent_ids, under_own_id
from pipeline.normalise.rows import SegmentRows
from pipeline.supplier.bodies import UnreadableBody, inflate
from pipeline.supplier.error_bodies import error_codes, error_messages

# Raised whenever the same raw answers give different rows.
RULES_VERSION = 8

# Tables for which a segment may have no rows.
_HELD = frozenset(
    {"search", "offer", "penalty", "promotion", "reject", "drift", PROPERTY_CONTENT.name, ROOM_CONTENT.name}
)


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """What a segment held."""

    offers: int
    rejects: int
    cells_by_status: dict[str, int]
    unanswered: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Properties, by search id, that an answer says nothing about: it is unreadable, or the server failed."""
    in_doubt: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """By search id: how many parts of an answer have no id, and the properties not listed that they may be of."""


@dataclass(frozen=True, slots=True)
class _Note:
    """A note in the last file of a segment about all of them, so that a lost or truncated file is noticed."""

    shards: tuple[str, ...]
    file_bytes: dict[str, int]
    result: SegmentResult


_NOTE = "nightaudit.segment"


def done(lake: Lake, sweep_id: str, segment: Segment) -> SegmentResult | None:
    """Return the result of a segment if all its files are complete and made from the present shards."""
    try:
        metadata = pq.read_metadata(lake.local(lake.table_file("cell", sweep_id, segment.name))).metadata or {}
        note = msgspec.json.decode(metadata[_NOTE.encode()], type=_Note)
        sizes = {
            name: lake.local(lake.table_file(name, sweep_id, segment.name)).stat().st_size for name in note.file_bytes
        }
    except (OSError, KeyError, pa.ArrowException, msgspec.MsgspecError):
        return None
    return note.result if sizes == note.file_bytes and note.shards == _shards_there(lake, sweep_id, segment) else None


def _shards_there(lake: Lake, sweep_id: str, segment: Segment) -> tuple[str, ...]:
    names = (name for shard in segment.shards for name in (shard.name, second_look(shard.name)))
    return tuple(name for name in names if lake.exists(lake.shard_path(sweep_id, name)))


def unanswered(
    body: bytes, content_encoding: str, operation: Operation, property_ids: tuple[int, ...], max_body_bytes: int
) -> tuple[int, ...]:
    """Return the properties that a 200 leaves open or in doubt, read as its rows would be."""
    try:
        plain = inflate(body, content_encoding, limit_bytes=max_body_bytes)
    except UnreadableBody:
        return property_ids
    reading = read_answer(plain, operation, frozenset(property_ids), Interned())
    return reading.unanswered(property_ids) or reading.in_doubt(property_ids)


def normalise_segment(
    lake: Lake, sweep_id: str, segment: Segment, max_body_bytes: int, unasked: dict[int, Asked]
) -> SegmentResult:
    """Read the segment's shards and write its files.

    `unasked` are the searches, by id, of shards that will never land because the sweep has ended.
    Raises CorruptObject for a damaged shard, FileNotFoundError for a missing one, LakeFull.
    """
    # The rows are freed before the garbage collector is enabled again, so it never walks through them.
    with _without_collector():
        built, open_ids, in_doubt = _tables(lake, sweep_id, segment, max_body_bytes, unasked)
    rows_of = {name: table.num_rows for name, table in built.items()}
    statuses = built["cell"]["status"].value_counts().to_pylist()
    cells_by_status = {count["values"]: count["counts"] for count in statuses}
    result = SegmentResult(rows_of.get("offer", 0), rows_of.get("reject", 0), cells_by_status, open_ids, in_doubt)
    file_bytes: dict[str, int] = {}
    # An earlier attempt may have written files of tables that have no rows now, after properties were requested again.
    for name in _HELD - built.keys():
        lake.remove(lake.table_file(name, sweep_id, segment.name))
    for name, table in built.items():
        note = msgspec.json.encode(_Note(_shards_there(lake, sweep_id, segment), file_bytes, result))
        data = encode_table(table, {_NOTE: note.decode()} if name == "cell" else None)
        file_bytes[name] = len(data)
        lake.put(lake.table_file(name, sweep_id, segment.name), data)
    return result


def _tables(
    lake: Lake, sweep_id: str, segment: Segment, max_body_bytes: int, unasked: dict[int, Asked]
) -> tuple[dict[str, pa.Table], dict[int, tuple[int, ...]], dict[int, tuple[int, tuple[int, ...]]]]:
    """Return the rows of a segment by table and, by search, the properties that its answer leaves open or in doubt."""
    rows = SegmentRows(sweep_id, segment.partition.operation, segment.partition.market, segment.number)
    for shard in segment.shards:
        first, stop = shard.start, shard.stop
        missing = {key: asked for key, asked in unasked.items() if first <= key // NODES_PER_SEARCH < stop}
        if missing:
            for search_id, asked in missing.items():
                rows.add_unasked(search_id, asked)
            continue
        for address, record, asked_again in _records(lake, sweep_id, shard):
            _add(rows, record, address, segment.partition.operation, max_body_bytes, asked_again)
    return rows.arrow_tables(), rows.unanswered, rows.in_doubt


def _records(lake: Lake, sweep_id: str, shard: Shard) -> Iterator[tuple[str, RawRecord, frozenset[int]]]:
    """Yield a shard's records with their addresses and the properties of each that were requested again.

    Records of the second look come last.
    """
    again = second_look(shard.name)
    later = read_shard(lake, sweep_id, again) if lake.exists(lake.shard_path(sweep_id, again)) else []
    asked_again = _asked_again(later)
    for name, records in ((shard.name, read_shard(lake, sweep_id, shard.name)), (again, later)):
        for number, record in enumerate(records):
            since = frozenset(asked_again.get(record.search_id, ()))
            is_split = record.is_split or (bool(since) and since.issuperset(_asked_of(record).property_ids))
            yield raw_address(sweep_id, name, number), replace(record, is_split=is_split), since


def _asked_again(later: Iterable[RawRecord]) -> Mapping[int, set[int]]:
    """Return the properties of each search, by id, that its halves requested again."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    for record in later:
        # The search that a half belongs to: same planned search, half the node.
        node = record.search_id % NODES_PER_SEARCH
        found[record.search_id - node + node // 2].update(_asked_of(record).property_ids)
    return found


def _asked_of(record: RawRecord) -> Asked:
    """Return what a record requested, by the property ids of the plan."""
    return asked_for(asked_of_request(record.request), record.own_property_id)


def rows_of_answers(
    sweep_id: str, operation: Operation, market: str, answers: Iterable[tuple[str, RawRecord]], max_body_bytes: int
) -> dict[str, pa.Table]:
    """Return the rows, by table, that segments hold of some answers of one operation and market.

    Each answer comes with its raw address.
    """
    rows = SegmentRows(sweep_id, operation, market, 0)
    given = list(answers)
    asked_again = _asked_again(record for _, record in given)
    for address, record in given:
        _add(rows, record, address, operation, max_body_bytes, asked_again.get(record.search_id, ()))
    return rows.arrow_tables()


def _add(
    rows: SegmentRows,
    record: RawRecord,
    address: str,
    operation: Operation,
    max_body_bytes: int,
    asked_again: Container[int] = (),
) -> None:
    """Add one record's rows."""
    asked = _asked_of(record)
    if record.is_split:
        rows.add_split(record, asked, address)
    elif record.failure or record.http_status != 200:
        is_refused = not record.failure and record.http_status == 400
        codes = error_codes(record.body, record.content_encoding)
        messages = error_messages(record.body, record.content_encoding)
        status = CellStatus.REJECTED if is_refused else CellStatus.FAILED
        rows.add_unanswered(record, asked, address, status, codes, messages)
    else:
        reading, size = _read(rows, record, asked, operation, max_body_bytes)
        rows.add_answered(record, asked, address, reading, size, asked_again)


def _read(
    rows: SegmentRows, record: RawRecord, asked: Asked, operation: Operation, max_body_bytes: int
) -> tuple[Reading, int | None]:
    """Return the reading of a body and its inflated size; a body that cannot be decompressed is a refusal."""
    try:
        body = inflate(record.body, record.content_encoding, limit_bytes=max_body_bytes)
    except UnreadableBody as error:
        return Reading(is_unreadable=True, refusals=[Refusal("answer", None, "$", str(error), "")]), None
    reading = read_answer(body, operation, sent_ids(asked), rows.interned)
    if reading.has_errors:
        reading.messages = error_messages(body, limit_bytes=max_body_bytes)
    return under_own_id(reading, asked), len(body)


@contextmanager
def _without_collector() -> Iterator[None]:
    # Decoding creates a hundred thousand small objects without cycles; walking them would take a third of the time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
