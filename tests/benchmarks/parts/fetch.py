"""Fetch and land: CPU per request against wrk and other clients, on the same nginx, at 1 to 64 in flight."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import uvloop
from benchmarks.bodies import bodies
from benchmarks.measuring import Cost, Result, Size, answer_contender, cost_of, in_own_process, ratio_row
from benchmarks.server import missing, serving

PART = "fetch"
PATH = "/v1/property/multi"
# What the figure to reach was measured with.
_PLANNED = 32
_POOL_HOLDS = 8
_FLOOR = "wrk"
ASK = b'{"propertyIds":[1]}'


def measure(size: Size, _folder: Path) -> Result:
    """Each client with several numbers of requests in flight, and wrk."""
    result = Result()
    if said := missing("nginx", "wrk"):
        result.skipped.append(f"fetch and land, and the other clients, at 1 to 64 in flight ({said})")
        return result
    requests, flights = size.of(1000, 20), ([1, 8, 32, 64] if not size.is_tiny else [1, 2])
    body = next(body for _, _, body in bodies(1))
    costs: dict[tuple[str, int], list[Cost]] = {}
    with serving([(body * (400_000 // len(body) + 1))[:400_000]], gzip=False) as base:
        for _, in_flight in product(range(size.rounds), flights):
            costs.setdefault((_FLOOR, in_flight), []).append(_wrk(base, in_flight, seconds=size.of(2, 1)))
            for name in CONTENDERS:
                # httpx's own pool collapses where many wait for it: there a fraction of the requests tells it.
                few = requests // 5 if name == "httpx" and in_flight > _POOL_HOLDS else requests
                given = {"base": base, "requests": max(few, in_flight), "in_flight": in_flight}
                costs.setdefault((name, in_flight), []).append(in_own_process("fetch", name, given))
    for in_flight, name in product(flights, CONTENDERS):
        pairs = zip(costs[name, in_flight], costs[_FLOOR, in_flight], strict=True)
        is_ours = name == "nightaudit"
        reach = 7.0 if is_ours and in_flight == _PLANNED else None
        what = f"{name}{' (fetch and land)' if is_ours else ''}, {in_flight} in flight: CPU, as a multiple of wrk's"
        result.rows.append(
            ratio_row(PART, what, [cost.cpu_us / floor.cpu_us for cost, floor in pairs], reach, is_least=False)
        )
    for name, in_flight in product((*CONTENDERS, _FLOOR), flights):
        us = statistics.median(cost.cpu_us for cost in costs[name, in_flight])
        result.points.append({"curve": "CPU per request, us", "who": name, "x": in_flight, "y": us})
    rounds = zip(*(costs["nightaudit", in_flight] for in_flight in flights), strict=True)
    ratios = [max(cost.cpu_us for cost in found) / min(cost.cpu_us for cost in found) for found in rounds]
    result.rows.append(
        ratio_row(PART, "nightaudit: highest CPU compared with lowest, 1 to 64 in flight", ratios, 1.2, is_least=False)
    )
    return result


def _wrk(base: str, in_flight: int, seconds: int) -> Cost:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            f"wrk.method = 'POST'; wrk.body = '{ASK.decode()}'; wrk.headers['Content-Type']='application/json'"
        )
        script.flush()
        threads = ["-t1", f"-c{in_flight}", f"-d{seconds}s", "-s", script.name, base + PATH]

        def work() -> float:
            said = subprocess.run(["wrk", *threads], capture_output=True, text=True, check=True).stdout
            return float(next(line.split()[0] for line in said.splitlines() if "requests in" in line))

        return cost_of(work)


def _driven(make: Callable[[], Awaitable[object]]) -> float:
    return float(str(uvloop.run(make())))


async def _spread(requests: int, in_flight: int, ask: Callable[[], Awaitable[object]]) -> int:
    left = iter(range(requests))

    async def worker() -> None:
        for _ in left:
            await ask()

    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return requests


def nightaudit(base: str, requests: int, in_flight: int) -> Callable[[], float]:
    """Our client, and each 32 answers landed as a shard in a lake."""
    from pipeline.domain.search import Operation
    from pipeline.lake import Lake
    from pipeline.lake.raw import RawRecord, encode_shard
    from pipeline.supplier.auth import ClientCredentials
    from pipeline.supplier.client import SupplierClient
    from pipeline.supplier.exchange import Limits
    from pipeline.supplier.pacer import Pacer

    folder = tempfile.mkdtemp(prefix="bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    lake = Lake(folder)

    async def run() -> int:
        records: list[RawRecord] = []
        credentials = ClientCredentials(f"{base}/auth/oauth/token", "id", "secret")
        async with SupplierClient(
            base, credentials, pacer=Pacer(1e6), limits=Limits(10, 60, 64_000_000), concurrency=in_flight
        ) as client:

            async def ask() -> None:
                answer = await client.ask(Operation.MULTI, ASK)
                if answer.http_status != 200 or len(answer.body) != 400_000:
                    raise AssertionError(answer)
                now = datetime.now(UTC)
                records.append(
                    RawRecord(
                        len(records), ASK, 200, "application/json", "", "{}", answer.body, now, now, 1, "", "", False
                    )
                )
                if len(records) == 32:
                    landed, records[:] = records[:], []
                    await asyncio.to_thread(lake.put_new, f"raw/x/{time.monotonic_ns()}.parquet", encode_shard(landed))

            return await _spread(requests, in_flight, ask)

    return lambda: _driven(run)


def httpx(base: str, requests: int, in_flight: int) -> Callable[[], float]:
    """httpx with default settings."""
    from httpx import AsyncClient, Limits

    return _with_httpx(base, requests, in_flight, lambda: AsyncClient(limits=Limits(max_connections=in_flight)))


def httpx_aiohttp(base: str, requests: int, in_flight: int) -> Callable[[], float]:
    """httpx over aiohttp's connections."""
    from httpx import AsyncClient
    from httpx_aiohttp import AiohttpTransport

    return _with_httpx(base, requests, in_flight, lambda: AsyncClient(transport=AiohttpTransport()))


def _with_httpx(base: str, requests: int, in_flight: int, make: Callable[[], object]) -> Callable[[], float]:
    async def run() -> int:
        async with make() as client:

            async def ask() -> None:
                answer = await client.post(base + PATH, content=ASK)
                if len(answer.content) != 400_000:
                    raise AssertionError(answer.status_code)

            return await _spread(requests, in_flight, ask)

    return lambda: _driven(run)


def aiohttp(base: str, requests: int, in_flight: int) -> Callable[[], float]:
    """aiohttp with default settings."""
    from aiohttp import ClientSession, TCPConnector

    async def run() -> int:
        async with ClientSession(connector=TCPConnector(limit=in_flight)) as client:

            async def ask() -> None:
                async with client.post(base + PATH, data=ASK) as answer:
                    if len(await answer.read()) != 400_000:
                        raise AssertionError(answer.status)

            return await _spread(requests, in_flight, ask)

    return lambda: _driven(run)


CONTENDERS = {"nightaudit": nightaudit, "aiohttp": aiohttp, "httpx over aiohttp": httpx_aiohttp, "httpx": httpx}

if __name__ == "__main__":
    answer_contender(CONTENDERS)
