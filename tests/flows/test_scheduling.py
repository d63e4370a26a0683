"""The deployments: what they declare, and that they run."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import subprocess
import sys
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
import yaml
from prefect_runs import ROOT, await_ends, await_environment_of_run, begin_run, call, environment, loggers_of

from pipeline.settings import Settings, read_settings

DECLARED = {
    declared["name"]: declared
    for declared in yaml.safe_load((ROOT / "flows" / "prefect.yaml").read_text())["deployments"]
}


def test_the_declared_nightly_schedule_is_that_of_the_settings():
    declared = DECLARED["nightly"]
    (schedule,) = declared["schedules"]
    defaults = Settings.model_fields
    assert (schedule["cron"], schedule["timezone"]) == (
        defaults["schedule_cron"].default,
        defaults["schedule_timezone"].default,
    )


@pytest.mark.parametrize("name", DECLARED)
def test_each_declared_deployment_names_its_flow_runs_one_at_a_time_and_gives_parameters_that_it_takes(name):
    declared = DECLARED[name]
    path, function = declared["entrypoint"].split(":")
    flow = getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), function)
    assert declared["concurrency_limit"]["limit"] == 1
    assert "nightaudit" in declared["tags"]
    assert all({"cron", "timezone"} <= schedule.keys() for schedule in declared["schedules"])
    flow.validate_parameters(declared.get("parameters", {}))
    assert set(declared.get("parameters", {})) <= set(flow.parameters.properties)


@pytest.mark.parametrize("name", DECLARED)
def test_each_declared_run_gets_in_its_environment_what_prefect_reads_before_it_imports_our_flows(name):
    import flows

    given = DECLARED[name]["work_pool"]["job_variables"]["env"]
    assert given == {
        name: value for name, value in flows.DEFAULTS.items() if name != "PREFECT_SERVER_ANALYTICS_ENABLED"
    }
    assert given["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == str(flows.HEARTBEAT_SECONDS)


@pytest.mark.parametrize("name", ["quote-check", "backfill"])
def test_what_a_person_has_to_start_has_no_schedule_and_never_waits_for_its_turn(name):
    declared = DECLARED[name]
    assert declared["schedules"] == []
    assert declared["concurrency_limit"] == {"limit": 1, "collision_strategy": "CANCEL_NEW"}


def test_the_declared_quote_check_makes_no_reservation_by_itself():
    assert DECLARED["quote-check"]["parameters"]["yes_make_reservations"] is False


def test_the_next_run_is_reported_in_the_time_zone_of_the_schedule():
    from flows.deploy import next_run_of

    zone = "Europe/Stockholm"
    due = next_run_of(read_settings(_env_file=None, schedule_cron="30 2 * * *", schedule_timezone=zone))
    assert (due.hour, due.minute, due.tzinfo) == (2, 30, ZoneInfo(zone))
    assert due > datetime.now(ZoneInfo(zone))


def test_a_run_that_a_crash_has_left_running_does_not_take_tonights_place(server, lake):
    from flows.dead_runs import end_dead_runs
    from flows.deploy import DEPLOYMENT, deployments_of

    address = server

    async def deploy():
        made = await deployments_of(read_settings(_env_file=None))
        return await made[0].apply()

    deployment = asyncio.run(deploy())

    def begin() -> tuple[str, str]:
        run = begin_run(address)
        for state in ("PENDING", "RUNNING"):
            reported = call(address, f"flow_runs/{run}/set_state", {"state": {"type": state}})
        return run, reported["status"]

    dead, _ = begin()
    with lake.writing("a night that is not dead"):
        asyncio.run(end_dead_runs(lake, DEPLOYMENT))
    assert call(address, f"flow_runs/{dead}", method="GET")["state"]["type"] == "RUNNING"

    asyncio.run(end_dead_runs(lake, DEPLOYMENT))
    reported = call(address, f"flow_runs/{dead}", method="GET")["state"]
    assert (reported["type"], reported["name"]) == ("SCHEDULED", "AwaitingRetry")
    call(address, f"flow_runs/{dead}/set_state", {"state": {"type": "CANCELLED"}, "force": True})
    assert begin()[1] == "ACCEPT"
    assert call(address, f"deployments/{deployment}", method="GET")["global_concurrency_limit"]["active_slots"] == 1
    asyncio.run(end_dead_runs(lake, DEPLOYMENT))


def test_runs_are_watched_by_the_same_automations_however_often_they_are_set_up(server):
    from flows.dead_runs import CRASHED_NAME, KILLED_NAME, RESTART_NAME, watch_silent_runs

    watch_silent_runs()
    # A server that an earlier version has set up: a run must not be restarted twice.
    earlier = call(server, "automations/filter", {})[0] | {"name": "nightaudit: end runs that have fallen silent"}
    call(server, "automations/", {key: earlier[key] for key in ("name", "trigger", "actions")})
    watch_silent_runs()
    found = {automation["name"]: automation for automation in call(server, "automations/filter", {})}
    assert len(call(server, "automations/filter", {})) == len(found)
    assert set(found) == {RESTART_NAME, KILLED_NAME, CRASHED_NAME}
    watched = {name: one["trigger"]["match_related"]["prefect.resource.name"] for name, one in found.items()}
    assert "nightly" in watched[RESTART_NAME]
    assert watched[KILLED_NAME] == watched[RESTART_NAME]
    # A quote makes a reservation, so nothing repeats it automatically.
    assert watched[CRASHED_NAME] == ["quote-check"]
    assert "quote-check" not in watched[RESTART_NAME]


def test_a_run_counts_as_dead_after_three_of_its_heartbeats_whatever_prefect_is_set_to(server):
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    from flows import HEARTBEAT_SECONDS
    from flows.dead_runs import watch_silent_runs

    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: 300}):
        watch_silent_runs()
    assert {one["trigger"]["within"] for one in watching_for_silence(server)} == {3 * HEARTBEAT_SECONDS}
    # A run that dies while its process starts has sent no heartbeat.
    for automation in watching_for_silence(server):
        assert set(automation["trigger"]["after"]) == {"prefect.flow-run.heartbeat", "prefect.flow-run.Pending"}


def watching_for_silence(address: str) -> list[dict[str, object]]:
    from flows.dead_runs import KILLED_NAME

    return [one for one in call(address, "automations/filter", {}) if one["name"] != KILLED_NAME]


@pytest.mark.slow
def test_the_declared_deployment_runs_on_a_worker_of_a_process_work_pool(tmp_path, write_spec, server):
    address = server
    # A worker's own heartbeat gives way to the one that the automation counts on.
    given = environment(tmp_path, write_spec(), PREFECT_API_URL=address, PREFECT_FLOWS_HEARTBEAT_FREQUENCY="300")

    def prefect(*arguments: str) -> list[str]:
        return [sys.executable, "-m", "prefect", *arguments]

    call(address, "work_pools/", {"name": "nightaudit", "type": "process"})
    deploy = prefect("--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "nightly")
    reported = subprocess.run(deploy, cwd=ROOT, env=given, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    assert reported.returncode == 0, reported.stdout + reported.stderr
    assert {one["trigger"]["within"] for one in watching_for_silence(address)} == {180}
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
        assert await_environment_of_run(worker.pid)["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "60"
        assert await_ends(address, [run]) == ["COMPLETED"], log.read_text()
        assert any(name.startswith("pipeline.") for name in loggers_of(address, run))
        assert (tmp_path / "lake" / "published" / "nightaudit.duckdb").exists()
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
