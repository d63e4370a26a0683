"""The rebuild as a Prefect flow: every table and the published file, from the raw answers.

Run it after the rules of normalisation have changed, or if the tables are damaged. It has no parameters: it takes its
settings from the environment, and it needs no supplier.
"""

from __future__ import annotations

import asyncio
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.runtime import flow_run

from flows.dead_runs import report_end, report_if_killed
from flows.logs import log_steps, tell_our_errors_once
from flows.turns import died_too_often
from pipeline.lake import Lake
from pipeline.night.gate import audit_limits
from pipeline.night.rebuild import Rebuilt
from pipeline.night.rebuild import rebuild as rebuild_lake
from pipeline.settings import Settings, read_settings
from pipeline.sweep import SweepOptions

tell_our_errors_once()
log_steps()


@flow(
    name="backfill",
    persist_result=False,
    log_prints=False,
    on_completion=[report_end],
    on_failure=[report_end],
    on_crashed=[report_if_killed],
)
def backfill() -> Rebuilt | State[Any]:
    """Rebuild the lake's tables and its published file from the raw answers."""
    if (ended := died_too_often(flow_run.run_count)) is not None:
        return ended
    settings = read_settings()
    lake = Lake(settings.lake)
    with lake.writing("a rebuild"):
        return rebuild(settings, lake)


@task(name="rebuild", cache_policy=NO_CACHE, persist_result=False)
def rebuild(settings: Settings, lake: Lake) -> Rebuilt:
    """Normalise, load and publish every sweep of the lake again, in a folder next to the old one, and swap."""
    options = SweepOptions(settings.in_flight, settings.max_body_bytes, settings.workforce)
    return asyncio.run(rebuild_lake(lake, options, audit_limits(settings), now=settings.clock))


if __name__ == "__main__":
    backfill()
