"""The night as a Prefect flow: the same steps as tasks, and what Prefect stores about them."""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import sys

import pytest
from prefect_runs import ROOT, call, environment, loggers_of
from tiny_night import SECRET, outside_supplier, published, receiving

from pipeline.domain.errors import GateBlocked, LakeBusy, SettingsError, SupplierDown
from pipeline.lake import Lake
from pipeline.night.nightly import STEPS


def run_flow(in_environment, given):
    from flows.nightly import nightly

    in_environment(given)
    return nightly()


def artifacts(server) -> dict[str, object]:
    """The data of the latest artifact of each key."""
    found = call(server, "artifacts/filter", {"sort": "CREATED_DESC"})
    return {item["key"]: item["data"] for item in reversed(found)}


# Other tests leave runs behind that wait for their time.
BEGUN = {"flow_runs": {"start_time": {"is_null_": False}}, "sort": "START_TIME_DESC", "limit": 1}


def last_run(server) -> dict[str, object]:
    return call(server, "flow_runs/filter", BEGUN)[0]


def test_each_step_of_the_night_is_a_task_and_prefect_keeps_its_pages(settings, in_environment, server):
    made = run_flow(in_environment, settings())

    assert published(Lake(settings().lake)) == [made.sweep_id]
    run = last_run(server)
    tasks = call(
        server, "task_runs/filter", {"flow_runs": {"id": {"any_": [run["id"]]}}, "sort": "EXPECTED_START_TIME_ASC"}
    )
    names = [task["name"].rpartition("-")[0] for task in tasks]
    wanted = ["night", "finish-left-over", "begin", *(step.__name__ for step in STEPS)]
    assert sorted(names) == sorted(wanted)
    assert {task["state"]["type"] for task in tasks} == {"COMPLETED"}
    kept = artifacts(server)
    assert kept["nightly-progress"] == 100.0
    assert made.sweep_id in kept["nightly-summary"].replace("\\", "")
    assert "Simulated" in kept["nightly-summary"]
    assert "index.html" in kept["nightly-reports"]
    assert "Simulated" in kept["nightly-reports"]
    assert "](data:image/svg+xml;base64," in kept["nightly-reports"]
    assert "The night passed" in kept["nightly-quality"]


@pytest.mark.slow
def test_a_supplier_that_is_down_fails_the_run_and_no_secret_is_kept_anywhere(
    settings, in_environment, tmp_path, server, prefect_records
):
    with outside_supplier(settings, tmp_path, status_500_rate=1.0) as (_, given), pytest.raises(SupplierDown):
        run_flow(in_environment, given)

    run = last_run(server)
    assert run["state"]["type"] == "FAILED"
    assert "SupplierDown" in run["state"]["message"]
    records = b"".join(file.read_bytes() for file in prefect_records.iterdir() if file.is_file())
    assert run["id"].encode() in records or run["name"].encode() in records
    for seen in (SECRET, base64.b64encode(f"shop:{SECRET}".encode()).decode().rstrip("=")):
        assert seen.encode() not in records


@pytest.mark.slow
def test_a_blocked_night_fails_its_run_and_leaves_its_quality_there(settings, in_environment, server, monkeypatch):
    from pipeline.night import gate

    given = settings()
    blocked = gate.GateBlocked("The sweep failed 1 critical check: offer.key")

    def refuse(*_, **__):
        raise blocked

    monkeypatch.setattr("pipeline.night.nightly.publish_checked", refuse)
    with receiving() as (address, _), pytest.raises(GateBlocked):
        run_flow(in_environment, given.model_copy(update={"notify_webhook": address}))

    run = last_run(server)
    assert run["state"]["type"] == "FAILED"
    assert "GateBlocked" in run["state"]["message"]
    assert "hidden-part" not in json.dumps([run, call(server, "artifacts/filter", {})])
    assert "Quality of" in artifacts(server)["nightly-quality"]


def test_a_notification_block_is_refused_where_no_server_keeps_it(settings, in_environment, monkeypatch):
    from flows import nightly as module

    monkeypatch.setattr(module, "block_of_server", lambda: None)
    in_environment(settings(notify_block="slack-webhook/watch"))
    with pytest.raises(SettingsError, match="PREFECT_API_URL"):
        module.nightly.fn()


def test_an_error_meant_for_users_is_logged_once_and_without_a_traceback(caplog):
    from flows.logs import tell_our_errors_once

    tell_our_errors_once()
    error = LakeBusy("The lake is being written.", hint="Wait.")
    for name in ("prefect.task_runs", "prefect.flow_runs"):
        logging.getLogger(name).error("Encountered exception during execution: %r", error, exc_info=error)

    assert [record.getMessage() for record in caplog.records] == ["The lake is being written.\nWait."]
    assert caplog.records[0].exc_info is None


def test_the_log_of_a_flow_is_json_if_the_settings_say_so_and_still_reaches_prefect(tmp_path, write_spec, server):
    given = environment(tmp_path, write_spec(), PREFECT_API_URL=server, NIGHTAUDIT_LOG_FORMAT="json")
    night = [sys.executable, "-c", "from flows.nightly import nightly; nightly()"]
    done = subprocess.run(night, cwd=ROOT, env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    (sweep_id,) = Lake(given["NIGHTAUDIT_LAKE"]).sweep_ids()
    steps = [(line["step"], line["sweep_id"]) for line in lines if "step" in line]
    assert steps == [(name, sweep_id) for name in ("begin", *(step.__name__ for step in STEPS))]
    (landed, *_) = [line for line in lines if line["message"].startswith("Landed ")]
    assert landed["sweep_id"] == sweep_id
    # What else is there is Prefect's own.
    others = "".join(line for line in done.stderr.splitlines() if not line.startswith("{"))
    assert not [line["message"] for line in lines if line["message"] in others]
    assert any(name.startswith("pipeline.") for name in loggers_of(server, last_run(server)["id"]))
