"""Serving reports on this machine only."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import httpx
import pytest
import uvicorn

from pipeline.domain.errors import InputError
from pipeline.report import write_reports
from pipeline.serve import application


def test_reports_are_served_under_the_names_of_this_machine_only(two_nights):
    write_reports(two_nights)
    with served(two_nights) as address:
        assert "Reports of all nights" in httpx.get(address, follow_redirects=True).text
        assert httpx.get(f"{address}/reports/%2e%2e/published/nightaudit.duckdb").status_code == 404
        assert httpx.get(f"{address}/reports/", headers={"host": "attacker.example"}).status_code == 400


@contextmanager
def served(lake):
    server = uvicorn.Server(uvicorn.Config(application(lake), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_before_the_first_report_there_is_nothing_to_serve(lake):
    with pytest.raises(InputError, match="no reports yet"):
        application(lake)
