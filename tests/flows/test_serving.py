"""`make schedule`: the nightly deployment, served by a process of its own to the session's Prefect server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from prefect_runs import ROOT, await_ends, await_environment_of_run, begin_run, call, environment, loggers_of


@pytest.mark.slow
def test_the_served_deployment_runs_one_night_at_a_time_and_stops_when_asked(tmp_path, write_spec, server):
    forget_waiting_runs(server)
    # The automation counts on heartbeats every minute, so a setting of the user's does not change them.
    given = environment(tmp_path, write_spec(), PREFECT_API_URL=server, PREFECT_FLOWS_HEARTBEAT_FREQUENCY="300")
    log = tmp_path / "log"
    with log.open("w") as out:
        serving = subprocess.Popen(
            [sys.executable, "-m", "flows.deploy"], cwd=ROOT, env=given, stdout=out, stderr=out, start_new_session=True
        )
    try:
        address = await_address(serving, log)
        assert "30 2 * * * (UTC)" in log.read_text()
        assert await_next_night(address).endswith(("02:30:00Z", "02:30:00+00:00"))
        runs = [begin_run(address), begin_run(address)]
        assert await_environment_of_run(serving.pid)["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "60"
        # The other one begins when this one has ended; here a person thinks better of it.
        call(address, f"flow_runs/{await_waiting(address, runs)}/set_state", {"state": {"type": "CANCELLED"}})
        states = await_ends(address, runs)
        assert sorted(states) == ["CANCELLED", "COMPLETED"], log.read_text()
        (completed,) = (run for run, state in zip(runs, states, strict=True) if state == "COMPLETED")
        assert any(name.startswith("pipeline.") for name in loggers_of(address, completed))
        assert (tmp_path / "lake" / "published" / "nightaudit.duckdb").exists()
        assert len(list((tmp_path / "lake" / "raw").iterdir())) == 1

        serving.send_signal(signal.SIGTERM)
        assert serving.wait(240) == 0, log.read_text()
    finally:
        if serving.poll() is None:
            os.killpg(serving.pid, signal.SIGKILL)
            serving.wait()


def forget_waiting_runs(address: str) -> None:
    """Cancel what other tests have left behind: the deployment that is served here has the name of theirs."""
    waiting = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}}
    for run in call(address, "flow_runs/filter", waiting):
        call(address, f"flow_runs/{run['id']}/set_state", {"state": {"type": "CANCELLED"}, "force": True})


def await_waiting(address: str, runs: list[str]) -> str:
    """Wait until one of the runs is held back by the other, and return it."""
    ends_at = time.monotonic() + 120
    while time.monotonic() < ends_at:
        for run in runs:
            if call(address, f"flow_runs/{run}", method="GET")["state"]["name"] == "AwaitingConcurrencySlot":
                return run
        time.sleep(0.3)
    raise AssertionError("no run waits for the other")


def await_next_night(address: str) -> str:
    """Wait until the scheduler has lined up a run by itself, and return when it is due."""
    ends_at = time.monotonic() + 60
    ahead = {
        "state": {"type": {"any_": ["SCHEDULED"]}},
        "expected_start_time": {"after_": datetime.now(UTC).isoformat()},
    }
    wanted = {"flow_runs": ahead, "sort": "EXPECTED_START_TIME_ASC", "limit": 1}
    while time.monotonic() < ends_at:
        if due := call(address, "flow_runs/filter", wanted):
            return due[0]["expected_start_time"]
        time.sleep(0.5)
    raise AssertionError("the scheduler lines up nothing")


def await_address(serving: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the deployment is there, and return the address of Prefect's API."""
    ends_at = time.monotonic() + 120
    while time.monotonic() < ends_at and serving.poll() is None:
        if found := re.search(r"PREFECT_API_URL=(\S+)", log.read_text()):
            try:
                call(found[1], "deployments/name/nightly/nightly", method="GET")
            except httpx.HTTPStatusError:
                pass  # it is made a moment after this is printed
            else:
                return found[1]
        time.sleep(0.2)
    raise AssertionError(log.read_text())
