"""How long a user waits for `--help` and for a query, and what Prefect adds to a night."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from benchmarks.bodies import bodies
from benchmarks.history import make_history
from benchmarks.measuring import Result, Row, Size, cost_of_command, ratio_row
from benchmarks.parts.sweep import swept
from benchmarks.server import missing, serving
from benchmarks.simulated import World

from pipeline.lake import Lake

PART = "start"
_COMMAND = [sys.executable, "-m", "pipeline.cli"]
_SELF = [sys.executable, "-m", "benchmarks.parts.start"]
# What a night imports, without Prefect and with it.
_MODULES = "pipeline.night.nightly"
_MODULES_OF_FLOW = f"{_MODULES}, flows.nightly"
_TESTS = Path(__file__).parents[2]
_REQUESTS, _RATE = 10_000, 50
_IDLE_S = 20
# What Prefect adds shows best beside a small night. It depends on how long one lasts, not on its size.
_SMALL_NIGHT = """
[properties]
sandbox = 60
[stays]
nights = [1]
[[stays.horizon]]
to_days = 4
[ask]
markets = ["GB", "DE"]
parties = ["2"]
currencies = ["EUR"]
"""


def measure(size: Size, folder: Path) -> Result:
    """Elapsed time of commands from a cold start, and of a small night with Prefect and without."""
    result = Result()
    lake = Lake(str(folder / "lake"))
    make_history(lake, World(3, 2))
    environment = _environment(lake.root)
    for what, arguments, most in (("--help", ["--help"], 0.15), ("query", ["query", "SELECT 42"], 0.4)):
        costs = [cost_of_command([*_COMMAND, *arguments], environment) for _ in range(size.of(5, 1))]
        for kind, seconds in (("elapsed", [it.wall_s for it in costs]), ("CPU", [it.cpu_s for it in costs])):
            value, is_wall = statistics.median(seconds), kind == "elapsed"
            result.rows.append(
                Row(
                    PART,
                    f"nightaudit {what}, {kind}",
                    value,
                    "s",
                    min(seconds),
                    max(seconds),
                    f"<= {most:g} s" if is_wall else "",
                    value <= most if is_wall else None,
                )
            )
    if not size.is_tiny:
        # It starts Prefect servers, which tests beside it would slow down.
        _prefect(result, size, folder)
    return result


def _prefect(result: Result, size: Size, folder: Path) -> None:
    """Compare the flow of a small night with the same steps without Prefect, and the difference with a large sweep."""
    if said := missing("nginx"):
        result.skipped.append(f"Prefect's share of a sweep, and a request's CPU ({said})")
        return
    few, many = 128, 640
    spec = folder / "night.toml"
    spec.write_text(_SMALL_NIGHT, encoding="utf-8")
    given = {"NIGHTAUDIT_SPEC": str(spec), "PREFECT_HOME": str(folder / "prefect")}
    # Prefect's database is made once, by the first night.
    upgrade = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
    cost_of_command(upgrade, _environment(folder / "none") | given)
    nights: list[dict[str, float]] = []
    longer: list[float] = []
    idle_s = 0.0
    for number in range(size.rounds):
        whole = {
            kind: cost_of_command([*_SELF, kind], _environment(folder / f"{kind}{number}") | given)
            for kind in ("flow", "steps")
        }
        longer.append(whole["flow"].wall_s - whole["steps"].wall_s)
        costs = {kind: cost.cpu_s for kind, cost in whole.items()}
        with _server(_environment(folder / "none") | given) as (address, server_cpu_s):
            before, there = server_cpu_s(), _environment(folder / f"there{number}") | {"PREFECT_API_URL": address}
            costs["flow, server there"] = (
                cost_of_command([*_SELF, "flow"], there | given).cpu_s + server_cpu_s() - before
            )
            if number == size.rounds - 1:
                idle_s = _idle(server_cpu_s)
        for modules in (_MODULES, _MODULES_OF_FLOW):
            costs[modules] = cost_of_command([sys.executable, "-c", f"import {modules}"], there).cpu_s
        nights.append(costs)
    canned = [body for _, _, body in bodies(10, hotels=1)]
    with serving(canned, gzip=True) as base:
        # What a sweep costs to begin is no part of what 10,000 requests cost: the difference of two.
        small_sweep, large_sweep = (swept(base, count, folder / f"sweep-{count}") for count in (few, many))
    request = (large_sweep.cpu_s - small_sweep.cpu_s) / (many - few)
    added = [night["flow"] - night["steps"] for night in nights]
    added_there = [night["flow, server there"] - night["steps"] for night in nights]
    imports = [night[_MODULES_OF_FLOW] - night[_MODULES] for night in nights]
    result.rows += [
        _seconds("Prefect: elapsed time that it adds to a small night", longer),
        _seconds("Prefect: CPU that it adds to a small night", added),
        _seconds("of this, if a server is already running, including that server's work", added_there),
        _seconds("of this, importing Prefect", imports),
        Row(PART, "Prefect: CPU of its idle server, per second of a night", 1e3 * idle_s, "ms"),
        Row(PART, "one request of a sweep: CPU", 1e3 * request, "ms"),
    ]
    sweep = f"Prefect's share of a sweep of {_REQUESTS:,} requests at {_RATE} per second"
    share = f"{sweep}, CPU"
    # A server that is already running would be idle anyway.
    for what, more_s, waiting_s in (
        (share, added, idle_s * _REQUESTS / _RATE),
        (f"{share}, if a server is already running", added_there, 0.0),
    ):
        shares = [100 * (each + waiting_s) / (each + waiting_s + _REQUESTS * request) for each in more_s]
        note = "from the rows above"
        result.rows.append(ratio_row(PART, what, shares, 3, is_least=False, unit="%", note=note))
    shares = [100 * more_s / (more_s + _REQUESTS / _RATE) for more_s in longer]
    result.rows.append(ratio_row(PART, f"{sweep}, elapsed time", shares, None, unit="%"))


def _seconds(what: str, found: list[float]) -> Row:
    return Row(PART, what, statistics.median(found), "s", min(found), max(found))


@contextmanager
def _server(environment: dict[str, str]) -> Iterator[tuple[str, Callable[[], float]]]:
    """Run a Prefect server that belongs to no night; yield its address, and a function for its CPU seconds."""
    running = subprocess.Popen([*_SELF, "server"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdout is not None

    def cpu_s() -> float:
        times = [child.cpu_times() for child in psutil.Process(running.pid).children(recursive=True)]
        return sum(each.user + each.system for each in times)

    try:
        yield running.stdout.readline().decode().strip(), cpu_s
    finally:
        running.communicate()


def _idle(cpu_s: Callable[[], float]) -> float:
    """Return the CPU seconds that a server takes in each second without a request."""
    before = cpu_s()
    time.sleep(_IDLE_S)
    return (cpu_s() - before) / _IDLE_S


def _environment(lake: Path) -> dict[str, str]:
    return os.environ | {
        "NIGHTAUDIT_LAKE": str(lake),
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PYTHONPATH": os.pathsep.join((str(_TESTS), str(_TESTS.parent))),
    }


def flow() -> None:
    """A night as the nightly flow, with a temporary server of Prefect's unless one is configured."""
    from flows.nightly import nightly

    nightly()


def steps() -> None:
    """The same night without Prefect."""
    from pipeline.night.night import Night
    from pipeline.night.nightly import run_night
    from pipeline.settings import read_settings

    settings = read_settings()
    run_night(Night(settings, Lake(settings.lake)))


def server() -> None:
    """A Prefect server, until standard input ends. Its address is printed."""
    from flows.server import prefect_server

    with prefect_server() as address:
        print(address, flush=True)  # noqa: T201 - what it is for
        sys.stdin.read()


if __name__ == "__main__":
    {"flow": flow, "steps": steps, "server": server}[sys.argv[1]]()
