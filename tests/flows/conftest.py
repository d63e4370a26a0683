"""Nights with real Prefect and the real sandbox; Prefect's records in a folder of their own, nothing phoned home."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

import flows  # noqa: F401 - sets defaults of Prefect's environment

sys.path.insert(0, str(Path(__file__).parent))

# Prefect reads these when it is first imported, which the tests here do inside their bodies.
_HOME = tempfile.TemporaryDirectory(prefix="prefect-home-", ignore_cleanup_errors=True)
os.environ["PREFECT_HOME"] = _HOME.name
os.environ["DO_NOT_TRACK"] = "1"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ.pop("PREFECT_API_URL", None)

# Two cells; 4 searches.
TINY = """
[properties]
{properties}
[stays]
nights = [1]
[[stays.horizon]]
to_days = {days}
every_days = 1
[ask]
markets = ["GB"]
parties = ["2"]
currencies = ["EUR"]
operations = ["multi", "single"]
"""


@pytest.fixture
def write_spec(tmp_path: Path):
    """Write a spec of few properties and return its path."""

    def write(*, ids: list[int] | None = None, days: int = 2) -> Path:
        path = tmp_path / f"{days}-days-of-{len(ids or [])}.toml"
        path.write_text(TINY.format(properties=f"ids = {ids}" if ids else "sandbox = 2", days=days))
        return path

    return write


@pytest.fixture(scope="session")
def prefect_records():
    """A Prefect server for the session; gives the place of its database."""
    from prefect.settings import get_current_settings
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=120):
        url = get_current_settings().server.database.connection_url
        yield Path(url.get_secret_value().removeprefix("sqlite+aiosqlite:///"))


@pytest.fixture
def settings(tmp_path: Path, write_spec, prefect_records: Path):  # noqa: ARG001 - a night needs a server
    """Settings of a small simulated night; called with what is to differ."""
    from pipeline.settings import read_settings

    def given(**others):
        usual = {"lake": str(tmp_path / "lake"), "spec": write_spec(), "workers": 1}
        return read_settings(_env_file=None, **{**usual, **others})

    return given
