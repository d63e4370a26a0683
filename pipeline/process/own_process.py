"""Work in processes of its own, which return all of their memory when they end."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import TypeVar

from pipeline.process.child import begun, follow_parent, run_tracker
from pipeline.process.pandasless import keep_pandas_out

J = TypeVar("J")
T = TypeVar("T")


def in_own_processes(do: Callable[[J], T], jobs: Sequence[J], at_once: int) -> list[T]:
    """Do each job in a process that ends with it, and return the results in the order of the jobs.

    Libraries keep memory that they no longer use, so several jobs in one process need the sum of what each needs.
    Raises BrokenProcessPool if a process is killed; after any error, jobs that have not begun are left out.
    """
    # The tracker belongs to this thread; the others would start it side by side.
    run_tracker()
    with ThreadPoolExecutor(at_once) as waiting:
        running = [waiting.submit(_alone, do, job) for job in jobs]
        try:
            return [each.result() for each in running]
        finally:
            waiting.shutdown(wait=True, cancel_futures=True)


def _alone(do: Callable[[J], T], job: J) -> T:
    with spawned(1) as pool:
        return begun(pool, do, job).result()


def spawned(processes: int) -> ProcessPoolExecutor:
    """Return a pool of processes that inherit nothing from this one."""
    # Not fork: the threads of DuckDB, polars and the object store do not survive it.
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=_prepare)


def _prepare() -> None:
    follow_parent()
    keep_pandas_out()
