"""Serving the nightly deployment on this machine, by the schedule of the settings: `python -m flows.deploy`.

Prefect's temporary server has no scheduler, so where no server is configured (PREFECT_API_URL), one of our own runs
as long as this does. A run that would begin while another is under way is cancelled; where Prefect does not know of
the other, the lake's lock refuses it.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy, StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.events import EventTrigger, Posture
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore
from prefect.flows import serve
from prefect.schedules import Cron
from prefect.server.schemas.schedules import CronSchedule
from prefect.settings import get_current_settings
from prefect.types.entrypoint import EntrypointType

from flows.nightly import nightly
from flows.server import LOOPBACK, PrefectServerFailed, prefect_server
from pipeline.domain.errors import NightauditError, SettingsError
from pipeline.settings import Settings, read_settings

DEPLOYMENT = "nightly"
DESCRIPTION = "Sweep, load and publish one night."
WATCH_NAME = "nightaudit: end runs that have fallen silent"

# So many heartbeats of a run may be missed before it is taken for dead.
_MISSED_HEARTBEATS = 3


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
    if not get_current_settings().api.url:
        _refuse_a_second_server(port)
    with prefect_server(has_scheduler=True, ports=(port, 0)) as address:
        end_silent_runs()
        _say(f"The flow `nightly` is scheduled: {settings.schedule_cron} ({settings.schedule_timezone}).")
        _say(f"Next run: {next_run:%A %Y-%m-%d %H:%M %Z}. At most one at a time.")
        _say(f"Prefect: {address.removesuffix('/api')}")
        _say(f"To run it now: PREFECT_API_URL={address} prefect deployment run nightly/{DEPLOYMENT}")
        _say("To stop: Ctrl-C. A run under way then stops too; what has landed is kept, and the next run goes on.")
        serve(deployment_of(settings), print_starting_message=False)


def deployment_of(settings: Settings) -> RunnerDeployment:
    """Return the deployment: the schedule of the settings, and never two runs at once."""
    made = nightly.to_deployment(
        DEPLOYMENT,
        schedule=Cron(settings.schedule_cron, timezone=settings.schedule_timezone),
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        description=DESCRIPTION,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    assert isinstance(made, RunnerDeployment)  # noqa: S101 - Prefect's type also covers asynchronous callers
    return made


def next_run_of(settings: Settings) -> datetime:
    """Return when the next run is due, in the time zone of the schedule. Raises SettingsError for a bad expression."""
    try:
        schedule = CronSchedule(cron=settings.schedule_cron, timezone=settings.schedule_timezone)
        dates = asyncio.run(schedule.get_dates(1))
    except ValueError:
        raise SettingsError(
            f"NIGHTAUDIT_SCHEDULE_CRON is {settings.schedule_cron!r}, which is not a cron expression.",
            kept="Nothing was started.",
            hint="Five fields: minute, hour, day of the month, month, day of the week. 30 2 * * * is 02:30 each night.",
        ) from None
    return dates[0].astimezone(ZoneInfo(settings.schedule_timezone))


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
