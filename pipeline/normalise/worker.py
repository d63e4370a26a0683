"""A process that normalises segments: what it is told before its first one.

It imports nothing but what normalising needs. A fork server holds these modules once, and workers share its memory.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from importlib.abc import MetaPathFinder
from multiprocessing import parent_process
from multiprocessing.connection import wait

# For the fork server: what it imports is then there in each worker.
from pipeline.normalise import segment

__all__ = ["prepare", "segment"]


def prepare() -> None:
    """Make this process a worker of its parent."""
    # Ctrl-C goes to the whole group of processes; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.meta_path.insert(0, _WithoutPandas())
    # What was imported stays: the collector need not look at it, which would unshare its memory.
    gc.freeze()


class _WithoutPandas(MetaPathFinder):
    """pyarrow imports pandas if it can, to tell its objects from lists: 45 MB and a quarter of a second for nothing."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
