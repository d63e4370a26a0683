"""Whole sweeps against a server with canned answers: the price end to end, growth, memory, and the pace."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import psutil
from benchmarks.bodies import bodies, property_ids
from benchmarks.measuring import Cost, Result, Row, Size, answer_contender, cost_of, in_own_process, ratio_row
from benchmarks.server import missing, serving

PART = "sweep"
_SPEC = """
[properties]
ids = {ids}
[stays]
nights = {nights}
[[stays.horizon]]
to_days = {days}
[ask]
markets = ["GB"]
parties = ["2"]
currencies = ["EUR"]
"""


def measure(size: Size, folder: Path) -> Result:
    """All of it, on one server."""
    result = Result()
    if said := missing("nginx"):
        result.rows.append(Row(PART, "sweep end to end", 0, "", note=said))
        return result
    canned = [body for _, _, body in bodies(size.of(10, 2), houses=1)]
    a_body = statistics.mean(body.count(b'"productId"') for body in canned)
    with serving(canned, gzip=True) as base:
        _end_to_end(result, size, base, a_body)
        _growth(result, size, base, folder)
        _pace(result, size, base, folder)
    return result


def _end_to_end(result: Result, size: Size, base: str, a_body: float) -> None:
    ratios, rates = [], []
    for _ in range(size.rounds):
        ours = in_own_process(PART, "nightaudit", {"base": base, "requests": size.of(400, 4), "a_body": a_body})
        theirs = in_own_process(PART, "dlt", {"base": base, "requests": size.of(40, 2), "a_body": a_body})
        ratios.append(theirs.cpu_us / ours.cpu_us)
        rates.append(ours.units / ours.wall_s)
    what = "sweep end to end, CPU, x dlt end to end (Parquet loader, no archive)"
    result.rows.append(ratio_row(PART, what, ratios, 17))
    result.rows.append(Row(PART, "offers a second, wall", statistics.median(rates), "offers/s", min(rates), max(rates)))


def _growth(result: Result, size: Size, base: str, folder: Path) -> None:
    first = size.of(100, 2)
    found: list[Cost] = []
    for times in (1, 4, 16):
        cost, peak_mb = _swept(base, first * times, folder / f"growth-{times}")
        found.append(Cost(first * times, cost.cpu_s, cost.wall_s, peak_mb))
        point = {"curve": "CPU a request of a sweep, ms", "who": "sweep", "x": first * times, "y": cost.cpu_us / 1e3}
        result.points.append(point)
    result.rows += [
        ratio_row(PART, "CPU a request, 16x against 4x", [found[2].cpu_us / found[1].cpu_us], 1.1, is_least=False),
        Row(PART, "largest process, 16x", found[2].peak_mb, "MB RSS"),
        ratio_row(PART, "largest process, 16x against 4x", [found[2].peak_mb / found[1].peak_mb], 1.1, is_least=False),
    ]


def _pace(result: Result, size: Size, base: str, folder: Path) -> None:
    rate, requests = 50, size.of(600, 20)
    lake = folder / "pace"
    _swept(base, requests, lake, rate=rate)
    with duckdb.connect(":memory:") as session:
        files = f"read_parquet('{lake}/tables/search/*/*.parquet')"
        used, most = session.execute(
            f"""SELECT (count(*) - 1) / date_diff('microsecond', min(started_at), max(started_at)) * 1e6 / {rate},
                max(within) FROM (SELECT started_at, count(*) OVER (
                    ORDER BY started_at RANGE BETWEEN CURRENT ROW AND INTERVAL 999 MILLISECONDS FOLLOWING
                ) AS within FROM {files})"""
        ).fetchall()[0]
    result.rows += [
        ratio_row(PART, f"allowed rate ({rate}/s) used by a paced sweep", [used], 0.98),
        Row(PART, "most requests in any 999 ms", most, "requests", reach=f"<= {rate}", reached=most <= rate),
    ]


def _swept(base: str, requests: int, lake: Path, rate: int = 10_000) -> tuple[Cost, float]:
    """Run `nightaudit sweep`; return its cost and the peak of its largest process, in MB."""
    nights = 1 if requests <= 300 else 8
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as spec:
        days = -(-requests // nights)
        spec.write(_SPEC.format(ids=property_ids(), nights=list(range(1, nights + 1)), days=days))
        spec.flush()
        environment = os.environ | {
            "NIGHTAUDIT_BASE_URL": base,
            "NIGHTAUDIT_CLIENT_ID": "id",
            "NIGHTAUDIT_CLIENT_SECRET": "secret",
            "NIGHTAUDIT_LAKE": str(lake),
            "NIGHTAUDIT_REQUESTS_PER_SECOND": str(rate),
            "NIGHTAUDIT_CONCURRENCY": "16",
        }
        command = [str(Path(sys.executable).parent / "nightaudit"), "sweep", "--spec", spec.name]
        peak = [0.0]

        def work() -> float:
            running = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            watcher = threading.Thread(target=_watch, args=(running, peak))
            watcher.start()
            said = running.communicate()[1]
            watcher.join()
            if running.returncode not in (0, 4):
                raise RuntimeError(said.decode()[-2000:])
            return requests

        return cost_of(work), peak[0]


def _watch(running: subprocess.Popen[bytes], peak: list[float]) -> None:
    while running.poll() is None:
        try:
            family = [found := psutil.Process(running.pid), *found.children(recursive=True)]
            peak[0] = max(peak[0], *(process.memory_info().rss / 1e6 for process in family))
        except psutil.Error:
            pass
        time.sleep(0.05)


def nightaudit(base: str, requests: int, a_body: float) -> Callable[[], float]:
    """`nightaudit sweep`: fetch, land, normalise, load."""

    def work() -> float:
        with tempfile.TemporaryDirectory() as lake:
            return _swept(base, requests, Path(lake) / "lake")[0].units * a_body

    return work


def dlt(base: str, requests: int, a_body: float) -> Callable[[], float]:
    """dlt's REST client to DuckDB by its Parquet loader; nothing is archived."""
    workspace = tempfile.mkdtemp()
    os.environ.update(RUNTIME__DLTHUB_TELEMETRY="false", DLT_DATA_DIR=f"{workspace}/data", RUNTIME__LOG_LEVEL="ERROR")
    os.chdir(workspace)
    import dlt as library
    from dlt.sources.helpers.rest_client import RESTClient
    from dlt.sources.helpers.rest_client.paginators import SinglePagePaginator

    @library.resource(name="answer", max_table_nesting=8)
    def answers() -> Iterator[object]:
        client = RESTClient(base, headers={"Accept-Encoding": "gzip"}, paginator=SinglePagePaginator())
        for _ in range(requests):
            yield from client.paginate("/v1/property/multi", method="POST", json={}, data_selector="properties")

    pipeline = library.pipeline(
        "peer", destination=library.destinations.duckdb(f"{workspace}/peer.duckdb"), dataset_name="d"
    )

    def work() -> float:
        pipeline.run(answers, loader_file_format="parquet")
        return requests * a_body

    return work


CONTENDERS = {"nightaudit": nightaudit, "dlt": dlt}

if __name__ == "__main__":
    answer_contender(CONTENDERS)
