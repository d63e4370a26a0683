"""`nightaudit plan`: what a spec will cost."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.cli import views
from pipeline.cli.given import settings_with
from pipeline.cli.terminal import Terminal
from pipeline.lake import Lake
from pipeline.night.outlook import as_record, look_ahead


def show_plan(spec_path: Path | None, limit: int | None, markets: Sequence[str] | None, form: str) -> None:
    """Print the estimate of a spec."""
    settings = settings_with(spec_path, limit, markets)
    outlook = look_ahead(settings, Lake(settings.lake))
    if form == "json":
        sys.stdout.write(json.dumps(as_record(outlook)) + "\n")
    else:
        Terminal().print(views.plan_view(settings, outlook))
