"""Where normalising spends its CPU: each stage once more by itself, a profile for whoever wants it faster."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import pyarrow as pa
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
from pipeline.raw import RawRecord, read_shard
from pipeline.supplier.bodies import inflate

_LIMIT_BYTES = 64_000_000

T = TypeVar("T")


def stages(lake: Lake, sweep_id: str, partition: Partition, part: str, rounds: int) -> list[Row]:
    """Normalise and load a partition of gzipped answers that have landed; return each stage's share in percent.

    Each is the least of some rounds: what else the machine does would make one stage seem dearer than all of them.
    """
    found = [_round(lake, sweep_id, partition) for _ in range(rounds)]
    least = {stage: min(costs[stage] for costs in found) for stage in found[0]}
    reading, until_rows = least["reading answers"], least["until rows"]
    whole = least["whole"] + least["committing"]
    shares = {
        "inflating bodies": least["inflating"],
        "decoding them": least["decoding"],
        "columns of each answer, checked": reading - least["decoding"],
        "tables of a segment": until_rows - reading - least["inflating"],
        "encoding Parquet": least["encoding"],
        "reading raw, landing files": least["whole"] - until_rows - least["encoding"],
        "committing": least["committing"],
    }
    return [
        Row(part, f"nightaudit's CPU, the share of {stage}", 100 * cost / whole, "%") for stage, cost in shares.items()
    ]


def _round(lake: Lake, sweep_id: str, partition: Partition) -> dict[str, float]:
    """Return what each stage, or all up to one, costs in CPU seconds."""
    shutil.rmtree(lake.root / "tables", ignore_errors=True)
    cut = list(segments(partition))
    shards = [[record for shard in each.shards for record in read_shard(lake, sweep_id, shard.name)] for each in cut]
    records = [record for segment in shards for record in segment]
    asked = frozenset(house for record in records for house in asked_of_request(record.request).property_ids)
    operation, bodies, tables = partition.operation, list[bytes](), list[pa.Table]()

    def inflated(body: bytes) -> None:
        bodies.append(inflate(body, "gzip", limit_bytes=_LIMIT_BYTES))

    def read(bodies_of_segment: Sequence[bytes]) -> None:
        interned = Interned()
        for body in bodies_of_segment:
            read_answer(body, operation, asked, interned)

    def by_segment() -> Iterator[list[bytes]]:
        rest = iter(bodies)
        for held in shards:
            yield list(islice(rest, len(held)))

    def in_rows(held: list[RawRecord]) -> None:
        answers = (("", record) for record in held)
        tables.extend(rows_of_answers(sweep_id, operation, partition.market, answers, _LIMIT_BYTES).values())

    with collector_off():
        return {
            "whole": _cpu_of(lambda segment: normalise_segment(lake, sweep_id, segment, _LIMIT_BYTES, {}), cut),
            "committing": _cpu_of(lambda each: load_partition(lake, sweep_id, each), [partition]),
            "inflating": _cpu_of(inflated, [record.body for record in records]),
            "decoding": _cpu_of(Decoder(MultiAnswer).decode, bodies),
            "reading answers": _cpu_of(read, by_segment()),
            "until rows": _cpu_of(in_rows, shards),
            "encoding": _cpu_of(encode_table, tables),
        }


def _cpu_of(step: Callable[[T], object], items: Iterable[T]) -> float:
    began = cpu_seconds()
    for item in items:
        step(item)
    return cpu_seconds() - began
