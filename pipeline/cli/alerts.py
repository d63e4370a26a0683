"""`nightaudit alerts`: messages about findings."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from pipeline.cli.given import notification_block
from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import NightauditError, SettingsError
from pipeline.lake import Lake
from pipeline.lake.user_query import Bounds
from pipeline.night.confirm import confirmer
from pipeline.notify.alert_rules import read_rules
from pipeline.notify.alerts import tell_alerts
from pipeline.report import reports_page, written_case_pages
from pipeline.settings import read_settings


def send(*, is_rehearsal: bool) -> None:
    """Send the alerts of the published file, or show what would be sent."""
    settings = read_settings()
    if settings.alerts is None:
        raise SettingsError(
            "There are no alert rules.",
            kept="Nothing was sent.",
            hint="Name a rule file with NIGHTAUDIT_ALERTS; see flows/README.md.",
        )
    rules, lake = read_rules(settings.alerts), Lake(settings.lake)
    with lake.writing("alerts"):
        again = confirmer(settings, lake)
        bounds = Bounds(settings.query_seconds, settings.query_memory_mb)
        told = tell_alerts(
            lake,
            rules,
            str(reports_page(lake)),
            case_pages=written_case_pages(lake),
            block=notification_block(),
            confirm=again,
            is_rehearsal=is_rehearsal,
            bounds=bounds,
        )
    table = Table("rule", "receiver", "new", "resolved", "open", "sent", header_style="bold")
    for item in told:
        sent = "rehearsal" if is_rehearsal else item.failure or ("yes" if item.new or item.over else "no news")
        table.add_row(item.rule, item.receiver, str(item.new), str(item.over), str(item.standing), Text(sent))
    console = Terminal()
    console.print(table)
    for item in told if is_rehearsal else ():
        for subject, text in item.texts:
            console.print(Text(f"\nTo {item.receiver}: {subject}", style="bold"), soft_wrap=True)
            console.print(Text(text), soft_wrap=True)
    if any(item.failure for item in told):
        raise NightauditError("Some alerts could not be sent.", hint="They stay queued. Try again: nightaudit alerts")
