"""Normalise and load: raw shards to typed, checked rows of Delta tables, against peers that do less and dlt."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.bodies import bodies as made
from benchmarks.bodies import land_bodies, plain_bodies
from benchmarks.measuring import Result, Row, Size, answer_contender, collector_off, contend, ratio_row
from benchmarks.peers import dlt_workspace
from benchmarks.stages import stages

from pipeline.domain.search import Operation
from pipeline.domain.shards import Partition, segments
from pipeline.lake import Lake
from pipeline.sweep.load import load_partitions

SWEEP = "20300101T020000Z-aaaaaa"
BEFORE = "20291231T020000Z-aaaaaa"
PART = "normalise"
_PRODUCT = b'"productId"'
_PEERS = (
    ("orjson", "orjson.loads alone", 0.45),
    ("msgspec", "msgspec's typed decode alone", None),
    ("dlt parquet", "dlt, Parquet loader", 17),
    ("dlt default", "dlt with default settings", 100),
    ("dlt tuned", "dlt, tuned (pages, large buffers, Parquet loader)", None),
    ("dlt arrow", "dlt, given Arrow tables flattened by hand", None),
)
_QUICK = ("nightaudit", "orjson", "msgspec")
_MORE_ROUNDS = 3


def measure(size: Size, folder: Path) -> Result:
    """Our cost against `orjson.loads` of the same bodies, which does nothing else, and against dlt."""
    # A peer that is slower reads less, at the same price an offer.
    counts = {"all": size.of(512, 4), "half": size.of(128, 3), "some": size.of(48, 2), "few": size.of(16, 1)}
    lake = Lake(str(folder / "lake"))
    land_bodies(lake, counts["all"])
    for number, (_, _, body) in enumerate(made(counts["all"])):
        for name, most in counts.items():
            if number < most:
                place = folder / name / f"{number:05d}.json"
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(body)
    every, half, some, few = ({"bodies": str(folder / name)} for name in counts)
    arguments = {
        "nightaudit": {"lake": str(lake.root), "count": counts["all"], **every},
        "orjson": every,
        "msgspec": every,
        "dlt arrow": half,
        "dlt tuned": some,
        "dlt parquet": some,
        "dlt default": few,
    }
    found = contend("normalise", list(arguments), arguments, size.rounds)
    # These take seconds, in which the speed of a shared machine is not the same twice: more rounds, of them alone.
    more = contend("normalise", _QUICK, arguments, size.rounds * (_MORE_ROUNDS - 1))
    for name, costs in more.items():
        found[name] += costs
    rates = {name: [1e6 / cost.cpu_us for cost in costs] for name, costs in found.items()}
    rounds_of = {name: f"median of {len(costs)} rounds" for name, costs in found.items()}
    result = Result()
    for peer, what, least in _PEERS:
        # Ratios are of rounds that both had: with a slower peer, the first ones.
        ratios = [mine / theirs for mine, theirs in zip(rates["nightaudit"], rates[peer], strict=False)]
        note = f"{rounds_of[peer]}, side by side"
        result.rows.append(
            ratio_row(PART, f"normalise + load: speed, as a multiple of {what}", ratios, least, note=note)
        )
    for peer in ("dlt parquet", "dlt default"):
        pairs = zip(found["nightaudit"], found[peer], strict=False)
        what = f"normalise + load: memory above base, as a multiple of {peer}'s"
        result.rows.append(
            ratio_row(PART, what, [mine.peak_mb / its.peak_mb for mine, its in pairs], 1, is_least=False)
        )
    for name, costs in found.items():
        memory = statistics.median(cost.peak_mb for cost in costs)
        most = 200 if name == "nightaudit" else None
        result.rows += [
            Row(
                PART,
                f"{name}: offers per CPU second",
                statistics.median(rates[name]),
                "offers/cpu-s",
                note=rounds_of[name],
            ),
            Row(
                PART,
                f"{name}: peak memory above base",
                memory,
                "MB",
                min(cost.peak_mb for cost in costs),
                max(cost.peak_mb for cost in costs),
                f"<= {most} per worker" if most else "",
                memory <= most if most else None,
            ),
        ]
    result.rows += stages(lake, SWEEP, Partition(Operation.MULTI, "GB", 0, counts["all"]), PART, size.rounds)
    return result


def _offers(bodies: list[bytes]) -> int:
    return sum(body.count(_PRODUCT) for body in bodies)


def nightaudit(lake: str, count: int, bodies: str) -> Callable[[], float]:
    """Segments of raw shards, one after the other in one process, and one commit a table."""
    from pipeline.normalise.segment import normalise_segment

    place = Lake(lake)
    offers = sum(file.read_bytes().count(_PRODUCT) for file in Path(bodies).iterdir())
    for name in ("tables", f"raw/{BEFORE}"):
        shutil.rmtree(place.root / name, ignore_errors=True)
    partition = Partition(Operation.MULTI, "GB", 0, count)
    # Once before: modules are loaded and the tables there, as they are on any night but the first, and as dlt's are.
    small, (first, *_) = land_bodies(place, 1, BEFORE)
    normalise_segment(place, BEFORE, first, 64_000_000, {})
    load_partitions(place, BEFORE, [small])

    def work() -> float:
        read = [normalise_segment(place, SWEEP, segment, 64_000_000, {}) for segment in segments(partition)]
        load_partitions(place, SWEEP, [partition])
        stored = sum(segment.offers for segment in read)
        # A few products of the sandbox stand under no property, and are refused.
        if stored < 0.99 * offers:
            raise AssertionError(f"{stored} offers stored of {offers}")
        return offers

    return work


def as_worker(lake: str, count: int, bodies: str) -> Callable[[], float]:
    """The same in a process that was made a worker, as a sweep has them."""
    from pipeline.normalise import worker

    worker.prepare()
    return nightaudit(lake, count, bodies)


def orjson(bodies: str) -> Callable[[], float]:
    """Nothing but `orjson.loads`, the collector off."""
    from orjson import loads

    texts = plain_bodies(bodies)
    offers = _offers(texts)

    def work() -> float:
        with collector_off():
            for text in texts:
                loads(text)
        return offers

    return work


def msgspec(bodies: str) -> Callable[[], float]:
    """Nothing but a typed decode into our types of the wire, the collector off."""
    from msgspec.json import Decoder

    from pipeline.supplier.wire import MultiAnswer

    texts = plain_bodies(bodies)
    offers = _offers(texts)
    decoder = Decoder(MultiAnswer)

    def work() -> float:
        with collector_off():
            for text in texts:
                decoder.decode(text)
        return offers

    return work


def _dlt(bodies: str, of_body: Callable[[bytes], Iterable[object]], loader: str | None) -> Callable[[], float]:
    """The result of `of_body` for each body, loaded into a DuckDB file by dlt."""
    texts = plain_bodies(bodies)
    offers = _offers(texts)
    workspace = dlt_workspace()
    import dlt

    @dlt.resource(name="answer", max_table_nesting=8)
    def answers(given: list[bytes]) -> Iterator[object]:
        for text in given:
            yield from of_body(text)

    pipeline = dlt.pipeline("peer", destination=dlt.destinations.duckdb(f"{workspace}/peer.duckdb"), dataset_name="d")
    how = {"loader_file_format": loader} if loader else {}
    # Once before: the tables are there, as they are on any night but the first.
    pipeline.run(answers(texts[:1]), **how)

    def work() -> float:
        pipeline.run(answers(texts), **how)
        return offers

    return work


def dlt_default(bodies: str) -> Callable[[], float]:
    """dlt with default settings: one item per answer, nested JSON to tables of DuckDB by its default loader."""
    from orjson import loads

    return _dlt(bodies, lambda body: [loads(body)], None)


def dlt_parquet(bodies: str) -> Callable[[], float]:
    """The same by its Parquet loader."""
    from orjson import loads

    return _dlt(bodies, lambda body: [loads(body)], "parquet")


def dlt_tuned(bodies: str) -> Callable[[], float]:
    """As dlt's page on performance advises: pages of items, large buffers, at most one worker per core, Parquet."""
    from orjson import loads

    os.environ.update(
        DATA_WRITER__BUFFER_MAX_ITEMS="100000",
        DATA_WRITER__FILE_MAX_ITEMS="1000000",
        EXTRACT__MAX_PARALLEL_ITEMS="1",
        NORMALIZE__WORKERS="1",
        LOAD__WORKERS="1",
    )
    return _dlt(bodies, lambda body: [loads(body)["properties"]], "parquet")


