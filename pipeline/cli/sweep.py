"""What the commands do that change the lake, and `status`."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

from rich.text import Text

from pipeline.cli import views
from pipeline.cli.progress import display
from pipeline.cli.terminal import Terminal
from pipeline.domain.errors import TooManyFailures
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, read_manifest
from pipeline.night import steps
from pipeline.night.overview import overview, sweep_rows
from pipeline.night.summary import NightSummary
from pipeline.process.pandasless import keep_pandas_out
from pipeline.settings import Settings, read_settings
from pipeline.spec import SAMPLE_SPEC


def settings_with(spec: Path | None, limit: int | None = None) -> Settings:
    """Return the settings, with the spec and the limit of the command line above those of the environment."""
    given: dict[str, Any] = {"spec": spec, "property_limit": limit}
    return read_settings(**{name: value for name, value in given.items() if value is not None})


def show_plan(spec_path: Path | None, limit: int | None) -> None:
    """Print what a spec will cost."""
    from pipeline.night.choose_detail import choose_detail
    from pipeline.night.costs import cost_history
    from pipeline.plan import SweepPlan
    from pipeline.plan.estimate import estimate

    settings = settings_with(spec_path, limit)
    today = settings.clock().date()
    spec, ids = steps.read_spec_of(settings, today)
    folder = Path(settings.spec or SAMPLE_SPEC).parent
    chosen = choose_detail(spec, ids, today, Lake(settings.lake).published_file, folder)
    plan = SweepPlan.of(spec, ids, today, None if chosen is None else chosen.property_ids)
    counts = plan.counts()
    history = cost_history(Lake(settings.lake))
    cost = estimate(
        counts,
        settings.rate,
        settings.in_flight,
        history,
        settings.daily_calls,
        is_simulated=settings.is_simulated,
    )
    endless = steps.endless(plan.partitions, settings.daily_calls)
    Terminal().print(views.plan_view(settings, spec, len(ids), counts, cost, history, chosen, endless=endless))


def sweep(spec: Path | None, limit: int | None) -> None:
    """Begin a sweep and run it to its end."""
    settings = settings_with(spec, limit)
    lake = Lake(settings.lake)
    steps.refuse_before_making(settings, lake, settings.clock())
    with lake.writing("a sweep"):
        _run(settings, lake, steps.start(settings, lake, settings.clock()))


def resume(sweep_id: str | None, *, close: bool) -> None:
    """Go on with a sweep, or give up its rest; then normalise and load it."""
    settings = read_settings()
    lake = Lake(settings.lake)
    with lake.writing("a resumed sweep"):
        manifest = read_manifest(lake, sweep_id) if sweep_id else steps.latest_unfinished(lake)
        if close:
            steps.give_up_rest(lake, manifest, settings.clock())
        _run(settings, lake, manifest)


def _run(settings: Settings, lake: Lake, manifest: Manifest) -> None:
    keep_pandas_out()
    console = Terminal()
    console.print(views.begun_view(manifest))
    with display(console) as watch:
        asyncio.run(steps.collect(settings, lake, manifest, watch=watch))
    row = sweep_rows(lake)[manifest.sweep_id]
    console.print(views.sweep_view(row))
    share = row["failed"] / row["planned"]
    if share > settings.tolerated_failed_share:
        raise TooManyFailures(
            f"{share:.1%} of the cells failed; {settings.tolerated_failed_share:.1%} are tolerated "
            "(NIGHTAUDIT_TOLERATED_FAILED_SHARE).",
            kept="The sweep is loaded.",
            hint=f"Go on all the same with: nightaudit audit {manifest.sweep_id}",
        )
    console.print(f"Check it with: nightaudit audit {manifest.sweep_id}", style="cyan")


def nightly(spec: Path | None, limit: int | None) -> None:
    """Run the nightly flow in this process."""
    settings = settings_with(spec, limit)
    console = Terminal()
    with console.status("Starting Prefect …"):
        from flows.nightly import run_nightly

    def show(summary: NightSummary) -> None:
        console.print(views.night_view(summary))
        # Unwrapped, so that it can be copied.
        console.print(Text(f'{_command()} query "{summary.query}"', style="cyan"), soft_wrap=True)

    with display(console) as watch:
        run_nightly(settings, watch=watch, show=show)


def _command() -> str:
    """Return how the user can call this command line again from where they are."""
    if shutil.which("nightaudit"):
        return "nightaudit"
    called = Path(sys.argv[0])
    return str(called.relative_to(Path.cwd()) if called.is_relative_to(Path.cwd()) else called)


def status() -> None:
    """Print the sweeps of the lake and the freshness of the published file."""
    settings = read_settings()
    Terminal().print(views.status_view(overview(Lake(settings.lake)), settings, settings.clock()))
