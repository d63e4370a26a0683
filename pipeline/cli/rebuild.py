"""`nightaudit rebuild`: every table and the published file from the raw answers, offline."""

from rich.text import Text

from pipeline.cli.progress import display
from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.night.gate import audit_limits
from pipeline.night.rebuild import AS_A_WHOLE, Rebuilt, rebuild
from pipeline.process.event_loop import run_in_loop
from pipeline.process.pandasless import keep_pandas_out
from pipeline.process.signals import stoppable
from pipeline.settings import read_settings
from pipeline.sweep import SweepOptions


def rebuild_lake() -> None:
    """Rebuild the lake of the settings and print the result."""
    keep_pandas_out()
    settings = read_settings()
    lake = Lake(settings.lake)
    lake.refuse_missing()
    options = SweepOptions(settings.in_flight, settings.max_body_bytes, settings.workforce)
    console = Terminal()
    stopped = stoppable(AS_A_WHOLE.kept, AS_A_WHOLE.go_on)
    with stopped, lake.writing("a rebuild"), display(console) as watch:
        made = run_in_loop(lambda: rebuild(lake, options, audit_limits(settings), now=settings.clock, watch=watch))
    console.print(reported(made), soft_wrap=True)


def reported(made: Rebuilt) -> Text:
    """Return the result in a few lines."""
    sweeps = f"{len(made.sweeps)} sweep{'s' * (len(made.sweeps) != 1)}"
    text = Text(f"Rebuilt from raw answers: {sweeps}, now in {made.tables}.\n")
    text.append(f"Published file: {made.published_file or 'none, since nothing is published'}.\n")
    return text.append(
        f"The previous tables stay in {made.former} for readers that still have the previous file open; the next "
        "rebuild removes them, or you can."
    )
