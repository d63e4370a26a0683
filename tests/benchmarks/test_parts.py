from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import PARTS, merged

# Runs parts of the benchmark, small.
pytestmark = pytest.mark.slow

_TESTS = Path(__file__).parents[1]


# The other parts run nights on nights, which takes minutes at any size.
@pytest.mark.parametrize("part", ["start", "queries", "fetch"])
def test_a_part_of_the_benchmark_runs(part, tmp_path):
    """At a size too small to measure speed, whatever it then costs."""
    environment = os.environ | {"PYTHONPATH": str(_TESTS), "NIGHTAUDIT_BENCH_HISTORY": ""}
    command = [sys.executable, "-m", "benchmarks", part, "--tiny", "--into", str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=_TESTS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "bench.json").read_text())["parts"][part]
    assert found["rows"] or found["skipped"]
    with pytest.raises(ValueError, match=f"full size: {part}"):
        merged(tmp_path, tmp_path)


def test_the_readme_takes_no_results_that_are_silent_about_a_target(tmp_path):
    whole = {part: {"size": "full", "rows": [{"what": "look-up: all", "reach": ""}]} for part in PARTS}
    for parts, why in (({"start": whole["start"]}, "not measured: normalise"), (whole, "whole history")):
        (tmp_path / "bench.json").write_text(json.dumps({"parts": parts}))
        with pytest.raises(ValueError, match=why):
            merged(tmp_path, tmp_path)


def test_parts_that_are_not_measured_again_keep_their_last_results(tmp_path):
    def results(parts, commit):
        rows = [{"what": "look-up: all", "reach": "<= 50"}]
        return json.dumps(
            {"machine": {}, "parts": {part: {"size": "full", "commit": commit, "rows": rows} for part in parts}}
        )

    (tmp_path / "results.json").write_text(results(PARTS, "first"))
    (tmp_path / "bench.json").write_text(results(["start"], "second"))
    said = {part: found["commit"] for part, found in merged(tmp_path, tmp_path)["parts"].items()}
    assert said == {part: "second" if part == "start" else "first" for part in PARTS}