def dlt_arrow(bodies: str) -> Callable[[], float]:
    """Its fastest way: answers flattened by hand into Arrow tables, which dlt hands on without looking at each row."""
    import pyarrow as pa
    from orjson import loads

    kinds = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "bool": pa.bool_()}
    schemas = {name: pa.schema([(column, kinds[kind]) for column, kind in of.items()]) for name, of in _FLAT.items()}

    def tables(body: bytes) -> Iterator[object]:
        import dlt

        rows = _flattened(loads(body))
        for name, schema in schemas.items():
            yield dlt.mark.with_table_name(pa.Table.from_pylist(rows[name], schema=schema), name)

    return _dlt(bodies, tables, "parquet")


_FLAT = {
    "offer": {
        "propertyId": "int",
        "currencyCode": "str",
        "roomStayId": "int",
        "roomId": "int",
        "roomName": "str",
        "rateType": "str",
        "availableRooms": "int",
        "productId": "int",
        "boardId": "int",
        "boardName": "str",
        "boardDetail": "str",
        "total": "float",
        "minSellablePrice": "float",
        "prePromoTotal": "float",
        "discountPercentage": "float",
    },
    "penalty": {
        "productId": "int",
        "penaltyWindow": "int",
        "penaltyPercentage": "float",
        "penaltyNights": "float",
        "refundable": "bool",
    },
    "promotion": {"productId": "int", "promoType": "str", "description": "str"},
}


def _flattened(answer: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _FLAT}
    for hotel in answer["properties"]:
        for stay in hotel.get("roomStays") or ():
            of_stay = {
                "propertyId": hotel.get("propertyId"),
                "currencyCode": hotel.get("currencyCode"),
                "roomStayId": stay.get("id"),
                "roomId": stay.get("roomId"),
                "roomName": stay.get("roomName"),
                "rateType": stay.get("rateType"),
                "availableRooms": stay.get("availableRooms"),
            }
            for product in stay.get("products") or ():
                number = product.get("productId")
                board = product.get("boardBasis") or {}
                of_board = {f"board{name.title()}": value for name, value in board.items()}
                charges = product.get("charges") or {}
                rows["offer"].append({**of_stay, "productId": number, **of_board, **charges})
                rows["penalty"] += [{"productId": number, **each} for each in product.get("cancelPenalties") or ()]
                rows["promotion"] += [{"productId": number, **each} for each in product.get("promotions") or ()]
    return rows


CONTENDERS = {
    "nightaudit": as_worker,
    "orjson": orjson,
    "msgspec": msgspec,
    "dlt arrow": dlt_arrow,
    "dlt tuned": dlt_tuned,
    "dlt parquet": dlt_parquet,
    "dlt default": dlt_default,
}

if __name__ == "__main__":
    answer_contender(CONTENDERS)
