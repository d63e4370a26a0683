"""The deployments: what they declare, and that they run."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx
import pytest
import yaml

from pipeline.domain.errors import SettingsError
from pipeline.settings import Settings, read_settings

ROOT = Path(__file__).parents[2]
DECLARED = yaml.safe_load((ROOT / "flows" / "prefect.yaml").read_text())["deployments"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(tmp_path: Path, spec: Path, **others: str) -> dict[str, str]:
    """Nothing of the user's own: a folder for Prefect, a lake, a spec, no .env."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "NIGHTAUDIT_"))}
    return {
        **kept,
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "NIGHTAUDIT_LAKE": str(tmp_path / "lake"),
        "NIGHTAUDIT_SPEC": str(spec),
        "NIGHTAUDIT_WORKERS": "1",
        **others,
    }


def call(address: str, path: str, body: object = None, method: str = "POST") -> object:
    return httpx.request(method, f"{address}/{path}", json=body, timeout=60, trust_env=False).raise_for_status().json()


def begin_run(address: str) -> str:
    deployment = call(address, "deployments/name/nightly/nightly", method="GET")
    return call(address, f"deployments/{deployment['id']}/create_flow_run", {})["id"]


def await_ends(address: str, runs: list[str], seconds: float = 120) -> list[str]:
    ends_at = time.monotonic() + seconds
    while True:
        states = [call(address, f"flow_runs/{run}", method="GET")["state"]["type"] for run in runs]
        if all(state in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"} for state in states):
            return states
        assert time.monotonic() < ends_at, states
        time.sleep(0.3)


def test_the_declared_deployment_is_the_one_that_is_served():
    from flows.deploy import DEPLOYMENT, DESCRIPTION
    from flows.nightly import nightly

    (declared,) = DECLARED
    (schedule,) = declared["schedules"]
    defaults = Settings.model_fields
    assert (schedule["cron"], schedule["timezone"]) == (
        defaults["schedule_cron"].default,
        defaults["schedule_timezone"].default,
    )
    assert (declared["name"], declared["description"]) == (DEPLOYMENT, DESCRIPTION)
    assert declared["entrypoint"] == f"flows/nightly.py:{nightly.name}"
    assert declared["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}


def test_the_next_run_is_told_in_the_time_zone_of_the_schedule():
    from flows.deploy import next_run_of

    zone = "Europe/Stockholm"
    due = next_run_of(read_settings(_env_file=None, schedule_cron="30 2 * * *", schedule_timezone=zone))
    assert (due.hour, due.minute, due.tzinfo) == (2, 30, ZoneInfo(zone))
    assert due > datetime.now(ZoneInfo(zone))


def test_a_bad_cron_expression_is_named_before_anything_starts():
    from flows.deploy import next_run_of

    with pytest.raises(SettingsError, match="NIGHTAUDIT_SCHEDULE_CRON is 'at night'"):
        next_run_of(read_settings(_env_file=None, schedule_cron="at night"))


def test_a_run_that_a_crash_has_left_running_does_not_take_tonights_place(prefect_records, lake):  # noqa: ARG001
    from prefect.settings import get_current_settings

    from flows.deploy import deployment_of, end_dead_runs

    address = get_current_settings().api.url

    async def deploy():
        made = await deployment_of(read_settings(_env_file=None))
        return await made.apply()

    deployment = asyncio.run(deploy())

    def begin() -> tuple[str, str]:
        run = begin_run(address)
        for state in ("PENDING", "RUNNING"):
            told = call(address, f"flow_runs/{run}/set_state", {"state": {"type": state}})
        return run, told["status"]

    dead, _ = begin()
    with lake.writing("a night that is not dead"):
        asyncio.run(end_dead_runs(lake))
    assert call(address, f"flow_runs/{dead}", method="GET")["state"]["type"] == "RUNNING"

    asyncio.run(end_dead_runs(lake))
    assert call(address, f"flow_runs/{dead}", method="GET")["state"]["type"] == "CRASHED"
    assert begin()[1] == "ACCEPT"
    assert call(address, f"deployments/{deployment}", method="GET")["global_concurrency_limit"]["active_slots"] == 1
    asyncio.run(end_dead_runs(lake))


def test_silent_runs_are_ended_by_one_automation_however_often_it_is_asked_for(prefect_records):  # noqa: ARG001
    from prefect.settings import get_current_settings

    from flows.deploy import WATCH_NAME, end_silent_runs

    end_silent_runs()
    end_silent_runs()
    found = call(get_current_settings().api.url, "automations/filter", {})
    (watch,) = [automation for automation in found if automation["name"] == WATCH_NAME]
    assert watch["trigger"]["match_related"]["prefect.resource.name"] == "nightly"


def test_the_served_deployment_runs_one_night_at_a_time_and_stops_when_asked(tmp_path, write_spec):
    given = environment(tmp_path, write_spec(), PREFECT_SERVER_API_PORT=str(free_port()))
    log = tmp_path / "log"
    with log.open("w") as out:
        serving = subprocess.Popen(
            [sys.executable, "-m", "flows.deploy"], cwd=ROOT, env=given, stdout=out, stderr=out, start_new_session=True
        )
    try:
        address = await_address(serving, log)
        assert "30 2 * * * (UTC)" in log.read_text()
        states = await_ends(address, [begin_run(address), begin_run(address)])
        assert sorted(states) == ["CANCELLED", "COMPLETED"], log.read_text()
        assert (tmp_path / "lake" / "published" / "nightaudit.duckdb").exists()
        assert len(list((tmp_path / "lake" / "raw").iterdir())) == 1

        serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0, log.read_text()
        with pytest.raises(httpx.ConnectError):
            call(address, "health", method="GET")
    finally:
        if serving.poll() is None:
            os.killpg(serving.pid, signal.SIGKILL)
            serving.wait()


def await_address(serving: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the deployment is there, and return the address of Prefect's API."""
    ends_at = time.monotonic() + 120
    while time.monotonic() < ends_at and serving.poll() is None:
        if found := re.search(r"PREFECT_API_URL=(\S+)", log.read_text()):
            try:
                call(found[1], "deployments/name/nightly/nightly", method="GET")
            except httpx.HTTPStatusError:
                pass  # it is made a moment after this is told
            else:
                return found[1]
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def test_the_declared_deployment_runs_on_a_worker_of_a_process_work_pool(tmp_path, write_spec, prefect_records):  # noqa: ARG001
    from prefect.settings import get_current_settings

    address = get_current_settings().api.url
    given = environment(tmp_path, write_spec(), PREFECT_API_URL=address)

    def prefect(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "prefect", *arguments]

    for arguments in (
        ("work-pool", "create", "--type", "process", "nightaudit"),
        ("--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly"),
    ):
        told = subprocess.run(
            prefect(*arguments), cwd=ROOT, env=given, stdin=subprocess.DEVNULL, capture_output=True, timeout=120
        )
        assert told.returncode == 0, told.stdout + told.stderr
    run = begin_run(address)
    log = tmp_path / "log"
    with log.open("w") as out:
        # Not in the repository's folder: the deployment knows where that is.
        worker = subprocess.Popen(
            prefect("worker", "start", "--pool", "nightaudit", "--limit", "1", "--install-policy", "never"),
            cwd=tmp_path,
            env=given,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        assert await_ends(address, [run]) == ["COMPLETED"], log.read_text()
        assert (tmp_path / "lake" / "published" / "nightaudit.duckdb").exists()
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def test_a_night_needs_no_configured_server_and_leaves_no_process_behind(tmp_path, write_spec):
    import psutil

    script = (
        "from flows.nightly import run_nightly\n"
        "from pipeline.settings import read_settings\n"
        "import psutil\n"
        "if __name__ == '__main__':\n"
        "    pids = set()\n"
        "    watch = lambda _: pids.update(child.pid for child in psutil.Process().children())\n"
        "    summary = run_nightly(read_settings(_env_file=None), watch=watch)\n"
        "    print(summary.sweep_id, *pids)\n"
    )
    path = tmp_path / "night.py"
    path.write_text(script)
    told = subprocess.run(
        [sys.executable, str(path)],
        cwd=tmp_path,
        env=environment(tmp_path, write_spec()),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert told.returncode == 0, told.stderr
    assert "Traceback" not in told.stderr
    sweep_id, *pids = told.stdout.split()
    assert (tmp_path / "lake" / "raw" / sweep_id).exists()
    assert pids
    ends_at = time.monotonic() + 20
    while left := [psutil.Process(int(pid)) for pid in pids if psutil.pid_exists(int(pid))]:
        assert time.monotonic() < ends_at, left
        time.sleep(0.2)
