"""`nightaudit demo`: weeks of simulated nights, and where to look at them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from pipeline.cli.terminal import Terminal, own_command
from pipeline.demo import Demo, DemoProgress, make_demo, refuse_demo
from pipeline.domain.errors import NightauditError
from pipeline.lake import Lake
from pipeline.process.pandasless import keep_pandas_out
from pipeline.process.signals import stoppable
from pipeline.settings import read_settings

_SECONDS_BETWEEN_LINES = 10.0
# The first queries to try, with their titles.
_QUERIES = (
    (
        "Open findings by rule and severity",
        (
            "SELECT rule, severity, count(*) AS findings, count(DISTINCT property_id) AS properties "
            "FROM report.flag GROUP BY ALL ORDER BY findings DESC"
        ),
    ),
    (
        "Open problems of properties by what they cost, in the order of the digest",
        (
            "SELECT property_name, city, rule, sum(exposure_eur) AS cost_eur, min(opened_at)::DATE AS since "
            "FROM report.finding_case JOIN mart.property USING (property_id) "
            "WHERE status IN ('new', 'open') GROUP BY property_id, property_name, city, rule "
            "ORDER BY cost_eur DESC NULLS LAST LIMIT 10"
        ),
    ),
    (
        "Median price of each market in EUR, the last 14 nights",
        (
            "PIVOT (SELECT snapshot_date AS night, market, total FROM lake.offer JOIN mart.sweep USING (sweep_id) "
            "WHERE source = 'multi' AND product_type = 'Hotel' AND currency = 'EUR') "
            "ON market IN ('DE', 'GB', 'NL', 'SE', 'US') USING round(median(total), 2) ORDER BY night DESC LIMIT 14"
        ),
    ),
)


def demo(nights: int, until: date | None) -> None:
    """Make a demo and print where to look."""
    keep_pandas_out()
    settings = read_settings()
    last = settings.clock().date() - timedelta(days=1) if until is None else until
    console = Terminal()
    refuse_demo(settings, Lake(settings.lake), last)
    console.print(f"Simulating {nights} nights until {last} in the lake {settings.lake}.")
    stopped = f"The nights made so far stay in {settings.lake}.", "nightaudit demo, once that folder is removed"
    try:
        with stoppable(*stopped), _display(console, nights) as watch:
            made = make_demo(settings, nights, last, watch)
    except NightauditError as error:
        if error.has_step:
            # A night can be continued; a demo only starts again.
            error.at_outer_step(*stopped)
        raise
    _tell(console, made)


def _tell(console: Console, made: Demo) -> None:
    console.print(
        f"Done: {made.properties} properties, every night from {made.first} to {made.last}. All data is simulated."
    )
    lines = [
        ("The report", str(made.reports)),
        ("Reports and notebooks in a browser", f"{own_command()} serve"),
        *((words, f'{own_command()} query "{sql}"') for words, sql in _QUERIES),
        ("The next night", "make nightly"),
    ]
    for words, command in lines:
        console.print(Text(f"\n{words}:"))
        # Unwrapped, so that it can be copied.
        console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)


@contextmanager
def _display(console: Console, nights: int) -> Iterator[Callable[[DemoProgress], None]]:
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("nights · {task.description}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        task = progress.add_task("beginning", total=nights)
        yield lambda now: progress.update(task, completed=now.made, description=f"{now.night}: {now.step}")


class _Lines:
    """Prints a line at once and then at intervals, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 0.0

    def __call__(self, now: DemoProgress) -> None:
        if time.monotonic() >= self._next:
            line = f"{now.made} of {now.nights} nights made · {now.night}: {now.step}"
            self._console.print(line, highlight=False, soft_wrap=True)
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
