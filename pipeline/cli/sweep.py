"""`nightaudit sweep` and `nightaudit resume`: a sweep from its first search to its last row in the tables."""

from collections.abc import Sequence
from pathlib import Path

from pipeline.cli import views
from pipeline.cli.given import settings_with
from pipeline.cli.progress import display
from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.lake.raw import Manifest, read_manifest
from pipeline.night import night_sweep
from pipeline.night.latest import is_published, latest_unfinished
from pipeline.night.night import Night
from pipeline.night.overview import sweep_rows
from pipeline.night.read_spec import refuse_before_making
from pipeline.night.tolerance import refuse_too_many_failures, refuse_useless
from pipeline.process.event_loop import run_in_loop
from pipeline.process.pandasless import keep_pandas_out
from pipeline.process.signals import stoppable
from pipeline.settings import Settings, read_settings
from pipeline.sweep import close as close_sweep


def sweep(spec: Path | None, limit: int | None, markets: Sequence[str] | None = None) -> None:
    """Run a new sweep."""
    settings = settings_with(spec, limit, markets)
    lake = Lake(settings.lake)
    refuse_before_making(settings, lake, settings.clock())
    with lake.writing("a sweep"):
        _run(settings, lake, night_sweep.start(settings, lake, settings.clock()))


def resume(sweep_id: str | None, *, close: bool) -> None:
    """Resume a sweep or abandon its remaining searches; then normalise and load it."""
    settings = read_settings()
    lake = Lake(settings.lake)
    lake.refuse_missing()
    with lake.writing("a resumed sweep"):
        manifest = read_manifest(lake, sweep_id) if sweep_id else latest_unfinished(lake)
        if close:
            close_sweep(lake, manifest, settings.clock())
        _run(settings, lake, manifest)


def _run(settings: Settings, lake: Lake, manifest: Manifest) -> None:
    keep_pandas_out()
    console = Terminal()
    console.print(views.begun_view(manifest))
    kept = f"The answers of sweep {manifest.sweep_id} that have landed are kept."
    with stoppable(kept, f"nightaudit resume {manifest.sweep_id}"), display(console) as watch:
        run_in_loop(lambda: night_sweep.collect(Night(settings, lake, manifest, watch=watch)))
    row = sweep_rows(lake)[manifest.sweep_id]
    console.print(views.sweep_view(row))
    kept, hint = "The sweep is loaded.", f"To continue anyway: nightaudit audit {manifest.sweep_id}"
    refuse_useless(lake, row, kept)
    refuse_too_many_failures(row, settings.tolerated_failed_share, kept, hint)
    if is_published(lake, manifest.sweep_id):
        console.print("It is already published.")
    else:
        console.print(f"Check it with: nightaudit audit {manifest.sweep_id}", style="cyan")
