"""The night as a Prefect flow: the steps of `pipeline.night.nightly`, each a task with what it leaves in Prefect's UI.

No task is retried by Prefect. Collecting retries each search by the supplier's rules and lands what it gets, so that
a second run goes on where the first one stopped; the other steps fail for reasons that waiting does not mend.
"""

from __future__ import annotations

from collections.abc import Callable

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from flows.logs import log_steps, tell_our_errors_once
from flows.notify import block_of_server
from flows.progress import progress_artifact
from pipeline.audit.quality_page import as_markdown as as_quality
from pipeline.lake import Lake
from pipeline.night.night import Night
from pipeline.night.nightly import Step, run_night
from pipeline.night.summary import NightSummary
from pipeline.night.summary import as_markdown as as_summary
from pipeline.report import as_markdown as as_links
from pipeline.settings import read_settings

tell_our_errors_once()
log_steps()

SUMMARY_KEY = "nightly-summary"
QUALITY_KEY = "nightly-quality"
REPORTS_KEY = "nightly-reports"


@flow(name="nightly", persist_result=False, log_prints=False)
def nightly() -> NightSummary:
    """Sweep, load, audit and publish one night. It has no parameters: its settings are those of its environment."""
    settings = read_settings()
    with progress_artifact() as watch:
        return run_night(Night(settings, Lake(settings.lake), watch=watch, block=block_of_server()), as_task)


def as_task(step: Step) -> Step:
    """Return a step of the night as a task of the flow, which leaves with Prefect what the step has made."""
    name = step.__name__.replace("_", "-")

    @task(name=name, cache_policy=NO_CACHE, persist_result=False)
    def run(night: Night) -> Night:
        made = step(night)
        if made_of := _LEFT.get(name):
            key, text = made_of
            create_markdown_artifact(text(made), key=key, description=f"Sweep {made.sweep.sweep_id}")
        return made

    return run


def _quality(night: Night) -> str:
    return as_quality(night.audit) if night.audit else ""


def _summary(night: Night) -> str:
    return as_summary(night.summary) if night.summary else ""


# By the task that leaves it: the key of an artifact, and its text.
_LEFT: dict[str, tuple[str, Callable[[Night], str]]] = {
    "audit": (QUALITY_KEY, _quality),
    "report": (REPORTS_KEY, lambda night: as_links(list(night.pages))),
    "summarise": (SUMMARY_KEY, _summary),
}
