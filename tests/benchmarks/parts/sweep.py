"""Complete sweeps against a server with canned answers: the cost compared with dlt's, and the pace."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from benchmarks.bodies import bodies, property_ids
from benchmarks.measuring import Cost, Result, Row, Size, answer_contender, contend, cost_of_command, ratio_row
from benchmarks.peers import dlt_workspace
from benchmarks.server import missing, serving

PART = "sweep"
_TESTS = Path(__file__).parents[2]
# 4: failed cells above the tolerated share, as properties are asked for that no canned answer names.
_ENDED = (0, 4)
_SMALL = " small"
# Requests of a night as the targets have it.
_NIGHT = 10_000
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
        result.skipped.append(f"sweeps end to end beside dlt, their memory, and the pace ({said})")
        return result
    canned = [body for _, _, body in bodies(size.of(10, 2), hotels=1)]
    a_body = statistics.mean(body.count(b'"productId"') for body in canned)
    with serving(canned, gzip=True) as base:
        _end_to_end(result, size, base, a_body)
        _pace(result, size, base, folder)
    return result


def _end_to_end(result: Result, size: Size, base: str, a_body: float) -> None:
    # A peer that is slower does less. Each runs at two sizes, and the line through them tells what it costs to begin
    # and what an offer more costs; so a peer's price of as large a sweep as ours is known.
    requests = {
        "nightaudit": (size.of(1024, 6), size.of(128, 2)),
        "dlt parquet": (size.of(40, 4), size.of(8, 2)),
        "dlt default": (size.of(12, 4), size.of(3, 2)),
    }
    given = {
        f"{name}{kind}": {"base": base, "requests": count, "a_body": a_body}
        for name, counts in requests.items()
        for kind, count in zip(("", _SMALL), counts, strict=True)
    }
    costs = contend("sweep", list(given), given, size.rounds)
    lines = {
        name: [_line(*pair) for pair in zip(costs[name], costs[f"{name}{_SMALL}"], strict=True)] for name in requests
    }
    ours, count = costs["nightaudit"], requests["nightaudit"][0]
    for peer, what, least in (
        ("dlt parquet", "dlt's REST client to DuckDB, Parquet loader, no archive", 17.0),
        ("dlt default", "dlt's REST client to DuckDB, default settings, no archive", None),
    ):
        whole = [
            (begin_s + us * mine.units / 1e6) / mine.cpu_s
            for mine, (us, begin_s) in zip(ours, lines[peer], strict=True)
        ]
        clocks = [_line(*pair, "wall_s") for pair in zip(costs[peer], costs[f"{peer}{_SMALL}"], strict=True)]
        walls = [
            (begin_s + us * mine.units / 1e6) / mine.wall_s for mine, (us, begin_s) in zip(ours, clocks, strict=True)
        ]
        a_night = [
            (begin_s + us * _NIGHT * a_body / 1e6) / (our_begin_s + our_us * _NIGHT * a_body / 1e6)
            for (our_us, our_begin_s), (us, begin_s) in zip(lines["nightaudit"], lines[peer], strict=True)
        ]
        more = [theirs / mine for (mine, _), (theirs, _) in zip(lines["nightaudit"], lines[peer], strict=True)]
        memory = [mine.peak_mb / theirs.peak_mb for mine, theirs in zip(ours, costs[peer], strict=True)]
        note = (
            f"ours including start-up, dlt's without; dlt measured with {requests[peer][1]} and {requests[peer][0]} "
            "requests"
        )
        result.rows += [
            ratio_row(
                PART, f"sweep of {count:,} requests: CPU of {what}, as a multiple of ours", whole, least, note=note
            ),
            ratio_row(
                PART,
                f"the same: elapsed time of {what}, as a multiple of ours",
                walls,
                least,
                note="ours in three processes, dlt in one",
            ),
            ratio_row(PART, f"each further offer: CPU of {what}, as a multiple of ours", more, None),
            ratio_row(PART, f"{_NIGHT:,} requests, extrapolated: CPU of {what}, as a multiple of ours", a_night, None),
            ratio_row(
                PART,
                f"memory of all processes above base, as a multiple of {peer}'s",
                memory,
                None,
                note="ours is three processes including imports, dlt's one process after its imports",
            ),
        ]
    for name, found in lines.items():
        us, begun = ([line[number] for line in found] for number in (0, 1))
        result.rows += [
            Row(PART, f"{name}: CPU of each further offer", statistics.median(us), "us", min(us), max(us)),
            Row(PART, f"{name}: CPU to start and end", statistics.median(begun), "s", min(begun), max(begun)),
        ]
    for name in requests:
        rates = [cost.units / cost.wall_s for cost in costs[name]]
        row = Row(
            PART, f"{name}: offers per second, elapsed", statistics.median(rates), "offers/s", min(rates), max(rates)
        )
        memory = [cost.peak_mb for cost in costs[name]]
        what = f"{name}: peak memory of all processes above base"
        result.rows += [row, Row(PART, what, statistics.median(memory), "MB", min(memory), max(memory))]


def _line(large: Cost, small: Cost, clock: str = "cpu_s") -> tuple[float, float]:
    """Return the cost of each further offer in microseconds, and of start and end in seconds."""
    large_s, small_s = getattr(large, clock), getattr(small, clock)
    offer_s = (large_s - small_s) / (large.units - small.units)
    return 1e6 * offer_s, small_s - small.units * offer_s


def _pace(result: Result, size: Size, base: str, folder: Path) -> None:
    rate, requests = 50, size.of(600, 20)
    found = [_paced(base, requests, folder / f"pace-{number}", rate) for number in range(size.rounds)]
    used, most = ([each[number] for each in found] for number in (0, 1))
    highest, limit = max(most), f"<= {rate}"
    note = f"the most of {len(found)} sweeps"
    what = "most requests in any 999 ms"
    result.rows += [
        ratio_row(PART, f"allowed rate ({rate}/s) used by a paced sweep", used, 0.99),
        Row(PART, what, highest, "requests", min(most), highest, limit, highest <= rate, note),
    ]


def _paced(base: str, requests: int, lake: Path, rate: int) -> tuple[float, float]:
    """Return which share of the allowed rate a sweep used, and how many requests began within 999 ms at most."""
    swept(base, requests, lake, rate=rate)
    with duckdb.connect(":memory:") as session:
        files = f"read_parquet('{lake}/tables/search/*/*.parquet')"
        used, most = session.execute(
            f"""SELECT (count(*) - 1) / date_diff('microsecond', min(started_at), max(started_at)) * 1e6 / {rate},
                max(within) FROM (SELECT started_at, count(*) OVER (
                    ORDER BY started_at RANGE BETWEEN CURRENT ROW AND INTERVAL 999 MILLISECONDS FOLLOWING
                ) AS within FROM {files})"""
        ).fetchall()[0]
    return used, most


@contextmanager
def sweeping(base: str, requests: int, lake: Path, rate: int = 10_000) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Give the command and environment of a sweep of `count` requests, each for a hundred properties."""
    nights = 1 if requests <= 300 else 16
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
            "PYTHONPATH": os.pathsep.join((str(_TESTS), str(_TESTS.parent))),
        }
        yield [sys.executable, "-m", "pipeline.cli", "sweep", "--spec", spec.name], environment


