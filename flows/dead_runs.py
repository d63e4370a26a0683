"""Runs whose process has ended without a word: they would be shown as running for ever, and take tonight's place."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.events import EventTrigger, Posture
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore
from prefect.settings import get_current_settings
from prefect.states import Crashed

from pipeline.domain.errors import LakeBusy
from pipeline.lake import Lake

WATCH_NAME = "nightaudit: end runs that have fallen silent"

# So many heartbeats of a run may be missed before it is taken for dead.
_MISSED_HEARTBEATS = 3

_UNDER_WAY = FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING, StateType.CANCELLING])


async def end_dead_runs(lake: Lake, deployment: str) -> None:
    """Mark runs as crashed that a crash has left running in our server's records.

    Their place among the runs that may run at once would be taken, and tonight's run cancelled. That they are dead
    is known by the lake's lock, which every nightly run holds.
    """
    try:
        with lake.writing("a look for dead runs"):
            async with get_client() as client:
                for run in await client.read_flow_runs(
                    deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[deployment])),
                    flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=_UNDER_WAY)),
                ):
                    await client.set_flow_run_state(run.id, Crashed(message="The run's process has ended."), force=True)
    except LakeBusy:
        return


def end_silent_runs(flow: str) -> None:
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
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": flow},
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
            # One that is there keeps in mind which runs it has heard of last, also those of before a crash.
            if getattr(known.trigger, "within", None) == getattr(automation.trigger, "within", None):
                return
            await client.delete_automation(known.id)
        await client.create_automation(automation)
