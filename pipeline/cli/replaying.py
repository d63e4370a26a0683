"""`nightaudit rebuild` and `nightaudit drift`: what can be made of raw answers, without the network."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline import night
from pipeline.cli.progress import display
from pipeline.domain.errors import InputError, UnknownSweep
from pipeline.drift import drift_of
from pipeline.lake import Lake
from pipeline.raw import read_manifest
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


def show_drift(sweep_id: str | None, form: str) -> None:
    """Print how a sweep's answers deviate from the document: the latest sweep's, if none is named."""
    if form not in {"table", "json"}:
        raise InputError(f"--format is table or json, not {form!r}.")
    settings = read_settings()
    lake = Lake(settings.lake)
    known = lake.sweep_ids()
    if not known:
        raise UnknownSweep(f"The lake {lake.root} holds no sweep yet.", hint="Make one: nightaudit sweep")
    found = drift_of(lake, read_manifest(lake, sweep_id or known[-1]), settings.max_body_mb * 1_000_000)
    if form == "json":
        rows = (dataclasses.asdict(each) | {"share": each.share} for each in found)
        sys.stdout.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    table = Table(box=None, header_style="bold")
    for name in ("kind", "operation", "path", "detail", "count", "share", "example"):
        table.add_column(name, overflow="fold", min_width=9)
    for each in found:
        # Names and values come from the supplier: nothing in them is markup of ours.
        cells = (
            each.kind,
            each.operation,
            each.path,
            each.detail,
            f"{each.occurrences:,}",
            f"{each.share:.2%}",
            each.example,
        )
        table.add_row(*map(Text, cells))
    console = Console(soft_wrap=True)
    console.print(Text(f"Sweep {sweep_id or known[-1]}: {len(found)} kinds of deviation from the document."))
    console.print(table)
