"""`nightaudit status`: the sweeps of the lake, and how fresh the published file is."""

from __future__ import annotations

from pipeline.cli import views
from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.night.overview import overview
from pipeline.settings import read_settings


def show_status() -> None:
    """Print the sweeps of the lake and the freshness of the published file."""
    settings = read_settings()
    Terminal().print(views.status_view(overview(Lake(settings.lake)), settings, settings.clock()))
