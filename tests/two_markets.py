"""Nights of the bundled sandbox: two markets, lists and details, published without an audit."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipeline.lake import Lake
from pipeline.night import night_sweep
from pipeline.night.night import Night
from pipeline.publish import publish
from pipeline.settings import Settings

NOW = datetime(2030, 5, 1, 2, tzinfo=UTC)
_SPEC = """
[properties]
sandbox = 40
[stays]
nights = [2]
[[stays.horizon]]
to_days = 2
[ask]
markets = ["DE", "GB"]
parties = ["2"]
operations = ["multi", "single"]
"""


def settings_of_two_markets(home: Path, **others) -> Settings:
    """Write the spec into `home`, and return settings that sweep it into the lake beside it."""
    (home / "sweep.toml").write_text(_SPEC)
    usual = {"lake": str(home / "lake"), "spec": home / "sweep.toml", "workers": 1, "sandbox_properties": 40}
    return Settings(_env_file=None, **{**usual, **others})


def publish_night(settings: Settings, number: int) -> None:
    """Sweep night `number` and publish it."""
    lake, at = Lake(settings.lake), NOW + timedelta(days=number)
    manifest = night_sweep.start(settings, lake, at)
    asyncio.run(night_sweep.collect(Night(settings, lake, manifest, clock=lambda: at)))
    publish(lake, manifest.sweep_id, at)
