"""A night in a separate process, which a test may kill: begin or resume it, then publish.

It takes where to be killed, asked to stop, or find its disk full, as
`module:attribute:call:before|after|full|stop`.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import os
import resource
import signal
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing.connection import Connection

from pipeline.domain.errors import NightauditError
from pipeline.domain.servers import Workforce
from pipeline.lake import Lake
from pipeline.lake.raw import read_manifest
from pipeline.normalise.request import asked_of_search  # noqa: F401 - imported before anything is replaced
from pipeline.process.signals import stoppable
from pipeline.publish import publish
from pipeline.sandbox.server.options import DEFAULT_CLIENT_ID, DEFAULT_CLIENT_SECRET
from pipeline.sandbox.world.identifiers import property_ids
from pipeline.settings import Settings
from pipeline.spec import SweepSpec
from pipeline.supplier.client import SupplierClient
from pipeline.supplier.requests import request_for
from pipeline.sweep import Asking, SweepOptions, begin, normalisers, run

SPEC = {
    "properties": {"sandbox": 24},
    "stays": {"nights": [2], "anchor": "lead_days", "horizon": [{"to_days": 3, "every_days": 1}]},
    "ask": {
        "markets": ["GB", "SE"],
        "product_types": ["Hotel"],
        "parties": ["2"],
        "operations": ["multi", "single"],
        "single_properties": 2,
        "batch": 2,
    },
}
SEARCHES = 2 * (12 * 3 + 2 * 3)
CELLS = 2 * (24 * 3 + 2 * 3)


def disturb_at(place: str) -> None:
    module_name, attribute, call, when = place.split(":")
    holder = importlib.import_module(module_name)
    *path, name = attribute.split(".")
    for part in path:
        holder = getattr(holder, part)
    real, calls = getattr(holder, name), 0

    @functools.wraps(real)
    def disturbed(*given, **named):
        nonlocal calls
        calls += 1
        # Others may be called meanwhile, in other threads.
        number = calls
        if number == int(call) and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == int(call) and when == "full":
            # Every write to a file fails from here on; Python ignores the signal that comes with it.
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, -1))
        if number == int(call) and when == "stop":
            os.kill(os.getpid(), signal.SIGTERM)
        result = real(*given, **named)
        if number == int(call) and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(holder, name, disturbed)


async def sweep(lake: Lake, base_url: str, now: datetime) -> str:
    existing = [name for name in lake.sweep_ids() if name.startswith(f"{now:%Y%m%dT%H%M%SZ}")]
    if existing:
        manifest = read_manifest(lake, existing[0])
    else:
        spec = SweepSpec.model_validate(SPEC)
        manifest = begin(lake, spec, property_ids(1, 60)[:24], now=now, supplier="sandbox", is_simulated=True)
    settings = Settings(_env_file=None, attempts=2)

    def request_of(search):
        return request_for(search, today=manifest.snapshot_date, send_rate_type=True).to_wire()

    client = SupplierClient.of(
        settings, base_url=base_url, client_id=DEFAULT_CLIENT_ID, client_secret=DEFAULT_CLIENT_SECRET
    )
    async with client:
        asking = Asking(client.ask, request_of)
        await run(lake, manifest, asking, SweepOptions(4, 10**7, Workforce(1)), now=lambda: datetime.now(UTC))
    return manifest.sweep_id


def main(folder: str, base_url: str, day: str, place: str | None, reported: Connection) -> None:
    # A fork server that a sweep started earlier in the tests' process holds it back.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # In this very process, so that it can be killed between two files of a segment.
    normalisers.ProcessPoolExecutor = lambda workers, *_, **__: ThreadPoolExecutor(workers)
    if place:
        disturb_at(place)
    lake = Lake(folder)
    now = datetime.fromisoformat(f"{day}T02:00:00+00:00")
    try:
        with lake.writing("a test"):
            sweep_id = asyncio.run(sweep(lake, base_url, now))
            # As the gate publishes what it lets pass.
            with stoppable(f"The sweep {sweep_id} stays loaded.", f"nightaudit publish {sweep_id}"):
                publish(lake, sweep_id, now)
    except NightauditError as error:
        reported.send(f"{type(error).__name__} {error}")
    except Exception:
        # What it writes to a full disk is lost.
        reported.send(traceback.format_exc())
        raise
