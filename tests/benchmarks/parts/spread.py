"""What a sweep that the workers of a cluster send loses by a fault. They share the supplier's rate through Redis."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import Result, Row, Size
from benchmarks.server import missing

from pipeline.domain.shards import SEARCHES_PER_SHARD

if TYPE_CHECKING:
    from night_machine import Machine

# Servers that tests use as well lie beside them.
sys.path.append(str(Path(__file__).parents[2]))

PART = "spread"
_RATE, _WORKERS, _PROPERTIES = 20, 3, 40
# Of the sweep whose rate is measured: long enough that its first and last second hardly count.
_BATCH = 10
# The fault comes when this share of the sweep has landed.
_SHARE_BEFORE = 1 / 3


def measure(size: Size, folder: Path) -> Result:
    """The same sweep again and again, each time into a new lake, so that only the fault differs."""
    result = Result()
    try:
        from dask_machines import Machines, cut_off
    except ImportError:
        result.skipped.append("sweeps by workers of a cluster (there is no distributed: it is of the extra `cluster`)")
        return result
    if absent := missing("redis-server", "nginx"):
        result.skipped.append(f"sweeps by workers of a cluster ({absent})")
        return result
    from benchmarks.front import in_front_of
    from night_machine import SPEC, Machine
    from redis_server import redis_server

    from pipeline.sandbox.server.launch import SandboxProcess

    days, away = size.of(300, 6), float(size.of(20, 1))
    searches = 2 * days
    with (
        SandboxProcess(seed=3, properties=_PROPERTIES) as supplier,
        in_front_of(supplier.base_url.removeprefix("http://"), folder / "front") as front,
        redis_server(folder) as redis,
    ):
        given = {
            "NIGHTAUDIT_LAKE": "lake",
            "NIGHTAUDIT_BASE_URL": front.address,
            "NIGHTAUDIT_CLIENT_ID": supplier.client_id,
            "NIGHTAUDIT_CLIENT_SECRET": supplier.client_secret,
            "NIGHTAUDIT_REQUESTS_PER_SECOND": str(_RATE),
            "NIGHTAUDIT_RATE_STORE": redis.address,
        }
        machines, runs = Machines(folder), count()
        ids = supplier.control("properties")["property_ids"]
        spec = SPEC.format(properties=f"ids = {ids}", days=days).replace(', "single"', "")

        def swept(fault: Callable[[], None] | None = None, more: str = "") -> float:
            one = Machine(folder / f"run-{next(runs)}", None, NIGHTAUDIT_CLUSTER=machines.address, **given)
            (one.folder / "sweep.toml").write_text(spec + more)
            return _seconds_of(one, searches, fault)

        try:
            for _ in range(_WORKERS):
                machines.start_worker(**given)
            machines.wait_for_workers()
            # The first task of a worker imports what it needs.
            swept()
            began = time.time()
            swept(more=f"batch = {_BATCH}\n")
            _rate_used(result, front.arrivals(began))
            undisturbed = [swept() for _ in range(size.of(2, 1))]
            middle = statistics.median(undisturbed)
            worker = next(iter(machines.workers.values()))
            faults: tuple[tuple[str, Callable[[], None]], ...] = (
                (f"one worker cut off for {away:g} s", lambda: cut_off(worker, away)),
                (f"Redis away for {away:g} s, and empty afterwards", lambda: redis.restart(away)),
                ("one worker killed", worker.kill),
            )
            for what, fault in faults:
                spent = swept(fault)
                note = f"{spent:.1f} s; undisturbed {', '.join(f'{each:.1f}' for each in undisturbed)} s"
                result.rows.append(Row(PART, f"time lost by a sweep, {what}", spent - middle, "s", note=note))
        finally:
            machines.end()
    return result


def _rate_used(result: Result, arrivals: list[float]) -> None:
    """As the server in front of the supplier sees it: from the first search to the last, and in the busiest second."""
    from busiest_second import most_in_any_second

    seconds, busiest = arrivals[-1] - arrivals[0], most_in_any_second(arrivals)
    used = (len(arrivals) - 1) / seconds / _RATE
    what = f"{len(arrivals):,} searches by {_WORKERS} workers: share of the allowed rate ({_RATE}/s), at the server"
    note = f"{seconds:.1f} s from the first search to the last"
    result.rows.append(Row(PART, what, used, "x", reach=">= 0.97", reached=used >= 0.97, note=note))
    what = "most of them in any second, at the server"
    result.rows.append(Row(PART, what, busiest, "searches", reach=f"<= {_RATE}", reached=busiest <= _RATE))


def _seconds_of(one: Machine, searches: int, fault: Callable[[], None] | None) -> float:
    """Sweep on a machine, with a fault in the middle; return the elapsed time."""
    began = time.perf_counter()
    process = one.start("sweep")
    while fault and process.poll() is None:
        if len(list(one.folder.glob("lake/raw/*/*.parquet"))) * SEARCHES_PER_SHARD >= searches * _SHARE_BEFORE:
            fault()
            break
        time.sleep(0.05)
    said = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(said[-2000:])
    return time.perf_counter() - began
