"""Serving reports on this machine only."""

from __future__ import annotations

import httpx
import pytest
from served import served

from pipeline.domain.errors import InputError
from pipeline.report import write_reports
from pipeline.report.serve import application


def test_reports_are_served_under_the_names_of_this_machine_only(two_nights):
    write_reports(two_nights)
    with served(two_nights) as address:
        assert "Reports of all nights" in httpx.get(address, follow_redirects=True).text
        assert httpx.get(f"{address}/reports/%2e%2e/published/nightaudit.duckdb").status_code == 404
        assert httpx.get(f"{address}/reports/", headers={"host": "attacker.example"}).status_code == 400


def test_before_the_first_report_there_is_nothing_to_serve(lake):
    with pytest.raises(InputError, match="no reports yet"):
        application(lake)
