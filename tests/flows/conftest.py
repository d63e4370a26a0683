"""One real Prefect server for the session, started as `make schedule` starts it, without telemetry."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest
from free_port import free_port
from tiny_night import settings_in, write_spec_in

import flows  # noqa: F401 - sets defaults of Prefect's environment

sys.path.insert(0, str(Path(__file__).parent))


# Prefect reads these when it is first imported, which the tests here do inside their bodies.
_HOME = tempfile.TemporaryDirectory(prefix="prefect-home-", ignore_cleanup_errors=True)
os.environ["PREFECT_HOME"] = _HOME.name
os.environ["DO_NOT_TRACK"] = "1"
os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
os.environ["PREFECT_SERVER_API_PORT"] = str(free_port())
os.environ.pop("PREFECT_API_URL", None)


@pytest.fixture(scope="session")
def server():
    """The address of Prefect's API."""
    from prefect.events.worker import EventsWorker
    from prefect.logging.handlers import APILogWorker

    from flows.server import prefect_server

    with prefect_server() as address:
        yield address
        # What runs have still to report is sent while there is a server: it would be tried for a minute after it.
        EventsWorker.drain_all(timeout=30)
        APILogWorker.drain_all(timeout=30)


@pytest.fixture(scope="session")
def prefect_records(server) -> Path:  # noqa: ARG001 - it keeps them
    """The folder of the server's database."""
    return Path(_HOME.name)


@pytest.fixture
def settings(tmp_path: Path):
    """Settings of a small simulated night; called with what is to differ."""
    return lambda **others: settings_in(tmp_path, **others)


@pytest.fixture
def in_environment(monkeypatch):
    """Put settings in the environment, where a flow reads them."""

    def put(given) -> None:
        for name in given.model_fields_set:
            value = getattr(given, name)
            secret = getattr(value, "get_secret_value", None)
            monkeypatch.setenv(f"NIGHTAUDIT_{name.upper()}", str(secret() if secret else value))

    return put


@pytest.fixture
def write_spec(tmp_path: Path):
    """Write a spec of few properties and return its path."""
    return lambda **given: write_spec_in(tmp_path, **given)
