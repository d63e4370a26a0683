from __future__ import annotations

import os
import sys

import pytest
from benchmarks.measuring import cost_of_command

# Holds a hundred megabytes, and works, for as long as it takes to be seen.
_CHILD = """held = bytearray(b"x") * 100_000_000
import time
end = time.process_time() + 0.5
while time.process_time() < end:
    pass"""
_PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_CHILD!r}])"


def _cost(program: str, **given):
    return cost_of_command([sys.executable, "-c", program], os.environ, **given)


def test_memory_and_cpu_of_a_command_are_those_of_all_its_processes():
    cost = _cost(_PARENT)
    assert cost.peak_mb > 100
    assert cost.cpu_s > 0.5


def test_the_largest_process_is_reported_apart_from_all_of_them():
    two = f"{_PARENT.replace('run', 'Popen')}.pid, subprocess.run([sys.executable, '-c', {_CHILD!r}])"
    cost = _cost(two)
    assert cost.peak_mb > 200 > cost.largest_mb > 100


def test_the_largest_process_that_a_command_started_is_not_the_command_itself():
    large = f"held = bytearray(b'x') * 300_000_000; {_PARENT}"
    assert _cost(large).largest_mb > 300
    assert 100 < _cost(large).largest_started_mb < 200


def test_what_a_command_leaves_behind_is_counted_too():
    left = _PARENT.replace("run", "Popen")
    assert _cost(left).cpu_s > 0.5


def test_a_command_that_fails_says_what_it_wrote():
    with pytest.raises(RuntimeError, match="no such luck"):
        _cost("raise SystemExit('no such luck')")
    assert _cost("raise SystemExit(4)", accepted=(0, 4)).units == 1
