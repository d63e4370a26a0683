"""Runs whose process died without reporting it: they would stay `running` forever and block the next night."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import State, StateType
from prefect.events import EventTrigger, Posture
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore
from prefect.states import AwaitingRetry

from flows import HEARTBEAT_SECONDS
from pipeline.domain.errors import LakeBusy
from pipeline.lake import Lake

RESTART_NAME = "nightaudit: restart runs whose process has died"
CRASHED_NAME = "nightaudit: mark quote checks whose process has died as crashed"
# Earlier versions used these names. Their automations are removed, as a run must not be restarted twice.
_FORMER_NAMES = (
    "nightaudit: begin runs again that have fallen silent",
    "nightaudit: end runs that have fallen silent",
)

# A run that misses three heartbeats counts as dead. The heartbeat is that of the runs, which `prefect.yaml` and
# `deploy.py` set, not that of the process that calls this.
_DEAD_AFTER = timedelta(seconds=3 * HEARTBEAT_SECONDS)

# Flows that are safe to restart automatically. A quote makes a reservation, so people decide what to do.
_RESTARTED = ("nightly", "confirmation", "lake-care", "backfill")
_ONLY_ENDED = ("quote-check",)

_UNDER_WAY = FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING, StateType.CANCELLING])


async def end_dead_runs(lake: Lake, deployment: str) -> None:
    """Restart runs that a crash has left as running in our server's records, where they would block other runs.

    They must be dead if the lake's lock is free, because every nightly run holds it. A restarted run checks by itself
    whether it is too late.
    """
    try:
        with lake.writing("the check for dead runs"):
            async with get_client() as client:
                for run in await client.read_flow_runs(
                    deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[deployment])),
                    flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=_UNDER_WAY)),
                ):
                    again: State[object] = AwaitingRetry(message="The run's process has ended; it is restarted.")
                    await client.set_flow_run_state(run.id, again, force=True)
    except LakeBusy:
        return


def watch_silent_runs() -> dict[str, str]:
    """Have the server restart runs that have sent no heartbeat for a while, or end those that are not safe to repeat.

    A flow that is killed cannot report it and would be shown as running forever. Calling this again changes nothing.
    As a step of `prefect.yaml`, it returns no value for later steps.
    """
    again = ChangeFlowRunState(
        name="AwaitingRetry",
        state=StateType.SCHEDULED,
        message="No heartbeat: the run's process has ended. It is restarted.",
        force=True,
    )
    end = ChangeFlowRunState(
        name=None, state=StateType.CRASHED, message="No heartbeat: the run's process has ended.", force=False
    )
    asyncio.run(_put([_watch(RESTART_NAME, _RESTARTED, again), _watch(CRASHED_NAME, _ONLY_ENDED, end)]))
    return {}


def _watch(name: str, flows: Sequence[str], action: ChangeFlowRunState) -> AutomationCore:
    states = ("Completed", "Failed", "Cancelled", "Crashed", "AwaitingRetry", "AwaitingConcurrencySlot")
    ends = {f"prefect.flow-run.{state}" for state in states}
    return AutomationCore(
        name=name,
        description="A run that was killed cannot report it itself.",
        trigger=EventTrigger(
            # A run whose process dies while it starts has sent none yet.
            after={"prefect.flow-run.heartbeat", "prefect.flow-run.Pending"},
            expect={"prefect.flow-run.heartbeat", *ends},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": list(flows)},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=_DEAD_AFTER,
        ),
        actions=[action],
    )


async def _put(automations: Sequence[AutomationCore]) -> None:
    async with get_client() as client:
        for name in _FORMER_NAMES:
            for one in await client.read_automations_by_name(name):
                await client.delete_automation(one.id)
        for automation in automations:
            known = await client.read_automations_by_name(automation.name)
            # An existing one is kept, because it remembers the heartbeats that it received before a crash.
            if [_content(one) for one in known] == [_content(automation)]:
                continue
            for one in known:
                await client.delete_automation(one.id)
            await client.create_automation(automation)


def _content(automation: AutomationCore) -> object:
    content = automation.model_dump(include={"trigger": {"after", "expect", "within"}})
    return content, automation.model_dump(mode="json", include={"trigger": {"match_related"}, "actions": True})
