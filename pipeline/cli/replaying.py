"""`nightaudit rebuild`: the tables and the published file, made anew from raw answers."""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.text import Text

from pipeline import night
from pipeline.cli.progress import display
from pipeline.lake import Lake
from pipeline.rebuild import Rebuilt, rebuild
from pipeline.settings import read_settings
from pipeline.sweep import SweepOptions


def rebuild_lake() -> None:
    """Rebuild the lake of the settings, and say what was made."""
    settings = read_settings()
    lake = Lake(settings.lake)
    options = SweepOptions(settings.in_flight, settings.workers, settings.max_body_mb * 1_000_000)
    console = Console()
    with lake.writing("a rebuild"), display(console) as watch:
        made = asyncio.run(rebuild(lake, options, now=night.utc_now, watch=watch))
    console.print(told(made), soft_wrap=True)


def told(made: Rebuilt) -> Text:
    """Return what was made, in a few lines."""
    sweeps = f"{len(made.sweeps)} sweep{'s' * (len(made.sweeps) != 1)}"
    text = Text(f"Made anew from raw: {sweeps}, now in {made.tables}.\n")
    text.append(f"Published file: {made.published_file or 'none, since nothing is published'}.\n")
    return text.append(
        f"The former tables stay in {made.former} for those who still have the former file open; the next rebuild "
        "removes them, and so may you."
    )
