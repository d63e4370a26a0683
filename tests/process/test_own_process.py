"""Jobs in processes of their own: one each, in order, and a killed one is an error."""

from __future__ import annotations

import os
import signal
from concurrent.futures.process import BrokenProcessPool

import pytest

from pipeline.process.own_process import in_own_processes


def _number_and_process(number: int) -> tuple[int, int]:
    return number, os.getpid()


def _killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_each_job_has_a_process_and_results_keep_the_order_of_the_jobs():
    done = in_own_processes(_number_and_process, [3, 1, 2], 2)
    assert [number for number, _ in done] == [3, 1, 2]
    assert len({process for _, process in done} | {os.getpid()}) == 4


def test_a_process_that_is_killed_is_an_error_and_no_wait():
    with pytest.raises(BrokenProcessPool):
        in_own_processes(_killed, [1], 1)
