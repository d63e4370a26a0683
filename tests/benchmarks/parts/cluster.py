"""A night published by one, two and three workers of a Dask cluster, and what it costs to lose a part of it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.history import load_nights
from benchmarks.measuring import Result, Row, Size
from benchmarks.simulated import World

from pipeline.lake import Lake
from pipeline.lake.ledger import enter
from pipeline.publish import LedgerEntry, republish_all

# Servers that tests use as well lie beside them.
sys.path.append(str(Path(__file__).parents[2]))

PART = "cluster"
_WORKERS = (1, 2, 3)
_SECONDS_CUT_OFF = 20.0
# Ranges of a night: enough to go round, and to be in the middle of one.
_RANGES = 12


def measure(size: Size, folder: Path) -> Result:
    """The same night published again and again, so that only what does the work differs."""
    result = Result()
    try:
        from dask_machines import Machines, cut_off, while_one_works
    except ImportError:
        result.skipped.append("workers of a cluster (there is no distributed: it is of the extra `cluster`)")
        return result
    lake = Lake(str(folder / "lake"))
    world = World.holding(size.of(1_000_000, 3_000), 1)
    (offers,) = load_nights(lake, world)
    enter(lake, LedgerEntry(world.sweep_id(0), world.started_at(0), world.started_at(0), "passed"))
    machines = Machines(folder)

    def published() -> float:
        began = time.perf_counter()
        republish_all(lake, lambda: None, most_offers=offers // _RANGES, workforce=machines.workforce)
        return time.perf_counter() - began

    try:
        seconds: dict[int, list[float]] = {}
        for workers in _WORKERS:
            machines.start_worker()
            machines.wait_for_workers()
            # The first task of a worker imports what it needs.
            published()
            seconds[workers] = [published() for _ in range(size.rounds)]
            middle = statistics.median(seconds[workers])
            result.points.append({"curve": "a night by workers, s", "who": "publish", "x": workers, "y": middle})
        one = seconds[_WORKERS[0]]
        for workers in _WORKERS[1:]:
            value = statistics.median(one) / statistics.median(seconds[workers])
            low, high = min(one) / max(seconds[workers]), max(one) / min(seconds[workers])
            note = "; ".join(f"{number}: {statistics.median(spent):.1f} s" for number, spent in seconds.items())
            what = f"a night of {offers:,} offers published by {workers} workers: elapsed time compared with one"
            result.rows.append(Row(PART, what, value, "x", low, high, note=note))
        undisturbed = statistics.median(seconds[_WORKERS[-1]])
        lose: tuple[tuple[str, Callable[[subprocess.Popen[bytes]], None]], ...] = (
            (f"one cut off for {_SECONDS_CUT_OFF:g} s", lambda worker: cut_off(worker, _SECONDS_CUT_OFF)),
            ("one killed", subprocess.Popen.kill),
        )
        for what, loss in lose:
            with while_one_works(machines, loss) as lost:
                spent = published()
            if lost:
                note = f"{spent:.1f} s; undisturbed {undisturbed:.1f} s"
                result.rows.append(
                    Row(PART, f"time lost, of three workers {what}", spent - undisturbed, "s", note=note)
                )
    finally:
        machines.end()
    return result
