"""A published night of a sandbox that outlives it, as a supplier of its own would: made once, copied for each test."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sandbox_settings import settings_asking

from pipeline.lake import Lake
from pipeline.night import night_sweep
from pipeline.night.night import Night as NightUnderWay
from pipeline.publish import publish
from pipeline.sandbox.server.launch import SandboxProcess
from pipeline.settings import Settings

SPEC = """
[properties]
ids = [{ids}]
[stays]
nights = [1]
check_in = ["{check_in}"]
[ask]
markets = ["GB"]
parties = ["2", "2+1"]
currencies = ["EUR"]
operations = ["multi", "single"]
single_properties = 6
"""


class Night(NamedTuple):
    """A lake with one published night, and the supplier that it is of."""

    lake: Lake
    settings: Settings
    sandbox: SandboxProcess

    def served(self, operation: str) -> int:
        return sum(self.sandbox.control("served")["requests"].get(operation, {}).values())


@pytest.fixture(scope="session")
def sandbox():
    # Without planted anomalies and omissions: what is tested here is what we make of sound answers, or of none.
    with SandboxProcess(seed=1, properties=60, plant_share=0, missing_share=0) as process:
        yield process


@pytest.fixture(scope="session")
def made(sandbox, tmp_path_factory) -> tuple[Path, Settings]:
    folder = tmp_path_factory.mktemp("night")
    ids = sandbox.control("properties")["property_ids"][:8]
    # Days ahead: whenever a run ends, the stay has not begun.
    check_in = datetime.now(UTC).date() + timedelta(days=3)
    (folder / "spec.toml").write_text(SPEC.format(ids=", ".join(map(str, ids)), check_in=check_in))
    settings = settings_asking(
        sandbox,
        requests_per_second=500,
        scopes="read_rooms write_rooms",
        quote_cap=40,
        read_timeout_seconds=60,
        workers=1,
        lake=str(folder / "lake"),
        spec=folder / "spec.toml",
    )
    lake = Lake(settings.lake)
    now = datetime.now(UTC)
    manifest = night_sweep.start(settings, lake, now)
    asyncio.run(night_sweep.collect(NightUnderWay(settings, lake, manifest)))
    publish(lake, manifest.sweep_id, now)
    return folder, settings


@pytest.fixture(scope="session")
def copied(made, sandbox) -> Callable[[Path], Night]:
    """Copy the night to a folder. Its views read the files of the first one until quotes are loaded."""
    folder, settings = made

    def copy(to: Path) -> Night:
        shutil.copytree(folder, to)
        sandbox.control("faults", {})
        lake = Lake(str(to / "lake"))
        return Night(lake, settings.model_copy(update={"lake": str(lake.root)}), sandbox)

    return copy


@pytest.fixture
def quotable(copied, tmp_path) -> Night:
    return copied(tmp_path / "night")


@pytest.fixture(scope="session")
def unquoted(made, sandbox) -> Night:
    """The night itself, for tests that write nothing."""
    folder, settings = made
    return Night(Lake(str(folder / "lake")), settings, sandbox)
