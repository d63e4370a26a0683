"""What a whole night loses by each fault of what it depends on: the lake's store, the scheduler, Prefect, a machine."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import Result, Row, Size

from pipeline.domain.shards import SEARCHES_PER_SHARD
from pipeline.lake.s3.object_store import Store
from pipeline.sandbox.server.launch import SandboxProcess

if TYPE_CHECKING:
    from ceph_server import Gateway
    from dask_machines import Machines
    from night_machine import Machine

# Servers that tests use as well lie beside them.
_TESTS = Path(__file__).parents[2]
sys.path += [str(_TESTS), str(_TESTS / "flows")]

PART = "disturbed"
_RATE, _WORKERS, _PROPERTIES = 20, 3, 40
# The fault comes when this share of the sweep has landed.
_SHARE_BEFORE = 1 / 3


def measure(size: Size, folder: Path) -> Result:
    """The same night again and again, each time into a new lake, so that only the fault differs."""
    result = Result()
    for what, missing, nights in (
        ("on a cluster and S3", _missing("redis-server", "ceph-mon", "ceph-osd", "radosgw"), _on_a_cluster),
        ("under Prefect on PostgreSQL", _missing("initdb"), _under_prefect),
    ):
        if missing:
            result.skipped.append(f"nights {what} (there is no {missing})")
        else:
            nights(size, folder, result)
    return result


def _missing(*programs: str) -> str:
    """Name the programs that are not installed; those of PostgreSQL lie in a folder of their own."""
    folders = (os.environ.get("PATH", ""), *map(str, Path("/usr/lib/postgresql").glob("*/bin")))
    return ", ".join(name for name in programs if shutil.which(name, path=os.pathsep.join(folders)) is None)


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _lost(result: Result, fault: str, spent: float, undisturbed: list[float]) -> None:
    note = f"{spent:.1f} s; undisturbed {', '.join(f'{each:.1f}' for each in undisturbed)} s"
    result.rows.append(
        Row(PART, f"time lost by a night: {fault}", spent - statistics.median(undisturbed), "s", note=note)
    )


def _ended(process: subprocess.Popen[str], *codes: int) -> int:
    said = process.communicate()[0]
    if process.returncode not in (codes or (0,)):
        raise RuntimeError(said[-2000:])
    return process.returncode


def _searched(folder: Path, days: int, properties: str) -> None:
    """Write the spec of a night that asks for lists only."""
    from night_machine import SPEC

    (folder / "sweep.toml").write_text(SPEC.format(properties=properties, days=days).replace(', "single"', ""))


def _searches(days: int) -> int:
    # Two markets, and one search for all properties.
    return 2 * days


@dataclass
class _Cluster:
    """Where nights run: the store of their lakes, workers, and a new machine with a new lake for each night."""

    folder: Path
    days: int
    store: Gateway
    machines: Machines
    given: dict[str, str]
    properties: str
    numbers: Iterator[int]

    def machine(self, lake: int | None = None) -> Machine:
        from night_machine import Machine

        number = next(self.numbers)
        address = f"s3://bucket/{number if lake is None else lake}/lake"
        at = self.given | {"NIGHTAUDIT_LAKE": address, "NIGHTAUDIT_CLUSTER": self.machines.address}
        made = Machine(self.folder / f"machine-{number}", None, **self.store.environment, **at)
        _searched(made.folder, self.days, self.properties)
        return made

    def begun(self) -> tuple[Machine, subprocess.Popen[str]]:
        one = self.machine()
        return one, one.start("nightly")

    def sends(self, one: Machine) -> bool:
        landed = Store(one.environment["NIGHTAUDIT_LAKE"]).keys("landed")
        shards = sum(key.endswith(".parquet") for key in landed)
        return shards * SEARCHES_PER_SHARD >= _searches(self.days) * _SHARE_BEFORE

    def publishes(self, _: Machine) -> bool:
        return any(self.folder.glob("copy/*/lake/published/.nightaudit.*"))


@contextmanager
def _cluster(folder: Path, days: int) -> Iterator[_Cluster]:
    from ceph_server import ceph_server
    from dask_machines import Machines, with_disk_of_its_own
    from redis_server import redis_server

    copy = folder / "copy"
    for place in (copy, folder / "ceph"):
        place.mkdir()
    with ExitStack() as running:
        supplier = running.enter_context(SandboxProcess(seed=3, properties=_PROPERTIES))
        redis = running.enter_context(redis_server(folder))
        store = running.enter_context(ceph_server(folder / "ceph"))
        # This process reads the store as well, to see how far a night has come.
        os.environ.update(store.environment)
        given = {
            "NIGHTAUDIT_BASE_URL": supplier.base_url,
            "NIGHTAUDIT_CLIENT_ID": supplier.client_id,
            "NIGHTAUDIT_CLIENT_SECRET": supplier.client_secret,
            "NIGHTAUDIT_REQUESTS_PER_SECOND": str(_RATE),
            "NIGHTAUDIT_RATE_STORE": redis.address,
            "NIGHTAUDIT_LAKE_COPY": str(copy),
        }
        machines = Machines(folder)
        running.callback(machines.end)
        for number in range(_WORKERS):
            machines.start_worker(by=with_disk_of_its_own(copy, folder / f"disk-{number}"), **given)
        machines.wait_for_workers()
        properties = f"ids = {supplier.control('properties')['property_ids']}"
        yield _Cluster(folder, days, store, machines, given, properties, count())


def _on_a_cluster(size: Size, folder: Path, result: Result) -> None:
    """Three workers send, normalise and publish; the lake is on Ceph's gateway, and the rate in Redis."""
    from waiting import await_true

    with _cluster(folder, size.of(300, 20)) as at:
        away = float(size.of(30, 2))

        def undisturbed() -> None:
            _ended(at.begun()[1])

        def store_away(during: Callable[[Machine], bool]) -> None:
            one, process = at.begun()
            await_true(lambda: during(one))
            at.store.go_away(away)
            _ended(process)

        def two_at_once() -> None:
            machines = at.machine(lake := next(at.numbers)), at.machine(lake)
            codes = {_ended(process, 0, 5) for process in [one.start("nightly") for one in machines]}
            if codes != {0, 5}:
                raise RuntimeError(f"two nights at once ended with {codes}")

        def without_its_scheduler() -> None:
            one, process = at.begun()
            await_true(lambda: at.sends(one))
            at.machines.scheduler.kill()
            _ended(process, 1)
            del one.environment["NIGHTAUDIT_CLUSTER"]
            _ended(one.start("nightly"))

        # The first task of a worker imports what it needs.
        undisturbed()
        before = [_seconds(undisturbed) for _ in range(size.of(3, 1))]
        faults: tuple[tuple[str, Callable[[], None]], ...] = (
            (f"its lake's store away for {away:g} s while it sweeps", lambda: store_away(at.sends)),
            (f"its lake's store away for {away:g} s while it publishes", lambda: store_away(at.publishes)),
            ("another machine begins the same one at once", two_at_once),
            ("its scheduler killed, and restarted by the machine alone", without_its_scheduler),
        )
        for fault, act in faults:
            _lost(result, fault, _seconds(act), before)


