"""How worker processes are started, and what they do with signals and at the end of their parent."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from multiprocessing.connection import wait

from pipeline.process.tracker import run_tracker


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
