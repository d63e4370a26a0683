"""`nightaudit confirm`: re-query flagged cells."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from pipeline.cli.terminal import Terminal, listing
from pipeline.inputs.case_notes import flags_of_cases
from pipeline.lake import Lake
from pipeline.lake.simulated import SIMULATED
from pipeline.night.confirm import ConfirmSummary, confirm
from pipeline.night.confirm_plan import choose_flags
from pipeline.process.event_loop import run_in_loop
from pipeline.settings import read_settings


def confirm_flags(flag_ids: Sequence[str], rules: Sequence[str], limit: int) -> None:
    """Re-query the cells of flags, and print the outcomes."""
    settings = read_settings()
    lake = Lake(settings.lake)
    console = Terminal()
    flags = choose_flags(lake, flags_of_cases(lake, flag_ids), rules, limit)
    with lake.writing("a confirmation"), console.status(f"Re-querying {len(flags)} flags …"):
        summary = run_in_loop(lambda: confirm(settings, lake, flags))
    _print(console, summary)


def _print(console: Console, summary: ConfirmSummary) -> None:
    table = listing("flag", "outcome", "now")
    for row in summary.rows:
        # As Text, because they come from the supplier and must not be read as markup.
        table.add_row(Text(row["flag_id"]), row["outcome"], Text(row.get("finding") or row.get("reason") or ""))
    console.print(table)
    counts = " · ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in summary.outcomes.items())
    console.print(f"{len(summary.rows)} planned: {counts} · {summary.searches} searches")
    if summary.is_simulated:
        console.print(SIMULATED, style="yellow")
    if summary.left:
        console.print(
            f"{summary.left} flags were left out because of the cap (NIGHTAUDIT_CONFIRM_CAP).", style="yellow"
        )
    console.print(
        'See them: nightaudit query "SELECT flag_id, confirmation FROM report.flag"', style="cyan", soft_wrap=True
    )
