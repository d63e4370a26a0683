"""`nightaudit alerts`: messages about findings."""

from rich.table import Table
from rich.text import Text

from pipeline.cli.given import notification_block
from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import NightauditError, NothingSent
from pipeline.lake import Lake
from pipeline.night.send_alerts import send_alerts
from pipeline.notify.alert_rules import read_rules
from pipeline.process.signals import stoppable
from pipeline.report.written_pages import reports_page
from pipeline.settings import read_settings


def send(*, is_rehearsal: bool) -> None:
    """Send the alerts of the published file, or show what would be sent."""
    settings = read_settings()
    if settings.alerts is None:
        raise NothingSent(
            "There are no alert rules: NIGHTAUDIT_ALERTS is not set.",
            hint="Set it to your rule file. flows/README.md, under Alerts, shows how to write one.",
        )
    rules, lake = read_rules(settings.alerts), Lake(settings.lake)
    lake.refuse_missing()
    with stoppable("What was sent is recorded; the rest stays queued.", "nightaudit alerts"), lake.writing("alerts"):
        page = reports_page(lake)
        results = send_alerts(settings, lake, rules, page, notification_block(), is_rehearsal=is_rehearsal)
    table = Table("rule", "receiver", "new", "open before", "resolved", "still open", "sent", header_style="bold")
    for item in results:
        sent = "rehearsal" if is_rehearsal else item.failure or ("yes" if item.new or item.resolved else "no news")
        counts = (item.new - item.before, item.before, item.resolved, item.still_open)
        table.add_row(item.rule, item.receiver, *map(str, counts), Text(sent))
    console = Terminal()
    console.print(table)
    for item in results if is_rehearsal else ():
        for subject, text in item.texts:
            console.print(Text(f"\nTo {item.receiver}: {subject}", style="bold"), soft_wrap=True)
            console.print(Text(text), soft_wrap=True)
    if any(item.failure for item in results):
        raise NightauditError(
            "Some alerts could not be sent.", kept="They stay queued.", hint="Try again: nightaudit alerts"
        )
