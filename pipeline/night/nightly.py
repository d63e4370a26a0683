"""All steps of a night in order, each a plain function that takes the night and returns it.

They run as they are, or as tasks of Prefect (`flows/nightly.py`). Each finished step is recorded, so that the next
night first finishes what this one leaves.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import wraps

from pipeline.audit import stored_audit
from pipeline.domain.errors import CallsUsedUp, GateBlocked, NightauditError, SweepStopped
from pipeline.lake.ledger import restore_entries
from pipeline.lake.raw import landed
from pipeline.lake.user_query import Bounds
from pipeline.night import night_sweep
from pipeline.night.care import take_nightly_care
from pipeline.night.done_steps import done_steps, note_done
from pipeline.night.durations import timed
from pipeline.night.gate import audit_sweep, publish_checked, tell_if_blocked
from pipeline.night.latest import is_published, latest_sweep, leads_nowhere
from pipeline.night.night import Night
from pipeline.night.overview import sweep_rows
from pipeline.night.read_spec import refuse_before_making
from pipeline.night.repair import left_out, warn_of_damaged_tables
from pipeline.night.send_alerts import send_alerts
from pipeline.night.step_lines import line_of
from pipeline.night.summary import NightSummary, refuse_failed_rules
from pipeline.night.summary import summarise as summary_of
from pipeline.night.supplier import supplier_name
from pipeline.night.tolerance import refuse_too_many_failures, refuse_useless
from pipeline.notify.alert_rules import read_rules
from pipeline.notify.alerts import refuse_unknown
from pipeline.notify.published import tell_published
from pipeline.notify.ways import no_server, webhook
from pipeline.plan import estimate
from pipeline.process.event_loop import run_in_loop
from pipeline.process.limits import CHARTS_MB, refuse_tight_limits
from pipeline.process.log_lines import about_sweep
from pipeline.process.signals import stoppable
from pipeline.publish import published_sweeps
from pipeline.publish.without_rows import published_without_rows
from pipeline.report.write import write_reports
from pipeline.report.written_pages import reports_page
from pipeline.sweep import close

logger = logging.getLogger(__name__)

Step = Callable[[Night], Night]

# What is kept, and how to continue, if no step states it.
_ON_THE_WAY = "Answers that have landed are kept; the published file is intact.", "nightaudit nightly"
_WHY = (
    "See why: nightaudit query \"SELECT failure, count(*) FROM lake.search WHERE sweep_id = '{sweep_id}' GROUP BY ALL\""
)


def run_night(night: Night, as_run: Callable[[Step], Step] = lambda step: step) -> NightSummary:
    """Run a night's steps and return its summary. `as_run` wraps each step, for example as a task.

    Raises LakeBusy if another run is in progress; SweepStopped and the supplier's errors if the sweep ended early, when
    nothing is published and the next run continues; GateBlocked; TooManyFailures once the night is published.
    """
    refuse_at_the_start(night)
    with stoppable(*_ON_THE_WAY), night.lake.writing("the nightly run"):
        restore_entries(night.lake)
        warn_of_damaged_tables(night.lake)
        night = as_run(finish_left_over)(night)
        night = as_run(_logged(begin))(night)
        with about_sweep(night.sweep.sweep_id):
            for step in STEPS:
                try:
                    night = as_run(_logged(step))(night)
                except GateBlocked as blocked:
                    # Why there is nothing to publish says more than which check found it.
                    refuse_useless(night.lake, sweep_rows(night.lake)[night.sweep.sweep_id], blocked.kept)
                    raise
                note_done(night.lake, night.sweep.sweep_id, step.__name__)
    assert night.summary is not None  # noqa: S101 - the step `summarise` has made it
    assert night.published is not None  # noqa: S101 - the step `publish` has made it
    counts = night.published.sweep
    kept = f"The sweep {night.sweep.sweep_id} is published; its failed cells are marked."
    refuse_useless(night.lake, counts, kept)
    why = _WHY.format(sweep_id=night.sweep.sweep_id)
    refuse_too_many_failures(counts, night.settings.tolerated_failed_share, kept, why)
    refuse_failed_rules(night.summary, night.settings.tolerated_failed_rules)
    return night.summary


def _logged(step: Step) -> Step:
    @wraps(step)
    def logged(night: Night) -> Night:
        began_at = time.monotonic()
        night = step(night)
        extra = {"step": step.__name__, "seconds": round(time.monotonic() - began_at, 1)}
        # The sweep has a name only once `begin` is done.
        with about_sweep(night.sweep.sweep_id):
            logger.info("%s", line_of(step.__name__, night), extra=extra)
        return night

    return logged


def refuse_at_the_start(night: Night) -> None:
    """Refuse what would otherwise fail at the end of the night: a spec, alert rules or a way to send them."""
    settings = night.settings
    refuse_tight_limits(more_mb=CHARTS_MB)
    refuse_before_making(settings, night.lake, night.now())
    rules = read_rules(settings.alerts) if settings.alerts else None
    if rules:
        with published_without_rows() as file:
            refuse_unknown(file, rules, Bounds.of(settings))
    receivers = rules.receiver.values() if rules else ()
    blocks = [slug for slug in (settings.notify_block, *(receiver.block for receiver in receivers)) if slug]
    if blocks and night.block is None:
        raise no_server(blocks[0])


def finish_left_over(night: Night) -> Night:
    """Finish the latest night if it was stopped: close, judge and publish it, write its pages, send alerts.

    No more searches are sent for a night of an earlier day: its check-ins may have passed, and its prices belong to
    that day. A night that cannot be finished, or fails its audit, stays as it is, and today's night continues.
    """
    latest = latest_sweep(night.lake)
    if latest is None:
        return night
    left = replace(night, manifest=latest)
    try:
        if is_published(night.lake, latest.sweep_id):
            done = done_steps(night.lake, latest.sweep_id)
            # If it was published by single commands, no pages and alerts are missing.
            todo = () if done is None else tuple(step for step in _ONCE_JUDGED if step.__name__ not in done)
        elif latest.snapshot_date < night.now().date() and not (
            # An audited night has a result to report, whatever its answers were.
            stored_audit(left.lake, latest.sweep_id) is None
            and leads_nowhere(left.lake, latest, supplier_name(left.settings))
        ):
            todo = (collect, audit, *_ONCE_JUDGED)
        else:
            return night
        if collect in todo:
            close(night.lake, latest, night.now())
        for step in todo:
            left = step(left)
            note_done(left.lake, latest.sweep_id, step.__name__)
    except SweepStopped:
        raise
    except NightauditError as error:
        logger.warning("The sweep %s of %s stays unfinished: %s", latest.sweep_id, latest.snapshot_date, error.message)
        return night
    if todo:
        names = ", ".join(step.__name__.replace("_", " ") for step in todo)
        logger.warning(
            "The sweep %s of %s was not finished; its last steps are done now: %s.",
            latest.sweep_id,
            latest.snapshot_date,
            names,
        )
    return night


def begin(night: Night) -> Night:
    """Begin today's sweep, or resume it."""
    return replace(night, manifest=night_sweep.start_or_go_on(night.settings, night.lake, night.now()))


