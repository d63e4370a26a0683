"""Sixty simulated nights: what is stored, what it costs to publish one more, and how that grows.

Only nights that show growth are published one by one: the first twelve, five in the middle and the last five. Those
between are entered in the ledger, and the last of them is published with all of them, which is not counted.
`BENCH_LARGE=1` adds the 365 nights of a year, of few properties.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from benchmarks.history import load_nights
from benchmarks.measuring import Cost, Result, Row, Size, cost_of
from benchmarks.simulated import World

from pipeline.lake import Lake
from pipeline.lake.ledger import enter
from pipeline.normalise.parquet import encode_table
from pipeline.publish import LedgerEntry, publish

PART = "publish"
_OF_OFFERS = ("offer", "penalty", "promotion")


def measure(size: Size, folder: Path) -> Result:
    """Nights of one size, each after the one before."""
    result = Result()
    world = World(size.of(20, 2), size.of(60, 12))
    lake = Lake(str(folder / "nights"))
    offers = load_nights(lake, world)
    middle, last = world.nights // 2, world.nights
    fives = {"night 5": _five(7), f"night {middle}": _five(middle), f"night {last}": _five(last)}
    cpu_s = _publish_singly(lake, world, {*range(min(12, last)), *(night for five in fives.values() for night in five)})
    for night, cost in cpu_s.items():
        result.points.append({"curve": "CPU to publish a night, s", "who": "publish", "x": night + 1, "y": cost})
    result.rows += _growth(cpu_s, fives, {"night 5": 1.05, f"night {middle}": None})
    late = [cpu_s[night] for night in fives[f"night {last}"]]
    result.rows.append(Row(PART, "publishing a night: CPU per offer", 1e6 * statistics.median(late) / offers[-1], "us"))
    nights = range(min(30, world.nights))
    seen = sum(offers[night] for night in nights)
    stored = sum(_written(lake, world, night) for night in nights)
    history = [[*(lake.table_root("offer_change") / world.sweep_id(night)).glob("*.parquet")] for night in nights]
    changes = sum(file.stat().st_size for files in history for file in files)
    reported = [sum(pq.ParquetFile(file).metadata.num_rows for file in files) for files in history]
    # The first night tells of every offer.
    changing = 100 * sum(reported[1:]) / sum(offers[night] for night in nights[1:])
    for what, value, most in (
        ("stored: a night's offers with penalties and promotions", stored / seen, 15.0),
        (f"stored: history as changes, over {len(nights)} nights", changes / seen, 1.5),
    ):
        result.rows.append(Row(PART, what, value, "bytes per observation", reach=f"<= {most:g}", reached=value <= most))
    result.rows += [
        Row(PART, "stored: a row of the history", changes / sum(reported), "bytes"),
        Row(PART, "rows of history per night, from the second night on, as a share of its offers", changing, "%"),
    ]
    read = (lake.published_file.stat().st_size + _bytes_of_state(lake.published_file)) / sum(offers)
    what = f"stored: published file and state together, after {world.nights} nights"
    result.rows.append(Row(PART, what, read, "bytes per observation", reach="<= 6", reached=read <= 6))
    if os.environ.get("BENCH_LARGE") == "1":
        result.rows += _year(folder / "year")
    else:
        result.skipped.append("the 365 nights of a year (BENCH_LARGE=1 adds them)")
    return result


def _bytes_of_state(file: Path) -> int:
    with duckdb.connect(":memory:") as session:
        session.execute(f"ATTACH '{file}' AS published (READ_ONLY)")
        return int(session.execute("SELECT sum(bytes) FROM published.state.file").fetchall()[0][0])


def _year(folder: Path) -> Sequence[Row]:
    """Return how the last night of a year compares with those of its first month."""
    world, lake = World(3, 365), Lake(str(folder))
    load_nights(lake, world)
    fives = {"night 30": _five(30), "night 365": _five(365)}
    cpu_s = _publish_singly(lake, world, {night for five in fives.values() for night in five})
    return _growth(cpu_s, fives, {"night 30": 1.05})


def _five(last: int) -> range:
    """Return the five nights up to one: single nights scatter, so the cost of a night is their median."""
    return range(last - 5, last)


def _publish_singly(lake: Lake, world: World, singly: Iterable[int]) -> Mapping[int, float]:
    """Publish all nights, `singly` those whose CPU seconds are returned, and the others at once in between."""
    cpu_s: dict[int, float] = {}
    for night in range(world.nights):
        if night in singly:
            cpu_s[night] = _published(lake, world, night).cpu_s
        elif night + 1 in singly:
            _published(lake, world, night)
        else:
            enter(lake, LedgerEntry(world.sweep_id(night), world.started_at(night), _after(world, night), "passed"))
    return cpu_s


def _growth(cpu_s: Mapping[int, float], fives: Mapping[str, range], most: Mapping[str, float | None]) -> Sequence[Row]:
    """Return rows that compare the last of some nights with earlier ones, by the CPU seconds of each."""
    costs = {name: [cpu_s[night] for night in five] for name, five in fives.items()}
    (last, late) = list(costs.items())[-1]
    note = "CPU s: " + ", ".join(f"{name} {statistics.median(cost):.2f}" for name, cost in costs.items())
    rows = []
    for against, limit in most.items():
        early = costs[against]
        value = statistics.median(late) / statistics.median(early)
        # The extremes of any two of them: wider than rounds would be.
        low, high = min(late) / max(early), max(late) / min(early)
        reach, reached = ("", None) if limit is None else (f"<= {limit:g}", value <= limit)
        what = f"publishing {last}: CPU compared with {against}"
        rows.append(Row(PART, what, value, "x", low, high, reach, reached, note))
    return rows


def _published(lake: Lake, world: World, night: int) -> Cost:
    def work() -> float:
        publish(lake, world.sweep_id(night), _after(world, night), audit="passed")
        return 1

    return cost_of(work)


def _after(world: World, night: int) -> datetime:
    return world.started_at(night) + timedelta(hours=2)


def _written(lake: Lake, world: World, night: int) -> int:
    """Bytes of a night's offers as normalising writes them; the simulated night was written differently."""
    files = (file for name in _OF_OFFERS for file in (lake.table_root(name) / world.sweep_id(night)).glob("*.parquet"))
    return sum(len(encode_table(pq.ParquetFile(file).read())) for file in files)
