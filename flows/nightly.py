"""The night as a Prefect flow: the steps of `pipeline.night.nightly`, each a task with its artifact in Prefect's UI.

The night is one task around them. It is retried if waiting helps: another run holds the lake or sweeps the same spec,
or the supplier is down. No step is retried alone. Collecting retries each search by the supplier's rules and saves the
answers, so that a second try continues where the first one stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import deployment, flow_run
from pydantic import Field

from flows.dead_runs import completed_before, report_end, report_if_killed, with_end_reported
from flows.logs import log_steps, tell_our_errors_once
from flows.notify import block_of_server
from flows.parameters import Market
from flows.progress import progress_artifact
from flows.turns import one_sweep_of, refused, turn_at_supplier, waiting_helps
from pipeline.audit.quality_page import as_markdown as as_quality
from pipeline.lake import Lake
from pipeline.night.night import Night
from pipeline.night.nightly import Step, run_night
from pipeline.night.outlook import as_markdown as as_plan
from pipeline.night.outlook import look_ahead
from pipeline.night.read_spec import spec_name
from pipeline.night.summary import NightSummary
from pipeline.night.summary import as_markdown as as_summary
from pipeline.report.markdown import as_markdown as as_links
from pipeline.settings import Settings, read_settings

tell_our_errors_once()
log_steps()

SUMMARY_KEY = "nightly-summary"
QUALITY_KEY = "nightly-quality"
REPORTS_KEY = "nightly-reports"
PLAN_KEY = "nightly-plan"

# Seconds before each retry of a night: 75 minutes in all.
WAITS = (300.0, 900.0, 3300.0)


def name_run() -> str:
    """Return the name of a run: its spec and its night."""
    settings = _settings(flow_run.parameters)
    return f"{spec_name(settings)} {settings.clock():%Y-%m-%d}"


@flow(
    name="nightly",
    flow_run_name=name_run,
    persist_result=False,
    log_prints=False,
    on_completion=[report_end],
    on_failure=[report_end],
    on_crashed=[report_if_killed],
)
def nightly(
    spec: Path | None = None,
    markets: tuple[Market, ...] = (),
    limit: Annotated[int, Field(ge=1)] | None = None,
    dry_run: bool = False,
    catch_up_hours: Annotated[float, Field(ge=0)] = 12.0,
) -> NightSummary | State[Any] | None:
    """Sweep, load, audit and publish one night. Parameters that are not given come from the settings.

    Args:
        spec: Sweep spec (TOML or YAML) on the worker's disk. Empty: NIGHTAUDIT_SPEC.
        markets: Markets of the spec to sweep. Empty: all of them.
        limit: Maximum number of properties of the spec. Empty: all.
        dry_run: Only plan: show what the night would request and cost.
        catch_up_hours: A run that starts later than this is skipped, because prices belong to their day.
    """
    if flow_run.run_count > 1 and (ended := completed_before(UUID(flow_run.id))) is not None:
        return ended
    if (skipped := refused(flow_run.scheduled_start_time, flow_run.run_count, catch_up_hours)) is not None:
        return with_end_reported(skipped)
    given = {"spec": spec, "markets": markets, "limit": limit}
    settings = _settings(given)
    if dry_run:
        create_markdown_artifact(as_plan(look_ahead(settings, Lake(settings.lake))), key=PLAN_KEY)
        return None
    # A person who runs the flow by hand should see a failure at once.
    waits = WAITS if deployment.id else ()
    return _night.with_options(retries=len(waits), retry_delay_seconds=list(waits))(settings)


@task(name="night", cache_policy=NO_CACHE, persist_result=False, retry_condition_fn=waiting_helps)
def _night(settings: Settings) -> NightSummary:
    with one_sweep_of(spec_name(settings)), progress_artifact() as watch:
        lake, turn = Lake(settings.lake), partial(turn_at_supplier, settings)
        return run_night(Night(settings, lake, watch=watch, block=block_of_server(), turn=turn), as_task)


def as_task(step: Step) -> Step:
    """Return a step of the night as a task of the flow, which writes the step's artifact."""
    name = step.__name__.replace("_", "-")

    @task(name=name, cache_policy=NO_CACHE, persist_result=False)
    def run(night: Night) -> Night:
        with night.turn() if name == "collect" else nullcontext():
            made = step(night)
        if name in _ARTIFACTS:
            key, text = _ARTIFACTS[name]
            create_markdown_artifact(text(made), key=key, description=f"Sweep {made.sweep.sweep_id}")
        return made

    return run


def _settings(given: dict[str, Any]) -> Settings:
    named = {"spec": given.get("spec"), "markets": given.get("markets"), "property_limit": given.get("limit")}
    # A text that was cleared in Prefect's form is a path of no characters.
    return read_settings(**{name: value for name, value in named.items() if value and value != Path()})


# By the name of the task: the key of its artifact, and its text.
_ARTIFACTS: dict[str, tuple[str, Callable[[Night], str]]] = {
    "audit": (QUALITY_KEY, lambda night: as_quality(night.audit) if night.audit else ""),
    "report": (REPORTS_KEY, lambda night: as_links(list(night.pages))),
    "summarise": (SUMMARY_KEY, lambda night: as_summary(night.summary) if night.summary else ""),
}
