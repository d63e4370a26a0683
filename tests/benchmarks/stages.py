"""Where normalising spends its CPU: each stage once more by itself, a profile for whoever wants it faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from benchmarks.measuring import Row, collector_off, cpu_seconds
from msgspec.json import Decoder

from pipeline.domain.shards import Partition, segments
from pipeline.lake import Lake
from pipeline.load import load_partition
from pipeline.normalise.answer import read_answer
from pipeline.normalise.interned import Interned
from pipeline.normalise.request import asked_of_request
from pipeline.normalise.segment import encode_table, normalise_segment, rows_of_answers
from pipeline.normalise.wire import MultiAnswer
from pipeline.raw import read_shard
from pipeline.supplier.bodies import inflate

_LIMIT_BYTES = 64_000_000

T = TypeVar("T")


def stages(lake: Lake, sweep_id: str, partition: Partition, part: str) -> list[Row]:
    """Normalise and load a partition of gzipped answers that have landed; return each stage's share in percent."""
    cut = list(segments(partition))
    # Once before: memory that is asked for the first time is dearer.
    normalise_segment(lake, sweep_id, cut[0], _LIMIT_BYTES, {})
    whole = _cpu_of(lambda segment: normalise_segment(lake, sweep_id, segment, _LIMIT_BYTES, {}), cut)
    committing = _cpu_of(lambda each: load_partition(lake, sweep_id, each), [partition])
    shards = [
        [record for shard in segment.shards for record in read_shard(lake, sweep_id, shard.name)] for segment in cut
    ]
    records = [record for segment in shards for record in segment]
    bodies: list[bytes] = []
    tables = []
    interned = Interned()

    def inflated(body: bytes) -> None:
        bodies.append(inflate(body, "gzip", limit_bytes=_LIMIT_BYTES))

    def in_rows(segment: int) -> None:
        answers = (("", record) for record in shards[segment])
        built = rows_of_answers(sweep_id, partition.operation, partition.market, answers, _LIMIT_BYTES)
        tables.extend(built.values())

    def read(body: bytes) -> None:
        read_answer(body, partition.operation, asked, interned)

    asked = frozenset(house for record in records for house in asked_of_request(record.request).property_ids)
    with collector_off():
        inflating = _cpu_of(inflated, [record.body for record in records])
        decoding = _cpu_of(Decoder(MultiAnswer).decode, bodies)
        reading = _cpu_of(read, bodies)
        until_rows = _cpu_of(in_rows, range(len(cut)))
        encoding = _cpu_of(encode_table, tables)
    found = {
        "inflating bodies": inflating,
        "decoding them": decoding,
        "columns of each answer, checked": reading - decoding,
        "tables of a segment": until_rows - reading - inflating,
        "encoding Parquet": encoding,
        "reading raw, landing files": whole - until_rows - encoding,
        "committing": committing,
    }
    return [
        Row(part, f"nightaudit's CPU, the share of {stage}", 100 * cost / (whole + committing), "%")
        for stage, cost in found.items()
    ]


def _cpu_of(step: Callable[[T], object], items: Iterable[T]) -> float:
    began = cpu_seconds()
    for item in items:
        step(item)
    return cpu_seconds() - began
