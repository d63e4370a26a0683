"""Serving the deployments of `prefect.yaml` on this machine: `python -m flows.deploy`.

The nightly one runs on the schedule in the settings, the others when a person starts them. If no server is configured
(PREFECT_API_URL), this uses the one on this machine, or starts one (`prefect server start`) for as long as it runs. A
night that is due while another is running waits. If Prefect does not know of the other, the lake's lock refuses the
night, and it is retried.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import psutil
import yaml
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.deployments.runner import RunnerDeployment
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.server.schemas.schedules import CronSchedule
from prefect.settings import PREFECT_API_URL, get_current_settings, temporary_settings
from prefect.types.entrypoint import EntrypointType

from flows import HEARTBEAT_SECONDS
from flows.dead_runs import end_dead_runs, watch_silent_runs
from pipeline.domain.errors import NightauditError
from pipeline.lake import Lake
from pipeline.settings import Settings, read_settings

DEPLOYMENT = "nightly"

_DECLARED = Path(__file__).with_name("prefect.yaml")
_LOOPBACK = "127.0.0.1"
_READY_SECONDS = 120.0
# A stopped run has this long to save the answers that it has received.
_PATIENCE_SECONDS = 120.0
_STOP_SECONDS = 10.0


class PrefectServerFailed(NightauditError):
    """The Prefect server of this machine did not start."""


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
        asyncio.run(end_dead_runs(Lake(settings.lake), DEPLOYMENT))
        watch_silent_runs()
        _say(f"The flow `nightly` is scheduled: {settings.schedule_cron} ({settings.schedule_timezone}).")
        _say(f"Next run: {next_run:%A %Y-%m-%d %H:%M %Z}. At most one at a time.")
        _say(f"Prefect: {address.removesuffix('/api')}")
        _say(f"To run it now: PREFECT_API_URL={address} prefect deployment run nightly/{DEPLOYMENT}")
        _say(
            "To stop: Ctrl-C. A running night stops too; answers that have landed are kept, and the next run continues."
        )
        asyncio.run(_serve(settings))


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


@contextmanager
def prefect_server() -> Iterator[str]:
    """Give the address of the configured Prefect server, or of one on this machine, started if none answers there.

    Raises PrefectServerFailed if it does not start.
    """
    current = get_current_settings()
    if current.api.url:
        yield str(current.api.url)
        return
    address = f"http://{_LOOPBACK}:{current.server.api.port}/api"
    log = Path(current.home) / "server.log"
    server = None if _answers(address) else _start(current.server.api.port, log)
    try:
        if server is not None:
            _await_answer(server, address, log)
        # Runs are separate processes, which find the address in their environment.
        os.environ["PREFECT_API_URL"] = address
        with temporary_settings({PREFECT_API_URL: address}):
            yield address
    finally:
        if server is not None:
            _stop(server)


def _start(port: int, log: Path) -> subprocess.Popen[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - our own interpreter, Prefect's own command
            [sys.executable, "-m", "prefect", "server", "start", "--host", _LOOPBACK, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={
                **os.environ,
                # Slots of running flows are kept on disk, so that a slot left by a crash is free within minutes.
                "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
            },
            # On Ctrl-C the run needs the server for its last report.
            start_new_session=True,
        )


def _await_answer(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    ends_at = time.monotonic() + _READY_SECONDS
    while not _answers(address):
        if server.poll() is not None or time.monotonic() > ends_at:
            raise PrefectServerFailed(
                f"The Prefect server did not start. It wrote:\n{log.read_text(errors='replace')[-1500:].strip()}",
                kept="Nothing was started.",
                hint=f"Its full output is in {log}. To run a night without Prefect: nightaudit nightly",
            )
        time.sleep(0.2)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", timeout=2, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


async def _serve(settings: Settings) -> None:
    """Serve until a signal; then let running flows stop cleanly. A second signal does not wait for them."""
    runner = Runner(pause_on_shutdown=True, heartbeat_seconds=HEARTBEAT_SECONDS)
    for deployment in await deployments_of(settings):
        await runner.aadd_deployment(deployment)
    not_runs = set(psutil.Process().children())
    serving = asyncio.create_task(runner.start())
    # Prefect has then set its own handler of SIGTERM, which leaves runs behind.
    await asyncio.sleep(0)
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    asked = asyncio.create_task(signals.get())
    await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
    if asked.done():
        runs = set(psutil.Process().children()) - not_runs
        if asked.result() == signal.SIGTERM:
            # The runs share the terminal, so Ctrl-C has reached them already.
            for run in runs:
                run.terminate()
        ended = asyncio.create_task(asyncio.to_thread(_await_end, runs))
        asked = asyncio.create_task(signals.get())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        await runner.astop()
    asked.cancel()
    await serving


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
