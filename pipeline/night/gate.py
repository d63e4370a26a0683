"""The gate between a loaded sweep and the published file: write, audit, publish.

A sweep that passed its audit is published. One that failed is published only with a reason, which is recorded in the
ledger and in `mart.sweep`. A sweep without an audit is not published.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from pipeline.audit import Audit, Limits, Spread, audit, stored_audit
from pipeline.audit.audit import refuse_damaged_rows
from pipeline.audit.judge import Judge
from pipeline.audit.quality_page import write_report
from pipeline.audit.store import history, refuse_damaged_audit
from pipeline.domain.analysis import Analysis
from pipeline.domain.errors import CorruptObject, GateBlocked, InputError, LakeError, UnknownSweep
from pipeline.domain.quantities import counted
from pipeline.domain.servers import Workforce
from pipeline.lake import Lake
from pipeline.lake.ledger import REFERENCE_RULE, enter, restore_entries
from pipeline.lake.raw import Manifest, read_ending, read_manifest
from pipeline.night.durations import timed
from pipeline.night.latest import is_published, refuse_earlier
from pipeline.night.read_spec import as_in_its_demo
from pipeline.night.repair import repair_of
from pipeline.notify.blocked import tell_of
from pipeline.notify.pages import page_address
from pipeline.notify.ways import Tell, mail, through, webhook
from pipeline.plan.estimate import TimedStep
from pipeline.process.signals import stoppable
from pipeline.publish import LedgerEntry, Published, publish, published_sweeps
from pipeline.settings import Settings
from pipeline.sweep.load import is_sweep_loaded

logger = logging.getLogger(__name__)

_STAYS_LOADED = "The sweep {} stays loaded; the published file is intact."


def audit_sweep(
    settings: Settings, lake: Lake, sweep_id: str, now: datetime, judge_those: Judge | None = None
) -> Audit:
    """Audit a loaded sweep against the published nights like it, and write its page; see `audit`.

    The caller holds the lake's writer lock. Raises InputError if `now` is earlier than the lake's latest sweep.
    """
    refuse_earlier(lake, now)
    with stoppable(_STAYS_LOADED.format(sweep_id), f"nightaudit audit {sweep_id}"):
        found = audit_at(settings, lake, sweep_id, now, judge_those)
    if not found.is_passed:
        _list_as_blocked(lake, sweep_id)
    return found


def _list_as_blocked(lake: Lake, sweep_id: str) -> None:
    # Slow: it brings the library that draws charts.
    from pipeline.report.write import list_blocked_night

    try:
        list_blocked_night(lake)
    except (LakeError, InputError) as error:
        logger.warning("The page of all nights does not list the blocked sweep %s: %s", sweep_id, error.message)


def audit_at(settings: Settings, lake: Lake, sweep_id: str, now: datetime, judge_those: Judge | None = None) -> Audit:
    """Audit as `audit_sweep` does, even if later sweeps have begun."""
    manifest, limits = read_manifest(lake, sweep_id), audit_limits(settings)
    with timed(lake, manifest, TimedStep.AUDIT, is_spread=settings.spread_over is not None):
        nights = nights_like(lake, manifest, limits.nights)
        found = audit(lake, sweep_id, nights, limits, now, Spread(settings.workforce), judge_those)
        published = published_sweeps(lake)
        write_report(
            lake,
            found,
            history(lake, found.nights),
            is_simulated=manifest.is_simulated,
            cold_nights=limits.cold_nights,
            kept=published[-1].sweep_id if published else None,
        )
    return found


def audit_limits(settings: Settings) -> Limits:
    """Return the limits of an audit."""
    return Limits(
        deviations=settings.audit_deviations,
        nights=settings.audit_nights,
        cold_nights=settings.audit_cold_nights,
        quarantined_share=settings.tolerated_quarantined_share,
    )


def tell_if_blocked(settings: Settings, lake: Lake, found: Audit, block: Callable[[str], Tell] | None = None) -> None:
    """Send why a sweep is blocked, one message per cause; see `pipeline.notify.blocked`.

    Messages about earlier sweeps that could not be delivered are sent too. `block` gives a way to send through a
    notification block of Prefect. The caller holds the lake's writer lock.
    """
    ways: dict[str, Tell] = {}
    if settings.notify_block:
        ways[f"block {settings.notify_block}"] = through(block, settings.notify_block)
    if settings.notify_webhook:
        ways["webhook"] = webhook(settings.notify_webhook.get_secret_value())
    if settings.notify_mail:
        ways["mail"] = mail(settings.notify_mail.get_secret_value())
    published = {entry.sweep_id for entry in published_sweeps(lake)}
    page = page_address(lake.reports, report_page(lake, found.sweep_id), settings.pages_url)
    tell_of(lake, found.sweep_id, found.causes("critical"), page, ways, published)


def nights_like(lake: Lake, manifest: Manifest, most: int) -> list[str]:
    """Return the latest `most` published, complete sweeps before this one with its spec and supplier, oldest first."""
    found: list[str] = []
    for entry in reversed(published_sweeps(lake)):
        if entry.started_at >= manifest.started_at:
            continue
        if len(found) == most:
            break
        try:
            refuse_damaged_audit(lake, entry.sweep_id)
            other, ending = read_manifest(lake, entry.sweep_id), read_ending(lake, entry.sweep_id)
            is_alike = (other.spec, other.supplier) == (manifest.spec, manifest.supplier)
            if not is_alike or ending is None or not ending.is_complete:
                continue
            if not found:
                # Prices are compared with the latest one; of the others, only audits are read.
                refuse_damaged_rows(lake, entry.sweep_id)
        except (CorruptObject, UnknownSweep) as error:
            place = getattr(error, "place", None) or lake.local(lake.manifest_path(entry.sweep_id))
            how = repair_of(lake, place)
            logger.warning("Not compared with the night %s: %s To repair it: %s.", entry.sweep_id, error.message, how)
            continue
        found.append(entry.sweep_id)
    return found[::-1]


def is_unaudited(lake: Lake, sweep_id: str) -> bool:
    """Whether a loaded sweep has neither been audited nor published."""
    return not is_published(lake, sweep_id) and is_sweep_loaded(lake, sweep_id) and stored_audit(lake, sweep_id) is None


def publish_checked(
    lake: Lake,
    sweep_id: str,
    now: datetime,
    override: str | None = None,
    analysis: Analysis = Analysis(),
    workforce: Workforce = Workforce(),
) -> Published:
    """Publish a sweep that passed its audit, or one that failed with the reason to publish it anyway.

    A simulated sweep is compared as the lake's demo was, if it has one. Raises GateBlocked if it was not audited, even
    with a reason, or failed and no reason is given; and InputError if `now` is earlier than the lake's latest sweep. A
    sweep that is published already stays so.
    """
    if override is not None and not override.strip():
        raise InputError(
            "An override needs a reason.",
            kept="Nothing was published.",
            hint=f'Give one: nightaudit publish {sweep_id} --override "reason"',
        )
    manifest = read_manifest(lake, sweep_id)
    refuse_earlier(lake, now)
    restore_entries(lake)
    with stoppable(_STAYS_LOADED.format(sweep_id), f"nightaudit publish {sweep_id}"):
        if is_published(lake, sweep_id):
            return publish(lake, sweep_id, now, workforce=workforce)
        if manifest.is_simulated:
            analysis = as_in_its_demo(lake, analysis)
        with timed(lake, manifest, TimedStep.PUBLISH, is_spread=workforce.cluster is not None):
            audited, reason = _audited(lake, sweep_id, override)
            if reason is not None:
                logger.warning("The sweep %s is published although it failed its audit: %s", sweep_id, reason)
            return publish(
                lake,
                sweep_id,
                now,
                audit=audited,
                override_reason=reason,
                analysis=analysis,
                workforce=workforce,
            )


def repair_published(lake: Lake, now: datetime) -> None:
    """Make the published file read this folder and show all that was loaded, if there is one that does not."""
    for entry in published_sweeps(lake)[-1:]:
        publish(lake, entry.sweep_id, now)


def _audited(lake: Lake, sweep_id: str, override: str | None) -> tuple[str, str | None]:
    """Return what the ledger notes of an audit: `passed`, or `overridden` with the reason. Raises GateBlocked."""
    verdict = stored_audit(lake, sweep_id)
    if verdict is not None and verdict.is_passed:
        return "passed", None
    if override is None or verdict is None:
        refuse_blocked(lake, sweep_id, verdict)
    return "overridden", (override or "").strip()


def accept(lake: Lake, sweep_id: str, now: datetime, override: str, analysis: Analysis = Analysis()) -> None:
    """Enter an audited sweep in the ledger, so that the next publication publishes it too, in the order of the sweeps.

    `override` is the reason for one that failed. Raises GateBlocked if it was not audited. The caller holds the lake's
    writer lock.
    """
    audited, reason = _audited(lake, sweep_id, override)
    started_at = read_manifest(lake, sweep_id).started_at
    enter(lake, LedgerEntry(sweep_id, started_at, now, audited, reason, analysis, REFERENCE_RULE))


def refuse_blocked(lake: Lake, sweep_id: str, verdict: Audit | None) -> None:
    """Raise GateBlocked, with one line per cause, unless the verdict is a pass."""
    if verdict is None:
        raise GateBlocked(
            f"The sweep {sweep_id} has not been audited; only audited sweeps are published.",
            kept=_kept(lake),
            hint=f"Audit it first: nightaudit audit {sweep_id}",
        )
    causes = verdict.causes("critical")
    if not causes:
        return
    lines = "\n".join(f"  {cause.line}" for cause in causes)
    raise GateBlocked(
        f"The sweep {sweep_id} failed {counted(len(causes), 'critical check')} and is not published:\n{lines}",
        kept=_kept(lake),
        hint=f"See {report_page(lake, sweep_id)}\n"
        f'If the data are right: nightaudit publish {sweep_id} --override "reason"\n'
        "If they are wrong, request new answers: nightaudit sweep (until midnight UTC, nightaudit nightly audits "
        "the same ones again)",
    )


def report_page(lake: Lake, sweep_id: str) -> Path:
    """Return the path of a sweep's quality page."""
    return lake.reports / sweep_id / "quality.html"


def _kept(lake: Lake) -> str:
    published = published_sweeps(lake)
    return f"The last good night stays published: {published[-1].sweep_id}." if published else "Nothing is published."
