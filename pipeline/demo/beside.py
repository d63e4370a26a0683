"""The processes of the demo that follow its sweeps."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from pipeline.domain.errors import NightauditError
from pipeline.normalise import worker
from pipeline.process.tracker import run_tracker


@contextmanager
def process_beside() -> Iterator[ProcessPoolExecutor]:
    """Give a process that works while this one sweeps. Where the demo is stopped, it is ended at once.

    Wherever publishing is ended, the last published file stays as it is.
    """
    others = set(multiprocessing.active_children())
    # Not fork: threads of DuckDB and of the object store do not survive it.
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=worker.prepare)
    try:
        yield pool
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        run_tracker()
        pool.shutdown()


def await_steps(following: Iterable[Future[None]]) -> None:
    """Wait for steps, or raise what ended one of them."""
    try:
        for step in following:
            step.result()
    except BrokenProcessPool:
        raise NightauditError(
            "A process that audits or publishes the demo's nights was killed, perhaps because memory ran out.",
            kept="The nights that were made stay in the lake.",
            hint="Remove that lake, and when more memory is free: nightaudit demo",
        ) from None
