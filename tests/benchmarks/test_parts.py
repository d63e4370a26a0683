from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import PARTS

_TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_benchmark_runs(part, tmp_path):
    """At a size that says nothing of speed, and whatever it then costs."""
    if part == "normalise":
        pytest.importorskip("dlt")
    environment = os.environ | {"PYTHONPATH": str(_TESTS), "NIGHTAUDIT_BENCH_HISTORY": ""}
    command = [sys.executable, "-m", "benchmarks", part, "--tiny", "--into", str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=_TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((tmp_path / "bench.json").read_text())["rows"]
