"""`make schedule` and a night by hand, as processes of their own and without a configured Prefect server."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest
from prefect_runs import ROOT, await_ends, begin_run, call, environment


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
        assert await_next_night(address).endswith(("02:30:00Z", "02:30:00+00:00"))
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


def await_next_night(address: str) -> str:
    """Wait until the scheduler has lined up a run by itself, and return when it is due."""
    ends_at = time.monotonic() + 60
    wanted = {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}, "sort": "EXPECTED_START_TIME_ASC", "limit": 1}
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
                pass  # it is made a moment after this is told
            else:
                return found[1]
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def test_a_night_needs_no_configured_server_and_leaves_no_process_behind(tmp_path, write_spec):
    script = (
        "if __name__ == '__main__':\n"
        "    import psutil\n"
        "    from flows.nightly import run_nightly\n"
        "    from pipeline.settings import read_settings\n"
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


@pytest.mark.parametrize(
    ("number", "step", "go_on"),
    [
        (signal.SIGTERM, "pipeline.night.gate.stored_audit", "nightaudit publish {sweep_id}"),
        (signal.SIGINT, "flows.nightly.summary_of", "Run the night again"),
    ],
)
def test_a_night_that_is_told_to_stop_after_its_sweep_says_how_to_go_on(tmp_path, write_spec, number, step, go_on):
    module, name = step.rsplit(".", 1)
    script = (
        "import os, importlib\n"
        "def stopped(*given, **named):\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "if __name__ == '__main__':\n"
        "    import flows.nightly\n"
        f"    setattr(importlib.import_module('{module}'), '{name}', stopped)\n"
        "    from pipeline.cli import main\n"
        "    main()\n"
    )
    path = tmp_path / "night.py"
    path.write_text(script)
    told = subprocess.run(
        [sys.executable, str(path), "nightly"],
        cwd=tmp_path,
        env=environment(tmp_path, write_spec()),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert told.returncode == 1, told.stderr
    assert "Traceback" not in told.stderr
    (folder,) = (tmp_path / "lake" / "raw").iterdir()
    assert "Stopped as asked." in told.stderr
    assert go_on.format(sweep_id=folder.name) in told.stderr
