"""What the lines about a running sweep say about its pace."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from pipeline.cli import progress
from pipeline.sweep import SweepProgress

RATE = 20


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    made = SimpleNamespace(now=0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def rates(clock, capsys, sweep: SweepProgress, requests_at, seconds: int) -> list[int]:
    """The rates of the lines; `requests_at` returns how many requests were counted after a number of seconds."""
    with progress.display(Console(width=200)) as watch:
        for quarter in range(4 * seconds):
            clock.now = quarter / 4
            sweep.tally.requests = sweep.tally.searches = requests_at(clock.now)
            watch(sweep)
    return [int(rate) for rate in re.findall(r"(\d+) requests/s", capsys.readouterr().out)]


def test_blocks_that_land_together_show_no_rate_above_the_one_they_were_sent_at(clock, capsys):
    """Three workers share the rate. Each sends 256 searches at a time, and they land at about the same moment."""

    def landed(seconds: float) -> int:
        return 768 * int(seconds * RATE // 768)

    sweep = SweepProgress("s", planned_cells=100, planned_searches=6000, is_counted_in_blocks=True)
    shown = rates(clock, capsys, sweep, landed, 300)
    assert shown == [0, *[RATE] * 7]
    clock.now += 60
    with progress.display(Console(width=200)) as watch:
        watch(sweep)
    assert "requests/s on average" in capsys.readouterr().out


def test_a_sweep_that_counts_each_request_shows_the_rate_of_the_last_seconds(clock, capsys):
    sweep = SweepProgress("s", planned_cells=100, planned_searches=6000)
    shown = rates(clock, capsys, sweep, lambda at: int(RATE * min(at, 100)), 200)
    assert set(shown[1:10]) == {RATE}
    assert shown[-1] == 0


def test_a_sweep_that_is_closed_and_counted_from_zero_shows_no_rate_below_zero(clock, capsys):
    """The day's calls are used up after five seconds; what has landed is then loaded, without a request."""
    sweep = SweepProgress("s", planned_cells=100, planned_searches=6000)
    with progress.display(Console(width=200)) as watch:
        for clock.now, sweep.step, sweep.tally.requests in ((5.0, "collecting", 100), (6.0, "loading", 0)):
            watch(sweep)
    assert "loading: 0 of 6,000 searches answered · 0 requests/s" in capsys.readouterr().out


@pytest.mark.parametrize("searches", [216, 180_000])
def test_a_usual_terminal_shows_how_many_searches_are_done_from_the_first_second(clock, searches):
    """A terminal of 80 columns; the cells by status are what does not fit."""
    sweep = SweepProgress("s", planned_cells=1_584_000, planned_searches=searches)
    file = io.StringIO()
    with progress.display(Console(width=80, force_terminal=True, file=file)) as watch:
        for answered in (0, searches // 2, searches):
            clock.now += 1
            sweep.tally.requests = sweep.tally.searches = answered
            sweep.normalised.update(offered=answered, absent=answered, no_offer=answered)
            watch(sweep)
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
    lines = [line.strip() for line in re.split(r"[\r\n]+", said) if f"/{searches}" in line]
    assert {int(re.findall(rf"(\d+)/{searches}", line)[0]) for line in lines} >= {searches}
    for line in lines:
        assert "collecting" in line
        assert "requests/s" in line
        assert len(line) <= 80
