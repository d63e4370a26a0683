"""Confirmation as a Prefect flow: re-queries the largest findings."""

from __future__ import annotations

from typing import Annotated, Any

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import deployment, flow_run
from prefect.states import Completed
from pydantic import Field

from flows.dead_runs import report_end, report_if_killed
from flows.logs import log_steps, tell_our_errors_once
from flows.parameters import Rule
from flows.turns import refused, turn_at_supplier, waiting_helps
from pipeline.domain.errors import NothingSent
from pipeline.lake import Lake
from pipeline.night.confirm import ConfirmSummary, confirm
from pipeline.night.confirm_plan import choose_flags
from pipeline.process.event_loop import run_in_loop
from pipeline.settings import read_settings

tell_our_errors_once()
log_steps()

OUTCOMES_KEY = "confirmation-outcomes"
WAITS = (300.0, 900.0)


@flow(
    name="confirmation",
    persist_result=False,
    on_completion=[report_end],
    on_failure=[report_end],
    on_crashed=[report_if_killed],
)
def confirmation(
    rules: tuple[Rule, ...] = (),
    limit: Annotated[int, Field(ge=1, le=10_000)] = 20,
    catch_up_hours: Annotated[float, Field(ge=0)] = 12.0,
) -> ConfirmSummary | State[Any]:
    """Re-query the cells of flags: each is then confirmed, gone or not confirmable.

    Args:
        rules: Rules whose flags are re-queried. Empty: all rules.
        limit: Maximum number of flags, the largest first. NIGHTAUDIT_CONFIRM_CAP also limits the searches.
        catch_up_hours: A run that starts later than this is skipped: after an outage, the latest one is enough.
    """
    if (ended := refused(flow_run.scheduled_start_time, flow_run.run_count, catch_up_hours)) is not None:
        return ended
    waits = WAITS if deployment.id else ()
    summary = _ask.with_options(retries=len(waits), retry_delay_seconds=list(waits))(rules, limit)
    if isinstance(summary, str):
        return Completed(message=summary)
    outcomes: list[dict[str, object]] = [{"outcome": name, "flags": count} for name, count in summary.outcomes.items()]
    create_table_artifact(outcomes, key=OUTCOMES_KEY, description=f"Run {summary.run_id}: {summary.searches} searches.")
    return summary


@task(name="ask-again", cache_policy=NO_CACHE, persist_result=False, retry_condition_fn=waiting_helps)
def _ask(rules: tuple[str, ...], limit: int) -> ConfirmSummary | str:
    """Return what came of it, or why there was nothing to confirm, which is no failure."""
    settings = read_settings()
    lake = Lake(settings.lake)
    try:
        flags = choose_flags(lake, (), rules, limit)
    except NothingSent as nothing:
        return nothing.message
    with turn_at_supplier(settings), lake.writing("a confirmation"):
        return run_in_loop(lambda: confirm(settings, lake, flags))