def _under_prefect(size: Size, folder: Path, result: Result) -> None:
    """A worker of a work pool runs the night; Prefect's server keeps its records in PostgreSQL."""
    from free_port import free_port
    from postgres_server import postgres_server
    from prefect_machines import kill, prefect_server, run_prefect, worker
    from prefect_runs import await_ends, begin_run, call, environment
    from waiting import await_true

    days, away, port, numbers = size.of(150, 10), float(size.of(10, 2)), free_port(), count()
    (folder / "prefect").mkdir()
    _searched(folder / "prefect", days, f"sandbox = {_PROPERTIES}")
    given = environment(
        folder / "prefect",
        folder / "prefect" / "sweep.toml",
        NIGHTAUDIT_REQUESTS_PER_SECOND=str(_RATE // 2),
        PREFECT_API_URL=f"http://127.0.0.1:{port}/api",
        PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE="prefect.server.concurrency.lease_storage.filesystem",
    )
    with postgres_server() as database:
        given["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database.address
        with prefect_server(given, port, folder) as server:
            call(server.address, "work_pools/", {"name": "nightaudit", "type": "process"})
            run_prefect(given, "--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly")

            def night(fault: Callable[[subprocess.Popen[bytes]], None] | None = None) -> float:
                """From the moment a worker is there to the end of its run."""
                lake = folder / "prefect" / f"lake-{next(numbers)}"
                own = given | {"NIGHTAUDIT_LAKE": str(lake)}
                working = [worker(own, folder)]
                began, run = time.perf_counter(), begin_run(server.address)
                try:
                    if fault is not None:
                        shards = _searches(days) * _SHARE_BEFORE / SEARCHES_PER_SHARD
                        await_true(lambda: len(list(lake.glob("raw/*/*.parquet"))) >= shards)
                        fault(working[0])
                        if working[0].poll() is not None:
                            working.append(worker(own, folder))
                    if (ended := await_ends(server.address, [run])) != ["COMPLETED"]:
                        raise RuntimeError(f"the night under Prefect ended as {ended}")
                    return time.perf_counter() - began
                finally:
                    for each in working:
                        kill(each)

            # The first night imports, and compiles, what the next ones find.
            night()
            undisturbed = [night() for _ in range(size.of(3, 1))]
            faults: tuple[tuple[str, Callable[[subprocess.Popen[bytes]], None]], ...] = (
                (f"PostgreSQL restarted after {away:g} s", lambda _: database.restart(away)),
                (f"Prefect's server restarted after {away:g} s", lambda _: server.restart(away)),
                ("its machine killed with all it runs, and another one takes over", kill),
            )
            for fault, act in faults:
                _lost(result, fault, night(act), undisturbed)
