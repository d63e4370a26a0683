"""Serving the deployments of `prefect.yaml` on this machine: `python -m flows.deploy`.

The nightly one runs on the schedule in the settings, the others when a person starts them. If no server is configured
(PREFECT_API_URL), this uses the one on this machine, or starts one (`prefect server start`) for as long as it runs. A
night that is due while another is running waits. If Prefect does not know of the other, the lake's lock refuses the
night, and it is retried.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import yaml
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.deployments.runner import RunnerDeployment
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.server.schemas.schedules import CronSchedule
from prefect.types.entrypoint import EntrypointType

from flows import HEARTBEAT_SECONDS
from flows.dead_runs import end_dead_runs, watch_silent_runs
from flows.server import answers, prefect_server
from pipeline.domain.errors import NightauditError
from pipeline.lake import Lake
from pipeline.settings import Settings, read_settings

DEPLOYMENT = "nightly"

_DECLARED = Path(__file__).with_name("prefect.yaml")
# A stopped run has this long to save the answers that it has received.
_PATIENCE_SECONDS = 120.0
_STOP_SECONDS = 10.0
# Prefect's runner gives up after three calls, each of which is repeated for a minute.
_AWAY_SECONDS = 120.0
_LOOK_SECONDS = 5.0


def main() -> None:
    """Serve the deployments until Ctrl-C or SIGTERM. An error is printed as a message and sets the exit code."""
    try:
        serve_nightly(read_settings())
    except NightauditError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def serve_nightly(settings: Settings) -> None:
    """Serve the deployments, with a Prefect server on this machine if none is configured."""
    next_run = next_run_of(settings)
    with prefect_server() as address:
        watch_silent_runs()
        _say(f"The flow `nightly` is scheduled: {settings.schedule_cron} ({settings.schedule_timezone}).")
        _say(f"Next run: {next_run:%A %Y-%m-%d %H:%M %Z}. At most one at a time.")
        _say(f"Prefect: {address.removesuffix('/api')}")
        _say(f"To run it now: PREFECT_API_URL={address} prefect deployment run nightly/{DEPLOYMENT}")
        _say(
            "To stop: Ctrl-C. A running night stops too; answers that have landed are kept, and the next run continues."
        )
        asyncio.run(end_dead_runs(Lake(settings.lake), DEPLOYMENT))
        while asyncio.run(_serve(settings, address)):
            _say("The Prefect server can be reached again; its deployments are being served again.")
            asyncio.run(end_dead_runs(Lake(settings.lake), DEPLOYMENT))


async def deployments_of(settings: Settings) -> list[RunnerDeployment]:
    """Return the deployments of `prefect.yaml`; only the nightly one has a schedule, which is that of the settings."""
    declared = yaml.safe_load(_DECLARED.read_text(encoding="utf-8"))["deployments"]
    return [await _deployment(given, settings) for given in declared]


async def _deployment(declared: dict[str, Any], settings: Settings) -> RunnerDeployment:
    file, function = declared["entrypoint"].split(":")
    flow = getattr(import_module(file.removesuffix(".py").replace("/", ".")), function)
    is_nightly = declared["name"] == DEPLOYMENT
    made = await flow.ato_deployment(
        declared["name"],
        schedule=Cron(settings.schedule_cron, timezone=settings.schedule_timezone) if is_nightly else None,
        concurrency_limit=ConcurrencyLimitConfig(**declared["concurrency_limit"]),
        description=declared["description"],
        parameters=declared.get("parameters", {}),
        tags=declared["tags"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    assert isinstance(made, RunnerDeployment)  # noqa: S101 - Prefect declares no type
    return made


def next_run_of(settings: Settings) -> datetime:
    """Return when the next run is due, in the time zone of the schedule."""
    schedule = CronSchedule(cron=settings.schedule_cron, timezone=settings.schedule_timezone)
    (due,) = asyncio.run(schedule.get_dates(1))
    return due.astimezone(ZoneInfo(settings.schedule_timezone))


async def _serve(settings: Settings, address: str) -> bool:
    """Serve until a signal; then let running flows stop cleanly. A second signal does not wait for them.

    Return whether to serve again, because the server could not be reached: Prefect's runner then pauses the
    deployments, gives up and may wait forever.
    """
    runner = Runner(pause_on_shutdown=True, heartbeat_seconds=HEARTBEAT_SECONDS)
    for deployment in await deployments_of(settings):
        await runner.aadd_deployment(deployment)
    serving = asyncio.create_task(runner.start())
    # Prefect has then set its own handler of SIGTERM, which leaves runs behind.
    await asyncio.sleep(0)
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    asked = asyncio.create_task(signals.get())
    is_lost = await _is_runner_lost(serving, asked, address)
    if is_lost:
        serving.cancel()
        await asyncio.wait({serving}, timeout=_STOP_SECONDS)
    elif asked.done():
        await _stop_runs(asked.result(), signals)
        await runner.astop()
    asked.cancel()
    if not is_lost:
        await serving
    return is_lost


async def _is_runner_lost(serving: asyncio.Task[None], asked: asyncio.Task[int], address: str) -> bool:
    """Wait until serving ends or a signal asks for it, or until the server has been away and the runs have ended."""
    back = asyncio.create_task(_back_after_absence(address))
    await _first_of(serving, asked, back)
    is_lost = back.done()
    back.cancel()
    if is_lost:
        ended = asyncio.create_task(_end_of_runs())
        await _first_of(ended, asked)
        ended.cancel()
    return is_lost and not asked.done()


async def _stop_runs(number: int, signals: asyncio.Queue[int]) -> None:
    """Let the runs stop cleanly, as a signal asks; a second signal does not wait for them."""
    runs = _runs()
    if number == signal.SIGTERM:
        # The runs share the terminal, so Ctrl-C has reached them already.
        for run in runs:
            run.terminate()
    ended, again = asyncio.create_task(asyncio.to_thread(_await_end, runs)), asyncio.create_task(signals.get())
    await _first_of(ended, again)
    again.cancel()


async def _first_of(*tasks: asyncio.Task[Any]) -> None:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def _back_after_absence(address: str) -> None:
    """Wait until the server answers again after it has not for as long as Prefect's runner may need to give up."""
    seen = time.monotonic()
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if await asyncio.to_thread(answers, address):
            if time.monotonic() - seen > _AWAY_SECONDS:
                return
            seen = time.monotonic()


async def _end_of_runs() -> None:
    """Wait until the runs that have begun end, however long that takes."""
    while any(_is_alive(run) for run in _runs()):  # noqa: ASYNC110 - processes give no sign
        await asyncio.sleep(_LOOK_SECONDS)
    # Prefect's runner reports those that were killed.
    await asyncio.sleep(_LOOK_SECONDS)


def _runs() -> set[psutil.Process]:
    """Return the processes of runs; the Prefect server may be a child of this process, too."""

    def is_run(process: psutil.Process) -> bool:
        try:
            return "PREFECT__FLOW_RUN_ID" in process.environ()
        except psutil.Error:
            return False

    return set(filter(is_run, psutil.Process().children()))


def _await_end(runs: set[psutil.Process]) -> None:
    # Only polled, because Prefect must collect the exit status.
    ends_at = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < ends_at and any(_is_alive(run) for run in runs):
        time.sleep(0.2)


def _is_alive(run: psutil.Process) -> bool:
    try:
        return run.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
