"""`nightaudit status`, `metrics` and `health`: the sweeps of the lake, and how fresh the published file is."""

import dataclasses
import sys
from datetime import datetime
from pathlib import Path

from pipeline.cli import views
from pipeline.cli.terminal import Terminal, opened, write_json_lines
from pipeline.domain.errors import InputError, NightauditError
from pipeline.lake import Lake
from pipeline.lake.pulled import pulled_from
from pipeline.night.done_steps import command_to_go_on
from pipeline.night.latest import refuse_earlier
from pipeline.night.overview import overview
from pipeline.settings import read_settings

# The clocks of two machines of one lake may differ by this much.
_CLOCKS_DIFFER_HOURS = 0.1


def show_status(form: str) -> None:
    """Print the sweeps of the lake and the age of the published file; as JSON, one sweep per line."""
    settings = read_settings()
    lake = Lake(settings.lake)
    held = overview(lake)
    if form == "json":
        write_json_lines(map(dataclasses.asdict, held.sweeps))
        if held.fault:
            Terminal(stderr=True).print(held.fault, style="bold red")
    else:
        latest = held.sweeps[-1] if held.sweeps else None
        go_on = command_to_go_on(lake, latest.sweep_id) if latest and latest.state in {"loaded", "published"} else ""
        now = settings.clock()
        Terminal().print(views.status_view(held, settings, now, go_on, _refusal(lake, now)))


def _refusal(lake: Lake, now: datetime) -> str:
    """Return why no sweep can be continued at this time; empty: the clock allows it."""
    try:
        refuse_earlier(lake, now)
    except InputError as error:
        return f"{error.message}\n{error.hint}"
    return ""


class NightTooOld(NightauditError):
    """The last published night is older than allowed, or there is none."""


def write_metrics(output: Path | None) -> None:
    """Write the metrics to standard output, or to a file that is replaced atomically.

    Raises InputError in a folder that was pulled, and LakeError if the lake cannot be read.
    """
    from pipeline.night.metrics import metrics

    settings = read_settings()
    lake = Lake(settings.lake)
    if source := pulled_from(lake.root):
        raise InputError(
            f"{lake.root} is a copy of {source}, which has the metrics of its nights.",
            hint="Collect them there: set NIGHTAUDIT_LAKE to it.",
        )
    text = metrics(lake, settings.clock())
    with opened(output) as place:
        place.write(text)


def show_health(older_than: float) -> None:
    """Print the age of the last published night. Raises NightTooOld if it is above `older_than` hours or below 0."""
    settings = read_settings()
    held = overview(Lake(settings.lake))
    if held.fault:
        # It says what to do.
        raise NightTooOld(f"The published file cannot be read: {held.fault}")
    latest = held.latest_published
    if latest is None and held.copy_of:
        raise NightTooOld(
            f"{held.root} is a copy of {held.copy_of}, which records when its nights were published.",
            hint="Check that lake: set NIGHTAUDIT_LAKE to it.",
        )
    if latest is None:
        raise NightTooOld(
            "No night is published yet.", hint="Run one: nightaudit nightly\nList all sweeps: nightaudit status"
        )
    hours = (settings.clock() - latest.started_at).total_seconds() / 3600
    if hours < -_CLOCKS_DIFFER_HOURS:
        # Until then it would count as recent, although no night can follow it.
        raise NightTooOld(
            f"By this machine's clock, the last published night, {latest.sweep_id}, begins in {-hours:.1f} hours.",
            hint="Correct the clock that is wrong. What is refused until then: nightaudit status",
        )
    age = f"The last published night, {latest.sweep_id}, began {hours:.1f} hours ago"
    if hours > older_than:
        limit = f"{older_than:g} {'hour' if older_than == 1 else 'hours'}"
        raise NightTooOld(f"{age}; the limit is {limit}.", hint="See what happened: nightaudit status")
    sys.stdout.write(f"{age}.\n")
