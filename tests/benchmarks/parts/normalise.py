"""Normalise and load: raw shards to typed, checked rows of Delta tables, against peers that do less and dlt."""

from __future__ import annotations

import gc
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.bodies import bodies as made
from benchmarks.bodies import land_bodies, plain_bodies
from benchmarks.measuring import Result, Row, Size, answer_contender, contend, ratio_row

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition, segments
from pipeline.lake import Lake
from pipeline.load import load_partition

SWEEP = "20300101T020000Z-aaaaaa"
PART = "normalise"


def measure(size: Size, folder: Path) -> Result:
    """Our cost against `orjson.loads` of the same bodies, which does nothing else."""
    count, of_peer = size.of(256, 4), {"some": size.of(96, 2), "few": size.of(24, 2)}
    lake = Lake(str(folder / "lake"))
    land_bodies(lake, count)
    for number, (_, _, body) in enumerate(made(count)):
        for name, most in {"all": count, **of_peer}.items():
            if number < most:
                place = folder / name / f"{number:05d}.json"
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(body)
    ours = {"lake": str(lake.root), "count": count, "bodies": str(folder / "all")}
    plain, some, few = ({"bodies": str(folder / name)} for name in ("all", "some", "few"))
    arguments = {"nightaudit": ours, "orjson": plain, "msgspec": plain, "dlt parquet": some, "dlt default": few}
    found = contend("normalise", list(arguments), arguments, size.rounds)
    rates = {name: [1e6 / cost.cpu_us for cost in costs] for name, costs in found.items()}
    ours_rate = rates["nightaudit"]

    def ratios(peer: str) -> list[float]:
        return [mine / theirs for mine, theirs in zip(ours_rate, rates[peer], strict=True)]

    result = Result()
    result.rows += [
        ratio_row(PART, "normalise + load, x orjson.loads alone", ratios("orjson"), 0.40),
        ratio_row(PART, "normalise + load, x msgspec typed decode alone", ratios("msgspec"), None),
        ratio_row(PART, "normalise + load, x dlt tuned (Arrow, Parquet loader)", ratios("dlt parquet"), 17),
        ratio_row(PART, "normalise + load, x dlt default", ratios("dlt default"), 100),
    ]
    for name, costs in found.items():
        result.rows.append(Row(PART, f"{name}: offers a CPU second", statistics.median(rates[name]), "offers/cpu-s"))
        result.rows.append(
            Row(PART, f"{name}: peak memory above base", statistics.median(cost.peak_mb for cost in costs), "MB")
        )
    return result


def _offers(bodies: list[bytes]) -> int:
    return sum(body.count(b'"productId"') for body in bodies)


def nightaudit(lake: str, count: int, bodies: str) -> Callable[[], float]:
    """Segments of raw shards, one after the other in one process, and one commit a table."""
    from pipeline.normalise.segment import normalise_segment

    place = Lake(lake)
    offers = _offers(plain_bodies(bodies))
    shutil.rmtree(place.root / "tables", ignore_errors=True)
    partition = Partition(Operation.MULTI, "GB", 0, count)
    # What is loaded once a process is not part of the price.
    normalise_segment(place, SWEEP, next(segments(partition)), 64_000_000, {})
    shutil.rmtree(place.root / "tables")

    def work() -> float:
        read = [normalise_segment(place, SWEEP, segment, 64_000_000, {}) for segment in segments(partition)]
        load_partition(place, SWEEP, partition)
        stored = sum(segment.offers for segment in read)
        # A few products of the sandbox stand under no property, and are refused.
        if stored < 0.99 * offers:
            raise AssertionError(f"{stored} offers stored of {offers}")
        return offers

    return work


def orjson(bodies: str) -> Callable[[], float]:
    """Nothing but `orjson.loads`, the collector off."""
    from orjson import loads

    texts = plain_bodies(bodies)
    offers = _offers(texts)

    def work() -> float:
        gc.disable()
        for text in texts:
            loads(text)
        return offers

    return work


def msgspec(bodies: str) -> Callable[[], float]:
    """Nothing but a typed decode into our types of the wire."""
    from msgspec.json import Decoder

    from pipeline.normalise.wire import MultiAnswer

    texts = plain_bodies(bodies)
    offers = _offers(texts)
    decoder = Decoder(MultiAnswer)

    def work() -> float:
        gc.disable()
        for text in texts:
            decoder.decode(text)
        return offers

    return work


def _dlt(bodies: str, loader: str | None) -> Callable[[], float]:
    workspace = tempfile.mkdtemp()
    os.environ.update(RUNTIME__DLTHUB_TELEMETRY="false", DLT_DATA_DIR=f"{workspace}/data", RUNTIME__LOG_LEVEL="ERROR")
    os.chdir(workspace)
    import dlt
    from orjson import loads

    texts = plain_bodies(bodies)
    offers = _offers(texts)

    @dlt.resource(name="answer", max_table_nesting=8)
    def answers() -> Iterator[dict[str, object]]:
        for text in texts:
            yield loads(text)

    pipeline = dlt.pipeline("peer", destination=dlt.destinations.duckdb(f"{workspace}/peer.duckdb"), dataset_name="d")

    def work() -> float:
        pipeline.run(answers, **({"loader_file_format": loader} if loader else {}))
        shutil.rmtree(workspace, ignore_errors=True)
        return offers

    return work


def dlt_default(bodies: str) -> Callable[[], float]:
    """dlt as it comes: nested JSON to tables of DuckDB."""
    return _dlt(bodies, None)


def dlt_parquet(bodies: str) -> Callable[[], float]:
    """dlt with its Parquet loader."""
    return _dlt(bodies, "parquet")


CONTENDERS = {
    "nightaudit": nightaudit,
    "orjson": orjson,
    "msgspec": msgspec,
    "dlt parquet": dlt_parquet,
    "dlt default": dlt_default,
}

if __name__ == "__main__":
    answer_contender(CONTENDERS)
