"""`make bench-quick`: instructions of the hot paths, to run before and after a change. Under a minute.

Counted by perf in user mode, they hardly depend on what else the machine does. Where perf or its counters are missing,
CPU time as a multiple of `orjson.loads` of the same bodies stands in, which is noisier. The last figures are kept.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from benchmarks.bodies import bodies, land_bodies
from benchmarks.history import load_nights
from benchmarks.measuring import answer_contender
from benchmarks.parts.normalise import nightaudit as normalise
from benchmarks.parts.normalise import orjson
from benchmarks.simulated import World
from rich.console import Console
from rich.table import Table

from pipeline.lake import Lake
from pipeline.plan import SweepPlan
from pipeline.publish import publish
from pipeline.spec import SAMPLE_SPEC, read_spec

_TESTS = Path(__file__).parents[1]
_BODIES, _WORLD = 64, World(40, 2)
_KEPT = Path("bench/quick.json")


def publishing(lake: str) -> Callable[[], float]:
    """The second of two nights of forty properties."""
    place = Lake(lake)

    def work() -> float:
        for night in range(_WORLD.nights):
            publish(place, _WORLD.sweep_id(night), _WORLD.started_at(night) + timedelta(hours=2), audit="passed")
        return 1

    return work


def planning() -> Callable[[], float]:
    """The searches of the sample spec over 5,000 properties."""
    today = _WORLD.started_at(0).date()
    plan = SweepPlan.of(read_spec(SAMPLE_SPEC, today), range(1, 5001), today)
    return lambda: float(sum(1 for _ in plan.searches()))


CONTENDERS = {"normalise and load": normalise, "publish": publishing, "plan": planning, "orjson": orjson}


def main() -> None:
    """Measure each hot path, and print it beside the last run."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        land_bodies(Lake(str(folder / "raw")), _BODIES)
        load_nights(Lake(str(folder / "nights")), _WORLD)
        texts = folder / "bodies"
        texts.mkdir()
        for number, (_, _, body) in enumerate(bodies(_BODIES)):
            (texts / f"{number:05d}.json").write_bytes(body)
        given = {
            "normalise and load": {"lake": str(folder / "raw"), "count": _BODIES, "bodies": str(texts)},
            "publish": {"lake": str(folder / "nights")},
            "plan": {},
            "orjson": {"bodies": str(texts)},
        }
        counted = {path: _cost(path, json.dumps(arguments)) for path, arguments in given.items()}
    unit = "million instructions" if _COUNTER else "x orjson.loads"
    if not _COUNTER:
        counted = {path: value / counted["orjson"] for path, value in counted.items()}
    kept = json.loads(_KEPT.read_text()) if _KEPT.exists() else {}
    before = kept["paths"] if kept.get("unit") == unit else {}
    table = Table("hot path", unit, "last run", "change")
    for path, value in counted.items():
        last = before.get(path)
        change = f"{100 * (value / last - 1):+.1f} %" if last else ""
        table.add_row(path, f"{value:,.4g}", f"{last:,.4g}" if last else "", change)
    Console().print(table)
    _KEPT.parent.mkdir(exist_ok=True)
    _KEPT.write_text(json.dumps({"unit": unit, "paths": counted}, indent=1) + "\n", encoding="utf-8")


def _counter() -> list[str]:
    """Return the command that counts instructions; empty where nothing can."""
    counter = ["perf", "stat", "-x", ";", "-e", "instructions:u"]
    if shutil.which("perf") is None:
        return []
    said = subprocess.run([*counter, "true"], capture_output=True, text=True, check=False).stderr
    return counter if said.split(";")[0].isdigit() else []


_COUNTER = _counter()


def _cost(path: str, arguments: str) -> float:
    """Return million instructions, or CPU seconds: the least of three."""
    command = [*_COUNTER, sys.executable, "-m", "benchmarks.quick", path, arguments]
    if _COUNTER:
        said = subprocess.run(command, cwd=_TESTS, capture_output=True, text=True, check=True).stderr
        return int(said.split(";")[0]) / 1e6
    rounds = 1 if path == "publish" else 3
    runs = [subprocess.run(command, cwd=_TESTS, capture_output=True, text=True, check=True) for _ in range(rounds)]
    return min(float(json.loads(run.stdout.splitlines()[-1])["cpu_s"]) for run in runs)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        answer_contender(CONTENDERS)
    else:
        main()
