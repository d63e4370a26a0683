"""How plan, sweep, load and publish grow with the night: 1x, 4x and 16x of the same; and memory, which must not."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.bodies import bodies, land_bodies
from benchmarks.history import load_nights
from benchmarks.measuring import (
    TIMES,
    Cost,
    Result,
    Row,
    Size,
    add_growth,
    answer_contender,
    contend,
    cost_of,
    ratio_row,
)
from benchmarks.parts.sweep import swept
from benchmarks.server import missing, serving
from benchmarks.simulated import World

from pipeline.domain.search import Operation
from pipeline.domain.shards import SEARCHES_PER_SHARD, SHARDS_PER_SEGMENT, Partition, segments
from pipeline.lake import Lake
from pipeline.lake.raw import read_manifest
from pipeline.normalise.segment import normalise_segment
from pipeline.plan import SweepPlan
from pipeline.publish import publish
from pipeline.spec import SAMPLE_SPEC, read_spec
from pipeline.sweep.load import SEGMENT_TABLES, load_partitions

PART = "growth"
SWEEP = "20300101T020000Z-aaaaaa"
_PROPERTIES_A_SEARCH = 100
_SEARCHES_A_SEGMENT = SEARCHES_PER_SHARD * SHARDS_PER_SEGMENT


def measure(size: Size, folder: Path) -> Result:
    """Each stage on its own."""
    result = Result()
    _in_own_processes(result, size, folder)
    _sweeps(result, size, folder)
    _nights(result, size, folder)
    return result


def _in_own_processes(result: Result, size: Size, folder: Path) -> None:
    lake = Lake(str(folder / "load"))
    _, cut = land_bodies(lake, size.of(_SEARCHES_A_SEGMENT, 2))
    normalise_segment(lake, SWEEP, cut[0], 64_000_000, {})
    for stage, first in (
        ("plan", {"first": size.of(2000, 100)}),
        ("load", {"first": size.of(8, 1), "lake": str(lake.root)}),
    ):
        given = {f"{stage} {times}": {"times": times, **first} for times in TIMES}
        costs = contend("growth", list(given), given, size.rounds)
        cells = [found[0].units for found in costs.values()]
        add_growth(
            result,
            PART,
            stage,
            cells,
            list(zip(*([it.cpu_s for it in found] for found in costs.values()), strict=True)),
        )


def _sweeps(result: Result, size: Size, folder: Path) -> None:
    if said := missing("nginx"):
        result.skipped.append(f"sweep: CPU per cell, and memory ({said})")
        return
    # Four segments at least, so that both workers hold a full one at the same time.
    first = size.of(4 * _SEARCHES_A_SEGMENT, 2)
    canned = [body for _, _, body in bodies(size.of(10, 2), hotels=1)]
    with serving(canned, gzip=True) as base:
        # Its workers have started, and have read next to nothing.
        begun = swept(base, 2, folder / "sweep-begun")
        costs = [swept(base, first * times, folder / f"sweep-{times}") for times in TIMES]
    cells = [first * times * _PROPERTIES_A_SEARCH for times in TIMES]
    add_growth(result, PART, "sweep", cells, [[cost.cpu_s for cost in costs]])
    most = [cost.peak_mb for cost in costs]
    what = "memory of all processes of a sweep, 16x compared with 1x"
    note = "MB: " + ", ".join(f"{times}x {mb:.0f}" for times, mb in zip(TIMES, most, strict=True)) + "; one run each"
    result.rows.append(ratio_row(PART, what, [most[2] / most[0]], 1.1, is_least=False, note=note))
    above = costs[2].largest_started_mb - begun.largest_started_mb
    what = "largest worker of a sweep, 16x, above its base"
    note = f"base: {begun.largest_started_mb:.0f} MB, the largest worker of a sweep of 2 requests"
    result.rows.append(Row(PART, what, above, "MB", reach="<= 200", reached=above <= 200, note=note))
    result.rows.append(Row(PART, "largest process of a sweep, 16x", costs[2].largest_mb, "MB"))
    result.points += [
        {"curve": "Memory of all processes of a sweep, MB", "who": "sweep", "x": first * times, "y": mb}
        for times, mb in zip(TIMES, most, strict=True)
    ]


def _nights(result: Result, size: Size, folder: Path) -> None:
    cells, cpu_s = [], []
    for times in TIMES:
        world = World(times * size.of(30, 1), 3)
        lake = Lake(str(folder / f"times-{times}"))
        load_nights(lake, world)
        costs = [_published(lake, world, night) for night in range(world.nights)]
        # The first night has nothing before it.
        cpu_s.append(statistics.mean(cost.cpu_s for cost in costs[1:]))
        cells.append(read_manifest(lake, world.sweep_id(1)).cells)
    add_growth(result, PART, "publish", cells, [cpu_s])


def _published(lake: Lake, world: World, night: int) -> Cost:
    def work() -> float:
        publish(lake, world.sweep_id(night), world.started_at(night) + timedelta(hours=2), audit="passed")
        return 1

    return cost_of(work)


def planning(times: int, first: int) -> Callable[[], float]:
    """The searches of the sample spec over a number of properties."""
    today = datetime.now(UTC).date()
    plan = SweepPlan.of(read_spec(SAMPLE_SPEC, today), range(1, times * first + 1), today)

    def work() -> float:
        return sum(len(search.property_ids) for search in plan.searches())

    return work


def loading(times: int, first: int, lake: str) -> Callable[[], float]:
    """One commit per table for a number of segments, whose files are all copies of one segment's."""
    template = Lake(lake)
    place = Lake(f"{lake}-{times}-{os.getpid()}")
    partition = Partition(Operation.MULTI, "GB", 0, times * first * _SEARCHES_A_SEGMENT)
    (source, *_), wanted = segments(partition), list(segments(partition))
    for name in SEGMENT_TABLES:
        made = template.local(template.table_file(name, SWEEP, source.name))
        for segment in wanted if made.exists() else ():
            file = place.local(place.table_file(name, SWEEP, segment.name))
            file.parent.mkdir(parents=True, exist_ok=True)
            os.link(made, file)

    def work() -> float:
        load_partitions(place, SWEEP, [partition])
        return partition.stop * _PROPERTIES_A_SEARCH

    return work


CONTENDERS = {f"{stage} {times}": work for stage, work in (("plan", planning), ("load", loading)) for times in TIMES}

if __name__ == "__main__":
    answer_contender(CONTENDERS)
