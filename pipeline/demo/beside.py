"""The processes of the demo that follow its sweeps."""

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress

from pipeline.domain.errors import NightauditError
from pipeline.process.child import begun, run_tracker
from pipeline.process.own_process import spawned

# Steps of `nice` that sweeps and audits stay behind publishing.
_STEPS_BEHIND = 10


@contextmanager
def process_beside() -> Iterator[ProcessPoolExecutor]:
    """Give a process that works while this one sweeps. If the demo is stopped, it is killed at once.

    Whenever publishing is killed, the last published file stays intact. Raises NightauditError if it is killed.
    """
    others = set(multiprocessing.active_children())
    pool = spawned(1)
    try:
        yield pool
    except BrokenProcessPool:
        raise NightauditError(
            "A process that audits or publishes the demo's nights was killed, perhaps because memory ran out.",
            kept="The nights that were made stay in the lake.",
            hint="Free some memory, delete that lake, and start again: nightaudit demo",
        ) from None
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        run_tracker()
        pool.shutdown()


@contextmanager
def behind(first: ProcessPoolExecutor) -> Iterator[None]:
    """Let `first` have the processor before this process and those that it starts within.

    Each night is published on the one before it, so publishing takes longest; the rest fits beside it.
    """
    # A process keeps the priority that its parent had when it was started.
    begun(first, os.getpid)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before + _STEPS_BEHIND)
    try:
        yield
    finally:
        # Few users may raise a priority again that they have lowered.
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, before)


def await_steps(following: Iterable[Future[None]]) -> None:
    """Wait for steps, or raise what ended one of them."""
    for step in following:
        step.result()
