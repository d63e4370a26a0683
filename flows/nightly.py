"""The nightly run as a Prefect flow: which steps, in which order. What a step does lives in `pipeline`.

    run_nightly(settings)     a night in this process, with a Prefect server of its own where none is configured
    nightly()                 the flow itself, for deployments; it reads the settings of its environment

No task is retried by Prefect. Collecting retries each search by the supplier's rules and lands what it gets, so that
a second run goes on where the first one stopped; the other steps fail for reasons that waiting does not mend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from flows.logs import log_steps, quiet_terminal, tell_our_errors_once
from flows.notify import notification_block
from flows.progress import progress_artifact
from flows.server import prefect_server
from pipeline.audit.quality_page import as_markdown as as_quality
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest
from pipeline.night import steps
from pipeline.night.gate import audit_sweep, publish_checked, refuse_blocked, tell_if_blocked
from pipeline.night.summary import NightSummary, as_markdown, refuse_failed_rules, refuse_too_many_failures
from pipeline.night.summary import summarise as summary_of
from pipeline.notify.ways import Ways
from pipeline.process.signals import told_when_stopped
from pipeline.publish import Published
from pipeline.settings import Clock, Settings, read_settings
from pipeline.sweep import SweepProgress

SUMMARY_KEY = "nightly-summary"
QUALITY_KEY = "nightly-quality"
REPORTS_KEY = "nightly-reports"


@dataclass(frozen=True, slots=True)
class Given:
    """What a caller in this process hands to the flow, past Prefect, which would record it.

    `watch` is told of progress a few times a second; `show` is told of the night once it is published, also where the
    run then ends with TooManyFailures. `now` stands above the clock of the settings.
    """

    settings: Settings | None = None
    watch: Callable[[SweepProgress], None] = lambda _: None
    show: Callable[[NightSummary], None] = lambda _: None
    now: Clock | None = None

    def clock(self, settings: Settings) -> Clock:
        """Return what tells this night's time."""
        return self.now or settings.clock


tell_our_errors_once()
log_steps()

# Where no step knows it better.
_WHEN_STOPPED = (
    "What has landed stays, and the published file is whole.",
    "Run the night again: it goes on where it was stopped.",
)

_NOTHING_GIVEN = Given()
_GIVEN: ContextVar[Given] = ContextVar("given", default=_NOTHING_GIVEN)


def run_nightly(
    settings: Settings,
    *,
    watch: Callable[[SweepProgress], None] = lambda _: None,
    show: Callable[[NightSummary], None] = lambda _: None,
    now: Clock | None = None,
) -> NightSummary:
    """Run a night in this process and return its summary. See `Given` for `watch` and `show`.

    Raises the project's own errors as they are: LakeBusy where another run is under way, SweepStopped and the
    supplier's errors where the sweep ended early (nothing is published; running again goes on), TooManyFailures once
    the night is published.
    """
    token = _GIVEN.set(Given(settings, watch, show, now))
    try:
        with quiet_terminal(), prefect_server():
            return nightly()
    finally:
        _GIVEN.reset(token)


@flow(name="nightly", persist_result=False, log_prints=False)
def nightly() -> NightSummary:
    """Sweep, load, audit and publish one night. It has no parameters: its settings are those of its environment."""
    with told_when_stopped(*_WHEN_STOPPED):
        return _night(_GIVEN.get())


def _night(given: Given) -> NightSummary:
    settings = given.settings or read_settings()
    place = Lake(settings.lake)
    steps.refuse_before_making(settings, place, given.clock(settings)())
    if settings.alerts:
        # A mistake is told now, and not when the night is over.
        from pipeline.notify.alert_rules import read_rules

        read_rules(settings.alerts)
    with place.writing("the nightly run"):
        publish_left_over(settings, place)
        manifest = begin(settings, place)
        collect(settings, place, manifest)
        audit(settings, place, manifest)
        published = publish(settings, place, manifest)
        report(place)
        summary = summarise(place, published)
        given.show(summary)
        # Last, so that a mistake in the rules costs the alerts alone.
        alert(settings, place)
    judge(settings, summary)
    return summary


