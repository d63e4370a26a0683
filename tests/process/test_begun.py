"""Work given to a pool of processes while one of them is killed."""

from __future__ import annotations

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from pipeline.process.child import begun


class LosesTheFirst(ProcessPoolExecutor):
    """A pool whose first process is killed when it is about to start the second one."""

    def _spawn_process(self):
        for first in self._processes.values():
            first.kill()
            until = time.monotonic() + 5
            # Newer Pythons look after the loss only once this one has started.
            while first.is_alive() or (not self._call_queue._reader.closed and time.monotonic() < until):
                time.sleep(0.01)
        super()._spawn_process()


class StartsNone(ProcessPoolExecutor):
    def _spawn_process(self):
        raise OSError("no process can be started")


def test_a_pool_that_loses_a_process_while_it_starts_another_says_so():
    with LosesTheFirst(2, multiprocessing.get_context("spawn")) as pool:
        begun(pool, time.sleep, 60)
        with pytest.raises(BrokenProcessPool):
            begun(pool, os.getpid).result()


def test_other_failures_to_start_a_process_are_told_as_they_are():
    with StartsNone(1, multiprocessing.get_context("spawn")) as pool, pytest.raises(OSError, match="can be started"):
        begun(pool, os.getpid)
