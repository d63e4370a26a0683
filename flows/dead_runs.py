"""Runs whose process died without reporting it: they would stay `running` forever and block the next night."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.context import FlowRunContext
from prefect.events import EventTrigger, Posture, emit_event
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore
from prefect.states import AwaitingRetry, Completed

from flows import HEARTBEAT_SECONDS
from flows.turns import LEASE_SECONDS, MOST_RUNS
from pipeline.domain.errors import LakeBusy
from pipeline.lake import Lake

RESTART_NAME = "nightaudit: restart runs whose process has died"
KILLED_NAME = "nightaudit: restart runs whose process was killed"
CRASHED_NAME = "nightaudit: mark quote checks whose process has died as crashed"
# Earlier versions used these names. Their automations are removed, as a run must not be restarted twice.
_FORMER_NAMES = (
    "nightaudit: begin runs again that have fallen silent",
    "nightaudit: end runs that have fallen silent",
)

# A run that misses three heartbeats counts as dead. The heartbeat is that of the runs, which `prefect.yaml` and
# `deploy.py` set, not that of the process that calls this.
_DEAD_AFTER = timedelta(seconds=3 * HEARTBEAT_SECONDS)

# Prefect holds the event of a state back for a quarter of an hour if its server has not seen the state before it, as
# after a restart of the server. So a run that ends also emits this one, which follows nothing.
ENDED = "nightaudit.flow-run.ended"
# A worker reports a run whose process was killed as crashed, twice. It is restarted when that has ended, and the slot
# that it held is free.
KILLED = "nightaudit.flow-run.killed"
_FREE_WITHIN = timedelta(seconds=LEASE_SECONDS + 15)
RESTARTED_SILENT = "No heartbeat: the run's process has ended. It is restarted."

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
        message=RESTARTED_SILENT,
        force=True,
    )
    end = ChangeFlowRunState(
        name=None, state=StateType.CRASHED, message="No heartbeat: the run's process has ended.", force=False
    )
    # A run whose process dies while it starts has sent no heartbeat yet.
    alive = {"prefect.flow-run.heartbeat", "prefect.flow-run.Pending"}
    killed = again.model_copy(update={"message": "The run's process was killed. It is restarted."})
    asyncio.run(
        _put(
            [
                _watch(RESTART_NAME, _RESTARTED, alive, _DEAD_AFTER, again),
                _watch(KILLED_NAME, _RESTARTED, {KILLED}, _FREE_WITHIN, killed),
                _watch(CRASHED_NAME, _ONLY_ENDED, alive, _DEAD_AFTER, end),
            ]
        )
    )
    return {}


def report_end(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # noqa: ARG001 - a hook is given it
    """Report to Prefect's server that a run has ended: for `on_completion`, `on_failure`, after its last heartbeat."""
    _emit(ENDED, flow, flow_run)


def with_end_reported(ended: State[Any]) -> State[Any]:
    """Report the end of the current run, and return the state that it ends in: no hook follows a cancelled one."""
    if (run := FlowRunContext.get()) is not None and run.flow is not None and run.flow_run is not None:
        report_end(run.flow, run.flow_run, ended)
    return ended


def report_if_killed(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:  # noqa: ARG001 - as above
    """Report that a run's process was killed while its worker lives, as for lack of memory: for `on_crashed`.

    A run that was interrupted is in its own process here. One that has not begun would not begin the next time either.
    """
    if FlowRunContext.get() is not None:
        return
    with get_client(sync_client=True) as client:
        if 0 < client.read_flow_run(flow_run.id).run_count <= MOST_RUNS:
            _emit(KILLED, flow, flow_run)


def _emit(event: str, flow: Flow[..., Any], flow_run: FlowRun) -> None:
    about = {"prefect.resource.id": f"prefect.flow.{flow_run.flow_id}", "prefect.resource.role": "flow"}
    emit_event(
        event,
        resource={"prefect.resource.id": f"prefect.flow-run.{flow_run.id}", "prefect.resource.name": flow_run.name},
        related=[about | {"prefect.resource.name": flow.name}],
    )


def completed_before(run_id: UUID) -> State[Any] | None:
    """Return the state of a run that was restarted although it had completed; otherwise None.

    A run that a person starts again is not one of them.
    """
    with get_client(sync_client=True) as client:
        states = sorted(client.read_flow_run_states(run_id), key=lambda state: state.timestamp)
    scheduled = [number for number, state in enumerate(states) if state.is_scheduled()]
    if not scheduled or states[scheduled[-1]].message != RESTARTED_SILENT:
        return None
    if not any(state.is_completed() for state in states[: scheduled[-1]]):
        return None
    return Completed(message="The run had already completed, so nothing was done again.")


def _watch(
    name: str, flows: Sequence[str], after: set[str], within: timedelta, action: ChangeFlowRunState
) -> AutomationCore:
    states = ("Completed", "Failed", "Cancelled", "Skipped", "AwaitingRetry", "AwaitingConcurrencySlot")
    ends = {ENDED, *(f"prefect.flow-run.{state}" for state in states)}
    # A killed run is reported as crashed afterwards.
    if KILLED not in after:
        ends.add("prefect.flow-run.Crashed")
    return AutomationCore(
        name=name,
        description="A run that was killed cannot report it itself.",
        trigger=EventTrigger(
            after=after,
            expect={"prefect.flow-run.heartbeat", *ends},
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.role": "flow", "prefect.resource.name": list(flows)},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=within,
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
