"""`nightaudit quote`: request quotes for a sample, or show the ledger."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from pipeline.cli.terminal import Terminal, listing
from pipeline.lake import Lake
from pipeline.lake.pulled import refuse_pulled
from pipeline.lake.simulated import SIMULATED
from pipeline.night.quotes import QuoteSummary, all_summaries, quote
from pipeline.process.event_loop import run_in_loop
from pipeline.process.signals import stoppable
from pipeline.quote.outcomes import QuoteOutcome
from pipeline.quote.sample import Sample
from pipeline.settings import read_settings


def ask(size: int, markets: Sequence[str], property_ids: Sequence[int], seed: int, *, is_confirmed: bool) -> None:
    """Request quotes for a sample and print the outcomes."""
    settings = read_settings()
    sample = Sample(size, tuple(markets), tuple(property_ids), seed)
    lake = Lake(settings.lake)
    lake.refuse_missing()
    console = Terminal()
    with (
        stoppable("Every quote that was sent is in the ledger.", "nightaudit quote"),
        lake.writing("a quote check"),
        console.status("Requesting quotes …") as status,
    ):

        def watch(asked: int) -> None:
            status.update(f"Requesting quotes … {asked} of at most {size}")

        summary = run_in_loop(lambda: quote(settings, lake, sample, is_confirmed=is_confirmed, watch=watch))
    console.print(_view([summary]))
    console.print('See them: nightaudit query "FROM mart.quote_check"', style="cyan", soft_wrap=True)


def show_ledger() -> None:
    """Print every run of quotes with its outcomes."""
    settings = read_settings()
    lake = Lake(settings.lake)
    refuse_pulled(lake.root)
    found = all_summaries(lake, settings.max_body_bytes)
    console = Terminal()
    if not found:
        console.print("No quotes have been requested. Quotes make reservations: see nightaudit quote --help")
        return
    console.print(_view(found))


def _view(runs: Sequence[QuoteSummary]) -> RenderableType:
    table = listing("run", "chosen", "outcomes", "reservations")
    for run in runs:
        outcomes = " · ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in run.outcomes.items())
        possible = run.possible_reservations - run.reservations
        reservations = f"{run.reservations}" + (f" + {possible} possible" if possible else "")
        table.add_row(run.run_id, str(run.chosen), outcomes, reservations)
    notes = [SIMULATED] if any(run.is_simulated for run in runs) else []
    unknown = sum(run.outcomes.get(QuoteOutcome.UNKNOWN, 0) for run in runs)
    if unknown:
        notes.append(f"{unknown} unknown: ask the supplier whether they made reservations; they are not sent again.")
    return Group(table, Text("\n".join(notes), style="yellow"))
