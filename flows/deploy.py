"""Serving the nightly deployment on this machine, by the schedule of the settings: `python -m flows.deploy`.

Prefect's temporary server has no scheduler, so where no server is configured (PREFECT_API_URL), one of our own runs
as long as this does. A run that would begin while another is under way is cancelled; where Prefect does not know of
the other, the lake's lock refuses it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
import psutil
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy, StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.events import EventTrigger, Posture
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.server.schemas.schedules import CronSchedule
from prefect.settings import get_current_settings
from prefect.states import Crashed
from prefect.types.entrypoint import EntrypointType

from flows.nightly import nightly
from flows.server import LOOPBACK, PrefectServerFailed, prefect_server
from pipeline.domain.errors import LakeBusy, NightauditError, SettingsError
from pipeline.lake import Lake
from pipeline.settings import Settings, read_settings

DEPLOYMENT = "nightly"
DESCRIPTION = "Sweep, load and publish one night."
WATCH_NAME = "nightaudit: end runs that have fallen silent"

# So many heartbeats of a run may be missed before it is taken for dead.
_MISSED_HEARTBEATS = 3

# Within this a run that is stopped lands what it has in hand.
_PATIENCE_SECONDS = 120.0

_UNDER_WAY = FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING, StateType.CANCELLING])


def main() -> None:
    """Serve the deployment until Ctrl-C or SIGTERM; a mistake ends in a message and an exit code."""
    try:
        serve_nightly(read_settings())
    except NightauditError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def serve_nightly(settings: Settings) -> None:
    """Serve the deployment, with a Prefect server of our own where none is configured."""
    next_run = next_run_of(settings)
    port = get_current_settings().server.api.port
    is_ours = not get_current_settings().api.url
    if is_ours:
        _refuse_a_second_server(port)
    with prefect_server(has_scheduler=True, ports=(port, 0)) as address:
        if is_ours:
            asyncio.run(end_dead_runs(Lake(settings.lake)))
        end_silent_runs()
        _say(f"The flow `nightly` is scheduled: {settings.schedule_cron} ({settings.schedule_timezone}).")
        _say(f"Next run: {next_run:%A %Y-%m-%d %H:%M %Z}. At most one at a time.")
        _say(f"Prefect: {address.removesuffix('/api')}")
        _say(f"To run it now: PREFECT_API_URL={address} prefect deployment run nightly/{DEPLOYMENT}")
        _say("To stop: Ctrl-C. A run under way then stops too; what has landed is kept, and the next run goes on.")
        asyncio.run(_serve(settings))


async def deployment_of(settings: Settings) -> RunnerDeployment:
    """Return the deployment: the schedule of the settings, and never two runs at once."""
    return await nightly.ato_deployment(
        DEPLOYMENT,
        schedule=Cron(settings.schedule_cron, timezone=settings.schedule_timezone),
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        description=DESCRIPTION,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def next_run_of(settings: Settings) -> datetime:
    """Return when the next run is due, in the time zone of the schedule. Raises SettingsError for a bad expression."""
    try:
        schedule = CronSchedule(cron=settings.schedule_cron, timezone=settings.schedule_timezone)
        dates = asyncio.run(schedule.get_dates(1))
    except ValueError:
        raise SettingsError(
            f"NIGHTAUDIT_SCHEDULE_CRON is {settings.schedule_cron!r}, which no day fits.",
            kept="Nothing was started.",
            hint="Five fields: minute, hour, day of the month, month, day of the week. 30 2 * * * is 02:30 each night.",
        ) from None
    return dates[0].astimezone(ZoneInfo(settings.schedule_timezone))


async def end_dead_runs(lake: Lake) -> None:
    """Mark runs as crashed that a crash has left running in our server's records.

    Their place among the runs that may run at once would be taken, and tonight's run cancelled. That they are dead
    is known by the lake's lock, which every nightly run holds.
    """
    try:
        with lake.writing("a look for dead runs"):
            async with get_client() as client:
                for run in await client.read_flow_runs(
                    deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[DEPLOYMENT])),
                    flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=_UNDER_WAY)),
                ):
                    await client.set_flow_run_state(run.id, Crashed(message="The run's process has ended."), force=True)
    except LakeBusy:
        return


def end_silent_runs() -> None:
    """Have the server mark runs as crashed that have sent no heartbeat for a while.

    A flow that is killed cannot report it, and would be shown as running for ever. Doing it again changes nothing.
    """
    heartbeat = get_current_settings().flows.heartbeat_frequency or 180
    ends = {f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")}
    automation = AutomationCore(
        name=WATCH_NAME,
        description="A run that was killed cannot report it itself.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={"prefect.flow-run.heartbeat", *ends},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": nightly.name},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=heartbeat * _MISSED_HEARTBEATS),
        ),
        actions=[
            ChangeFlowRunState(
                name=None, state=StateType.CRASHED, message="No heartbeat: the run's process has ended.", force=False
            )
        ],
    )
    asyncio.run(_put(automation))


async def _put(automation: AutomationCore) -> None:
    async with get_client() as client:
        for known in await client.read_automations_by_name(automation.name):
            # One that stands keeps in mind which runs it has heard of last, also those of before a crash.
            if getattr(known.trigger, "within", None) == getattr(automation.trigger, "within", None):
                return
            await client.delete_automation(known.id)
        await client.create_automation(automation)


async def _serve(settings: Settings) -> None:
    """Serve until a signal; then let a run under way stop in good order. A second signal is not so patient."""
    runner = Runner(pause_on_shutdown=True)
    await runner.aadd_deployment(await deployment_of(settings))
    not_runs = set(psutil.Process().children())
    serving = asyncio.create_task(runner.start())
    # By then Prefect has put up its own handler of SIGTERM, which leaves runs behind.
    await asyncio.sleep(0)
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    asked = asyncio.create_task(signals.get())
    await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
    if asked.done():
        runs = set(psutil.Process().children()) - not_runs
        if asked.result() == signal.SIGTERM:
            # Ctrl-C has reached the runs already, for they are of the same terminal.
            for run in runs:
                run.terminate()
        ended = asyncio.create_task(asyncio.to_thread(_await_end, runs))
        asked = asyncio.create_task(signals.get())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        await runner.astop()
    asked.cancel()
    await serving


def _await_end(runs: set[psutil.Process]) -> None:
    # Looked at and not waited for: how a run has ended is for Prefect to learn.
    ends_at = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < ends_at and any(_is_alive(run) for run in runs):
        time.sleep(0.2)


def _is_alive(run: psutil.Process) -> bool:
    try:
        return run.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _refuse_a_second_server(port: int) -> None:
    address = f"http://{LOOPBACK}:{port}/api"
    try:
        is_there = httpx.get(f"{address}/health", timeout=2, trust_env=False).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return
    if is_there:
        raise PrefectServerFailed(
            f"A Prefect server answers on {LOOPBACK}:{port} already, perhaps that of another `make schedule`.",
            kept="Nothing was started.",
            hint=f"Stop it, or use it: PREFECT_API_URL={address} make schedule",
        )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
