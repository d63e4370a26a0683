"""The progress of a sweep: a bar in a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Column

from pipeline.sweep import SweepProgress

_SECONDS_BETWEEN_LINES = 10.0
# Characters of the bar.
_BAR = 10


@contextmanager
def display(console: Console) -> Iterator[Callable[[SweepProgress], None]]:
    """Give a function that shows progress: as a bar on a terminal, otherwise as lines."""
    if console.is_terminal:
        with _bar(console) as watch:
            yield watch
    else:
        yield _Lines(console)


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[SweepProgress], None]]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=_BAR),
        MofNCompleteColumn(),
        # What is left of the line is its own, so that it is cut and not the count.
        TextColumn("searches · {task.fields[rest]}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, expand=True) as progress:
        task = progress.add_task("collecting", total=None, rest="")
        rate = _Rate()

        def watch(now: SweepProgress) -> None:
            progress.update(
                task,
                description=now.step,
                completed=now.answered_searches,
                total=now.planned_searches,
                rest=_rest(now, rate.of(now)),
            )

        yield watch


class _Lines:
    """An occasional line, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rate = _Rate()
        self._next = 0.0
        self._last = ""

    def __call__(self, now: SweepProgress) -> None:
        rest = _rest(now, self._rate.of(now))
        line = f"{now.step}: {now.answered_searches:,} of {now.planned_searches:,} searches answered · {rest}"
        is_last = now.step == "loading"
        if (time.monotonic() >= self._next or is_last) and line != self._last:
            self._console.print(line, highlight=False, soft_wrap=True)
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
            self._last = line


class _Rate:
    """Requests per second, over the last few seconds.

    If a sweep is counted in blocks, the average up to the last block that landed, because blocks land in bursts.
    """

    def __init__(self) -> None:
        self._seen = [(time.monotonic(), 0)]

    def of(self, now: SweepProgress) -> float:
        seen = (time.monotonic(), now.tally.requests)
        if seen[1] < self._seen[-1][1]:
            # When the day's calls are used up, a sweep is closed and its count begins at zero.
            self._seen = [seen]
        if not now.is_counted_in_blocks:
            self._seen = [(at, count) for at, count in self._seen if seen[0] - at < 5] or self._seen[-1:]
            self._seen.append(seen)
        elif seen[1] > self._seen[-1][1]:
            self._seen = [self._seen[0], seen]
        (first_at, first), (last_at, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0


def _rest(now: SweepProgress, rate: float) -> str:
    cells = sum(now.normalised.values())
    parts = [f"{rate:.0f} requests/s{' on average' if now.is_counted_in_blocks else ''}"]
    parts.append(f"{cells:,} of {now.planned_cells:,} cells done")
    parts += [f"{count:,} {status.replace('_', ' ')}" for status, count in sorted(now.normalised.items())]
    return " · ".join(parts)
