"""Prepares a process that normalises segments.

It imports only what normalising needs. A fork server holds these modules once, and workers share its memory.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait

# For the fork server: what it imports is available in each worker.
from pipeline.normalise import segment
from pipeline.process.pandasless import keep_pandas_out

__all__ = ["prepare", "segment"]


def prepare() -> None:
    """Make this process a worker of its parent."""
    # Ctrl-C reaches the whole process group; the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    keep_pandas_out()
    # Imported modules stay; a garbage collector that visits them would unshare their memory.
    gc.freeze()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