def collect(night: Night) -> Night:
    """Send the searches that have not landed, normalise and load; close the sweep if the day's calls are used up."""
    if night.aside is not None:
        night.aside.warm()
    try:
        collected = run_in_loop(lambda: night_sweep.collect(night))
    except CallsUsedUp as error:
        if not landed(night.lake, night.sweep.sweep_id):
            raise
        logger.warning("%s The sweep is closed; the answers that have landed are published.", error.message)
        close(night.lake, night.sweep, night.now())
        collected = run_in_loop(lambda: night_sweep.collect(night))
    return replace(night, collected=collected)


def audit(night: Night) -> Night:
    """Check the sweep, and notify receivers if it is blocked."""
    judge_those = night.aside.judge if night.aside is not None else None
    found = audit_sweep(night.settings, night.lake, night.sweep.sweep_id, night.now(), judge_those)
    tell_if_blocked(night.settings, night.lake, found, night.block)
    return replace(night, audit=found)


def publish(night: Night) -> Night:
    """Add the sweep to the published file. Raises GateBlocked if it has not passed its audit."""
    settings, lake, sweep_id = night.settings, night.lake, night.sweep.sweep_id
    take_nightly_care(settings, lake, sweep_id)
    made = publish_checked(lake, sweep_id, night.now(), analysis=settings.analysis, workforce=settings.workforce)
    return replace(night, published=made)


def announce(night: Night) -> Night:
    """Notify downstream jobs of the published night, if the settings name a webhook for them."""
    if (address := night.settings.published_webhook) is not None:
        days = [(entry.sweep_id, entry.started_at.date()) for entry in published_sweeps(night.lake)]
        is_told = tell_published(night.lake, days, webhook(address.get_secret_value()))
        return replace(night, missed=0 if is_told else 1)
    return night


def report(night: Night) -> Night:
    """Write the night's pages."""
    with timed(night.lake, night.sweep, estimate.TimedStep.REPORT):
        written = write_reports(night.lake) if night.aside is None else write_reports(night.lake, pen=night.aside.draw)
    return replace(night, pages=tuple(written))


def summarise(night: Night) -> Night:
    """Summarise the night and show the summary."""
    assert night.published is not None  # noqa: S101 - the step `publish` has made it
    summary = summary_of(night.published, reports_page(night.lake), len(left_out(night.lake)))
    night.show(summary)
    return replace(night, summary=summary)


def alert(night: Night) -> Night:
    """Send alerts by the rules of the settings, if any. It comes last: a mistake in the rules costs no other step."""
    settings = night.settings
    if settings.alerts is not None:
        # The digest names the cases; if none was written, the page of all nights does.
        page = night.pages[0].file if night.pages else reports_page(night.lake)
        sent = send_alerts(
            settings, night.lake, read_rules(settings.alerts), page, night.block, now=night.clock, turn=night.turn
        )
        return replace(night, missed=len({each.receiver for each in sent if each.failure is not None}))
    return night


STEPS: tuple[Step, ...] = (collect, audit, publish, announce, report, summarise, alert)
# The steps of a night after its audit, without the summary for its viewers.
_ONCE_JUDGED: tuple[Step, ...] = (publish, announce, report, alert)