@task(name="publish-left-over", cache_policy=NO_CACHE, persist_result=False)
def publish_left_over(settings: Settings, lake: Lake) -> None:
    """Close and publish what an earlier day has left unfinished."""
    now = _GIVEN.get().clock(settings)
    asyncio.run(steps.publish_left_over(settings, lake, now().date(), now, _blocks(settings)))


@task(name="begin", cache_policy=NO_CACHE, persist_result=False)
def begin(settings: Settings, lake: Lake) -> Manifest:
    """Begin today's sweep, or go on with it."""
    return steps.start_or_go_on(settings, lake, _GIVEN.get().clock(settings)())


@task(name="collect", cache_policy=NO_CACHE, persist_result=False)
def collect(settings: Settings, lake: Lake, manifest: Manifest) -> None:
    """Ask what has not landed, normalise it and load it."""
    given = _GIVEN.get()
    with progress_artifact() as note:

        def watch(progress: SweepProgress) -> None:
            note(progress)
            given.watch(progress)

        asyncio.run(steps.collect_within_cap(settings, lake, manifest, now=given.clock(settings), watch=watch))


@task(name="audit", cache_policy=NO_CACHE, persist_result=False)
def audit(settings: Settings, lake: Lake, manifest: Manifest) -> None:
    """Check the sweep, leave what was found with Prefect, and stop here if it may not be published."""
    found = audit_sweep(settings, lake, manifest.sweep_id, _GIVEN.get().clock(settings)())
    tell_if_blocked(settings, lake, found, _blocks(settings))
    create_markdown_artifact(as_quality(found), key=QUALITY_KEY, description=f"Quality of {manifest.sweep_id}")
    refuse_blocked(lake, manifest.sweep_id, found)


def _blocks(settings: Settings) -> Ways:
    slug = settings.notify_block
    return {f"block {slug}": notification_block(slug)} if slug else {}


@task(name="publish", cache_policy=NO_CACHE, persist_result=False)
def publish(settings: Settings, lake: Lake, manifest: Manifest) -> Published:
    """Make the sweep part of the published file."""
    return publish_checked(lake, manifest.sweep_id, _GIVEN.get().clock(settings)(), analysis=settings.analysis)


@task(name="report", cache_policy=NO_CACHE, persist_result=False)
def report(lake: Lake) -> None:
    """Write the night's reports, and leave links to them with Prefect."""
    from pipeline.report import as_markdown as as_links
    from pipeline.report import write_reports

    create_markdown_artifact(as_links(write_reports(lake)), key=REPORTS_KEY, description="Reports of the night")


@task(name="alert", cache_policy=NO_CACHE, persist_result=False)
def alert(settings: Settings, lake: Lake) -> None:
    """Tell those who want to know what the night has found, if there are rules."""
    if settings.alerts is None:
        return
    from pipeline.lake.user_query import Bounds
    from pipeline.night.confirm import confirmer
    from pipeline.notify.alert_rules import read_rules
    from pipeline.notify.alerts import tell_alerts
    from pipeline.report import reports_page

    rules = read_rules(settings.alerts)
    again = confirmer(settings, lake, _GIVEN.get().clock(settings))
    bounds = Bounds(settings.query_seconds, settings.query_memory_mb)
    tell_alerts(lake, rules, str(reports_page(lake)), block=notification_block, confirm=again, bounds=bounds)


@task(name="summarise", cache_policy=NO_CACHE, persist_result=False)
def summarise(lake: Lake, published: Published) -> NightSummary:
    """Say what the night came to, and leave it with Prefect as an artifact."""
    from pipeline.report import reports_page

    summary = summary_of(published, reports_page(lake))
    create_markdown_artifact(as_markdown(summary), key=SUMMARY_KEY, description=f"Sweep {summary.sweep_id}")
    return summary


@task(name="judge", cache_policy=NO_CACHE, persist_result=False)
def judge(settings: Settings, summary: NightSummary) -> None:
    """Fail the run of a night that is published but has too many failed cells, or rules that failed."""
    refuse_too_many_failures(summary, settings.tolerated_failed_share)
    refuse_failed_rules(summary, settings.tolerated_failed_rules)
