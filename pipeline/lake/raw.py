"""The raw zone: requests and answers, untouched.

A shard is a Parquet object with one row per HTTP search, with the body's wire bytes as received. Bodies are stored
without further compression (they come compressed), and each page carries a checksum, so that reading notices a damaged
shard.
"""

import dataclasses
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any, get_args

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.domain.addresses import host_alone
from pipeline.domain.errors import CorruptObject, UnknownSweep, first_line
from pipeline.domain.shards import Partition, Shard, all_segments
from pipeline.lake.lake import Lake
from pipeline.lake.records import read_record, write_record

_HINT = "Restore it from a backup; the raw answers are untouched."
# The form of a sweep's id, so that no mistyped id leads out of the raw zone.
_SWEEP_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]*")


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One HTTP search with its answer.

    `is_split` marks a batch that kept failing and whose halves follow as records. `failure` is empty if the supplier
    answered; `http_status` and `body` are those of the last attempt, if any. `own_property_id` is the planned property
    of a search that was sent under the id of another (an opaque offer).
    """

    search_id: int
    request: bytes
    http_status: int | None
    content_type: str
    content_encoding: str
    headers: str
    body: bytes
    started_at: datetime
    ended_at: datetime
    attempts: int
    failure: str
    failure_detail: str
    is_split: bool
    own_property_id: int | None = None


_KINDS = {
    int: pa.int64(),
    str: pa.string(),
    bytes: pa.binary(),
    bool: pa.bool_(),
    datetime: pa.timestamp("us", tz="UTC"),
}
_SMALL = frozenset({"http_status", "attempts"})


def _column(name: str, annotation: Any) -> pa.Field:  # noqa: ANN401 - an annotation
    kind, *nothing = get_args(annotation) or (annotation,)
    return pa.field(name, pa.int16() if name in _SMALL else _KINDS[kind], nullable=bool(nothing))


_SCHEMA = pa.schema([_column(each.name, each.type) for each in fields(RawRecord)])
_COMPRESSION = {name: "none" if name == "body" else "zstd" for name in _SCHEMA.names}


def encode_shard(records: Sequence[RawRecord]) -> bytes:
    """Return a shard's bytes. Rows are ordered by search, so equal answers make equal bytes."""
    ordered = sorted(records, key=lambda record: record.search_id)
    columns = [pa.array([getattr(record, field.name) for record in ordered], type=field.type) for field in _SCHEMA]
    # A Python file object would copy the bodies several times.
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays(columns, schema=_SCHEMA),
        sink,
        compression=_COMPRESSION,
        use_dictionary=False,
        write_statistics=["search_id"],
        write_page_checksum=True,
        store_schema=False,
    )
    return bytes(sink.getvalue())


