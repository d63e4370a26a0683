"""`nightaudit report`, `nightaudit serve` and `nightaudit alerts`: pages and messages for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from rich.table import Table
from rich.text import Text

from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import InputError, NightauditError, SettingsError
from pipeline.lake import Lake
from pipeline.lake.user_query import Bounds
from pipeline.report import REPORTS, Scope, reports_page, write_reports
from pipeline.settings import read_settings


def write(names: Sequence[str], first: str | None, last: str | None, limits: Scope) -> None:
    """Write reports of the published file within limits; print what each says and where its page lies.

    `first` and `last` are days of check-in as texts.
    """
    unknown = [name for name in names if name not in REPORTS]
    if unknown:
        raise InputError(f"There is no report {unknown[0]!r}.", hint=f"Reports are: {', '.join(REPORTS)}")
    scope = replace(limits, first=_day("--from", first), last=_day("--to", last))
    lake = Lake(read_settings().lake)
    console = Terminal()
    for written in write_reports(lake, names or REPORTS, scope):
        console.print(Text.assemble((written.name, "bold"), ": ", written.title), soft_wrap=True)
        console.print(Text(f"  {written.file}", style="cyan"), soft_wrap=True)
    console.print(Text(f"All nights: {reports_page(lake)}", style="dim"), soft_wrap=True)


def alert(*, is_rehearsal: bool) -> None:
    """Send the alerts of the published file, or show what would be sent."""
    from pipeline.night.confirm import confirmer
    from pipeline.notify.alert_rules import read_rules
    from pipeline.notify.alerts import tell_alerts

    settings = read_settings()
    if settings.alerts is None:
        raise SettingsError(
            "There are no alert rules.", hint="Name a rule file with NIGHTAUDIT_ALERTS; see the README."
        )
    rules, lake = read_rules(settings.alerts), Lake(settings.lake)
    with lake.writing("alerts"):
        again = confirmer(settings, lake)
        bounds = Bounds(settings.query_seconds, settings.query_memory_mb)
        told = tell_alerts(
            lake, rules, str(reports_page(lake)), confirm=again, is_rehearsal=is_rehearsal, bounds=bounds
        )
    table = Table("rule", "for", "new", "over", "still", "sent", header_style="bold")
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
        raise NightauditError("Not every alert could be sent.", hint="Those are tried again: nightaudit alerts")


def serve(port: int) -> None:
    """Serve reports and notebooks on the loopback address until interrupted."""
    from pipeline.process.signals import told_when_stopped
    from pipeline.report.serve import serve_reports

    console = Terminal()

    def tell(addresses: list[str]) -> None:
        reports, *notebooks = addresses
        console.print(f"Reports: {reports}", soft_wrap=True)
        for address in notebooks:
            console.print(f"Notebook: {address}", soft_wrap=True)
        console.print("Each address carries a token: who has it can read these pages. Ctrl-C ends it.", style="dim")

    with told_when_stopped("Reports and notebooks are served no longer.", "Serve them again: nightaudit serve"):
        serve_reports(Lake(read_settings().lake), port, tell)


def _day(option: str, text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} is a day like 2027-01-31, not {text!r}.") from None
