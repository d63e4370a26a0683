"""Where normalising spends its CPU: each stage once more on its own, as a profile for making it faster."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from typing import TypeVar

from benchmarks.measuring import Row, collector_off, cpu_seconds
from msgspec.json import Decoder

from pipeline.domain.shards import Partition, segments
from pipeline.lake import Lake
from pipeline.lake.raw import RawRecord, read_shard
from pipeline.normalise.interned import Interned
from pipeline.normalise.offers import collect_offers
from pipeline.normalise.parquet import encode_table
from pipeline.normalise.segment import normalise_segment, rows_of_answers
from pipeline.supplier.bodies import inflate
from pipeline.supplier.wire import MultiAnswer
from pipeline.sweep.load import load_partitions

_LIMIT_BYTES = 64_000_000
_WALKING = "walking the objects, comparing promotions and policies, and checking money"
_decode = Decoder(MultiAnswer).decode

T = TypeVar("T")


def stages(lake: Lake, sweep_id: str, partition: Partition, part: str, rounds: int) -> list[Row]:
    """Normalise and load a partition of gzipped answers that have landed; return each stage's share in percent.

    Each is the lowest of some rounds: other work on the machine would make one stage seem dearer than all of them.
    What cannot be run on its own is the remainder.
    """
    found = [_round(lake, sweep_id, partition) for _ in range(rounds)]
    least = {stage: min(costs[stage] for costs in found) for stage in found[0]}
    whole = least.pop("whole") + least["committing"]
    shares = least | {
        "spreading columns over tables, cells, and reading and landing raw answers": whole - sum(least.values())
    }
    return [Row(part, f"share of nightaudit's CPU: {stage}", 100 * cost / whole, "%") for stage, cost in shares.items()]


def _round(lake: Lake, sweep_id: str, partition: Partition) -> dict[str, float]:
    """Return the cost of the whole, and of the stages that can be run on their own, in CPU seconds."""
    shutil.rmtree(lake.root / "tables", ignore_errors=True)
    cut = list(segments(partition))
    costs = {"whole": _cpu_of(lambda segment: normalise_segment(lake, sweep_id, segment, _LIMIT_BYTES, {}), cut)}
    costs["committing"] = _cpu_of(lambda each: load_partitions(lake, sweep_id, [each]), [partition])
    costs |= dict.fromkeys(("inflating bodies", "decoding them", _WALKING, "encoding Parquet"), 0.0)
    for segment in cut:
        records = [each for shard in segment.shards for each in read_shard(lake, sweep_id, shard.name)]
        bodies: list[bytes] = []
        decoded: list[MultiAnswer] = []
        interned = Interned()
        answers = (("", each) for each in records)
        with collector_off():
            tables = rows_of_answers(sweep_id, partition.operation, partition.market, answers, _LIMIT_BYTES)
            costs["inflating bodies"] += _cpu_of(lambda each, into=bodies: into.append(_inflated(each)), records)
            costs["decoding them"] += _cpu_of(lambda each, into=decoded: into.append(_decode(each)), bodies)
            costs[_WALKING] += _cpu_of(
                lambda each, known=interned: collect_offers(each.properties or (), known), decoded
            )
            costs["encoding Parquet"] += _cpu_of(encode_table, tables.values())
    return costs


def _inflated(record: RawRecord) -> bytes:
    return inflate(record.body, record.content_encoding, limit_bytes=_LIMIT_BYTES)


def _cpu_of(step: Callable[[T], object], items: Iterable[T]) -> float:
    began = cpu_seconds()
    for item in items:
        step(item)
    return cpu_seconds() - began
