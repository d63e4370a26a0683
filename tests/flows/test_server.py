"""A Prefect server that ends or cannot be reached while `make schedule` serves its deployments."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest
from free_port import free_port

_ANSWERS_ALL = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Yes(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

HTTPServer(("127.0.0.1", int(sys.argv[1])), Yes).serve_forever()
"""


@pytest.fixture
def started(monkeypatch, tmp_path):
    """What is started in place of Prefect's server, and its port."""
    from prefect.settings import PREFECT_API_URL, PREFECT_HOME, PREFECT_SERVER_API_PORT, temporary_settings

    from flows import server

    made: list[subprocess.Popen[bytes]] = []

    def start(port, _log):
        made.append(subprocess.Popen([sys.executable, "-c", _ANSWERS_ALL, str(port)], stderr=subprocess.DEVNULL))
        return made[-1]

    monkeypatch.setattr(server, "_start", start)
    monkeypatch.setattr(server, "_LOOK_SECONDS", 0.1)
    monkeypatch.setattr(server, "_SILENT_SECONDS", 3.0)
    monkeypatch.setattr(server, "_STOP_SECONDS", 0.5)
    monkeypatch.setenv("PREFECT_API_URL", "")
    given = {PREFECT_HOME: tmp_path, PREFECT_SERVER_API_PORT: free_port()}
    # Other tests have a server of their own, whose address may still be set.
    with temporary_settings(given, restore_defaults={PREFECT_API_URL}):
        yield made
    assert all(each.poll() is not None for each in made)


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP], ids=["ends", "hangs"])
def test_a_server_of_our_own_that_is_lost_is_started_again_at_the_same_address(started, fault):
    from flows.server import answers, prefect_server

    with prefect_server() as address:
        assert os.environ["PREFECT_API_URL"] == address
        started[0].send_signal(fault)
        ends_at = time.monotonic() + 60
        while len(started) < 2 or not answers(address):
            assert time.monotonic() < ends_at
            time.sleep(0.1)
    assert len(started) == 2


@pytest.mark.parametrize(("away", "is_noticed"), [(0.5, False), (2.0, True)], ids=["for a moment", "for long"])
def test_deployments_are_served_again_only_after_the_server_was_silent_for_long(monkeypatch, away, is_noticed):
    from flows import deploy

    began = time.monotonic()
    monkeypatch.setattr(deploy, "_AWAY_SECONDS", 1.5)
    monkeypatch.setattr(deploy, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(deploy, "answers", lambda _: time.monotonic() - began > away)
    waiting = asyncio.wait_for(deploy._back_after_absence("http://127.0.0.1:1/api"), 5)
    if is_noticed:
        asyncio.run(waiting)
    else:
        with pytest.raises(TimeoutError):
            asyncio.run(waiting)
