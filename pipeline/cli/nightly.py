"""`nightaudit nightly`: the whole night, in this process."""

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from pipeline.cli import views
from pipeline.cli.given import notification_block, settings_with
from pipeline.cli.progress import display
from pipeline.cli.terminal import Terminal, own_command
from pipeline.lake import Lake
from pipeline.night.aside import Aside
from pipeline.night.night import Night
from pipeline.night.nightly import run_night
from pipeline.night.summary import NightSummary
from pipeline.process.pandasless import keep_pandas_out


def nightly(spec: Path | None, limit: int | None = None, markets: Sequence[str] | None = None) -> None:
    """Run a night and print its summary."""
    # The process beside this one has pandas, for those who judge.
    keep_pandas_out()
    settings = settings_with(spec, limit, markets)
    console = Terminal()

    def show(summary: NightSummary) -> None:
        console.print(views.night_view(summary))
        # Unwrapped, so that it can be copied.
        console.print(Text(f'{own_command()} query "{summary.query}"', style="cyan"), soft_wrap=True)

    with Aside() as aside, display(console) as watch:
        lake, block = Lake(settings.lake), notification_block()
        run_night(Night(settings, lake, watch=watch, show=show, block=block, aside=aside))
