"""A machine that dies in the middle of a night: Prefect's server notices, and another worker continues."""

from __future__ import annotations

import subprocess
import time

import psutil
import pytest
from night_machine import NIGHTAUDIT, assert_same, contents
from prefect_machines import kill, run_prefect, worker
from prefect_runs import await_ends, begin_run, call, environment
from waiting import await_true

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("pool")]


@pytest.fixture(scope="module")
def pool(server):
    call(server, "work_pools/", {"name": "nightaudit", "type": "process"})


def test_a_night_whose_machine_died_is_begun_again_by_another_worker(tmp_path, write_spec, server):
    """It repeats nothing that has landed, and its night is that of a machine that stays alive."""
    clock = {"NIGHTAUDIT_SANDBOX_CLOCK": "2026-10-01T02:00:00Z"}
    spec = write_spec(days=60)
    given = environment(tmp_path, spec, PREFECT_API_URL=server, NIGHTAUDIT_REQUESTS_PER_SECOND="8", **clock)
    run_prefect(given, "--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly")
    run = begin_run(server)
    first = worker(given, tmp_path)
    try:
        raw = tmp_path / "lake" / "raw"
        await_true(lambda: list(raw.glob("*/multi-*.parquet")))
        kill(first)
        landed = {path: path.read_bytes() for path in raw.glob("*/*.parquet")}
        killed_at = time.monotonic()
        second = worker(given, tmp_path)
        try:
            await_true(lambda: state_of(server, run) != "RUNNING", 240)
            # After three heartbeats that did not come, the last of which may have been sent just before.
            assert time.monotonic() - killed_at < 240
            assert await_ends(server, [run], 600) == ["COMPLETED"], (tmp_path / "log").read_text()
        finally:
            kill(second)
    finally:
        kill(first)
    assert call(server, f"flow_runs/{run}", method="GET")["run_count"] == 2
    assert {path: path.read_bytes() for path in landed} == landed
    assert len(list(raw.iterdir())) == 1
    alone = tmp_path / "alone"
    alone.mkdir()
    others = {name: value for name, value in environment(alone, spec, **clock).items() if name != "PREFECT_API_URL"}
    subprocess.run([NIGHTAUDIT, "nightly"], cwd=alone, env=others, check=True, capture_output=True, timeout=300)
    published = "lake/published/nightaudit.duckdb"
    assert_same(contents(tmp_path / published), contents(alone / published))


def test_a_night_whose_machine_died_before_it_began_is_begun_by_another_worker(tmp_path, write_spec, server):
    """It has sent no heartbeat."""
    clock = {"NIGHTAUDIT_SANDBOX_CLOCK": "2026-10-01T02:00:00Z"}
    given = environment(tmp_path, write_spec(), PREFECT_API_URL=server, **clock)
    run_prefect(given, "--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly")
    run, first = begin_run(server), worker(given, tmp_path)
    try:
        await_true(lambda: state_of(server, run) == "PENDING")
    finally:
        kill(first)
    second = worker(given, tmp_path)
    try:
        assert await_ends(server, [run], 600) == ["COMPLETED"], (tmp_path / "log").read_text()
    finally:
        kill(second)


def test_a_night_whose_process_alone_was_killed_is_begun_again_once_and_not_after_it_has_completed(
    tmp_path, write_spec, server
):
    """As for lack of memory: the worker lives and reports it. And what restarts a completed run makes it do nothing."""
    from flows.dead_runs import ENDED, RESTARTED_SILENT

    clock = {"NIGHTAUDIT_SANDBOX_CLOCK": "2026-10-01T02:00:00Z"}
    slow = {"NIGHTAUDIT_REQUESTS_PER_SECOND": "8", **clock}
    given = environment(tmp_path, write_spec(days=60), PREFECT_API_URL=server, **slow)
    run_prefect(given, "--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly")
    run, machine = begin_run(server), worker(given, tmp_path)
    try:
        raw = tmp_path / "lake" / "raw"
        await_true(lambda: list(raw.glob("*/multi-*.parquet")))
        process = next(
            each for each in psutil.process_iter() if environment_of(each).get("PREFECT__FLOW_RUN_ID") == run
        )
        process.kill()
        await_true(lambda: call(server, f"flow_runs/{run}", method="GET")["run_count"] == 2)
        assert await_ends(server, [run], 600) == ["COMPLETED"], (tmp_path / "log").read_text()
        ended = {"filter": {"event": {"name": [ENDED]}, "any_resource": {"id": [f"prefect.flow-run.{run}"]}}}
        await_true(lambda: call(server, "events/filter", ended)["total"] == 1)
        (event,) = call(server, "events/filter", ended)["events"]
        assert ("flow", "nightly") in {
            (each["prefect.resource.role"], each.get("prefect.resource.name")) for each in event["related"]
        }
        sweeps = {path: path.stat().st_mtime_ns for path in raw.rglob("*.parquet")}
        again = {"type": "SCHEDULED", "name": "AwaitingRetry", "message": RESTARTED_SILENT}
        call(server, f"flow_runs/{run}/set_state", {"state": again, "force": True})
        await_true(lambda: call(server, f"flow_runs/{run}", method="GET")["run_count"] == 3)
        assert await_ends(server, [run], 600) == ["COMPLETED"], (tmp_path / "log").read_text()
        assert "nothing was done again" in call(server, f"flow_runs/{run}", method="GET")["state"]["message"]
        assert {path: path.stat().st_mtime_ns for path in raw.rglob("*.parquet")} == sweeps
    finally:
        kill(machine)


def environment_of(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def state_of(address: str, run: str) -> str:
    return call(address, f"flow_runs/{run}", method="GET")["state"]["type"]
