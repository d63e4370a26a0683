"""The log line of each step of a night."""

from pipeline.domain.search import STATUSES
from pipeline.night.night import Night
from pipeline.report.written_pages import reports_page


def line_of(step: str, night: Night) -> str:
    """Return the log line of a step, from its name and the night that it returned."""
    sweep, settings = night.sweep, night.settings
    line = f"The step {step} is done."
    if step == "begin":
        line = f"Sweep {sweep.sweep_id} of {sweep.supplier}: {sweep.cells:,} cells in {sweep.searches:,} searches."
    elif step == "collect" and night.collected is not None:
        found = night.collected.normalised
        cells = ", ".join(f"{found[status]:,} {status}" for status in STATUSES if found[status])
        line = f"Collected {sweep.cells:,} cells with {night.collected.tally.requests:,} requests: "
        line += f"{cells or 'all of them were loaded before'}."
    elif step == "audit" and night.audit is not None:
        verdict, checks = "passed" if night.audit.is_passed else "blocked the night", night.audit.outcomes
        line = f"The audit {verdict}: {checks['passed']:,} checks passed, {checks['failed']:,} failed, "
        line += f"{checks['not_judged']:,} not judged; {night.audit.quarantined:,} offers in quarantine."
    elif step == "publish" and night.published is not None:
        row = night.published.sweep
        line = f"Published {row['offers']:,} offers, {row['price_changes']:,} price changes: {night.published.file}"
    elif step == "announce":
        told = "The webhook could not be reached." if night.missed else "Announced to the webhook."
        line = told if settings.published_webhook else "No webhook is set."
    elif step == "report":
        line = f"Wrote {', '.join(page.name for page in night.pages)}: {reports_page(night.lake)}"
    elif step == "summarise" and night.summary is not None:
        line = f"{night.summary.findings:,} findings are open, {night.summary.new_findings:,} of them new."
    elif step == "alert":
        told = f"{night.missed} could not be notified" if night.missed else "all are up to date"
        line = f"Receivers of {settings.alerts}: {told}." if settings.alerts else "No alert rules are set."
    return line
