"""Lake care as a Prefect flow: what `nightaudit lake` shows, and with `--apply` does."""

from __future__ import annotations

from typing import Any

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import deployment, flow_run

from flows.dead_runs import report_end, report_if_killed
from flows.logs import log_steps, tell_our_errors_once
from flows.turns import died_too_often, waiting_helps
from pipeline.lake import Lake
from pipeline.night.care import Care, plan_care, take_care
from pipeline.settings import read_settings

tell_our_errors_once()
log_steps()

CARE_KEY = "lake-care"
WAITS = (900.0, 2700.0)


@flow(
    name="lake-care",
    persist_result=False,
    on_completion=[report_end],
    on_failure=[report_end],
    on_crashed=[report_if_killed],
)
def lake_care(dry_run: bool = False) -> int | State[Any]:
    """Compact the lake's files, apply retention and remove unused files. Return the number of actions.

    Args:
        dry_run: Only list what is due.
    """
    if (ended := died_too_often(flow_run.run_count)) is not None:
        return ended
    waits = WAITS if deployment.id else ()
    care = _care.with_options(retries=len(waits), retry_delay_seconds=list(waits))(dry_run)
    rows: list[dict[str, object]] = [
        {"kind": one.kind, "where": one.where, "sweep": one.sweep_id, "files": one.files, "bytes": one.bytes}
        for one in care
    ]
    create_table_artifact(rows, key=CARE_KEY, description="To do." if dry_run else "Done.")
    return len(care)


@task(name="take-care", cache_policy=NO_CACHE, persist_result=False, retry_condition_fn=waiting_helps)
def _care(dry_run: bool) -> list[Care]:
    settings = read_settings()
    lake = Lake(settings.lake)
    if dry_run:
        return plan_care(settings, lake)
    with lake.writing("lake maintenance"):
        return take_care(settings, lake)
