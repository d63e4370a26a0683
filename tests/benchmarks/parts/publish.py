"""Sixty simulated nights, published one by one: what is stored, what a night costs, and how that grows."""

from __future__ import annotations

import statistics
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
from benchmarks.history import load_nights
from benchmarks.measuring import Cost, Result, Row, Size, cost_of, ratio_row
from benchmarks.simulated import World

from pipeline.lake import Lake
from pipeline.normalise.segment import encode_table
from pipeline.publish import publish

PART = "publish"
_OF_OFFERS = ("offer", "penalty", "promotion")


def measure(size: Size, folder: Path) -> Result:
    """Nights of one size, each after the one before."""
    result = Result()
    world = World(size.of(20, 2), size.of(60, 6))
    lake = Lake(str(folder / "nights"))
    offers = load_nights(lake, world)
    costs = [_published(lake, world, night) for night in range(world.nights)]
    for night, cost in enumerate(costs, start=1):
        result.points.append({"curve": "CPU to publish a night, s", "who": "publish", "x": night, "y": cost.cpu_s})
    # Single nights scatter: the five around night 5, and the last five.
    early, late = ([cost.cpu_s for cost in part] for part in (costs[2:7], costs[-5:]))
    ratios = [statistics.median(late) / statistics.median(early), max(late) / min(early), min(late) / max(early)]
    note = f"CPU s: night 5 {statistics.median(early):.2f}, night {world.nights} {statistics.median(late):.2f}"
    what = f"publishing night {world.nights} against night 5, CPU"
    row = ratio_row(PART, what, ratios, 1.2, is_least=False, note=note)
    result.rows.append(row)
    result.rows.append(Row(PART, "publishing a night, CPU an offer", 1e6 * statistics.median(late) / offers[-1], "us"))
    nights = range(min(30, world.nights))
    seen = sum(offers[night] for night in nights)
    stored = sum(_written(lake, world, night) for night in nights)
    changes = sum(
        file.stat().st_size
        for night in nights
        for file in (lake.table_root("offer_change") / world.sweep_id(night)).glob("*.parquet")
    )
    for what, value, most in (
        ("stored: a night's offers with penalties and promotions", stored / seen, 20.0),
        (f"stored: history as changes, over {len(nights)} nights", changes / seen, 2.5),
    ):
        result.rows.append(Row(PART, what, value, "bytes an observation", reach=f"<= {most:g}", reached=value <= most))
    published = lake.published_file.stat().st_size / sum(offers)
    result.rows.append(Row(PART, f"published file, after {world.nights} nights", published, "bytes an observation"))
    return result


def _published(lake: Lake, world: World, night: int) -> Cost:
    now = world.started_at(night) + timedelta(hours=2)

    def work() -> float:
        publish(lake, world.sweep_id(night), now, audit="passed")
        return 1

    return cost_of(work)


def _written(lake: Lake, world: World, night: int) -> int:
    """Bytes of a night's offers as normalising writes them; the simulated night was written by another way."""
    files = (file for name in _OF_OFFERS for file in (lake.table_root(name) / world.sweep_id(night)).glob("*.parquet"))
    return sum(len(encode_table(pq.ParquetFile(file).read())) for file in files)
