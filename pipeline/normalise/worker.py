"""A process that normalises segments: what it receives before its first one.

It imports nothing but what normalising needs. A fork server holds these modules once, and workers share its memory.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait

# For the fork server: what it imports is then there in each worker.
from pipeline.normalise import segment
from pipeline.process.pandasless import keep_pandas_out

__all__ = ["prepare", "segment"]


def prepare() -> None:
    """Make this process a worker of its parent."""
    # Ctrl-C goes to the whole group of processes; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_pandas_out()
    # What was imported stays: the collector need not look at it, which would unshare its memory.
    gc.freeze()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