def swept(base: str, requests: int, lake: Path, rate: int = 10_000) -> Cost:
    """Run `nightaudit sweep` with `count` requests; return its cost per request."""
    with sweeping(base, requests, lake, rate) as (command, environment):
        return cost_of_command(command, environment, requests, accepted=_ENDED)


def nightaudit(base: str, requests: int, a_body: float) -> Callable[[], float]:
    """`nightaudit sweep`, from its start to its end: start, plan, fetch, land, normalise, load."""

    def work() -> float:
        with tempfile.TemporaryDirectory() as lake, sweeping(base, requests, Path(lake) / "lake") as (command, given):
            done = subprocess.run(command, env=given, capture_output=True, check=False)
        if done.returncode not in _ENDED:
            raise RuntimeError(done.stderr.decode()[-2000:])
        return requests * a_body

    return work


def dlt_parquet(base: str, requests: int, a_body: float) -> Callable[[], float]:
    """dlt's REST client to DuckDB by its Parquet loader, started and with its tables made; nothing is archived."""
    return _dlt(base, requests, a_body, "parquet")


def dlt_default(base: str, requests: int, a_body: float) -> Callable[[], float]:
    """dlt's REST client to DuckDB with default settings, started and with its tables made; nothing is archived."""
    return _dlt(base, requests, a_body, None)


def _dlt(base: str, requests: int, a_body: float, loader: str | None) -> Callable[[], float]:
    workspace = dlt_workspace()
    import dlt
    from dlt.sources.helpers.rest_client import RESTClient
    from dlt.sources.helpers.rest_client.paginators import SinglePagePaginator

    client = RESTClient(base, headers={"Accept-Encoding": "gzip"}, paginator=SinglePagePaginator())

    @dlt.resource(name="answer", max_table_nesting=8)
    def answers(count: int) -> Iterator[object]:
        for _ in range(count):
            yield from client.paginate("/v1/property/multi", method="POST", json={}, data_selector="properties")

    pipeline = dlt.pipeline("peer", destination=dlt.destinations.duckdb(f"{workspace}/peer.duckdb"), dataset_name="d")
    how = {"loader_file_format": loader} if loader else {}
    # Once before: the tables are there, as they are on any night but the first.
    pipeline.run(answers(1), **how)

    def work() -> float:
        pipeline.run(answers(requests), **how)
        return requests * a_body

    return work


_WORKS = {
    "nightaudit": nightaudit,
    "dlt parquet": dlt_parquet,
    "dlt default": dlt_default,
}
CONTENDERS = {f"{name}{kind}": work for name, work in _WORKS.items() for kind in ("", _SMALL)}

if __name__ == "__main__":
    answer_contender(CONTENDERS)
