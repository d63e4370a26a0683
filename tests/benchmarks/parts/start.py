"""How long a user waits for `--help` and for a query, and what Prefect adds to a night."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.history import make_history
from benchmarks.measuring import Cost, Result, Row, Size, cost_of
from benchmarks.simulated import World

from pipeline.lake import Lake

PART = "start"
_COMMAND = str(Path(sys.executable).parent / "nightaudit")
# What a sweep of 10,000 requests costs beside it: measured by the part `sweep`, a request of a hundred properties.
_REQUESTS, _CPU_S_A_REQUEST = 10_000, 0.008


def measure(size: Size, folder: Path) -> Result:
    """Wall time of commands from nothing, and a small night with Prefect and without."""
    result = Result()
    lake = Lake(str(folder / "lake"))
    make_history(lake, World(3, 2))
    environment = os.environ | {"NIGHTAUDIT_LAKE": str(lake.root)}
    for what, arguments, most in (("--help", ["--help"], 0.5), ("query", ["query", "SELECT 42"], 1.0)):
        costs = [_run([_COMMAND, *arguments], environment) for _ in range(size.of(7, 1))]
        walls = [cost.wall_s for cost in costs]
        value = statistics.median(walls)
        row = Row(PART, f"nightaudit {what}, wall", value, "s", min(walls), max(walls), f"<= {most:g} s", value <= most)
        result.rows.append(row)
        cpu = statistics.median(cost.cpu_s for cost in costs)
        result.rows.append(Row(PART, f"nightaudit {what}, CPU", cpu, "s"))
    if not size.is_tiny:
        # It starts Prefect servers, which tests beside it would slow down.
        _prefect(result, size)
    return result


def _prefect(result: Result, size: Size) -> None:
    """Hold the Prefect flow of a small night against its steps called one by one."""
    with tempfile.TemporaryDirectory() as place:
        usual = os.environ | {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
        more = []
        for number in range(size.of(2, 1)):
            both = {}
            for name, commands in {
                "flow": [["nightly"]],
                "steps": [["sweep"], ["audit"], ["publish"]],
            }.items():
                lake = f"{place}/{name}{number}"
                environment = usual | {"NIGHTAUDIT_LAKE": lake, "PREFECT_HOME": f"{place}/prefect"}
                both[name] = [_run([_COMMAND, *command], environment) for command in commands]
            alone = [_run([_COMMAND, "status"], usual | {"NIGHTAUDIT_LAKE": f"{place}/none"}) for _ in range(2)]
            steps = sum(cost.cpu_s for cost in both["steps"]) - sum(cost.cpu_s for cost in alone)
            more.append(both["flow"][0].cpu_s - steps)
    added = statistics.median(more)
    share = added / (added + _REQUESTS * _CPU_S_A_REQUEST)
    result.rows += [
        Row(PART, "Prefect: CPU that it adds to a night", added, "s", min(more), max(more)),
        Row(
            PART,
            "Prefect's share of a sweep of 10,000 requests, CPU",
            100 * share,
            "%",
            reach="<= 3 %",
            reached=share <= 0.03,
        ),
    ]


def _run(command: list[str], environment: dict[str, str]) -> Cost:
    def work() -> float:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3, 4):
            raise RuntimeError(f"{command}: {done.stdout[-500:]}{done.stderr[-1500:]}")
        return 1

    return cost_of(work)
