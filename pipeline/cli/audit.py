"""`nightaudit audit`: the quality gate from the command line."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.audit import Audit
from pipeline.cli.given import notification_block, refuse_blocks_without_server
from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.night.gate import audit_sweep, refuse_blocked, report_page, tell_if_blocked
from pipeline.night.latest import is_published, latest_loaded
from pipeline.settings import read_settings


def audit(sweep_id: str | None) -> None:
    """Audit a sweep and print the result. Raises GateBlocked if it must not be published."""
    settings = read_settings()
    refuse_blocks_without_server(settings)
    lake = Lake(settings.lake)
    lake.refuse_missing()
    with lake.writing("an audit"):
        wanted = sweep_id or latest_loaded(lake)
        found = audit_sweep(settings, lake, wanted, settings.clock())
        tell_if_blocked(settings, lake, found, notification_block())
    console = Terminal()
    console.print(audit_view(found))
    console.print(Text(f"See: {report_page(lake, wanted)}"), soft_wrap=True)
    refuse_blocked(lake, wanted, found)
    if is_published(lake, wanted):
        console.print("It is already published.")
    else:
        console.print(Text(f"Publish it with: nightaudit publish {wanted}", style="cyan"), soft_wrap=True)


def audit_view(found: Audit) -> RenderableType:
    """Return the result of an audit in a few lines."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("Sweep", found.sweep_id)
    table.add_row("Checks passed", f"{found.outcomes['passed']:,}")
    table.add_row("Checks failed", f"{found.outcomes['failed']:,}")
    table.add_row("Not judged", f"{found.outcomes['not_judged']:,} (too few earlier nights, or nothing to measure)")
    table.add_row("Offers in quarantine", f"{found.quarantined:,}")
    warnings = [Text(f"warning: {cause.line}", style="yellow") for cause in found.causes("warning")]
    said = Text("Passed.", style="green") if found.is_passed else Text("Failed.", style="bold red")
    return Group(said, table, *warnings)
