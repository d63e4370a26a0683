"""How worker processes are started, and what they do with signals and at the end of their parent.

Python's own tracker of shared resources belongs to it: it prints tracebacks if it is killed from outside.
"""

import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from multiprocessing import parent_process, resource_tracker
from multiprocessing.connection import wait
from typing import TypeVar

logger = logging.getLogger(__name__)

_ERRORS = 2

# If two threads silenced standard error at once, the second one would restore the silence of the first.
_ONE_AT_A_TIME = threading.Lock()

T = TypeVar("T")


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Start processes within: a Ctrl-C meant for the parent ends none of them before it has set its own handling.

    They inherit this, and so does a fork server; every process that it starts has to let SIGINT in again.
    """
    # Started within, the tracker would let it in again in this process before the fork server is started.
    run_tracker()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begun(pool: Executor, do: Callable[..., T], *args: object) -> Future[T]:
    """Give work to a pool, which may start a process for it; see `interrupts_held_back`.

    Raises BrokenProcessPool if the pool has lost a process.
    """
    with interrupts_held_back():
        try:
            return pool.submit(do, *args)
        except (OSError, ValueError):
            # Python 3.11 closes the pipes of a pool that loses a process even while it starts another one with them.
            # A pool that has lost one refuses more work with its own error; otherwise it was another failure.
            pool.submit(os.getpid)
            raise


def follow_parent() -> None:
    """Leave Ctrl-C, which reaches the whole process group, to the parent, and end when the parent ends.

    After a kill of its parent, a process would wait for work forever, or write alongside the next holder of the lake.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def run_tracker() -> None:
    """Start the tracker, silenced; if it was killed from outside, start another one and log a warning.

    A new tracker does not know what was shared before, and would complain about each part that is released.
    """
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as caught, _nothing_printed():
        warnings.simplefilter("always")
        resource_tracker.ensure_running()
    if caught:
        logger.warning("Python's resource tracker was killed from outside; a new one is running, and nothing is lost.")


@contextmanager
def _nothing_printed() -> Iterator[None]:
    """Silence the standard error of processes that are started within."""
    printed, nowhere = os.dup(_ERRORS), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, _ERRORS)
        yield
    finally:
        os.dup2(printed, _ERRORS)
        os.close(printed)
        os.close(nowhere)
