"""Sixty simulated nights, published one by one: what is stored, what a night costs, and how that grows."""

from __future__ import annotations

import statistics
from datetime import timedelta
from pathlib import Path

from benchmarks.history import load_nights
from benchmarks.measuring import Cost, Result, Row, Size, cost_of, ratio_row
from benchmarks.simulated import World

from pipeline.lake import Lake
from pipeline.publish import publish

PART = "publish"
_OF_OFFERS = ("offer", "penalty", "promotion")


def measure(size: Size, folder: Path) -> Result:
    """Nights of one size, then single later nights of 1x, 4x and 16x."""
    result = Result()
    world = World(size.of(60, 2), size.of(60, 6))
    lake = Lake(str(folder / "nights"))
    offers = load_nights(lake, world)
    costs = [_published(lake, world, night) for night in range(world.nights)]
    for night, cost in enumerate(costs, start=1):
        result.points.append({"curve": "CPU to publish a night, s", "who": "publish", "x": night, "y": cost.cpu_s})
    early, late = (statistics.median(cost.cpu_s for cost in part) for part in (costs[2:7], costs[-5:]))
    result.rows += [
        ratio_row(PART, f"publishing night {world.nights} against night 5, CPU", [late / early], 1.2, is_least=False),
        Row(PART, "publishing a night", 1e6 * late / (sum(offers) / len(offers)), "CPU us an offer"),
    ]
    seen = sum(offers[:30])
    stored = sum(_bytes(lake, world, name, range(min(30, world.nights))) for name in _OF_OFFERS)
    changes = _bytes(lake, world, "offer_change", range(world.nights))
    for what, value, most in (
        ("stored: offers with penalties and promotions", stored / seen, 20.0),
        ("stored: history as changes, over all nights", changes / sum(offers), 2.5),
    ):
        result.rows.append(Row(PART, what, value, "bytes an observation", reach=f"<= {most:g}", reached=value <= most))
    published = lake.published_file.stat().st_size / sum(offers)
    result.rows.append(Row(PART, "published file, over all nights", published, "bytes an observation"))
    _growth(result, size, folder)
    return result


def _growth(result: Result, size: Size, folder: Path) -> None:
    found: list[float] = []
    for times in (1, 4, 16):
        world = World(times * size.of(30, 1) + 1, 4)
        lake = Lake(str(folder / f"times-{times}"))
        offers = load_nights(lake, world)
        costs = [_published(lake, world, night) for night in range(world.nights)]
        cpu_us = 1e6 * statistics.median(cost.cpu_s for cost in costs[1:]) / offers[-1]
        found.append(cpu_us)
        result.points.append({"curve": "CPU to publish an offer, us", "who": "publish", "x": offers[-1], "y": cpu_us})
    result.rows.append(
        ratio_row(PART, "publishing, CPU an offer, 16x against 4x", [found[2] / found[1]], 1.1, is_least=False)
    )


def _published(lake: Lake, world: World, night: int) -> Cost:
    now = world.started_at(night) + timedelta(hours=2)

    def work() -> float:
        publish(lake, world.sweep_id(night), now, audit="passed")
        return 1

    return cost_of(work)


def _bytes(lake: Lake, world: World, table: str, nights: range) -> int:
    folders = (lake.table_root(table) / world.sweep_id(night) for night in nights)
    return sum(file.stat().st_size for folder in folders for file in folder.glob("*.parquet"))
