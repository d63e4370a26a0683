"""A worker begins quickly and small: it imports what normalising needs, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from pipeline.domain.errors import NightauditError
from pipeline.domain.search import Operation
from pipeline.domain.servers import Workforce
from pipeline.domain.shards import Partition, segments
from pipeline.lake import Lake
from pipeline.process import child
from pipeline.sweep import normalisers


def _held_after(program: str) -> set[str]:
    tell = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{tell}"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_a_worker_imports_nothing_that_only_its_parent_needs():
    held = _held_after("import pipeline.normalise.worker")
    assert {"pyarrow", "msgspec", "isal"} <= held
    assert not held & {"aiohttp", "deltalake", "duckdb", "pandas", "polars", "prefect", "pydantic"}


def test_a_worker_builds_its_columns_without_pandas():
    columns = "import pyarrow; pyarrow.array([1, None]); pyarrow.array(['a']).to_pylist()"
    assert "pandas" in _held_after(columns)
    assert "pandas" not in _held_after(f"from pipeline.normalise import worker; worker.prepare()\n{columns}")


def test_pandas_can_be_imported_where_pyarrow_was_hidden_before():
    program = (
        "from pipeline.process.pandasless import keep_pandas_out; keep_pandas_out(); "
        "import pandas; pandas.Series(['a'])"
    )
    assert "pandas" in _held_after(program)


def test_a_process_that_is_being_started_does_not_hear_a_ctrl_c_meant_for_its_parent():
    # Raised in the child before it was sent anything: it ends the child unless it is held back.
    program = """
import multiprocessing, signal
from pipeline.process.child import interrupts_held_back
child = multiprocessing.get_context("forkserver").Process(target=signal.raise_signal, args=(signal.SIGINT,))
with interrupts_held_back():
    child.start()
child.join()
print(child.exitcode, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]


def test_neither_the_event_loop_nor_those_who_land_wait_for_a_worker_to_start(tmp_path, monkeypatch):
    release, started_by = threading.Event(), []

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers, *_, **__):
            super().__init__(workers)

        def submit(self, *_):
            # As while the fork server imports.
            started_by.append(threading.current_thread())
            assert release.wait(30)
            return super().submit(lambda: "done")

    async def normalise():
        async with normalisers.Normalisers(Lake(str(tmp_path / "lake")), "a sweep", 1, Workforce(1)) as pool:
            cut = [segments(Partition(Operation.MULTI, market, 0, 1)) for market in ("GB", "SE", "DE", "FR") * 20]
            waiting = [asyncio.create_task(pool.normalise(next(iter(each)), {})) for each in cut]
            # If they took the threads of the event loop, this would wait for them forever.
            await asyncio.to_thread(release.set)
            return await asyncio.gather(*waiting)

    monkeypatch.setattr(normalisers, "ProcessPoolExecutor", Pool)
    assert set(asyncio.run(normalise())) == {"done"}
    assert threading.main_thread() not in started_by


# What a fork server that is being ended gives, by how far its end has come.
@pytest.mark.parametrize("error", [EOFError, ConnectionRefusedError, ConnectionResetError, BrokenPipeError])
def test_a_fork_server_that_is_ended_before_it_has_started_a_worker_is_one_clear_error(tmp_path, monkeypatch, error):
    class Pool:
        def __init__(self, *_, **__):
            pass

        def submit(self, *_):
            raise error

        def shutdown(self, **_):
            pass

    async def normalise():
        async with normalisers.Normalisers(Lake(str(tmp_path / "lake")), "a sweep", 1, Workforce(1)) as pool:
            (segment,) = segments(Partition(Operation.MULTI, "GB", 0, 1))
            await pool.normalise(segment, {})

    monkeypatch.setattr(normalisers, "ProcessPoolExecutor", Pool)
    with pytest.raises(NightauditError, match="worker process was killed"):
        asyncio.run(normalise())


KILLED_TRACKER = """
import asyncio, os, signal, sys
from multiprocessing import resource_tracker
from pipeline.domain.servers import Workforce
from pipeline.lake import Lake
from pipeline.sweep.normalisers import Normalisers

async def main():
    async with Normalisers(Lake(sys.argv[1]), "s", 1, Workforce(1)) as normalisers:
        normalisers._pool.submit(int).result()
        tracker = resource_tracker._resource_tracker._pid
        os.kill(tracker, signal.SIGKILL)
        # Until it has ended it still takes what is written to it.
        os.waitpid(tracker, 0)

if __name__ == "__main__":
    asyncio.run(main())
"""


def test_a_resource_tracker_that_is_ended_costs_one_line_and_no_traceback(tmp_path):
    script = tmp_path / "killed_tracker.py"
    script.write_text(KILLED_TRACKER)
    done = subprocess.run([sys.executable, script, tmp_path / "lake"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "Python's resource tracker was killed from outside; a new one is running, and nothing is lost."
    ]


def test_two_threads_that_start_processes_leave_standard_error_as_it_was(monkeypatch):
    both_within, first_is_done = threading.Barrier(2), threading.Event()
    entered = []

    def slow():
        entered.append(threading.current_thread())
        # Waits for the other thread, which may not come.
        with suppress(threading.BrokenBarrierError):
            both_within.wait(0.5)
        if threading.current_thread() is not entered[0]:
            first_is_done.wait(5)

    def start():
        child.run_tracker()
        if threading.current_thread() is entered[0]:
            first_is_done.set()

    monkeypatch.setattr(child.resource_tracker, "ensure_running", slow)
    kept, before = os.dup(2), os.fstat(2)
    threads = [threading.Thread(target=start) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert os.path.samestat(os.fstat(2), before)
    finally:
        os.dup2(kept, 2)
        os.close(kept)


# How the pools of a night start their processes.
POOLS = {
    "normalising": "from pipeline.sweep.normalisers import processes; opened = lambda: processes(1)",
    "ranges": "from pipeline.process.range_pool import RangePool; from pathlib import Path; "
    "from pipeline.domain.servers import Workforce; "
    "opened = RangePool('a step', 'again', Path(), None, Workforce(1))._opened",
    "demo": "from pipeline.demo.beside import process_beside; opened = process_beside().__enter__",
}


@pytest.mark.parametrize("pool", POOLS)
def test_a_worker_ends_when_its_parent_is_killed(pool):
    program = "import os, time\npool = opened(); print(pool.submit(os.getpid).result(), flush=True)\n"
    busy = "pool.submit(time.sleep, 60); time.sleep(0.2)\nos.kill(os.getpid(), 9)"
    done = subprocess.run(
        [sys.executable, "-c", f"{POOLS[pool]}\n{program}{busy}"], stdout=subprocess.PIPE, text=True, timeout=60
    )
    worker, ends_at = int(done.stdout), time.monotonic() + 20
    while Path(f"/proc/{worker}").exists() and time.monotonic() < ends_at:
        time.sleep(0.05)
    is_left = Path(f"/proc/{worker}").exists()
    if is_left:
        os.kill(worker, signal.SIGKILL)
    assert not is_left


def test_a_worker_of_ranges_that_is_being_started_leaves_ctrl_c_to_its_parent():
    program = """
import multiprocessing, os, signal
from pipeline.process.range_pool import _submitted
pool = opened()
answer = _submitted(pool, os.getpid)
(child,) = multiprocessing.active_children()
os.kill(child.pid, signal.SIGINT)
print(answer.result() == child.pid)
"""
    done = subprocess.run(
        [sys.executable, "-c", f"{POOLS['ranges']}\n{program}"], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
