"""Sixty simulated nights: what is stored, what it costs to publish one more, and how that grows.

Only nights that tell of growth are published one by one: the first twelve, five in the middle and the last five. Those
between are entered in the ledger, and the last of them is published with all of them, which is not counted.
"""

from __future__ import annotations

import statistics
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from benchmarks.history import load_nights
from benchmarks.measuring import Cost, Result, Row, Size, cost_of
from benchmarks.simulated import World

from pipeline.lake import Lake
from pipeline.normalise.segment import encode_table
from pipeline.publish import LedgerEntry, publish
from pipeline.publish.ledger import enter

PART = "publish"
_OF_OFFERS = ("offer", "penalty", "promotion")


def measure(size: Size, folder: Path) -> Result:
    """Nights of one size, each after the one before."""
    result = Result()
    world = World(size.of(20, 2), size.of(60, 12))
    lake = Lake(str(folder / "nights"))
    offers = load_nights(lake, world)
    middle, last = world.nights // 2, world.nights
    # Single nights scatter: what a night costs is the median of five.
    fives = {
        "night 5": range(2, 7),
        f"night {middle}": range(middle - 5, middle),
        f"night {last}": range(last - 5, last),
    }
    singly = {*range(min(12, last)), *(night for five in fives.values() for night in five)}
    cpu_s: dict[int, float] = {}
    for night in range(last):
        if night in singly:
            cpu_s[night] = _published(lake, world, night).cpu_s
        elif night + 1 in singly:
            _published(lake, world, night)
        else:
            enter(lake, LedgerEntry(world.sweep_id(night), world.started_at(night), _after(world, night), "passed"))
    for night, cost in cpu_s.items():
        result.points.append({"curve": "CPU to publish a night, s", "who": "publish", "x": night + 1, "y": cost})
    first, half, late = ([cpu_s[night] for night in five] for five in fives.values())
    note = "CPU s: " + ", ".join(
        f"{name} {statistics.median(cost):.2f}" for name, cost in zip(fives, (first, half, late), strict=True)
    )
    for against, early, most in (("night 5", first, 1.2), (f"night {middle}", half, None)):
        value = statistics.median(late) / statistics.median(early)
        # The extremes of any two of them: wider than rounds would be.
        low, high = min(late) / max(early), max(late) / min(early)
        what = f"publishing night {last} against {against}, CPU"
        reach, reached = ("", None) if most is None else (f"<= {most:g}", value <= most)
        result.rows.append(Row(PART, what, value, "x", low, high, reach, reached, note))
    result.rows.append(Row(PART, "publishing a night, CPU an offer", 1e6 * statistics.median(late) / offers[-1], "us"))
    nights = range(min(30, world.nights))
    seen = sum(offers[night] for night in nights)
    stored = sum(_written(lake, world, night) for night in nights)
    history = [[*(lake.table_root("offer_change") / world.sweep_id(night)).glob("*.parquet")] for night in nights]
    changes = sum(file.stat().st_size for files in history for file in files)
    told = [sum(pq.ParquetFile(file).metadata.num_rows for file in files) for files in history]
    # The first night tells of every offer.
    changing = 100 * sum(told[1:]) / sum(offers[night] for night in nights[1:])
    for what, value, most in (
        ("stored: a night's offers with penalties and promotions", stored / seen, 20.0),
        (f"stored: history as changes, over {len(nights)} nights", changes / seen, 2.5),
    ):
        result.rows.append(Row(PART, what, value, "bytes an observation", reach=f"<= {most:g}", reached=value <= most))
    result.rows += [
        Row(PART, "stored: a row of the history", changes / sum(told), "bytes"),
        Row(PART, "rows of history a night, of its offers, from the second night", changing, "%"),
    ]
    published = lake.published_file.stat().st_size / sum(offers)
    result.rows.append(Row(PART, f"published file, after {world.nights} nights", published, "bytes an observation"))
    return result


def _published(lake: Lake, world: World, night: int) -> Cost:
    def work() -> float:
        publish(lake, world.sweep_id(night), _after(world, night), audit="passed")
        return 1

    return cost_of(work)


def _after(world: World, night: int) -> datetime:
    return world.started_at(night) + timedelta(hours=2)


def _written(lake: Lake, world: World, night: int) -> int:
    """Bytes of a night's offers as normalising writes them; the simulated night was written by another way."""
    files = (file for name in _OF_OFFERS for file in (lake.table_root(name) / world.sweep_id(night)).glob("*.parquet"))
    return sum(len(encode_table(pq.ParquetFile(file).read())) for file in files)
