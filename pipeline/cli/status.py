"""`nightaudit status`: the sweeps of the lake, and how fresh the published file is."""

from __future__ import annotations

import dataclasses
import json
import sys

from pipeline.cli import views
from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.night.overview import overview
from pipeline.settings import read_settings


def show_status(form: str) -> None:
    """Print the sweeps of the lake and the freshness of the published file; as JSON, one sweep a line."""
    settings = read_settings()
    held = overview(Lake(settings.lake))
    if form == "json":
        sys.stdout.writelines(json.dumps(dataclasses.asdict(sweep), default=str) + "\n" for sweep in held.sweeps)
    else:
        Terminal().print(views.status_view(held, settings, settings.clock()))