def read_shard(lake: Lake, sweep_id: str, shard_name: str) -> list[RawRecord]:
    """Return a shard's records. Raises FileNotFoundError, or CorruptObject if the bytes are damaged."""
    path = lake.shard_path(sweep_id, shard_name)
    data = lake.get(path)
    try:
        table = _whole_table(data)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptObject(
            f"The raw shard {lake.local(path)} is damaged: {first_line(error)}",
            kept="All other shards are untouched.",
            hint="Restore it from a backup. If there is none, and the sweep has not ended, move it away and run: "
            "nightaudit resume",
        ) from None
    return [RawRecord(*row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def _whole_table(data: bytes) -> pa.Table:
    # Checksums protect only the pages. A damaged footer may name other columns, which would be read as NULL.
    table = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read()
    if table.schema.names != _SCHEMA.names:
        raise ValueError("its columns are not those of a shard")
    table = table.cast(_SCHEMA)
    table.validate(full=True)
    return table


def raw_address(sweep_id: str, shard_name: str, row: int) -> str:
    """Return the address of a raw answer."""
    return f"{Lake.shard_path(sweep_id, shard_name)}#{row}"


def second_look(shard_name: str) -> str:
    """Return the name of the shard of properties that this shard's answers left open and that were requested again."""
    return f"{shard_name}-again"


def landed(lake: Lake, sweep_id: str) -> set[str]:
    """Names of the shards that have landed."""
    return lake.names(lake.raw_folder(sweep_id), ".parquet")


def retire_shards(lake: Lake, sweep_id: str) -> None:
    """Remove the raw answers of a sweep whose retention has ended; manifest and ending stay, with a note."""
    lake.put_new(_retirement(lake, sweep_id), b"{}")
    for name in sorted(landed(lake, sweep_id)):
        lake.remove(lake.shard_path(sweep_id, name))


def is_retired(lake: Lake, sweep_id: str) -> bool:
    """Whether the raw answers of a sweep were removed because their retention has ended."""
    return lake.exists(_retirement(lake, sweep_id))


def _retirement(lake: Lake, sweep_id: str) -> str:
    return f"{lake.raw_folder(sweep_id)}/retired.json"


def has_answer(lake: Lake, sweep_id: str) -> bool:
    """Whether any search of a sweep was answered without a failure, or may have been: a shard is damaged."""
    if is_retired(lake, sweep_id):
        return True
    try:
        return any(not it.failure for name in sorted(landed(lake, sweep_id)) for it in read_shard(lake, sweep_id, name))
    except CorruptObject:
        return True


@dataclass(frozen=True, slots=True)
class Manifest:
    """The request of a sweep, written once before the first search. Resuming needs nothing else."""

    sweep_id: str
    started_at: datetime
    snapshot_date: date
    is_simulated: bool
    supplier: str
    spec: str
    property_ids: tuple[int, ...]
    partitions: tuple[Partition, ...]
    cells: int
    send_rate_type: bool
    plan_version: int
    nightaudit_version: str
    contract_version: str
    detail_property_ids: tuple[int, ...] | None = None
    """Properties that the rules of the spec chose for single searches; None: it has no rules."""

    def shards(self) -> Iterator[Shard]:
        """Yield the shards that its searches land in, in the order of the plan."""
        return (shard for segment in all_segments(self.partitions) for shard in segment.shards)

    @property
    def searches(self) -> int:
        """Number of planned searches."""
        return sum(partition.searches for partition in self.partitions)

    def searches_in(self, names: Container[str]) -> int:
        """Return the number of searches in the shards of these names."""
        return sum(shard.searches for shard in self.shards() if shard.name in names)


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a sweep. Cells of shards that have not landed by then are `not_swept`."""

    finished_at: datetime
    is_complete: bool


def write_manifest(lake: Lake, manifest: Manifest) -> bool:
    """Write a sweep's manifest. False: a sweep of that id was started before."""
    return write_record(lake, lake.manifest_path(manifest.sweep_id), manifest)


def read_manifest(lake: Lake, sweep_id: str) -> Manifest:
    """Read a sweep's manifest. Raises UnknownSweep or CorruptObject."""
    try:
        if not _SWEEP_ID.fullmatch(sweep_id):
            raise FileNotFoundError(sweep_id)
        manifest = read_record(lake, lake.manifest_path(sweep_id), Manifest, kept="", hint=_HINT)
        # Earlier versions stored the host as the settings spelled it.
        return dataclasses.replace(manifest, supplier=host_alone(manifest.supplier))
    except FileNotFoundError:
        known = lake.sweep_ids()
        raise UnknownSweep(
            f"The lake {lake.root} holds no sweep {sweep_id!r}.",
            hint=f"The latest is {known[-1]}. List them with: nightaudit status"
            if known
            else "Start one: nightaudit nightly",
        ) from None


def drop_sweep(lake: Lake, sweep_id: str) -> None:
    """Remove a sweep that has landed nothing; nothing refers to it."""
    lake.remove(lake.manifest_path(sweep_id))
    # Without its manifest it is not a sweep, so a crash here leaves just an empty folder.
    lake.remove_folder(lake.raw_folder(sweep_id))


def write_ending(lake: Lake, sweep_id: str, ending: Ending) -> bool:
    """Mark a sweep as ended. False: it had ended before."""
    return lake.put_new(lake.ending_path(sweep_id), msgspec.json.encode(ending))


def read_ending(lake: Lake, sweep_id: str) -> Ending | None:
    """Read a sweep's ending; None: it has not ended."""
    try:
        return read_record(lake, lake.ending_path(sweep_id), Ending, kept="", hint=_HINT)
    except FileNotFoundError:
        return None
